"""Streams over situations, drawn as lanes of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from gpu_cep.lang.ast_intervals import IntervalQuery
from gpu_cep.lang.parser import parse
from gpu_cep.oracle import intervals
from gpu_cep.oracle.intervals import IntervalMatch
from gpu_cep.oracle.options import IntervalOptions

_TRUTH = {"#": True, ".": False, "?": None}


def lanes(*drawn: str, ts: Sequence[object] | None = None, **columns: Sequence[object]) -> pa.Table:
    """Columns a, b, … that are true at #, false at . and NULL at ?, at 0, 1, 2 …, unless `ts` says otherwise."""
    times = list(range(len(drawn[0]))) if ts is None else list(ts)
    truths = {name: pa.array([_TRUTH[mark] for mark in lane], pa.bool_()) for name, lane in zip("abcd", drawn, strict=False)}
    return pa.table({"ts": times, **truths, **{name: list(values) for name, values in columns.items()}})


def found(pattern: str, events: pa.Table, define: str = "A AS a, B AS b", *, limit: int = 10_000, **options: Any) -> list[IntervalMatch]:
    """The matches of `pattern`, which may go on with WITHIN and RETURN, over the situations that `define` names."""
    query = parse(f"DEFINE {define} PATTERN {pattern}")
    assert isinstance(query, IntervalQuery)
    return intervals.matches(query, events, IntervalOptions(**options), limit=limit)


def detected(pattern: str, events: pa.Table, define: str = "A AS a, B AS b", **options: Any) -> list[object]:
    """When each match is detected early."""
    return [match.detected_at for match in found(pattern, events, define, detect="early", **options)]

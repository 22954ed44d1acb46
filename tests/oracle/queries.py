"""Queries over streams small enough to check by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from gpu_cep.oracle import events as oracle
from gpu_cep.oracle.options import EventOptions
from tests.event_queries import event_query

NEXT, ANY, ROBUST = "skip_till_next_match", "skip_till_any_match", "robust_skip_till_next_match"
STRICT, PARTITION = "strict_contiguity", "partition_contiguity"


def stream(letters: str, **columns: list[object]) -> pa.Table:
    """One event per letter, its type, at 1, 2, 3 …, unless `columns` say otherwise."""
    return pa.table({"ts": list(range(1, len(letters) + 1)), "type": list(letters), **columns})


def bindings(
    text: str, events: pa.Table, strategy: str = NEXT, *, limit: int = 10_000, **options: Any
) -> list[tuple[tuple[int, ...], ...]]:  # fmt: skip
    """The bindings of each match, in the order of the pattern's variables."""
    found = oracle.matches(event_query(text), events, EventOptions(strategy=strategy, **options), limit=limit)
    return [tuple(match.values()) for match in found]

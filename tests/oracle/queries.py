"""Queries over streams small enough to check by hand."""

from __future__ import annotations

import pyarrow as pa

from gpu_cep.lang.parser import parse
from gpu_cep.oracle import events as oracle
from gpu_cep.oracle.options import EventOptions

NEXT, ANY, ROBUST = "skip_till_next_match", "skip_till_any_match", "robust_skip_till_next_match"
STRICT, PARTITION = "strict_contiguity", "partition_contiguity"


def stream(letters: str, **columns: list[object]) -> pa.Table:
    """One event per letter, its type, at 1, 2, 3 …, unless `columns` say otherwise."""
    return pa.table({"ts": list(range(1, len(letters) + 1)), "type": list(letters), **columns})


def bindings(
    text: str, events: pa.Table, strategy: str = NEXT, *, limit: int = 10_000, **options: object
) -> list[tuple[tuple[int, ...], ...]]:  # fmt: skip
    """The bindings of each match, in the order of the pattern's variables."""
    found = oracle.matches(parse(text), events, EventOptions(strategy=strategy, **options), limit=limit)
    return [tuple(match.values()) for match in found]

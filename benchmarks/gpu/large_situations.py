"""Interval patterns on both engines, over events enough for many parts, chunks and calls: whole tables are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

import gpu_cep
from benchmarks.gpu.findings import Finding, fault, row
from benchmarks.workloads.situation_events import plain_streams, situation_events
from benchmarks.workloads.situation_queries import query_of

NAMES = ("S1", "S2", "S3")
EVENTS_PER_STREAM = 1_000
# Less is refused, so that few events are never cut.
LEAST_MEMORY = 1 << 20


@dataclass(frozen=True, slots=True)
class SituationQuery:
    """A query over drawn situations, by one stream or by many, and what it asks for."""

    name: str
    pattern: str
    window: int
    options: Mapping[str, Any]

    @property
    def text(self) -> str:
        return query_of(self.pattern, NAMES, self.window)


QUERIES = (
    SituationQuery("situations of one stream", "S1 overlaps S2; S1 meets S2; S1 contains S2 AND S2 before S3", 500, {"output": "indices"}),
    SituationQuery("situations far apart", "S1 before S2 AND S1 during S3; S1 overlaps S3; S1 after S3", 1_000, {"output": "count"}),
    SituationQuery("situations of streams", "S1 starts S2; S1 overlaps S2 AND S2 before S3", 100_000, {"partition_by": "k"}),
    SituationQuery("situations with gaps", "S1 overlaps S2; S1 during S2 AND S1 before S3", 100_000, {"partition_by": "k", "gap": 1_100}),
    SituationQuery("situations, early", "S1 overlaps S2; S1 finishes S2; S1 contains S2 AND S2 before S3", 500, {"detect": "early"}),
    SituationQuery("situations of streams, early", "S1 during S2 AND S2 overlaps S3", 9_000, {"partition_by": "k", "detect": "early"}),
)
# Bytes of the device's memory for each event: as it comes, so that work is cut, and so that events do not fit.
MEMORIES = {"as it comes": None, "cut into parts": 150, "spilled to the host": 8}


@dataclass(frozen=True, slots=True)
class LargeSituations:
    """A query over so many events; `memory` bytes of the device's for each (None: all there is)."""

    query: SituationQuery
    variation: str
    memory: int | None
    size: int

    @property
    def name(self) -> str:
        return f"{self.query.name}, {self.size:,} events, {self.variation}"


@dataclass(frozen=True, slots=True)
class SituationAgreement:
    """Both engines gave the same table of so many rows."""

    query: str
    variation: str
    events: int
    rows: int

    def cells(self) -> dict[str, str]:
        return {"query": self.query, "events": f"{self.events:,}", "variation": self.variation, "rows": f"{self.rows:,}"}


def large_situations(sizes: Sequence[int]) -> list[LargeSituations]:
    """Return every query in every variation, the smallest size first."""
    return [LargeSituations(query, *memory, size) for size, memory, query in product(sizes, MEMORIES.items(), QUERIES)]


def compared(large: LargeSituations) -> Iterator[Finding]:
    """Yield both engines' tables."""
    events = events_of(large.size)
    limit = None if large.memory is None else max(LEAST_MEMORY, large.memory * large.size)
    # whole events would take the time of the check
    options = {"columns": ["ts"], **large.query.options}
    expected = gpu_cep.match(events, large.query.text, engine="cpu", **options)
    found = gpu_cep.match(events, large.query.text, engine="gpu", gpu_memory=limit, **options)
    if not found.equals(expected):
        yield fault(f"{large.name}: another table, of {found.num_rows:,} rows on the GPU and {expected.num_rows:,} on the CPU")
        return
    yield row("Same situations", SituationAgreement(large.query.name, large.variation, large.size, expected.num_rows))


def events_of(size: int) -> pa.Table:
    """Return an event each second, of streams that lie among each other."""
    streams = np.random.default_rng(size).integers(0, max(1, size // EVENTS_PER_STREAM), size)
    return situation_events(size, plain_streams(len(NAMES))).append_column("k", pa.array(streams))

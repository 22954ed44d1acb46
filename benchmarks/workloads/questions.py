"""The benchmarks' questions and their events: deterministic Arrow tables of any size.

Rows arrive in time order, as in a log, with the streams interleaved at random.
Windows are given in mean events of one stream, so that the share of matches
stays the same however many streams the events are spread over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

DEFAULT_EVENTS = 10_000_000
_GRAIN = 65_536  # event types are drawn from a table of this many slots


@dataclass(frozen=True, slots=True)
class Workload:
    """One question over one kind of events.

    `shares` are the event types with their share of the events; `key` is the
    stream key column (None: one stream); `window` is the mean number of the
    stream's events that it spans; `largest_gap` and `smallest_gap` bound the
    ticks between two successive rows, so that a smallest gap of 0 makes ties.
    """

    name: str
    query: str
    shares: Mapping[str, float]
    value: str
    key: str | None
    streams: int
    window: int
    smallest_gap: int = 1
    largest_gap: int = 3
    text_keys: bool = False
    plain_types: bool = False
    seed: int = 2026

    @property
    def mean_gap(self) -> float:
        return (self.smallest_gap + self.largest_gap) / 2


def window_ticks(workload: Workload, streams: int, factor: int = 1) -> int:
    """Return the length of the window in ticks of ``ts``, `factor` times the workload's own."""
    return int(workload.window * workload.mean_gap * streams * factor)


def query_text(workload: Workload, streams: int, factor: int = 1) -> str:
    return f"{workload.query} WITHIN {window_ticks(workload, streams, factor)}"


def generate(workload: Workload, events: int = DEFAULT_EVENTS, streams: int | None = None) -> pa.Table:
    """Return the events of `workload` as a table of the columns ts, the stream key if it has one, type and the value."""
    rng = np.random.default_rng(workload.seed)
    gaps = rng.integers(workload.smallest_gap, workload.largest_gap + 1, events)
    columns: dict[str, pa.Array] = {"ts": pa.array(np.cumsum(gaps, dtype=np.int64))}
    if workload.key is not None:
        columns[workload.key] = _keys(workload, rng, events, streams or workload.streams)
    columns["type"] = _types(workload, rng, events)
    columns[workload.value] = pa.array(rng.random(events) * 100.0)
    return pa.table(columns)


def _keys(workload: Workload, rng: np.random.Generator, events: int, streams: int) -> pa.Array:
    codes = pa.array(rng.integers(0, streams, events, dtype=np.int32))
    if not workload.text_keys:
        return codes
    return pa.DictionaryArray.from_arrays(codes, pa.array([f"S{code:07d}" for code in range(streams)]))


def _types(workload: Workload, rng: np.random.Generator, events: int) -> pa.Array:
    slots = np.repeat(np.arange(len(workload.shares), dtype=np.int32), _slot_counts(workload.shares))
    codes = slots[rng.integers(0, _GRAIN, events, dtype=np.uint16)]
    encoded = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(workload.shares)))
    return encoded.cast(pa.string()) if workload.plain_types else encoded


def _slot_counts(shares: Mapping[str, float]) -> np.ndarray:
    bounds = np.round(np.cumsum([0.0, *shares.values()]) * _GRAIN).astype(np.int64)
    if bounds[-1] != _GRAIN:
        raise ValueError(f"the shares of {', '.join(shares)} do not add up to 1")
    return np.diff(bounds)


_TREATMENT = {"C": 0.04, "P": 0.08, "D": 0.04, "B": 0.04, "L": 0.3, "M": 0.3, "R": 0.2}
_ONLY_TREATMENT = {"C": 0.2, "P": 0.4, "D": 0.2, "B": 0.2}
_TICKS = {"A": 0.05, "B": 0.15, "C": 0.05, "Q": 0.75}
_ORDERS = {"Quote": 0.2, "Trade": 0.01, "Halt": 0.001, "Order": 0.5, "Cancel": 0.289}

_MEDICAL = "PATTERN SEQ(AND(C c, P p+, D d), B b)"
_STOCKS = "PATTERN SEQ(A a, B b+, C c)"
_SELECTIVE = "PATTERN SEQ(Quote q, Trade t, Halt h) WHERE skip_till_any_match { q.price < t.price AND t.price < h.price }"

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("medical", _MEDICAL, _TREATMENT, "V", "patient", 100_000, window=25),
        Workload("medical_dense", _MEDICAL, _ONLY_TREATMENT, "V", "patient", 100_000, window=5),
        Workload("medical_pair", f"{_MEDICAL} WHERE prev(p.V) < p.V AND c.V < b.V", _TREATMENT, "V", "patient", 100_000, window=25),
        Workload("stocks", _STOCKS, _TICKS, "price", "symbol", 1_000, window=20, smallest_gap=0, text_keys=True),
        Workload("selective", _SELECTIVE, _ORDERS, "price", None, 1, window=500),
        Workload("selective_plain", _SELECTIVE, _ORDERS, "price", None, 1, window=500, plain_types=True),
    )
}

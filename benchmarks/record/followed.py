"""The record of a stream that is followed in several ways, and its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.record import pages

OURS = "gpu_match, Structured Streaming"


@dataclass(frozen=True, slots=True)
class Followed:
    """What one way takes: rows a second of the clock, and microseconds of processor time for each row."""

    way: str
    keys: int
    rows: int
    rate: float
    cores: float


def table(found: Sequence[Followed]) -> str:
    """Return a line for each number of keys and way, beside gpu_match."""
    ours = {each.keys: each for each in found if each.way == OURS}
    ratios = [(ours[each.keys].rate / each.rate, each.cores / ours[each.keys].cores) for each in found]
    lines = [
        [f"{each.keys:,}", each.way, f"{each.rows:,}", f"{each.rate:,.0f}", f"{each.cores:,.2f} µs", *(f"{ratio:,.2f}" for ratio in pair)]
        for each, pair in zip(found, ratios, strict=True)
    ]
    head = ["keys", "way", "rows", "rows/s", "processor time a row", "gpu_match is so many times as fast", "by processor time"]
    return pages.table([head, *lines], figures=5)

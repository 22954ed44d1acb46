"""How long it takes to compress and count matches that are too many to be listed.

``python -m benchmarks.planner.compressed`` prints its page and writes it to results/
with its record. Two questions: ``SEQ(a+, b+)`` over equal values, all in one
window, and ``SEQ(A, B, C)`` by the length of the window, counted by states and
by enumeration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

import gpu_cep as cep
from benchmarks.record import pages
from benchmarks.record.clocks import least
from benchmarks.record.folders import RESULTS
from benchmarks.record.machine import described, environment, name_on

SIZES = (12_500, 25_000, 50_000, 100_000)
WINDOWS = (10, 100, 1_000)
EVENTS = 200_000
REPEATS = 3
EQUAL = "PATTERN SEQ(a+, b+) WHERE a.x = 1 AND b.x = 1"
ANY: Literal["skip_till_any_match"] = "skip_till_any_match"


@dataclass(frozen=True, slots=True)
class Growth:
    """Equal values: the seconds until the graph is there, and until it is counted; its nodes, and the bits of the count."""

    events: int
    nodes: int
    bits: int
    compress_seconds: float
    count_seconds: float


@dataclass(frozen=True, slots=True)
class Windowed:
    """``output="count"`` by states and by the lazy chain, which enumerates."""

    window: int
    matches: int
    states_seconds: float
    enumeration_seconds: float


def measure_growth(size: int, repeats: int = REPEATS) -> Growth:
    """``SEQ(a+, b+)`` over `size` equal values."""
    events = pa.table({"ts": np.arange(size), "x": np.ones(size, np.int64)})
    compress, found = least(lambda: cep.match(events, EQUAL, output="compressed", columns=[], strategy=ANY), repeats)
    count, number = least(lambda: cep.Compressed.from_table(found.table).count(), repeats)
    return Growth(size, found.table.num_rows, number.bit_length(), compress.cpu, count.cpu)


def measure_window(window: int, size: int = EVENTS, repeats: int = REPEATS) -> Windowed:
    """``SEQ(A, B, C)`` where each type is a tenth of the events, counted in both ways, which must agree."""
    types = np.random.default_rng(0).choice(list("ABCX"), size, p=[0.1, 0.1, 0.1, 0.7])
    events = pa.table({"ts": np.arange(size), "type": types})
    pattern = f"PATTERN SEQ(A a, B b, C c) WITHIN {window}"
    states, counted = least(lambda: cep.match(events, pattern, output="count", strategy=ANY), repeats)
    chain, enumerated = least(lambda: cep.match(events, pattern, output="count", algorithm="lazy_chain", strategy=ANY), repeats)
    assert counted.equals(enumerated), (counted, enumerated)
    return Windowed(window, counted["count"][0].as_py(), states.cpu, chain.cpu)


def markdown(growth: Sequence[Growth], windowed: Sequence[Windowed], where: str) -> str:
    """Return the figures as a page."""
    head = ("events", "nodes", "bits of the count", "compress, s", "count(), s", "compress, per doubling", "count(), per doubling")
    ratios = [("", "")] + [
        (f"{after.compress_seconds / before.compress_seconds:.2f}", f"{after.count_seconds / before.count_seconds:.2f}")
        for before, after in zip(growth, growth[1:], strict=False)
    ]
    rows = [
        (f"{row.events:,}", f"{row.nodes:,}", f"{row.bits:,}", f"{row.compress_seconds:.3f}", f"{row.count_seconds:.3f}", *ratio)
        for row, ratio in zip(growth, ratios, strict=True)
    ]
    by_window = [(f"{row.window:,}", f"{row.matches:,}", f"{row.states_seconds:.3f}", f"{row.enumeration_seconds:.3f}") for row in windowed]
    parts = [
        "# Matches too many to be listed",
        where,
        f"`{EQUAL}`, skip till any match: all values are equal, and all in one window.",
        pages.table([head, *rows], figures=len(head)),
        f'`SEQ(A, B, C)` among {EVENTS:,} events, skip till any match, `output="count"`: by states, and by `algorithm="lazy_chain"`.',
        pages.table([("window", "matches", "by states, s", "by enumeration, s"), *by_window], figures=4),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, print the page, write it and its record."""
    # the first calls load the compiled kernels
    measure_growth(100, 1)
    measure_window(3, 1_000, 1)
    growth, windowed = [measure_growth(size) for size in SIZES], [measure_window(window) for window in WINDOWS]
    where = environment()
    page = markdown(growth, windowed, f"{described(where)}. CPU seconds of all threads, the best of {REPEATS} warm runs each.")
    record = {"environment": where, "growth": [asdict(row) for row in growth], "windows": [asdict(row) for row in windowed]}
    pages.publish(page, RESULTS, name_on(where, "compressed"), record)


if __name__ == "__main__":
    main()

"""How much a run of the benchmarks measures: in five minutes, or all."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Extent:
    """The sizes of one run.

    `events` are those of the questions; `curve_events` those of the curves of the workloads `curved`, whose points are numbers of
    streams, tenths of the events and multiples of the window; `algorithm_events` are those that each algorithm gets, and `outputs`
    what it, and each point of a curve, is asked for. `spark_events` are Spark's, of which a loop over pandas gets `loop_events`.
    `memory` are the outputs whose peak is measured.
    """

    events: int
    repeats: int
    curved: tuple[str, ...]
    curve_events: int
    streams: tuple[int, ...]
    tenths: tuple[int, ...]
    windows: tuple[int, ...]
    algorithm_events: int
    outputs: tuple[str, ...]
    spark_workloads: tuple[str, ...]
    spark_events: int
    loop_events: int
    memory: tuple[str, ...]
    startup: bool


QUICK = Extent(
    events=5_000_000,
    repeats=3,
    curved=("medical",),
    curve_events=2_000_000,
    streams=(10, 1_000, 100_000),
    tenths=(1, 10),
    windows=(1, 10, 100),
    algorithm_events=200_000,
    outputs=("rows",),
    spark_workloads=("medical",),
    spark_events=2_000_000,
    loop_events=100_000,
    memory=("rows",),
    startup=False,
)
FULL = Extent(
    events=10_000_000,
    repeats=3,
    curved=("medical", "medical_pair"),
    curve_events=10_000_000,
    streams=(10, 100, 1_000, 10_000, 100_000, 1_000_000),
    tenths=(1, 2, 5, 10),
    windows=(1, 10, 100, 1_000),
    algorithm_events=1_000_000,
    outputs=("count", "rows"),
    spark_workloads=("medical", "medical_dense"),
    spark_events=10_000_000,
    loop_events=500_000,
    memory=("count", "rows"),
    startup=True,
)
EXTENTS = {"quick": QUICK, "full": FULL}

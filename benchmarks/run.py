"""Measure gpu_cep against hand-written C++, elementary floors and, with --spark, Spark SQL.

``python benchmarks/run.py [--events N] [--only NAME] [--repeats N] [--no-curves] [--spark]`` prints Markdown and
writes it with the JSON record to ``benchmarks/results/``. Every figure of ours is checked first: the C++ loops must
find the same matches.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from itertools import chain
from pathlib import Path

import pyarrow as pa
from floors import Floor, measure_floors
from measure import OUTPUTS, Case, Stages, Timing, check_agreement, events_of, measure_match, measure_peer, measure_stages
from memory import MemoryUse, measure_memory
from report import Report, environment, markdown, write
from spark_peer import SparkTiming, measure_spark
from startup import measure_startups
from workloads import DEFAULT_EVENTS, WORKLOADS, Workload

RESULTS = Path(__file__).parent / "results"
STREAM_CURVE = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
CURVED = ("medical", "medical_pair")  # the workloads whose curves are drawn
ON_SPARK = ("medical", "medical_dense")  # the workloads whose question SQL can ask, too
WINDOW_CURVE = (1, 10, 100, 1_000)
WINDOW_CURVE_STREAMS = 100  # long streams, so that the longest window still fits into one


def measured_case(case: Case, repeats: int) -> tuple[list[Timing], list[Floor], list[Stages]]:
    """Everything that is timed on one table of events."""
    events = events_of(case)
    check_agreement(case, events)
    timings = [timing for output in OUTPUTS for timing in _contestants(case, events, output, repeats)]
    stages = [measure_stages(case, events, output) for output in OUTPUTS]
    return timings, measure_floors(case.workload, events, repeats), stages


def measured_curves(workloads: list[Workload], events: int, repeats: int) -> dict[str, list[Timing]]:
    """Rates over the number of streams, the number of events (with as many in each stream) and the length of the window."""
    curved = [workload for workload in workloads if workload.name in CURVED]
    curves = {
        "streams": [Case(w, events, streams) for w in curved for streams in STREAM_CURVE],
        "events": [Case(w, events * tenths // 10, w.streams * tenths // 10) for w in curved for tenths in (1, 2, 5, 10)],
        "window": [Case(w, events, WINDOW_CURVE_STREAMS, factor) for w in curved for factor in WINDOW_CURVE],
    }
    return {name: [t for case in cases for t in _curve_point(case, repeats)] for name, cases in curves.items()}


def measured_memory(cases: list[Case]) -> list[MemoryUse]:
    return [measure_memory(case, output) for case in cases for output in OUTPUTS]


def measured_spark(events: int, repeats: int) -> list[SparkTiming]:
    return [timing for name in ON_SPARK for timing in _measured_on_spark(WORKLOADS[name], events, repeats)]


def _measured_on_spark(workload: Workload, events: int, repeats: int) -> list[SparkTiming]:
    with tempfile.TemporaryDirectory() as folder:
        return measure_spark(Case(workload, events, workload.streams), Path(folder), repeats)


def _contestants(case: Case, events: pa.Table, output: str, repeats: int) -> list[Timing]:
    ours = [measure_match(case, events, output, threads, repeats) for threads in (1, 2)]
    return [*ours, measure_peer(case, events, output, repeats)]


def _curve_point(case: Case, repeats: int) -> list[Timing]:
    events = events_of(case)
    return [timing for output in OUTPUTS for timing in _contestants(case, events, output, repeats)]


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure gpu_cep against C++, floors and Spark.")
    parser.add_argument("--events", type=int, default=DEFAULT_EVENTS)
    parser.add_argument("--only", choices=sorted(WORKLOADS), help="one workload instead of all")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs counts")
    parser.add_argument("--curves", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--spark", action="store_true", help="the Spark part too")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    options = _arguments(argv)
    workloads = [WORKLOADS[options.only]] if options.only else list(WORKLOADS.values())
    cases = [Case(workload, options.events, workload.streams) for workload in workloads]
    timings, floors, stages = zip(*(measured_case(case, options.repeats) for case in cases), strict=True)
    report = Report(
        environment(os.cpu_count() or 1),
        timings=list(chain.from_iterable(timings)),
        floors=list(chain.from_iterable(floors)),
        stages=list(chain.from_iterable(stages)),
        curves=measured_curves(workloads, options.events, options.repeats) if options.curves else {},
        memory=measured_memory(cases),
        startup=measure_startups(),
        spark=measured_spark(options.events, options.repeats) if options.spark else [],
    )
    print(markdown(report))
    print(*write(report, RESULTS), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

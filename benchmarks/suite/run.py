"""Measure gpu_cep against hand-written C++, elementary floors, its own algorithms and, on Spark, SQL and a loop over pandas.

``python -m benchmarks.suite.run [--extent quick|full] [--events N] [--only NAME …] [--without PART …] [--record]`` prints Markdown and
writes it with its plots and the JSON record to ``benchmarks/results/``. Every figure of ours is checked first: all
contestants must find the same matches. The exit status is 1 if a stage is slower than its recorded ratio to the floor.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.baselines.cpp_loops import has_compiler
from benchmarks.baselines.environment import environment
from benchmarks.baselines.floors import Floor, measure_floors
from benchmarks.baselines.measure import (
    OUTPUTS,
    Case,
    Stages,
    Timing,
    check_agreement,
    events_of,
    measure_contestants,
    measure_stages,
    of_usual_length,
)
from benchmarks.record.folders import RESULTS
from benchmarks.spark.peer import measure_spark
from benchmarks.suite import guard
from benchmarks.suite.algorithm_rates import measure_algorithms
from benchmarks.suite.extents import EXTENTS, Extent
from benchmarks.suite.guard import Ratio
from benchmarks.suite.memory import measure_memory
from benchmarks.suite.report import PACKAGES, Report, markdown, write
from benchmarks.suite.startup import measure_startups
from benchmarks.workloads.questions import WORKLOADS, Workload

WINDOW_CURVE_STREAMS = 100  # long streams, so that the longest window still fits into one
# A stage that seems too slow is measured again, for the machine may have had other work.
TRIALS = 3


@dataclass(frozen=True, slots=True)
class Run:
    """What is to be measured."""

    extent: Extent
    workloads: Sequence[Workload]

    def cases(self, events: int) -> list[Case]:
        """Return each workload with so many events, and its own number of streams."""
        return [Case(workload, events, workload.streams) for workload in self.workloads]


def _measured_calls(run: Run) -> dict[str, Any]:
    """Return what is timed on one table of each workload: contestants, floors, stages, and the stages' ratios to the floor."""
    recorded = guard.read(run.extent.events)
    found = [_measured_call(case, run.extent.repeats, recorded) for case in run.cases(run.extent.events)]
    names = ("timings", "floors", "stages", "ratios")
    return {name: list(chain.from_iterable(part)) for name, part in zip(names, zip(*found, strict=True), strict=True)}


def _measured_call(case: Case, repeats: int, recorded: dict[str, float]) -> tuple[list[Timing], list[Floor], list[Stages], list[Ratio]]:
    _say(f"{case.workload.name}, {case.events:,} events")
    events = events_of(case)
    if has_compiler():
        check_agreement(case, events)
    timings = [timing for output in OUTPUTS for timing in measure_contestants(case, events, output, repeats)]
    for _ in range(TRIALS):
        floors = measure_floors(case.workload, events, repeats)
        stages = [measure_stages(case, events, output, repeats) for output in OUTPUTS]
        ratios = guard.ratios(stages, floors, recorded)
        if not any(ratio.exceeds for ratio in ratios):
            break
    return timings, floors, stages, ratios


def _measured_algorithms(run: Run) -> dict[str, Any]:
    _say("algorithms")
    cases = [of_usual_length(workload, run.extent.algorithm_events) for workload in run.workloads]
    return {"algorithms": [rate for case in cases for rate in measure_algorithms(case, run.extent.outputs, run.extent.repeats)]}


def _measured_curves(run: Run) -> dict[str, Any]:
    """Return costs over the number of streams, the number of events (with as many in each stream) and the length of the window."""
    extent = run.extent
    curved = [workload for workload in run.workloads if workload.name in extent.curved]
    most = extent.curve_events
    curves = {
        "streams": [Case(w, most, streams) for w in curved for streams in extent.streams],
        "events": [of_usual_length(w, most * tenths // 10) for w in curved for tenths in extent.tenths],
        "window": [Case(w, most, WINDOW_CURVE_STREAMS, factor) for w in curved for factor in extent.windows],
    }
    return {"curves": {name: list(chain.from_iterable(_curve_points(name, cases, extent))) for name, cases in curves.items() if cases}}


def _curve_points(name: str, cases: Sequence[Case], extent: Extent) -> Iterator[list[Timing]]:
    for case in cases:
        _say(f"{case.workload.name} by {name}: {case.events:,} events, {case.streams:,} streams, window × {case.window_factor}")
        events: pa.Table = events_of(case)
        for output in extent.outputs:
            yield measure_contestants(case, events, output, extent.repeats)


def _measured_memory(run: Run) -> dict[str, Any]:
    _say("memory")
    return {"memory": [measure_memory(case, output) for case in run.cases(run.extent.events) for output in run.extent.memory]}


def _measured_startup(run: Run) -> dict[str, Any]:
    _say("start-up")
    return {"startup": measure_startups() if run.extent.startup else []}


def _measured_spark(run: Run) -> dict[str, Any]:
    extent, timings = run.extent, []
    for workload in run.workloads:
        if workload.name in extent.spark_workloads:
            _say(f"{workload.name} on Spark")
            with tempfile.TemporaryDirectory() as folder:
                timings += measure_spark(workload, extent.spark_events, extent.loop_events, Path(folder), extent.repeats)
    return {"spark": timings}


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


# Part -> what measures it, in the order in which they run.
PARTS: dict[str, Callable[[Run], dict[str, Any]]] = {
    "calls": _measured_calls,
    "algorithms": _measured_algorithms,
    "curves": _measured_curves,
    "memory": _measured_memory,
    "startup": _measured_startup,
    "spark": _measured_spark,
}


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure gpu_cep against C++, floors, its own algorithms and Spark.")
    parser.add_argument("--extent", choices=EXTENTS, default="quick", help="how much is measured: in five minutes, or all")
    parser.add_argument("--events", type=int, help="so many events in each question instead of the extent's")
    parser.add_argument("--repeats", type=int, help="the best of so many runs counts")
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), help="some workloads instead of all")
    parser.add_argument("--without", nargs="+", choices=PARTS, default=[], help="parts that are left out")
    parser.add_argument("--record", action="store_true", help="hold later runs to this one's ratios of stages to the floor")
    return parser.parse_args(argv)


def _run_of(options: argparse.Namespace) -> Run:
    asked = {name: value for name in ("events", "repeats") if (value := getattr(options, name)) is not None}
    return Run(replace(EXTENTS[options.extent], **asked), [WORKLOADS[name] for name in options.only])


def main(argv: list[str]) -> int:
    options = _arguments(argv)
    run = _run_of(options)
    begin, where = time.perf_counter(), environment(PACKAGES)
    figures = {name: found for part, measure in PARTS.items() if part not in options.without for name, found in measure(run).items()}
    report = Report(where, options.extent, **figures, minutes=(time.perf_counter() - begin) / 60)
    print(markdown(report))
    print(*write(report, RESULTS), sep="\n")
    if options.record:
        print(guard.record(report.ratios, run.extent.events, f"{where.machine}, {where.processors} cores, {where.day}, {where.commit}"))
    return int(any(ratio.exceeds for ratio in report.ratios))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

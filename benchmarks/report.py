"""The result of one benchmark run: a record that is written as JSON and as Markdown."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

import pages
from floors import Floor
from machine import commit, package_version, processor_name, slug
from measure import Stages, Timing
from memory import MemoryUse
from peers import FLAGS, compiler_version
from spark_peer import SparkTiming
from startup import StartUp

PACKAGES = ("gpu-cep", "numba", "numpy", "pyarrow", "pyspark")


@dataclass(frozen=True, slots=True)
class Environment:
    """Where and with what the figures were measured."""

    machine: str
    processors: int
    day: str
    commit: str
    python: str
    compiler: str
    packages: dict[str, str]


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of one run; a part that was not asked for is empty."""

    environment: Environment
    timings: list[Timing] = field(default_factory=list)
    floors: list[Floor] = field(default_factory=list)
    stages: list[Stages] = field(default_factory=list)
    curves: dict[str, list[Timing]] = field(default_factory=dict)
    memory: list[MemoryUse] = field(default_factory=list)
    startup: list[StartUp] = field(default_factory=list)
    spark: list[SparkTiming] = field(default_factory=list)


def environment(processors: int) -> Environment:
    return Environment(
        machine=processor_name(),
        processors=processors,
        day=date.today().isoformat(),
        commit=commit(),
        python=platform.python_version(),
        compiler=f"{compiler_version()}, {' '.join(FLAGS[:3])}",
        packages={name: package_version(name) for name in PACKAGES},
    )


def write(report: Report, folder: Path) -> tuple[Path, Path]:
    """Write `report` as ``<machine>-<date>.json`` and ``.md`` into `folder`."""
    name = f"{slug(report.environment.machine)}-{report.environment.processors}-cores-{report.environment.day}"
    return pages.write(folder, name, markdown(report), asdict(report))


def markdown(report: Report) -> str:
    sections = [
        _environment_section(report.environment),
        _section("Events per second", _timing_rows(report.timings)),
        _section("Floors: seconds of elementary operations, and one match in their multiples", _floor_rows(report.floors, report.timings)),
        _section("Stages of the engine, 1 thread", _stage_rows(report.stages)),
        *(_section(f"Scaling: {name}", _timing_rows(timings)) for name, timings in report.curves.items()),
        _section("Peak memory of one match", _memory_rows(report.memory)),
        _section("Start-up: seconds in a new process", _startup_rows(report.startup)),
        _section("Spark, local[2], warm", _spark_rows(report.spark)),
    ]
    return "\n".join(section for section in sections if section)


def _environment_section(environment: Environment) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in environment.packages.items())
    return (
        f"# Benchmarks on {environment.machine}, {environment.processors} cores, {environment.day}\n\n"
        f"Commit {environment.commit}; Python {environment.python}; {packages}; {environment.compiler}.\n"
    )


def _section(title: str, rows: Sequence[Sequence[str]]) -> str:
    return f"## {title}\n\n{pages.table(rows)}\n" if len(rows) > 1 else ""


def _timing_rows(timings: Iterable[Timing]) -> list[list[str]]:
    """One row per case and output, one column per contestant, and the ratio of one thread to one thread."""
    cases: dict[tuple[str, int, int, int, str], dict[tuple[str, int], Timing]] = {}
    for timing in timings:
        case = (timing.workload, timing.events, timing.streams, timing.window_factor, timing.output)
        cases.setdefault(case, {})[timing.contestant, timing.threads] = timing
    contestants = sorted({contestant for found in cases.values() for contestant in found}, reverse=True)
    heads = [f"{name}, {threads} thread{'s' * (threads > 1)}" for name, threads in contestants]
    rows = [["workload", "events", "streams", "window", "output", "matches", *heads, "gpu_cep / c++"]]
    for (name, events, streams, factor, output), found in cases.items():
        matches = f"{next(iter(found.values())).matches:,}"
        rates = [_rate(found.get(contestant)) for contestant in contestants]
        rows.append([name, f"{events:,}", f"{streams:,}", f"× {factor}", output, matches, *rates, _ratio(found)])
    return rows


def _rate(timing: Timing | None) -> str:
    return "" if timing is None else f"{timing.events_per_second / 1e6:,.1f} M/s"


def _ratio(found: dict[tuple[str, int], Timing]) -> str:
    ours, peer = found.get(("gpu_cep", 1)), found.get(("c++", 1))
    return "" if ours is None or peer is None else f"{ours.events_per_second / peer.events_per_second:.2f}"


def _floor_rows(floors: Iterable[Floor], timings: Sequence[Timing]) -> list[list[str]]:
    rows = [["workload", "operation", "seconds", "count, 1 thread", "rows, 1 thread"]]
    for floor in floors:
        multiples = [_multiple(floor, timings, output) for output in ("count", "rows")]
        rows.append([floor.workload, floor.operation, f"{floor.seconds:.4f}", *multiples])
    return rows


def _multiple(floor: Floor, timings: Sequence[Timing], output: str) -> str:
    wanted = (floor.workload, output, "gpu_cep", 1)
    found = [t.seconds for t in timings if (t.workload, t.output, t.contestant, t.threads) == wanted]
    return f"{found[0] / floor.seconds:.1f} ×" if found else ""


def _stage_rows(stages: Iterable[Stages]) -> list[list[str]]:
    rows = [["workload", "output", "events left", "seconds"]]
    for s in stages:
        counts = " → ".join(f"{name} {count:,}" for name, count in s.counts.items())
        seconds = ", ".join(f"{name} {value:.4f}" for name, value in s.seconds.items())
        rows.append([s.workload, s.output, counts, seconds])
    return rows


def _memory_rows(uses: Iterable[MemoryUse]) -> list[list[str]]:
    rows = [["workload", "output", "events in Arrow", "peak, events loaded", "peak, matched", "for the match / events"]]
    for use in uses:
        sizes = [f"{size / 2**20:,.0f} MiB" for size in (use.input_bytes, use.loaded_bytes, use.peak_bytes)]
        rows.append([use.workload, use.output, *sizes, f"{use.working_ratio:.2f}"])
    return rows


def _startup_rows(startups: Iterable[StartUp]) -> list[list[str]]:
    rows = [["kernel cache", "import", "first match", "the same again", "new pattern"]]
    for s in startups:
        seconds = (s.import_seconds, s.first_match, s.same_pattern_again, s.new_pattern)
        rows.append([s.cache, *(f"{value:.4f}" for value in seconds)])
    return rows


def _spark_rows(timings: Sequence[SparkTiming]) -> list[list[str]]:
    rows = [["workload", "contestant", "events", "seconds", "events per second", "time / gpu_match"]]
    ours = {(t.workload, t.events): t.seconds for t in timings if t.contestant == "gpu_match"}
    for t in timings:
        ratio = f"{t.seconds / ours[t.workload, t.events]:.2f}"
        rows.append([t.workload, t.contestant, f"{t.events:,}", f"{t.seconds:.2f}", f"{t.events_per_second / 1e6:.2f} M/s", ratio])
    return rows

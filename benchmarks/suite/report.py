"""The result of one benchmark run: a record that is written as JSON and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.baselines.environment import Environment
from benchmarks.baselines.floors import Floor
from benchmarks.baselines.measure import Stages, Timing
from benchmarks.record import pages
from benchmarks.record.machine import LIBRARY, slug
from benchmarks.spark.peer import SparkTiming
from benchmarks.suite.algorithm_rates import AlgorithmRate
from benchmarks.suite.guard import ALLOWANCE, LIMIT, Ratio
from benchmarks.suite.memory import MemoryUse
from benchmarks.suite.plots import draw
from benchmarks.suite.startup import StartUp

PEER = "c++, 1 thread"
PACKAGES = ("gpu-cep", *LIBRARY, "pyspark")


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of one run; a part that was not asked for is empty."""

    environment: Environment
    extent: str
    timings: list[Timing] = field(default_factory=list)
    algorithms: list[AlgorithmRate] = field(default_factory=list)
    floors: list[Floor] = field(default_factory=list)
    stages: list[Stages] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    curves: dict[str, list[Timing]] = field(default_factory=dict)
    memory: list[MemoryUse] = field(default_factory=list)
    startup: list[StartUp] = field(default_factory=list)
    spark: list[SparkTiming] = field(default_factory=list)
    minutes: float = 0.0

    @property
    def name(self) -> str:
        """Return the name of its files: two commits on one machine and day have files of their own."""
        where = self.environment
        return f"{slug(where.machine)}-{where.processors}-cores-{where.day}-{where.commit}-{self.extent}"


def write(report: Report, folder: Path) -> tuple[Path, Path]:
    """Write `report` as ``.json`` and ``.md`` into `folder`, and its plots into a folder beside them."""
    plots = draw(report.curves, report.stages, report.floors, folder / report.name)
    return pages.write(folder, report.name, markdown(report, plots), asdict(report))


def markdown(report: Report, plots: Sequence[str] = ()) -> str:
    """Return the page; `plots` are the names of files in the folder that is called as the report."""
    sections = [
        _environment_section(report),
        _section("Events per second", _timing_rows(report.timings)),
        _section("By algorithm: events per second on one thread", _algorithm_rows(report.algorithms)),
        _guard_section(report.ratios),
        _section("Stages on one thread, in copies of the columns", _stage_rows(report.stages, report.ratios)),
        _section("What each stage leaves", _count_rows(report.stages)),
        _section("Floors: seconds of elementary operations, and one match in their multiples", _floor_rows(report.floors, report.timings)),
        *(_section(f"Cost per event by {name}", _timing_rows(timings, _cost)) for name, timings in report.curves.items()),
        "\n".join(f"![{plot.removesuffix('.svg')}]({report.name}/{plot})" for plot in plots),
        _section("Peak memory of one match", _memory_rows(report.memory)),
        _section("Start-up: seconds in a new process", _startup_rows(report.startup)),
        _section("Spark, local[2], warm", _spark_rows(report.spark)),
    ]
    return "\n".join(section for section in sections if section)


def _environment_section(report: Report) -> str:
    where = report.environment
    packages = ", ".join(f"{name} {number}" for name, number in where.packages.items())
    return (
        f"# Benchmarks on {where.machine}, {where.processors} cores, {where.day}\n\n"
        f"Commit {where.commit}; Python {where.python}; {packages}; {where.compiler}. "
        f"Load average {where.load} before the run, which took {report.minutes:.1f} minutes. "
        f"Written by `python -m benchmarks.suite.run --extent {report.extent}`.\n"
    )


def _guard_section(ratios: Sequence[Ratio]) -> str:
    if not ratios:
        return ""
    known = [ratio for ratio in ratios if ratio.recorded is not None]
    over = [f"- {r.workload}, {r.output}, {r.stage}: {r.copies:.2f} copies, recorded {r.recorded:.2f}" for r in known if r.exceeds]
    held = f"{len(known) - len(over)} of {len(known)} stages are within {LIMIT:g} × their recorded ratio and {ALLOWANCE} copies."
    verdict = held if known else "No ratios are recorded for this number of events."
    return "\n".join(["## Guard", "", verdict, *over, ""])


def _section(title: str, rows: Sequence[Sequence[str]]) -> str:
    return f"## {title}\n\n{pages.table(rows)}\n" if len(rows) > 1 else ""


def _timing_rows(timings: Iterable[Timing], shown: Callable[[Timing], str] | None = None) -> list[list[str]]:
    """Return one row per case and output, one column per contestant, and how the library compares with C++, which has one thread."""
    cases: dict[tuple[str, int, int, int, str], dict[str, Timing]] = {}
    for timing in timings:
        case = (timing.workload, timing.events, timing.streams, timing.window_factor, timing.output)
        cases.setdefault(case, {})[timing.who] = timing
    heads = list(dict.fromkeys(who for found in cases.values() for who in found))
    ours = [head for head in heads if head.startswith("gpu_cep")]
    ratios = [f"{head} / c++" for head in ours] if PEER in heads else []
    rows = [["workload", "events", "streams", "window", "output", "matches", *heads, *ratios]]
    for (name, events, streams, factor, output), found in cases.items():
        matches = f"{next(iter(found.values())).matches:,}"
        figures = [(shown or _rate)(found[head]) if head in found else "" for head in heads]
        compared = [f"{found[PEER].seconds / found[head].seconds:.2f}" for head in ours if ratios]
        rows.append([name, f"{events:,}", f"{streams:,}", f"× {factor}", output, matches, *figures, *compared])
    return rows


def _rate(timing: Timing) -> str:
    return f"{timing.events_per_second / 1e6:,.1f} M/s"


def _cost(timing: Timing) -> str:
    return f"{1e9 / timing.events_per_second:,.1f} ns"


def _algorithm_rows(rates: Sequence[AlgorithmRate]) -> list[list[str]]:
    """Return one row per workload and output; a dash is an algorithm that does not run the query, or takes too many steps."""
    heads = list(dict.fromkeys(rate.algorithm for rate in rates))
    cells: dict[tuple[str, str, int], dict[str, str]] = {}
    for rate in rates:
        shown = "–" if rate.seconds is None else f"{rate.events / rate.seconds / 1e6:,.1f} M/s"
        cells.setdefault((rate.workload, rate.output, rate.events), {})[rate.algorithm] = shown
    rows = [["workload", "output", "events", *heads]]
    return rows + [[name, output, f"{events:,}", *(own[head] for head in heads)] for (name, output, events), own in cells.items()]


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


def _stage_rows(stages: Sequence[Stages], ratios: Sequence[Ratio]) -> list[list[str]]:
    """Return what each stage takes; and of the whole call, what no stage has: planning, threads and the library's own Python."""
    heads = list(dict.fromkeys(stage for each in stages for stage in each.seconds))
    copies = {(each.workload, each.output, each.stage): f"{each.copies:.2f}" for each in ratios}
    rows = [["workload", "output", *heads, "whole call, ms", "outside the stages, ms"]]
    for each in stages:
        outside = each.whole - sum(each.seconds.values())
        own = [copies.get((each.workload, each.output, stage), "") for stage in heads]
        rows.append([each.workload, each.output, *own, f"{1e3 * each.whole:.1f}", f"{1e3 * max(0.0, outside):.1f}"])
    return rows


def _count_rows(stages: Iterable[Stages]) -> list[list[str]]:
    counts = ((s, " → ".join(f"{name} {count:,}" for name, count in s.counts.items())) for s in stages)
    return [["workload", "output", "events, windows, matches"], *([s.workload, s.output, left] for s, left in counts)]


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

"""Measure gpu_cep against other engines: DuckDB, Spark SQL, Flink SQL, Flink CEP and pandas-match-recognize.

``python -m benchmarks.rivals.run [--only RIVAL …] [--scale FACTOR] [--repeats N]`` runs each rival in an environment of its
own, checks that it finds the library's matches, and times both on the same events. It prints Markdown and writes it
with the JSON record to ``benchmarks/results/``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.record import pages
from benchmarks.record.folders import RESULTS
from benchmarks.record.machine import commit, package_version, processor_name, slug
from benchmarks.rivals.environments import REQUIREMENTS, environment
from benchmarks.rivals.questions import QUESTIONS, Question, answer, comparable

WORKERS = Path(__file__).parent / "workers"
PACKAGES = ("numba", "numpy", "pyarrow")
THREADS = 2
OURS_REPEATS = 9
PATIENCE = 1_200  # seconds for one worker
AIMS = {"DuckDB": 3, "Flink": 50}  # so many times the rate of rivals whose name begins so


@dataclass(frozen=True, slots=True)
class Entry:
    """One rival with one question, in its words, over so many events; `mode` is Flink's."""

    rival: str
    environment: str
    question: str
    text: str
    events: int
    threads: int = THREADS
    mode: str = ""


@dataclass(frozen=True, slots=True)
class Absent:
    """Why a rival does not answer a question."""

    rival: str
    question: str
    reason: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Median wall and processor seconds of a rival and of the library on the same events, with the same matches."""

    rival: str
    question: str
    events: int
    matches: int
    threads: int
    seconds: float
    cpu_seconds: float
    our_seconds: float
    our_cpu_seconds: float
    load: float

    @property
    def ratio(self) -> float:
        return self.seconds / self.our_seconds

    @property
    def cpu_ratio(self) -> float:
        return self.cpu_seconds / self.our_cpu_seconds


def entries() -> list[Entry]:
    """Who is asked what. Slow rivals get fewer events, so that a run takes minutes."""
    contiguous, both, selective = (QUESTIONS[name] for name in ("contiguous", "set", "selective"))
    every, patterns = (contiguous, both, selective), (contiguous, both)
    return [
        *(Entry("DuckDB", "duckdb", each.name, each.hand_written(), 10_000_000) for each in every),
        *(Entry("Spark SQL", "spark", each.name, each.hand_written(), 2_000_000) for each in every),
        *(Entry("Flink SQL, MATCH_RECOGNIZE", "flink", each.name, each.in_flink(), 300_000, mode="STREAMING") for each in patterns),
        Entry("Flink SQL, joins", "flink", selective.name, selective.hand_written(), 1_000_000, mode="BATCH"),
        *(Entry("Flink CEP", "flink", each.name, "", 300_000, mode="STREAMING") for each in patterns),
        Entry("Flink CEP", "flink", selective.name, "", 100_000, 1, mode="STREAMING"),
        *(Entry("pandas-match-recognize", "pandas", each.name, each.in_pandas(), 100_000, 1) for each in patterns),
    ]


_ONE_PER_ROW = "a row pattern gives one match per first row, skip_till_any_match all"
UNASKED = tuple(Absent(rival, "selective", _ONE_PER_ROW) for rival in ("pandas-match-recognize", "Flink SQL, MATCH_RECOGNIZE"))


def compare(entry: Entry, python: Path, repeats: int) -> Comparison:
    """The rival's worker beside the library in this process, one after the other.

    Raises
    ------
    RuntimeError
        The worker failed, or found other matches.
    """
    question = QUESTIONS[entry.question]
    events = question.events(entry.events)
    ours = [_timed(question, events, entry.threads) for _ in range(OURS_REPEATS + 1)][1:]
    our_seconds, our_cpu_seconds = (statistics.median(column) for column in zip(*ours, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        measured = _asked(entry, events, python, Path(folder), repeats)
    return Comparison(
        entry.rival,
        entry.question,
        entry.events,
        measured["matches"],
        entry.threads,
        statistics.median(measured["seconds"]),
        statistics.median(measured["cpu_seconds"]),
        our_seconds,
        our_cpu_seconds,
        os.getloadavg()[0],
    )


def _timed(question: Question, events: pa.Table, threads: int) -> tuple[float, float]:
    start, cpu_start = time.perf_counter(), time.process_time()
    answer(question, events, threads)
    return time.perf_counter() - start, time.process_time() - cpu_start


def _asked(entry: Entry, events: pa.Table, python: Path, folder: Path, repeats: int) -> dict[str, list[float]]:
    """What the rival's worker measured."""
    question = QUESTIONS[entry.question]
    pq.write_table(events, folder / "events.parquet")
    pq.write_table(comparable(question, events, answer(question, events, entry.threads)), folder / "expected.parquet")
    job = {
        "question": entry.question,
        "text": entry.text,
        "window": question.window,
        "events": str(folder / "events.parquet"),
        "expected": str(folder / "expected.parquet"),
        "key": question.workload.key,
        "value": question.workload.value,
        "types": tuple(question.workload.shares),
        "threads": entry.threads,
        "repeats": repeats,
        "mode": entry.mode,
    }
    command = [str(python), str(WORKERS / f"on_{entry.environment}.py"), json.dumps(job)]
    # PYTHONPATH would let this process' packages into the rival's environment
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYSPARK_PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables, timeout=PATIENCE)
    if done.returncode:
        raise RuntimeError(f"{entry.rival}, {entry.question}: {done.stderr[-2000:]}")
    measured: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return measured


def compared(chosen: Sequence[Entry], repeats: int) -> tuple[list[Comparison], list[Absent]]:
    """The comparisons of all that could be installed, and why the others could not."""
    comparisons, absent = [], []
    for entry in chosen:
        where = environment(entry.environment)
        if where.missing:
            absent.append(Absent(entry.rival, entry.question, where.missing))
            continue
        comparisons.append(compare(entry, where.python, repeats))
        print(json.dumps(asdict(comparisons[-1])), file=sys.stderr, flush=True)
    return comparisons, absent


def surroundings() -> dict[str, str]:
    versions = {package: package_version(package) for package in PACKAGES}
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()[:1]
    return {
        "machine": processor_name(),
        "processors": str(os.cpu_count()),
        "day": date.today().isoformat(),
        "commit": commit(),
        "python": platform.python_version(),
        "java": java[0] if java else "none",
        "rivals": "; ".join(" ".join(requirements) for requirements in REQUIREMENTS.values()),
    } | versions


def markdown(comparisons: Sequence[Comparison], absent: Sequence[Absent], where: dict[str, str]) -> str:
    versions = ", ".join(f"{package} {where[package]}" for package in PACKAGES)
    sections = [
        f"# Rivals on {where['machine']}, {where['processors']} cores, {where['day']}",
        f"Commit {where['commit']}; Python {where['python']}, {versions}; rivals: {where['rivals']}; {where['java']}. "
        "Written by `python -m benchmarks.rivals.run`.",
        pages.table(_rows(comparisons), figures=11),
        _NOTES,
        "## What is asked\n\n" + "\n".join(f"- **{each.name}**: `{each.query}`" for each in QUESTIONS.values()),
        "## What was changed so that the matches are the same\n\n" + _CHANGES,
    ]
    if absent:
        sections.append("## Not measured\n\n" + "\n".join(f"- {each.rival}, {each.question}: {each.reason}." for each in absent))
    return "\n\n".join(sections) + "\n"


def _rows(comparisons: Sequence[Comparison]) -> list[list[str]]:
    head = ["question", "rival", "events", "matches", "threads", "rival", "gpu_cep", "ratio"]
    return [
        [*head, "rival, CPU", "gpu_cep, CPU", "ratio of CPU", "aim", "load"],
        *(
            [
                each.question,
                each.rival,
                f"{each.events:,}",
                f"{each.matches:,}",
                str(each.threads),
                *(_rate(each.events / seconds) for seconds in (each.seconds, each.our_seconds)),
                f"{each.ratio:,.1f} ×",
                *(_rate(each.events / seconds) for seconds in (each.cpu_seconds, each.our_cpu_seconds)),
                f"{each.cpu_ratio:,.1f} ×",
                _aim(each),
                f"{each.load:.1f}",
            ]
            for each in comparisons
        ),
    ]


def _aim(comparison: Comparison) -> str:
    """What ratio was aimed at, and whether that of wall time reaches it."""
    for rival, aim in AIMS.items():
        if comparison.rival.startswith(rival):
            return f"{aim} ×, {'met' if comparison.ratio >= aim else 'missed'}"
    return ""


def _rate(events_per_second: float) -> str:
    return f"{events_per_second / 1e6:,.3g} M/s"


_NOTES = """\
Rates are events per second of the median warm run, of wall time and of processor time of all threads; the load average is
that of the minute before. Where it is above the threads in use, the machine had other work: then the ratio of processor
time is the better one. Every rival has the events in memory in the form that it likes best (types as codes of 8 bits, in DuckDB's ENUM
as in the library's dictionaries), and found the library's matches, compared row by row, before it was timed. All produce the
rows of all matches: the library, DuckDB and pandas as a table, Spark and Flink into a sink that discards them. The library
returns all row numbers of every binding; the rivals the time of its first event and its length. The rivals plan in every
run, and Flink's local cluster starts a job; the library remembers the plan of a query's text, and chooses among algorithms
in every run."""

_CHANGES = """\
- Times are unique in a stream, so neither strict order nor SQL's order of ties matters.
- DuckDB and Spark have no row patterns. Gaps and islands answer `contiguous`, running window frames `set`, and joins over slices of time
  `selective`; plain inequality joins are far slower. The same SQL text goes to both, and the
  last one to Flink.
- `MATCH_RECOGNIZE` has `AFTER MATCH SKIP TO NEXT ROW`, so that every first event gets its match. Each event fits one variable at most,
  so greed does not matter.
- The window is a condition on the last event (`<=`). Flink also gets `WITHIN` one tick longer, so that it forgets old partial matches.
- Flink has no AND in patterns, and no alternatives or PERMUTE: for `set`, the relevant events are taken one by one up to the first B
  that has a C, a P and a D before it. pandas-match-recognize gets the same pattern; as it reads no subqueries, pandas picks the relevant
  events, in the time that is measured.
- Flink CEP's `followedByAny` with no skipping is skip_till_any_match. It sees the three event types only. There is no stream key, so
  one thread does it.
- Flink's events are objects on the heap of the JVM of its local cluster, its stream keys are numbers; no Python is in their way.
  Row patterns run in its streaming mode, which is as fast as its batch mode here."""


def main(argv: list[str]) -> int:
    chosen = entries()
    parser = argparse.ArgumentParser(description="Measure gpu_cep against other engines.")
    parser.add_argument("--only", nargs="+", choices=sorted(REQUIREMENTS), help="the rivals of these environments instead of all")
    parser.add_argument("--scale", type=float, default=1.0, help="so many times the events")
    parser.add_argument("--repeats", type=int, default=3, help="the median of so many warm runs of a rival counts")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder for the report")
    options = parser.parse_args(argv)
    asked = [_scaled(each, options.scale) for each in chosen if not options.only or each.environment in options.only]
    comparisons, missing = compared(asked, options.repeats)
    absent, where = [*missing, *UNASKED], surroundings()
    page = markdown(comparisons, absent, where)
    record = {"environment": where, "comparisons": [asdict(each) for each in comparisons], "absent": [asdict(each) for each in absent]}
    print(page)
    print(*pages.write(options.out, f"rivals-{slug(where['machine'])}-{where['day']}", page, record), sep="\n")
    return 0


def _scaled(entry: Entry, factor: float) -> Entry:
    return Entry(**{**asdict(entry), "events": int(entry.events * factor)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

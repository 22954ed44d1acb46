"""Measure gpu_cep against other engines: DuckDB, Spark SQL, Flink SQL, Flink CEP and pandas-match-recognize.

``python -m benchmarks.rivals.run [--questions GROUP …] [--kinds NAME …] [--rows NAME …] [--only RIVAL …] [--scale FACTOR] [--repeats N]``
runs each rival in an environment of its own, checks that it finds the library's matches, and times both on the same events. The
groups are the three questions that all rivals can be asked, the kinds of questions, which DuckDB is asked, and the row patterns, which
Flink's SQL is asked. For each group it prints Markdown and writes it with the JSON record to ``benchmarks/results/``.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.kinds.questions import KINDS
from benchmarks.record.clocks import timed
from benchmarks.record.folders import RESULTS
from benchmarks.rivals.asking import ask
from benchmarks.rivals.environments import REQUIREMENTS, environment
from benchmarks.rivals.kinds import IN_SQL, KindInSql
from benchmarks.rivals.questions import QUESTIONS, RivalQuestion
from benchmarks.rivals.report import GROUPS, KINDS_GROUP, ROWS, THREE, Absent, Comparison, write
from benchmarks.rivals.row_patterns import ROW_QUESTIONS

THREADS = 2
OURS_REPEATS = 9
KIND_EVENTS = 10_000_000
ROW_EVENTS = 500_000


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


def entries() -> list[Entry]:
    """Return who is asked what. Slow rivals get fewer events, so that a run takes minutes."""
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


def kind_entries(scale: float = 1.0, names: Sequence[str] = IN_SQL) -> list[Entry]:
    """Return an entry for each kind, in the SQL for so many times the usual events."""
    kinds = [KindInSql(KINDS[name], int(KIND_EVENTS * scale)) for name in names]
    return [Entry("DuckDB", "duckdb", each.name, each.hand_written(), each.count) for each in kinds]


def row_entries(names: Sequence[str] = tuple(ROW_QUESTIONS)) -> list[Entry]:
    """Return an entry for each row pattern, in Flink's SQL."""
    return [
        Entry("Flink SQL, MATCH_RECOGNIZE", "flink", name, ROW_QUESTIONS[name].in_flink(), ROW_EVENTS, mode="STREAMING") for name in names
    ]


def asked(entry: Entry) -> RivalQuestion:
    """Return the question of an entry."""
    known: dict[str, RivalQuestion] = {**QUESTIONS, **ROW_QUESTIONS}
    return known.get(entry.question) or KindInSql(KINDS[entry.question], entry.events)


def compare(entry: Entry, python: Path, repeats: int) -> Comparison:
    """Return the rival's worker beside the library in this process, one after the other.

    Raises
    ------
    RuntimeError
        The worker failed, or found other matches.
    """
    question, load = asked(entry), os.getloadavg()[0]
    events = question.events(entry.events)
    ours = [timed(lambda: question.answer(events, entry.threads))[0] for _ in range(OURS_REPEATS + 1)][1:]
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
        load,
        question.query,
    )


def _asked(entry: Entry, events: pa.Table, python: Path, folder: Path, repeats: int) -> dict[str, Any]:
    """Return what the rival's worker measured."""
    question = asked(entry)
    pq.write_table(question.stored(events), folder / "events.parquet")
    pq.write_table(question.comparable(events, question.answer(events, entry.threads)), folder / "expected.parquet")
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
    return ask(entry.rival, entry.environment, python, job)


def compared(chosen: Sequence[Entry], repeats: int) -> tuple[list[Comparison], list[Absent]]:
    """Return the comparisons of all that could be installed, and why the others could not."""
    comparisons, absent = [], []
    for entry in chosen:
        where = environment(entry.environment)
        if where.missing:
            absent.append(Absent(entry.rival, entry.question, where.missing))
            continue
        comparisons.append(compare(entry, where.python, repeats))
        print(json.dumps(asdict(comparisons[-1])), file=sys.stderr, flush=True)
        gc.collect()
        pa.default_memory_pool().release_unused()
    return comparisons, absent


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure gpu_cep against other engines.")
    parser.add_argument("--questions", nargs="+", choices=GROUPS, default=list(GROUPS), help="some groups of questions instead of all")
    parser.add_argument("--kinds", nargs="+", choices=IN_SQL, default=list(IN_SQL), metavar="NAME", help="some kinds instead of all")
    parser.add_argument("--rows", nargs="+", choices=ROW_QUESTIONS, default=list(ROW_QUESTIONS), metavar="NAME", help="some row patterns")
    parser.add_argument("--only", nargs="+", choices=sorted(REQUIREMENTS), help="the rivals of these environments instead of all")
    parser.add_argument("--scale", type=float, default=1.0, help="so many times the events")
    parser.add_argument("--repeats", type=int, default=3, help="the median of so many warm runs of a rival counts")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder for the report")
    options = parser.parse_args(argv)
    offered = {
        THREE: [_scaled(each, options.scale) for each in entries()],
        KINDS_GROUP: kind_entries(options.scale, options.kinds),
        ROWS: [_scaled(each, options.scale) for each in row_entries(options.rows)],
    }
    for name in options.questions:
        chosen = [each for each in offered[name] if not options.only or each.environment in options.only]
        if not chosen:
            continue
        comparisons, missing = compared(chosen, options.repeats)
        print(*write(options.out, GROUPS[name], comparisons, [*missing, *GROUPS[name].unasked]), sep="\n")
    return 0


def _scaled(entry: Entry, factor: float) -> Entry:
    return Entry(**{**asdict(entry), "events": int(entry.events * factor)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

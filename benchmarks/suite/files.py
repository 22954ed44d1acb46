"""Compare ``match(path)`` over Parquet with reading the same columns and matching them, and with reading alone.

``python -m benchmarks.suite.files [--events N] [--repeats N] [--folder FOLDER | --no-record]`` prints its page and writes it with its
record to ``benchmarks/results/``. Each question is asked by three ways: as ``match(path)``, as ``match(pyarrow.parquet.read_table(path,
columns))``, and as the reading alone, which is the floor of the second way. The first two must find the same before anything is timed.
``python -m benchmarks.suite.files FILE QUESTION WAY`` is the process whose memory is measured.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gpu_cep as cep
from benchmarks.record import pages
from benchmarks.record.arguments import measuring
from benchmarks.record.clocks import Seconds, timed
from benchmarks.record.folders import ROOT
from benchmarks.record.machine import described, environment, name_on
from benchmarks.record.memory import peak_bytes

EVENTS, REPEATS = 10_000_000, 7
DAYS, SYMBOLS, GROUP = 30, 1_000, 1 << 17
MICROSECONDS = DAYS * 86_400_000_000
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Question:
    """A query over the events, the columns that it reads, and the keywords to ask it with."""

    about: str
    query: str
    columns: tuple[str, ...]
    options: dict[str, Any]


_DAY = " AND ".join(f"{name}.ts >= TIMESTAMP '2026-01-12' AND {name}.ts < TIMESTAMP '2026-01-13'" for name in "abc")
_ALL = ("ts", "type", "symbol", "price", "volume")
QUESTIONS = {
    "sequence": Question(
        "three events of a symbol",
        "PATTERN SEQ(A a, B b, C c) WHERE [symbol] AND c.price > a.price WITHIN 20 minutes RETURN a.symbol AS symbol, a.price AS price",
        _ALL[:4],
        {},
    ),
    "day": Question(
        f"the same of one day of {DAYS}",
        f"PATTERN SEQ(A a, B b, C c) WHERE [symbol] AND c.price > a.price AND {_DAY} WITHIN 20 minutes RETURN a.symbol AS symbol",
        _ALL[:4],
        {},
    ),
    "events": Question(
        "two events in a row of a symbol, whole",
        "PATTERN SEQ(A a, C c) WHERE [symbol] WITHIN 20 minutes",
        _ALL,
        {"strategy": "partition_contiguity", "output": "events"},
    ),
    "situations": Question(
        "situations of a symbol, counted",
        "PARTITION BY symbol DEFINE dear AS price > 106, busy AS volume > 900 PATTERN dear overlaps busy WITHIN 1 hour",
        ("ts", "symbol", "price", "volume"),
        {"output": "count"},
    ),
}


def made(events: int) -> pa.Table:
    """Return the events in the order of time, with types and symbols as plain text; fewer events are of fewer symbols."""
    random = np.random.default_rng(11)
    times = np.datetime64("2026-01-01", "us") + np.sort(random.integers(0, MICROSECONDS, events)).astype("timedelta64[us]")
    symbols = pa.array([f"symbol {number:04}" for number in range(max(1, SYMBOLS * events // EVENTS))])
    return pa.table(
        {
            "ts": times,
            "type": pa.array(["A", "B", "C", "N"]).take(pa.array(random.choice(4, events, p=[0.02, 0.05, 0.03, 0.9]).astype(np.int32))),
            "symbol": symbols.take(pa.array(random.integers(0, len(symbols), events).astype(np.int32))),
            "price": np.round(100 + 5 * random.standard_normal(events), 2),
            "volume": random.integers(1, 1_000, events),
        }
    )


def _by_path(path: str, question: Question) -> pa.Table:
    return cep.match(path, question.query, **question.options)


def _by_table(path: str, question: Question) -> pa.Table:
    return cep.match(_alone(path, question), question.query, **question.options)


def _alone(path: str, question: Question) -> pa.Table:
    return pq.read_table(path, columns=list(question.columns))


WAYS: dict[str, Callable[[str, Question], pa.Table]] = {"path": _by_path, "table": _by_table, "read": _alone}


@dataclass(frozen=True, slots=True)
class Spent:
    """The least seconds of processors and of the clock in some runs, and the bytes at the peak of a process of its own."""

    cpu: float
    clock: float
    peak: int


@dataclass(frozen=True, slots=True)
class QuestionTimes:
    """What a question took by each way, its matches or rows, and the row groups that ``match(path)`` read (None: all)."""

    question: str
    rows: int
    groups: tuple[int, int] | None
    spent: dict[str, Spent]


def asked(name: str, path: str, repeats: int) -> QuestionTimes:
    """Ask one question by all ways, which take turns."""
    question, profile = QUESTIONS[name], cep.Profile()
    found = cep.match(path, question.query, profile=profile, **question.options)
    if not found.equals(_by_table(path, question)):
        raise AssertionError(f"{name}: match(path) finds other rows than match(table)")
    times: dict[str, list[Seconds]] = {way: [] for way in WAYS}
    for _ in range(repeats):
        for way, does in WAYS.items():
            times[way].append(timed(partial(does, path, question))[0])
    least = {way: Seconds(*map(min, zip(*taken, strict=True))) for way, taken in times.items()}
    spent = {way: Spent(each.cpu, each.clock, _peak(path, name, way)) for way, each in least.items()}
    return QuestionTimes(name, found.num_rows, profile.groups, spent)


def _peak(path: str, question: str, way: str) -> int:
    command = [sys.executable, "-m", "benchmarks.suite.files", path, question, way]
    return int(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)


def taken(path: str, question: str, way: str) -> int:
    """Return the bytes at this process's peak beyond what it had when its code was loaded, by one way."""
    small = pq.ParquetFile(path).read_row_group(0)
    cep.match(small, QUESTIONS[question].query, **QUESTIONS[question].options)
    before = peak_bytes()
    WAYS[way](path, QUESTIONS[question])
    return peak_bytes() - before


def table(found: Sequence[QuestionTimes]) -> str:
    """Return a line for each question: by how much less ``match(path)`` takes, and what it takes beside reading alone."""
    head = ("question", "row groups read", "read_table + match", "reading alone", "memory")
    lines = [
        (
            QUESTIONS[each.question].about,
            "all" if each.groups is None or each.groups[0] == each.groups[1] else f"{each.groups[0]:,} of {each.groups[1]:,}",
            f"{_times(each, 'table', 'cpu')} / {_times(each, 'table', 'clock')}",
            f"{_times(each, 'read', 'cpu')} / {_times(each, 'read', 'clock')}",
            f"{_times(each, 'table', 'peak')}",
        )
        for each in found
    ]
    return pages.table([head, *lines], figures=len(head) - 1)


def _times(each: QuestionTimes, way: str, what: str) -> str:
    ratio = getattr(each.spent[way], what) / max(getattr(each.spent["path"], what), 1e-9)
    return f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}"


def markdown(found: Sequence[QuestionTimes], where: str, events: int, repeats: int) -> str:
    """Return the figures as a page."""
    seconds = [
        ("question", "way", "CPU s", "clock s", "peak, MiB"),
        *(
            (each.question, way, f"{spent.cpu:.3f}", f"{spent.clock:.3f}", f"{spent.peak / MIB:,.0f}")
            for each in found
            for way, spent in each.spent.items()
        ),
    ]
    parts = [
        "# Events in Parquet",
        where,
        f"{events:,} events of {DAYS} days with types and symbols as text, in row groups of {GROUP:,}. The best of {repeats} warm runs, "
        "in turns. A figure is what the other way takes in multiples of `match(path)`: processor time / by the clock. *Memory* is "
        "what a process has at its peak beyond its code, read_table and match in multiples of `match(path)`.",
        table(found),
        "Seconds, and the memory of each way",
        pages.table(seconds, figures=3),
    ]
    return "\n\n".join(parts) + "\n"


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    return measuring("Compare match(path) with reading and matching.", EVENTS, REPEATS).parse_args(argv)


def main(argv: Sequence[str]) -> None:
    """Measure, print the page, write it and its record; or be the process whose memory is measured."""
    if len(argv) == 3 and argv[2] in WAYS:
        print(taken(*argv))
        return
    options = _arguments(argv)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "events.parquet"))
        pq.write_table(made(options.events), path, row_group_size=GROUP)
        found = [asked(name, path, options.repeats) for name in QUESTIONS]
    where = environment(["pyarrow"])
    page = markdown(found, f"{described(where, ['pyarrow'])}.", options.events, options.repeats)
    record = {"environment": where, "events": options.events, "asked": [*map(asdict, found)]}
    pages.publish(page, options.folder, name_on(where, "files"), record)


if __name__ == "__main__":
    main(sys.argv[1:])

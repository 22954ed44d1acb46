"""Match a file larger than the memory that it may take, beside tables in memory of a size that fits.

``python -m benchmarks.suite.larger_than_memory [--events N] [--memory SIZE] [--limit SIZE] [--only QUESTION …] [--folder FOLDER]
[--record]``
generates events in the order of time, matches them in a process of its own, and prints events a second, the memory at the peak, and two
shares: of the rate of ``match(path)`` that reads the first ones of them at once, and of ``match(table)``, which reads nothing and encodes
its texts once. ``--record`` writes the page with its record to ``results/``. It fails if the process takes more than the limit.
``python -m benchmarks.suite.larger_than_memory FILE QUESTION MEMORY`` is that process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gpu_cep as cep
from benchmarks.record import large_files, pages
from benchmarks.record.clocks import least, timed
from benchmarks.record.folders import RESULTS, ROOT
from benchmarks.record.large_files import AT_ONCE, GIB, OTHERS, SLICED, TABLE, Ran
from benchmarks.record.machine import environment, name_on
from benchmarks.record.memory import peak_bytes
from gpu_cep.choices import AfterMatch, TableOutput
from gpu_cep.plan.settings import memory_bytes

EVENTS, FITS, REPEATS = 100_000_000, 10_000_000, 3
CHUNK, GROUP = 1 << 22, 1 << 18
SYMBOLS, STEP = 1_000, 260_000  # microseconds between two events


class Asking(TypedDict, total=False):
    """The further keywords that a question is asked with."""

    output: TableOutput
    after_match: AfterMatch
    gap: str


QUESTIONS: dict[str, tuple[str, Asking]] = {
    "count": (
        "PARTITION BY symbol PATTERN SEQ(up, down+) WHERE up.price > 104 AND down[i].price < prev(down.price) WITHIN 10 minutes",
        {"output": "count"},
    ),
    "rows": (
        "PATTERN SEQ(A a, B b, C c) WHERE [symbol] AND c.price > a.price WITHIN 20 minutes RETURN a.symbol AS symbol, a.price AS price",
        {},
    ),
    "taken": (
        "PARTITION BY symbol PATTERN SEQ(A a, C c) WITHIN 20 minutes RETURN a.price AS low",
        {"after_match": "skip_past_last"},
    ),
    "lasting": (
        "PARTITION BY symbol DEFINE high AS price > 104, low AS price < 96 PATTERN high before low WITHIN 40 minutes "
        "RETURN start(high) AS since, end(low) AS until, avg(low.price) AS mean",
        {},
    ),
    "silent": (
        "PARTITION BY symbol DEFINE high AS price > 104, low AS price < 96 PATTERN high before low WITHIN 40 minutes "
        "RETURN start(high) AS since, end(low) AS until, avg(low.price) AS mean",
        {"gap": "10 minutes"},
    ),
}


def chunk(number: int, events: int) -> pa.Table:
    """Return the events of one chunk, in the order of time, behind those of the chunks before."""
    random = np.random.default_rng(number)
    begin = np.datetime64("2026-01-01", "us") + np.timedelta64(number * CHUNK * STEP, "us")
    symbols = pa.array([f"symbol {each:04}" for each in range(SYMBOLS)])
    return pa.table(
        {
            "ts": begin + np.sort(random.integers(0, events * STEP, events)).astype("timedelta64[us]"),
            "type": pa.array(["A", "B", "C", "N"]).take(pa.array(random.choice(4, events, p=[0.02, 0.05, 0.03, 0.9]).astype(np.int32))),
            "symbol": symbols.take(pa.array(random.integers(0, SYMBOLS, events).astype(np.int32))),
            "price": np.round(100 + 5 * random.standard_normal(events), 2),
            "volume": random.integers(1, 1_000, events),
        }
    )


def write_events(path: Path, events: int) -> None:
    """Write so many events, chunk by chunk."""
    with pq.ParquetWriter(path, chunk(0, 1).schema) as writer:
        for number, begin in enumerate(range(0, events, CHUNK)):
            writer.write_table(chunk(number, min(CHUNK, events - begin)), row_group_size=GROUP)


def run(path: str, question: str, memory: str) -> Ran:
    """Match the file in a process of its own, which holds so much memory of the events; of the other ways, the best of some runs."""
    command = [sys.executable, "-m", "benchmarks.suite.larger_than_memory", path, question, memory]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)
    return Ran(**told)


def taken(path: str, question: str, memory: str) -> Ran:
    """Return what this process takes for a question."""
    query, options = QUESTIONS[question]
    # the compiled kernels are loaded before
    cep.match(pq.ParquetFile(path).read_row_group(0), query, **options)
    rows_there = pq.read_metadata(path).num_rows
    if memory in (TABLE, AT_ONCE):
        events = pq.read_table(path) if memory == TABLE else path
        taken, found = least(lambda: cep.match(events, query, **options), REPEATS)
        return Ran(rows_there, taken.clock, taken.cpu, peak_bytes(), found.num_rows, None)
    profile = cep.Profile()

    def rows() -> int:
        return sum(batch.num_rows for batch in cep.match(path, query, memory=memory, result="reader", profile=profile, **options))

    taken, found = timed(rows)
    return Ran(rows_there, taken.clock, taken.cpu, peak_bytes(), found, profile.slices)


def markdown(took: Mapping[str, Mapping[str, Ran]], where: Mapping[str, str], events: int, size: int) -> str:
    """Return the page of a record; `size`: the bytes of the file."""
    sections = [
        f"# A file larger than memory, on {where['machine']}, {where['day']}",
        f"Commit {where['commit']}; pyarrow {where['pyarrow']}; load average {where['load']} before the first run. {events:,} events in "
        f"the order of time, {size / GIB:.2f} GiB of Parquet, `memory={where['memory']}`. The last columns are shares of the rates over "
        f"the first {min(FITS, events):,} events, read at once or held in memory: by the clock / by processor time. Written by "
        f"`python -m benchmarks.suite.larger_than_memory --events {events} --record`.",
        large_files.table(took),
        "\n".join(f"- {name}: `{query}`{_settings(options)}" for name, (query, options) in QUESTIONS.items()),
    ]
    return "\n\n".join(sections) + "\n"


def _settings(options: Mapping[str, object]) -> str:
    return "".join(f", `{name}={value}`" for name, value in options.items())


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Match a file larger than memory.")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--memory", default="1GiB", help="what match() may hold of the events")
    parser.add_argument("--limit", default="2GiB", help="what the process may take at its peak")
    parser.add_argument("--only", nargs="+", choices=QUESTIONS, default=list(QUESTIONS))
    parser.add_argument("--folder", type=Path, help="where the events go for the time of the run (default: a temporary folder)")
    parser.add_argument("--record", action="store_true", help="write the page with its record to results/")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Measure and print; or be the process that is measured."""
    if len(argv) == 3 and argv[1] in QUESTIONS:
        ran = taken(*argv)
        print(json.dumps({name: getattr(ran, name) for name in Ran.__slots__}))
        return 0
    options = _arguments(argv)
    limit = memory_bytes(options.limit, "limit")
    assert limit is not None, "it has a default"
    where = environment(["pyarrow"]) | {"memory": options.memory}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        took, size = measured(Path(folder), options)
    if options.record:
        print(*write_record(took, where, options.events, size), sep="\n")
    over = max(ways[SLICED].peak for ways in took.values()) > limit
    if over:
        print(f"the process took more than {options.limit}")
    return int(over)


def measured(folder: Path, options: argparse.Namespace) -> tuple[dict[str, dict[str, Ran]], int]:
    """Write the events, ask each question in each way, and return what that took with the bytes of the file."""
    large, small = folder / "large.parquet", folder / "small.parquet"
    write_events(large, options.events)
    write_events(small, min(FITS, options.events))
    size = large.stat().st_size
    print(f"{options.events:,} events, {size / GIB:.2f} GiB of Parquet, memory={options.memory}", flush=True)
    took = {}
    for question in options.only:
        took[question] = {SLICED: run(str(large), question, options.memory)}
        took[question] |= {way: run(str(small), question, way) for way in OTHERS}
        print(large_files.line(question, took[question]), flush=True)
    return took, size


def write_record(took: Mapping[str, Mapping[str, Ran]], where: Mapping[str, str], events: int, size: int) -> tuple[Path, Path]:
    """Write the page and the record of what the questions took."""
    questions = {name: {way: asdict(ran) for way, ran in ways.items()} for name, ways in took.items()}
    record = {"environment": where, "events": events, "bytes": size, "questions": questions}
    page = markdown(took, where, events, size)
    return pages.write(RESULTS, name_on(where, "larger-than-memory"), page, record)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

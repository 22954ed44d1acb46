"""Match a file larger than the memory that it may take, beside tables in memory of a size that fits.

``python -m benchmarks.suite.larger_than_memory [--events N] [--memory SIZE] [--limit SIZE] [--only QUESTION …] [--folder FOLDER]``
generates events in the order of time, matches them in a process of its own, and prints events a second, the memory at the peak, and two
shares: of the rate of ``match(path)`` that reads the first ones of them at once, and of ``match(table)``, which reads nothing and encodes
its texts once. It fails if the process takes more than the limit.
``python -m benchmarks.suite.larger_than_memory FILE QUESTION MEMORY`` is that process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gpu_cep as cep
from benchmarks.record.folders import ROOT
from benchmarks.record.memory import peak_bytes
from gpu_cep.plan.settings import memory_bytes

EVENTS, FITS, REPEATS = 100_000_000, 10_000_000, 3
AT_ONCE, TABLE = "match(path) at once", "match(table)"
CHUNK, GROUP = 1 << 22, 1 << 18
SYMBOLS, STEP = 1_000, 260_000  # microseconds between two events
GIB = 1 << 30
QUESTIONS = {
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


@dataclass(frozen=True, slots=True)
class Ran:
    """Events a second and the bytes at the peak of a process; `slices` are those of its profile (None: it read at once)."""

    events: int
    seconds: float
    cpu: float
    peak: int
    rows: int
    slices: tuple[int, int, int] | None

    @property
    def rate(self) -> float:
        return self.events / self.seconds


def chunk(number: int, events: int) -> pa.Table:
    """The events of one chunk, in the order of time, behind those of the chunks before."""
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
    """What this process takes for a question."""
    query, options = QUESTIONS[question]
    # the compiled kernels are loaded before
    cep.match(pq.ParquetFile(path).read_row_group(0), query, **options)
    rows_there = pq.read_metadata(path).num_rows
    if memory in (TABLE, AT_ONCE):
        events = pq.read_table(path) if memory == TABLE else path
        runs = [_timed(lambda: cep.match(events, query, **options)) for _ in range(REPEATS)]
        seconds, cpu, found = min(runs, key=lambda each: each[0])
        return Ran(rows_there, seconds, min(each[1] for each in runs), peak_bytes(), found.num_rows, None)
    profile = cep.Profile()

    def rows() -> pa.Table:
        reader = cep.match(path, query, memory=memory, result="reader", profile=profile, **options)
        return pa.table({"rows": [sum(batch.num_rows for batch in reader)]})

    seconds, cpu, found = _timed(rows)
    return Ran(rows_there, seconds, cpu, peak_bytes(), found["rows"][0].as_py(), profile.slices)


def _timed(does: Callable[[], pa.Table]) -> tuple[float, float, pa.Table]:
    cpu, clock = time.process_time(), time.perf_counter()
    found = does()
    return time.perf_counter() - clock, time.process_time() - cpu, found


def line(question: str, large: Ran, beside: Mapping[str, Ran]) -> str:
    """What one question took, in words, beside the other ways."""
    slices = "at once" if large.slices is None else f"{large.slices[0]} slices, {large.slices[1] / large.slices[2]:.2f} rows read per row"
    return (
        f"{question:<6} {large.rate / 1e6:6.1f} M events/s of {large.events:,} ({slices}, {large.rows:,} rows), "
        f"peak {large.peak / GIB:.2f} GiB; {'; '.join(_share(large, way, other) for way, other in beside.items())}"
    )


def _share(large: Ran, way: str, other: Ran) -> str:
    """The rate as a share of another way's, by the clock and by processor time."""
    by_cores = large.events / large.cpu / (other.events / other.cpu)
    share, peak = large.rate / other.rate, other.peak / GIB
    return f"{share:.2f} of {way} over {other.events:,} (by processor time {by_cores:.2f}; peak {peak:.2f} GiB)"


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Match a file larger than memory.")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--memory", default="1GiB", help="what match() may hold of the events")
    parser.add_argument("--limit", default="2GiB", help="what the process may take at its peak")
    parser.add_argument("--only", nargs="+", choices=QUESTIONS, default=list(QUESTIONS))
    parser.add_argument("--folder", type=Path, help="where the events go for the time of the run (default: a temporary folder)")
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
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        large, small = Path(folder, "large.parquet"), Path(folder, "small.parquet")
        write_events(large, options.events)
        write_events(small, min(FITS, options.events))
        print(f"{options.events:,} events, {large.stat().st_size / GIB:.2f} GiB of Parquet, memory={options.memory}", flush=True)
        peaks = []
        for question in options.only:
            ran = run(str(large), question, options.memory)
            peaks.append(ran.peak)
            print(line(question, ran, {way: run(str(small), question, way) for way in (AT_ONCE, TABLE)}), flush=True)
    if max(peaks) > limit:
        print(f"the process took more than {options.limit}")
    return int(max(peaks) > limit)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

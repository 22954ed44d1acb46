"""Measure gpu_match over a streaming DataFrame beside other ways to follow the same stream of events.

``python -m benchmarks.rivals.streams [--rows N] [--batches N] [--keys N …] [--few N] [--repeats N] [--out FOLDER]`` asks for three rising
events of a key within a window. It prints a table for each number of keys and writes the page with its record to ``benchmarks/results/``.
Micro-batches of Spark are read from Parquet; a road that walks rows in Python gets `--few` rows in each. Flink CEP and `cep.stream` have
the events in memory, in order of time, must find the matches of `cep.match`, and show the median of `--repeats` runs behind a first one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import gpu_cep
from benchmarks.record import machine, pages
from benchmarks.record.folders import RESULTS
from benchmarks.record.followed import OURS, Followed, table
from benchmarks.rivals.asking import ask
from benchmarks.rivals.environments import REQUIREMENTS, environment
from benchmarks.spark.sessions import spark_session
from benchmarks.spark.streaming import BATCHES, QUERY, ROWS, SETTINGS, SPAN, WINDOW, bare_road, events, run, source, storing, written

KEYS, FEW, REPEATS, PUSHES = (1_000, 100_000), 4_000, 3, (10_000, 100_000)
THREADS = 2
FLINK = "Flink CEP, two slots, events in the JVM's memory"
BY_KEY = "transformWithStateInPandas by key, which keeps the rows and matches nothing"
PACKAGES = ("pyspark", "pyarrow")


def count_in_windows(frame: DataFrame) -> DataFrame:
    """Return how many rows each key has in each window, which Spark counts in the JVM."""
    return frame.groupBy(F.window("ts", f"{WINDOW} seconds"), "k").count()


def keep_by_key(frame: DataFrame) -> DataFrame:
    """Return the state of each key, to which its rows are added one by one, as a processor of one's own would."""
    sent = frame.where("type IN ('A', 'B', 'C')").select("k", "ts", "type", "x")
    return sent.groupBy("k").transformWithStateInPandas(storing("x", "double"), "rows long", "append", "eventTime")


# The ways over a streaming DataFrame.
ROADS: dict[str, Callable[[DataFrame], DataFrame]] = {
    OURS: lambda frame: gpu_cep.gpu_match(frame, QUERY),
    "the rows packed, shuffled and kept, and nothing matched": bare_road,
    "a count for each key and window, in the JVM": count_in_windows,
    BY_KEY: keep_by_key,
}


def under_spark(session: SparkSession, place: Path, way: str, keys: int, rows: int, batches: int) -> Followed:
    """Follow micro-batches of so many rows."""
    folder = place / f"keys{keys}rows{rows}"
    if not folder.exists():
        written(folder, rows, batches, keys)
    taken = run(ROADS[way](source(session, folder)), rows)
    return Followed(way, keys, rows * batches, taken.rate, taken.cores)


def in_order(rows: int, batches: int, keys: int) -> pa.Table:
    """Return the events of all micro-batches in order of time, the time in microseconds; of those of a key at one time, one."""
    table = pa.concat_tables([events(rows, keys, number) for number in range(batches)])
    times, own = table["ts"].cast(pa.int64()).to_numpy(), table["k"].to_numpy()
    order = np.lexsort([own, times])
    alone = np.r_[True, (np.diff(times[order]) != 0) | (np.diff(own[order]) != 0)]
    return table.take(pa.array(order[alone])).set_column(0, "ts", pa.array(times[order[alone]] - times.min()))


def in_the_process(table: pa.Table, keys: int, text: str, repeats: int, push: int) -> tuple[Followed, int]:
    """Push the events into `cep.stream`, `push` at a time in the order of time; also return how many matches came out.

    As of Flink CEP, the first run is not counted.
    """
    matches = pushed(table, text, push)
    seconds, cores = (median(each) for each in zip(*(timed(table, text, push) for _ in range(repeats)), strict=True))
    way = f"cep.stream, pushes of {push:,} events"
    return Followed(way, keys, len(table), len(table) / seconds, 1e6 * cores / len(table)), matches


def timed(table: pa.Table, text: str, push: int) -> tuple[float, float]:
    """Return the seconds of the clock and of processors that a run takes."""
    begin, busy = time.perf_counter(), time.process_time()
    pushed(table, text, push)
    return time.perf_counter() - begin, time.process_time() - busy


def pushed(table: pa.Table, text: str, push: int) -> int:
    """Push the events into a stream, so many at a time, and return how many matches come out."""
    # Events of one time may come in two pushes: those of the second are not late.
    live = gpu_cep.stream(text, table.schema, time_unit="us", lateness=1, threads=THREADS)
    parts = (table.slice(first, push) for first in range(0, len(table), push))
    return sum(len(live.push(part)) for part in parts) + len(live.finish())


def by_flink(table: pa.Table, expected: pa.Table, keys: int, repeats: int) -> Followed | None:
    """Ask Flink CEP; None if it cannot be installed.

    Raises
    ------
    RuntimeError
        It found other matches.
    """
    where = environment("flink")
    if where.missing:
        print(f"{FLINK}: {where.missing}", file=sys.stderr)
        return None
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: str(Path(folder) / f"{name}.parquet") for name in ("events", "expected")}
        pq.write_table(table, paths["events"])
        pq.write_table(expected, paths["expected"])
        asked = {"question": "rising", "text": "", "window": WINDOW * 1_000_000, "key": "k", "value": "x", "types": tuple("ABCD")}
        job = asked | paths | {"threads": THREADS, "repeats": repeats, "mode": "STREAMING"}
        measured = ask(FLINK, "flink", where.python, job)
    seconds, cores = median(measured["seconds"]), median(measured["cpu_seconds"])
    return Followed(FLINK, keys, len(table), len(table) / seconds, 1e6 * cores / len(table))


def in_memory(keys: int, rows: int, batches: int, repeats: int) -> list[Followed]:
    """Return what `cep.stream` and Flink CEP take for the events of all micro-batches."""
    table = in_order(rows, batches, keys)
    text = QUERY.partition(" RETURN ")[0]
    found = gpu_cep.match(table, text, time_unit="us", output="indices", threads=THREADS)
    times = table["ts"].combine_chunks()
    expected = pa.table({name: times.take(found[name].combine_chunks()) for name in "abc"})
    ways = []
    for push in PUSHES:
        ours, matches = in_the_process(table, keys, text, repeats, push)
        if matches != expected.num_rows:
            raise RuntimeError(f"cep.stream found {matches:,} matches, cep.match {expected.num_rows:,}")
        ways.append(ours)
    theirs = by_flink(table, expected, keys, repeats)
    return [*ways, *([] if theirs is None else [theirs])]


def measured(session: SparkSession, place: Path, keys: int, rows: int, batches: int, few: int, repeats: int) -> list[Followed]:
    """Return what all ways take for so many keys."""
    found = []
    for way in ROADS:
        found.append(under_spark(session, place, way, keys, few if way == BY_KEY else rows, batches))
        print(found[-1], file=sys.stderr, flush=True)
    found += in_memory(keys, rows, batches, repeats)
    print(*found[len(ROADS) :], sep="\n", file=sys.stderr, flush=True)
    return found


def markdown(found: Sequence[Followed], where: Mapping[str, str]) -> str:
    """Return the page of a record."""
    head = [
        f"# A stream followed in several ways, on {where['machine']}, {where['day']}",
        f"Commit {where['commit']}; {machine.versions(where, PACKAGES)}, {REQUIREMENTS['flink'][0]}; load "
        f"average {where['load']} before the first run. `{QUERY}`. Under Spark: local[2], micro-batches of {SPAN} seconds, the rates of "
        "those behind the first two. Cores are the processor time of all processes for a row. "
        "Written by `python -m benchmarks.rivals.streams`.",
    ]
    return "\n\n".join([*head, table(found)]) + "\n"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure gpu_match over a streaming DataFrame beside other ways.")
    parser.add_argument("--rows", type=int, default=ROWS, help="of a micro-batch")
    parser.add_argument("--batches", type=int, default=BATCHES, help="at least three: the first two load code")
    parser.add_argument("--keys", type=int, nargs="+", default=KEYS)
    parser.add_argument("--few", type=int, default=FEW, help="rows of a micro-batch by key")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="the median of so many runs of cep.stream and of Flink")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder for the record")
    options = parser.parse_args(argv)
    where = machine.environment(PACKAGES)
    found: list[Followed] = []
    with tempfile.TemporaryDirectory() as folder, spark_session(2, "3g", SETTINGS) as session:
        for keys in options.keys:
            found += measured(session, Path(folder), keys, options.rows, options.batches, options.few, options.repeats)
    page = markdown(found, where)
    record = {"environment": where, "query": QUERY, "ways": [asdict(each) for each in found]}
    print(page)
    print(*pages.write(options.out, machine.name_on(where, "rivals-streams"), page, record), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

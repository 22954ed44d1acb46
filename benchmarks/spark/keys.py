"""Streams of one key to a million, even and skewed: what ``slices="auto"`` takes beside whole streams and beside Spark's bare hand-over.

Both by Spark's shuffle of the DataFrame and by tasks that read its files.

``python -m benchmarks.spark.keys [--query NAME] [--events N] [--repeats N] [--keys N …] [--rows N] [--groups N] [--folder FOLDER |
--no-record]`` checks that all ways count the same matches, prints the page and writes it with its record to ``results/``. ``--rows`` is the
setting ``spark.sql.execution.arrow.maxRecordsPerBatch``, ``--groups`` the number of row groups. A run adds its lines to the record of its
day; a record of another query, or of other numbers than usual, has them in its name.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

import gpu_cep
from benchmarks.record import pages
from benchmarks.record.arguments import measuring
from benchmarks.record.day_records import Record, RecordError, earlier, merged, new_record, run_lines
from benchmarks.record.machine import ON_SPARK, environment, name_on, versions
from benchmarks.spark.floor import handed_over, total
from benchmarks.spark.sessions import BATCH_ROWS, spark_session
from benchmarks.spark.times import SparkSeconds, least_seconds
from gpu_cep.choices import Scan

EVENTS, REPEATS, ROW_GROUPS, WINDOW, ROWS = 2_000_000, 5, 8, 1_000, 10_000
NUMBERS = (1, 2, 10, 50, 1_000, 100_000, 1_000_000)
SEQUENCE = "sequence"
# Each query, and the events that its DataFrame's road must send.
QUERIES = {
    SEQUENCE: (f"PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN {WINDOW}", "type IN ('A', 'B', 'C')"),
    "situations": (f"DEFINE P AS type IN ('A', 'B'), Q AS x < 0.4 PATTERN P overlaps Q WITHIN {WINDOW}", "true"),
}
BARE, WHOLE, AUTO = "bare hand-over", "slices=None", "slices='auto'"
FILES_WHOLE, FILES_AUTO = "files, slices=None", "files, slices='auto'"


@dataclass(frozen=True, slots=True)
class Line:
    """What each way takes for so many keys, even or skewed; how many matches there are; and what auto says of its choice.

    `files_whole` and `files`: what tasks that read files take, with whole streams and with slices; `pieces`: how files were divided.
    """

    keys: int
    skewed: bool
    bare: SparkSeconds
    whole: SparkSeconds
    auto: SparkSeconds
    files_whole: SparkSeconds
    files: SparkSeconds
    matches: int
    tasks: int
    streams: str
    pieces: str

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Line:
        """Return the line that a record has as a mapping."""
        return cls(**{**told, **{way: SparkSeconds(**told[way]) for way in ("bare", "whole", "auto", "files_whole", "files")}})


def column(keys: int, *, skewed: bool) -> str:
    return f"{'zipf' if skewed else 'even'}{keys}"


def lines(numbers: Sequence[int]) -> list[tuple[int, bool]]:
    """Return every number of keys, even and skewed; one key is both."""
    return [(keys, skewed) for keys in numbers for skewed in (False, True) if keys > 1 or not skewed]


def events(number: int, numbers: Sequence[int]) -> pa.Table:
    """Return events in the order of time, half of them of a type that is asked for, with a column of keys for each line."""
    random = np.random.default_rng(7)
    found: dict[str, object] = {
        "ts": np.arange(number),
        "type": pa.array(np.array(list("ABCDEF"))[random.integers(0, 6, number)]),
        "x": random.random(number),
    }
    for keys, skewed in lines(numbers):
        # the same keys, whatever others are asked for
        random = np.random.default_rng([7, keys, skewed])
        weights = 1 / np.arange(1, keys + 1) if skewed else np.ones(keys)
        shares = np.cumsum(weights / weights.sum())
        found[column(keys, skewed=skewed)] = np.minimum(np.searchsorted(shares, random.random(number)), keys - 1)
    return pa.table(found)


def bare_handover(frame: DataFrame, key: str, where: str) -> int:
    """Return how many rows arrive in Python of those that must be sent, in the columns and with the tasks of gpu_match."""
    sent = frame.where(where).selectExpr("ts", "CAST(ASCII(type) AS BYTE) AS type", "x", key)
    return total(handed_over(sent.repartition(8, key)))


def count(frame: DataFrame, query: str, key: str, slices: str | None, scan: Scan, report: gpu_cep.RunReport | None = None) -> int:
    return total(gpu_cep.gpu_match(frame, query, partition_by=key, output="count", slices=slices, scan=scan, report=report))


def measured(path: Path, options: argparse.Namespace) -> list[Line]:
    with spark_session(2, "4g", {BATCH_ROWS: str(options.rows)}) as spark:
        frame = spark.read.parquet(str(path))
        return [_line(frame, options.query, keys, skewed, options.repeats) for keys, skewed in lines(options.keys)]


def _line(frame: DataFrame, name: str, keys: int, skewed: bool, repeats: int) -> Line:
    """Return one line; ways take turns, so that other work of the machine slows all of them alike."""
    key = column(keys, skewed=skewed)
    query, where = QUERIES[name]
    counted = partial(count, frame, query, key)
    ways: dict[str, Callable[[], int]] = {
        BARE: partial(bare_handover, frame, key, where),
        WHOLE: partial(counted, None, "spark"),
        AUTO: partial(counted, "auto", "spark"),
        FILES_WHOLE: partial(counted, None, "files"),
        FILES_AUTO: partial(counted, "auto", "files"),
    }
    of_shuffle, of_files = gpu_cep.RunReport(), gpu_cep.RunReport()
    answers = {way: ask() for way, ask in ways.items()}
    answers |= {"reported": counted("auto", "spark", of_shuffle), "reported of files": counted("auto", "files", of_files)}
    if len({found for way, found in answers.items() if way != BARE}) > 1:
        raise ValueError(f"{key}: {answers}")
    best = dict.fromkeys(ways, SparkSeconds())
    for _ in range(repeats):
        for way, ask in ways.items():
            best[way] = least_seconds(ask, best[way])
    line = Line(
        keys,
        skewed,
        bare=best[BARE],
        whole=best[WHOLE],
        auto=best[AUTO],
        files_whole=best[FILES_WHOLE],
        files=best[FILES_AUTO],
        matches=answers[WHOLE],
        tasks=of_shuffle.counts["tasks"],
        streams=of_shuffle.streams,
        pieces=of_files.scan,
    )
    print(line, file=sys.stderr)
    return line


def record_name(options: argparse.Namespace) -> str:
    """Return what a record of a query, of so many events, rows a batch and row groups, is called."""
    usual = (("events", EVENTS), ("rows", ROWS), ("groups", ROW_GROUPS))
    numbers = [f"{getattr(options, what)}-{what}" for what, number in usual if getattr(options, what) != number]
    return "-".join(["keys", *(options.query for _ in range(options.query != SEQUENCE)), *numbers])


def markdown(record: Record) -> str:
    where = record["environment"]
    table = [["keys", "", BARE, WHOLE, AUTO, "auto over None", "of cores", "auto over bare", "of cores", "tasks", "auto says"]]
    files = [["keys", "", FILES_WHOLE, FILES_AUTO, "auto over None", "of cores", "pieces of auto"]]
    for each in map(Line.of, record["questions"].values()):
        streams = [f"{each.keys:,}", "Zipf" if each.skewed else "even"]
        ratios = _ratios(each.auto, each.whole) + _ratios(each.auto, each.bare)
        table.append([*streams, *_seconds(each.bare, each.whole, each.auto), *ratios, str(each.tasks), each.streams])
        files.append([*streams, *_seconds(each.files_whole, each.files), *_ratios(each.files, each.files_whole), each.pieces])
    sections = [
        f"# Keys of streams under Spark, on {where['machine']}, {where['day']}",
        f"{versions(where, ON_SPARK)}. "
        f"{record['events']:,} events in Parquet, in {record['groups']:,} row groups in the order of time; local[2], "
        f"{record['rows']:,} rows a batch; the best of some warm runs, turn by turn. `{QUERIES[record['query']][0]}`, counted. The "
        "bare hand-over sends the rows and columns that the query needs through a shuffle to Python, which counts them. Seconds are the "
        "clock's; `of cores` compares the CPU time of all processes, which suffers less from what else the machine does. Written by "
        "`python -m benchmarks.spark.keys`.",
        "\n".join(run_lines(record)),
        "The DataFrame by Spark's shuffle:",
        pages.table(table, figures=10),
        "Tasks that read the files:",
        pages.table(files, figures=6),
    ]
    return "\n\n".join(sections) + "\n"


def _seconds(*ways: SparkSeconds) -> list[str]:
    return [f"{way.clock:.2f} s" for way in ways]


def _ratios(one: SparkSeconds, other: SparkSeconds) -> list[str]:
    return [f"{ratio:.2f}" for ratio in (one.clock / other.clock, one.cores / other.cores)]


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = measuring("Measure streams by number and skew of their keys under Spark.", EVENTS, REPEATS)
    parser.add_argument("--query", choices=QUERIES, default=SEQUENCE)
    parser.add_argument("--keys", type=int, nargs="+", default=NUMBERS)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--groups", type=int, default=ROW_GROUPS)
    return parser.parse_args(argv)


def ask(options: argparse.Namespace) -> dict[str, Any]:
    """Return the lines of a record, by the names of their columns of keys."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        pq.write_table(events(options.events, options.keys), path, row_group_size=max(1, options.events // options.groups))
        found = measured(path, options)
    return {column(each.keys, skewed=each.skewed): asdict(each) for each in found}


def main(argv: list[str]) -> int:
    options = arguments(argv)
    where = environment(ON_SPARK)
    name = name_on(where, record_name(options))
    try:
        before = None if options.folder is None else earlier(options.folder / f"{name}.json", where, ON_SPARK)
    except RecordError as fault:
        print(fault, file=sys.stderr)
        return 2
    numbers = {what: getattr(options, what) for what in ("query", "events", "rows", "groups")}
    order = [column(keys, skewed=skewed) for keys, skewed in lines(sorted({*NUMBERS, *options.keys}))]
    record = merged(before, new_record(where, options.repeats, ask(options), **numbers), order)
    pages.publish(markdown(record), options.folder, name, record)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Questions over Parquet in the order of time: tasks that read files, Spark's shuffle, SQL, ``match(path)``, and floors.

``python -m benchmarks.rivals.spark_files [--events N] [--repeats N] [--kinds NAME …] [--ways WAY …] [--unordered [NAME …]] [--cores N]
[--folder FOLDER | --no-record]`` checks that all ways count the same matches, prints the page and writes it with its record to
``results/``: each way's seconds and, per question, how many times as long as reading the files the others take, by the clock and in the CPU
time of all processes. A job of Spark's takes a few tenths of a second by itself, so ratios grow with the number of events; a record of
another number than usual has it in its name. Before a question's first run, each way answers it some times over a small share of the
events, since Java compiles what runs often: a session that has worked for minutes is as warm, and one that asks once is not. Of the
questions of ``--unordered``, the events are also written in random order, so that each core must read all of them, or Spark. Batches
without a limit of bytes are measured by ``--ways files unbounded sql``, without other ways of Spark's hand-over. A run adds its questions
to the record of its day, and is refused if it would leave less in it. The page tells which ways failed.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import gpu_cep
from benchmarks.kinds.questions import KINDS
from benchmarks.record import pages
from benchmarks.record.arguments import measuring
from benchmarks.record.day_records import RecordError, earlier, merged
from benchmarks.record.machine import ON_SPARK, environment, name_on
from benchmarks.rivals.kinds import IN_SQL, KindInSql
from benchmarks.rivals.spark_records import (
    AUTO,
    BARE,
    EMPTY,
    FILES,
    HANDED,
    PATH,
    SHUFFLED,
    SQL,
    UNBOUNDED,
    WARM,
    WAYS,
    new_record,
    page_of,
    refuse_losses,
)
from benchmarks.spark.floor import handed_over, total
from benchmarks.spark.sessions import SHUFFLE_PARTITIONS, spark_session
from benchmarks.spark.times import SparkSeconds, least_seconds
from gpu_cep.choices import Scan
from gpu_cep.errors import UnsupportedError
from gpu_cep.keywords import read_keywords
from gpu_cep_spark.narrowing.codes import coded_columns
from gpu_cep_spark.narrowing.narrow_frames import narrow
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery
from gpu_cep_spark.schemas import arrow_schema

EVENTS, REPEATS, CORES = 10_000_000, 3, 2
# How often each way answers a question over so small a share of the events before it is measured.
WARM_RUNS, WARM_SHARE = 8, 100
UNORDERED = ("next_kleene",)
# Questions that are asked by name only: tasks cannot cut their streams by time, or SQL joins all pairs of events within windows.
BY_NAME = {"sessions", "distant_next", "distant_any", "selective_prices", "situations_few", "situations_many", "situations_early"}
USUAL = tuple(name for name in IN_SQL if name not in BY_NAME)
GROUP = 1_000_000  # rows of a row group, Arrow's own number
# The setting for the bytes of a batch that Spark hands over to Python, and the limit at which it does not add them up.
BATCH_BYTES, UNBOUNDED_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch", str((1 << 31) - 1)
# Words of DuckDB, and Spark's for them.
IN_SPARK = (
    (r"([^()]*) IGNORE NULLS\)", r"\1) IGNORE NULLS"),
    (r"unnest\(range\(([^,]*), ([^,]*)\)\) AS", r"explode(sequence(\1, \2 - 1)) AS"),
    (r" // ", " DIV "),
    (r"(lead\(\w+\) OVER \w+) - ", r"(\1) - "),
    (r"\(FROM ", "(SELECT * FROM "),
    (r"NOT MATERIALIZED|MATERIALIZED", ""),
    (r"arg_(min|max)", r"\1_by"),
    (r"(\w+) IS NOT DISTINCT FROM (\w+)", r"(\1 <=> \2)"),
    (r"(\w+) IS DISTINCT FROM (\w+)", r"(NOT \1 <=> \2)"),
)
# The ways by the words of --ways.
WORDS = {
    "files": FILES,
    "shuffle": SHUFFLED,
    "unbounded": UNBOUNDED,
    "hand": HANDED,
    "bare": BARE,
    "sql": SQL,
    "path": PATH,
    "empty": EMPTY,
}
# Those that are asked if none are named. Batches with a limit and without, in one session, have Java compile the hand-over for both: each
# may then take twice as long as by itself.
USUAL_WAYS = tuple(word for word in WORDS if word != "unbounded")
# Spark ends Python workers that have waited for a minute, so that no way of theirs may wait for a long query of SQL. Java goes on
# collecting garbage behind a shuffle of all rows, so that no short way takes its turn there.
TOGETHER = ((FILES, PATH, EMPTY), (AUTO, SHUFFLED, HANDED, BARE), (UNBOUNDED,), (SQL,))
# The ways that count rows, not matches.
COUNT_ROWS = (HANDED, BARE, EMPTY)
# The share of the matches that may differ by which of two events of one time comes first.
TIED = 0.002


@dataclass(frozen=True, slots=True)
class FileQuestion:
    """A question and where its events lie."""

    kind: KindInSql
    frame: DataFrame
    path: str
    cores: int

    def in_process(self) -> int:
        """Return the number of matches that match() counts without Spark."""
        found = gpu_cep.match(self.path, self.kind.query, output="count", threads=self.cores, **self.kind.kind.options)
        return int(pc.sum(found["count"]).as_py() or 0)

    def count(self, scan: Scan, report: gpu_cep.RunReport | None = None) -> int:
        """Return the number of matches that gpu_match counts."""
        return total(gpu_cep.gpu_match(self.frame, self.kind.query, output="count", scan=scan, report=report, **self.kind.kind.options))

    def count_unbounded(self) -> int:
        """Return the number of matches that gpu_match counts by Spark's shuffle, where rows alone bound a batch."""
        conf = self.frame.sparkSession.conf
        limit = str(conf.get(BATCH_BYTES))
        conf.set(BATCH_BYTES, UNBOUNDED_BYTES)
        try:
            return self.count("spark")
        finally:
            conf.set(BATCH_BYTES, limit)

    def hand_over(self) -> int:
        """Return the number of rows that Python gets, shuffled by key."""
        spread = self.frame.repartition("key") if self.kind.kind.keyed else self.frame.repartition(1)
        return total(handed_over(spread))

    def scanned(self) -> int:
        """Return how many rows Spark's scan hands to Python: those that the query needs, in the columns that it reads."""
        options, settings = read_keywords(self.kind.kind.options | {"output": "count"})
        zone = str(self.frame.sparkSession.conf.get("spark.sql.session.timeZone"))
        query = NarrowQuery.of(self.kind.query, arrow_schema(self.frame.schema, zone), options, settings)
        return total(handed_over(narrow(self.frame, query.plan, query.events, coded_columns(query.plan))))

    def nothing(self) -> int:
        """Return the number of rows in a job whose tasks read no file: one for each core."""
        return total(handed_over(self.frame.sparkSession.range(0, self.cores, 1, self.cores)))

    def by_sql(self) -> int:
        """Return the number of matches that SQL finds; raise AnalysisException if Spark does not know some of its words."""
        text = self.kind.hand_written("spark")
        numbered = self.frame.selectExpr("*", "_metadata.row_index AS rowid") if "rowid" in text else self.frame
        numbered.createOrReplaceTempView("events")
        for duckdb, spark in IN_SPARK:
            text = re.sub(duckdb, spark, text)
        return self.frame.sparkSession.sql(text).count()


def ways(asked: FileQuestion) -> Mapping[str, Callable[[], int]]:
    """Return all ways to answer a question, by their names."""
    return {
        FILES: lambda: asked.count("files"),
        AUTO: lambda: asked.count("auto"),
        SHUFFLED: lambda: asked.count("spark"),
        UNBOUNDED: asked.count_unbounded,
        HANDED: asked.scanned,
        BARE: asked.hand_over,
        SQL: asked.by_sql,
        PATH: asked.in_process,
        EMPTY: asked.nothing,
    }


def warm_up(asked: FileQuestion, chosen: Collection[str]) -> None:
    """Let the chosen ways answer a question some times, so that Java has compiled what runs often; a way that fails is left out."""
    answers = ways(asked)
    for way in (way for group in TOGETHER for way in group if way in answers and way in chosen):
        with suppress(UnsupportedError, AnalysisException):
            for _ in range(WARM_RUNS):
                answers[way]()


@dataclass(frozen=True, slots=True)
class WayResults:
    """The least that each way took for a question, and the errors of the ways that failed."""

    best: dict[str, SparkSeconds]
    failed: dict[str, str]


def measured(asked: FileQuestion, repeats: int, chosen: Collection[str] = WAYS) -> WayResults:
    """Return the least that each of the chosen ways takes, turn by turn; raise AssertionError unless they count alike.

    The first turn, in which workers start and load kernels, does not count. A way that fails in any turn has no time.
    """
    best: dict[str, SparkSeconds] = {}
    failed: dict[str, str] = {}
    counted: dict[str, int] = {}

    def counting(way: str) -> int:
        counted[way] = answers[way]()
        return counted[way]

    answers = {way: answer for way, answer in ways(asked).items() if way in chosen}
    for group, turn in product(TOGETHER, range(repeats + 1)):
        for way in group:
            if way not in answers or way in failed:
                continue
            try:
                spent = least_seconds(partial(counting, way), best.get(way, SparkSeconds()) if turn else SparkSeconds())
            except (UnsupportedError, AnalysisException) as fault:
                failed[way] = str(fault).splitlines()[0]
                print(f"{asked.kind.name}, {way}: {failed[way]}", file=sys.stderr)
                continue
            print(f"{asked.kind.name}, {way}, turn {turn}: {spent.clock:.2f} s, {counted[way]:,}", file=sys.stderr)
            if turn:
                best[way] = spent
    refuse_other_counts(asked.kind.name, counted)
    return WayResults({way: spent for way, spent in best.items() if way not in failed}, failed)


def refuse_other_counts(name: str, counted: Mapping[str, int]) -> None:
    """Raise AssertionError unless all ways count the same matches.

    Of events of one time in a stream, match(path) and SQL take the first of the file, and the tasks the least by columns.
    """
    assert len({counted[way] for way in (FILES, AUTO, SHUFFLED, UNBOUNDED) if way in counted}) <= 1, f"{name}: the ways count {counted}"
    least, most = (extreme((count for way, count in counted.items() if way not in COUNT_ROWS), default=0) for extreme in (min, max))
    assert most - least <= TIED * most, f"{name}: the ways count {counted}"


def record_name(events: int) -> str:
    """Return what a record of so many events is called."""
    return "spark-files" if events == EVENTS else f"spark-files-{events}"


def asked_of(name: str, count: int, folder: Path, spark: SparkSession, *, unordered: bool = False) -> FileQuestion:
    """Return a question over `count` events, which are written to `folder`: in the order of time, or in none."""
    kind, path = KindInSql(KINDS[name], count), folder / f"{name}.parquet"
    events = kind.stored(kind.events(count))
    written = events.take(pa.array(np.random.default_rng(7).permutation(count))) if unordered else events
    pq.write_table(written, path, row_group_size=rows_of_group(count))
    return FileQuestion(kind, spark.read.parquet(str(path)), str(path), spark.sparkContext.defaultParallelism)


def rows_of_group(events: int) -> int:
    """Return the most rows of a row group."""
    return min(GROUP, events // 10)


def ask(options: argparse.Namespace) -> dict[str, WayResults]:
    """Return what each way takes for each question."""
    found: dict[str, WayResults] = {}
    chosen = [WORDS[word] for word in options.ways]
    with spark_session(options.cores, "6g", {SHUFFLE_PARTITIONS: str(2 * options.cores)}) as spark:
        for names, ways_of, unordered in ((options.kinds, chosen, False), (options.unordered, (AUTO, SHUFFLED), True)):
            for name in names:
                with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as small:
                    warm_up(asked_of(name, max(10, options.events // WARM_SHARE), Path(small), spark, unordered=unordered), ways_of)
                    asked = asked_of(name, options.events, Path(folder), spark, unordered=unordered)
                    found[_title(name, unordered=unordered)] = measured(asked, options.repeats, ways_of)
    return found


def _title(name: str, *, unordered: bool) -> str:
    return f"{name}, in random order" if unordered else name


def parsed(argv: list[str]) -> argparse.Namespace:
    parser = measuring("Measure who should read Parquet files under Spark.", EVENTS, REPEATS)
    parser.add_argument("--cores", type=int, default=CORES)
    parser.add_argument("--kinds", nargs="*", choices=IN_SQL, default=USUAL)
    parser.add_argument("--ways", nargs="+", choices=WORDS, default=USUAL_WAYS)
    parser.add_argument("--unordered", nargs="*", choices=IN_SQL, default=UNORDERED)
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    options = parsed(argv)
    # a question that Spark's SQL cannot ask is left out, and no fault
    logging.getLogger("SQLQueryContextLogger").disabled = True
    where = environment(ON_SPARK) | {"cores": str(options.cores), WARM: str(WARM_RUNS)}
    name = name_on(where, record_name(options.events))
    before = None
    if options.folder is not None:
        try:
            before = earlier(options.folder / f"{name}.json", where, (*ON_SPARK, "cores", WARM))
            refuse_losses(before, options.kinds, [WORDS[word] for word in options.ways])
        except RecordError as fault:
            print(fault, file=sys.stderr)
            return 2
    found = ask(options)
    best, failed = ({name: getattr(each, part) for name, each in found.items()} for part in ("best", "failed"))
    record = merged(before, new_record(where, options.events, options.repeats, best, failed), IN_SQL)
    pages.publish(page_of(record, rows_of_group(options.events)), options.folder, name, record)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

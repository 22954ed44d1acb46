"""Questions over Parquet in the order of time: tasks that read the files, Spark's shuffle, the bare hand-over, SQL, and ``match(path)``.

``python -m benchmarks.rivals.spark_files [--events N] [--repeats N] [--kinds NAME …] [--ways WAY …] [--cores N]`` checks that all ways
count the same matches, prints the page and writes it with its record to ``results/``: each way's seconds and, per question, how many times
as long as reading the files the others take, by the clock and in the CPU time of all processes. A job of Spark's takes a few tenths of a
second by itself, so ratios grow with the number of events; a record of another number than usual has it in its name, and one of the usual
number has the kinds and ways that were chosen, unless these are all.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import gpu_cep
from benchmarks.kinds.questions import KINDS
from benchmarks.record import pages
from benchmarks.record.folders import RESULTS
from benchmarks.record.machine import commit, package_version, processor_name, slug
from benchmarks.rivals.kinds import IN_SQL, KindInSql
from benchmarks.spark.floor import handed_over, total
from benchmarks.spark.keys import PACKAGES, Taken, taken
from gpu_cep.choices import Scan
from gpu_cep.errors import UnsupportedError

EVENTS, REPEATS, CORES = 10_000_000, 3, 2
GROUP = 1_000_000  # rows of a row group, Arrow's own number
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
FILES, SHUFFLED, BARE, SQL, PATH = "tasks read files", "Spark's scan and shuffle", "bare hand-over", "SQL", "match(path)"
WAYS = (FILES, SHUFFLED, BARE, SQL, PATH)
# The ways by the words of --ways.
WORDS = {"files": FILES, "shuffle": SHUFFLED, "bare": BARE, "sql": SQL, "path": PATH}
# Spark ends Python workers that have waited for a minute, so that no way of theirs may wait for a long query of SQL.
TOGETHER = ((FILES, SHUFFLED, BARE, PATH), (SQL,))
# The share of the matches that may differ by which of two events of one time comes first.
TIED = 0.002
SETTINGS = {"spark.driver.memory": "6g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and where its events lie."""

    kind: KindInSql
    frame: DataFrame
    path: str
    cores: int

    def in_process(self) -> int:
        """Return the number of matches that match() counts without Spark."""
        found = gpu_cep.match(self.path, self.kind.query, output="count", threads=self.cores, **_options(self.kind))
        return int(pc.sum(found["count"]).as_py() or 0)

    def count(self, scan: Scan, report: gpu_cep.RunReport | None = None) -> int:
        """Return the number of matches that gpu_match counts."""
        return total(gpu_cep.gpu_match(self.frame, self.kind.query, output="count", scan=scan, report=report, **_options(self.kind)))

    def hand_over(self) -> int:
        """Return the number of rows that Python gets, shuffled by key."""
        spread = self.frame.repartition("key") if self.kind.kind.keyed else self.frame.repartition(1)
        return total(handed_over(spread))

    def by_sql(self) -> int:
        """Return the number of matches that SQL finds; raise AnalysisException if Spark does not know some of its words."""
        text = self.kind.hand_written("spark")
        numbered = self.frame.selectExpr("*", "_metadata.row_index AS rowid") if "rowid" in text else self.frame
        numbered.createOrReplaceTempView("events")
        for duckdb, spark in IN_SPARK:
            text = re.sub(duckdb, spark, text)
        return self.frame.sparkSession.sql(text).count()


def _options(kind: KindInSql) -> dict[str, Any]:
    return dict(kind.kind.options)


def session(cores: int) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.sql.shuffle.partitions", str(2 * cores))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    return found


def ways(asked: Asked) -> Mapping[str, Callable[[], int]]:
    """Return all ways to answer a question, by their names."""
    return {
        FILES: lambda: asked.count("files"),
        SHUFFLED: lambda: asked.count("spark"),
        BARE: asked.hand_over,
        SQL: asked.by_sql,
        PATH: asked.in_process,
    }


def measured(asked: Asked, repeats: int, chosen: Collection[str] = WAYS) -> dict[str, Taken]:
    """Return the least that each of the chosen ways takes, turn by turn; raise AssertionError unless they count alike.

    The first turn, in which workers start and load kernels, does not count. A way that cannot answer a question has no time.
    """
    best: dict[str, Taken] = {}
    counted: dict[str, int] = {}

    def counting(way: str, answer: Callable[[], int]) -> Callable[[], None]:
        return lambda: counted.__setitem__(way, answer())

    answers = {way: answer for way, answer in ways(asked).items() if way in chosen}
    for group, turn in product(TOGETHER, range(repeats + 1)):
        for way in filter(answers.__contains__, group):
            try:
                spent = taken(counting(way, answers[way]), best.get(way, Taken()) if turn else Taken())
            except (UnsupportedError, AnalysisException) as fault:
                print(f"{asked.kind.name}, {way}: {str(fault).splitlines()[0]}", file=sys.stderr)
                continue
            print(f"{asked.kind.name}, {way}, turn {turn}: {spent.clock:.2f} s, {counted[way]:,}", file=sys.stderr)
            if turn:
                best[way] = spent
    refuse_other_counts(asked.kind.name, counted)
    return best


def refuse_other_counts(name: str, counted: Mapping[str, int]) -> None:
    """Raise AssertionError unless all ways count the same matches.

    Of events of one time in a stream, match(path) and SQL take the first of the file, and the tasks the least by columns.
    """
    assert len({counted[way] for way in (FILES, SHUFFLED) if way in counted}) <= 1, f"{name}: the ways count {counted}"
    least, most = (extreme((count for way, count in counted.items() if way != BARE), default=0) for extreme in (min, max))
    assert most - least <= TIED * most, f"{name}: the ways count {counted}"


def row(name: str, best: Mapping[str, Taken]) -> list[str]:
    """Return a question's seconds, and how many times as long as the files' road the other ways take, by the clock and of cores."""
    known = [f"{best[way].clock:.2f}" if way in best else "" for way in WAYS]
    return [name, *known, *(_ratio(best, way) for way in WAYS[1:])]


def _ratio(best: Mapping[str, Taken], way: str) -> str:
    if FILES not in best or way not in best:
        return ""
    return f"{best[way].clock / best[FILES].clock:.1f} / {best[way].cores / best[FILES].cores:.1f}"


def markdown(rows: list[list[str]], where: Mapping[str, str], events: int, repeats: int, cores: int) -> str:
    """Return the page of a record."""
    head = ["question", *WAYS, *(f"{way} / files" for way in WAYS[1:])]
    versions = ", ".join(f"{package} {where[package]}" for package in PACKAGES)
    sections = [
        f"# Who reads Parquet under Spark, on {where['machine']}, {where['day']}",
        f"Commit {where['commit']}; {versions}; load average {where['load']} before the first run, above 0 where others were at work. "
        f"{events:,} events in Parquet in the order of time, in row groups of at most {min(GROUP, events // 10):,}; local[{cores}]; "
        f"matches are counted; seconds of the best of {repeats} warm runs, turn by turn. Ratios are times over those of the tasks that "
        "read files: by the clock / in the CPU time of all processes, which suffers less from what else the machine does. The bare "
        "hand-over shuffles all rows by key to Python, which counts them. A way without a figure cannot answer the question, or "
        "was not asked. Written by `python -m benchmarks.rivals.spark_files`.",
        pages.table([head, *rows], figures=len(head) - 1),
    ]
    return "\n\n".join(sections) + "\n"


def record_name(events: int, kinds: Collection[str], words: Collection[str]) -> str:
    """Return what a record is called, so that one of some `kinds`, or of the ways of some `words`, leaves that of all of them."""
    if events != EVENTS:
        return f"spark-files-{events}"
    choices = ((IN_SQL, kinds), (WORDS, words))
    return "-".join(["spark-files", *(word for known, chosen in choices if {*chosen} < {*known} for word in known if word in chosen)])


def asked_of(name: str, count: int, folder: Path, spark: SparkSession) -> Asked:
    kind, path = KindInSql(KINDS[name], count), folder / f"{name}.parquet"
    pq.write_table(kind.stored(kind.events(count)), path, row_group_size=min(GROUP, count // 10))
    return Asked(kind, spark.read.parquet(str(path)), str(path), spark.sparkContext.defaultParallelism)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure who should read Parquet files under Spark.")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--cores", type=int, default=CORES)
    parser.add_argument("--kinds", nargs="+", choices=IN_SQL, default=IN_SQL)
    parser.add_argument("--ways", nargs="+", choices=WORDS, default=tuple(WORDS))
    options = parser.parse_args(argv)
    # a question that Spark's SQL cannot ask is left out, and no fault
    logging.getLogger("SQLQueryContextLogger").disabled = True
    spark = session(options.cores)
    where = {"machine": processor_name(), "day": date.today().isoformat(), "load": f"{os.getloadavg()[0]:.1f}", "commit": commit()}
    where |= {package: package_version(package) for package in PACKAGES} | {"cores": str(options.cores)}
    found: dict[str, dict[str, Taken]] = {}
    chosen = [WORDS[word] for word in options.ways]
    try:
        for name in options.kinds:
            with tempfile.TemporaryDirectory() as folder:
                found[name] = measured(asked_of(name, options.events, Path(folder), spark), options.repeats, chosen)
    finally:
        spark.stop()
    page = markdown([row(name, best) for name, best in found.items()], where, options.events, options.repeats, options.cores)
    taken_by = {name: {way: asdict(spent) for way, spent in best.items()} for name, best in found.items()}
    record = {"environment": where, "events": options.events, "questions": taken_by}
    name = record_name(options.events, options.kinds, options.ways)
    print(page)
    print(*pages.write(RESULTS, f"{name}-{slug(where['machine'])}-{where['day']}", page, record), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

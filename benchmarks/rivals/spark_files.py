"""Questions over Parquet in the order of time: tasks that read the files, today's shuffle, the bare hand-over, and SQL.

``python -m benchmarks.rivals.spark_files [--events N] [--repeats N] [--kinds NAME …] [--cores N]`` checks that all ways count the same
matches. It prints each way's seconds and, per question, how many times as long as reading the files the others take.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import gpu_cep
from benchmarks.kinds.questions import KINDS
from benchmarks.record import pages
from benchmarks.rivals.kinds import IN_SQL, KindInSql
from benchmarks.spark.floor import handed_over, total
from gpu_cep.choices import Scan
from gpu_cep.errors import UnsupportedError

EVENTS, REPEATS, CORES = 10_000_000, 3, 2
GROUP = 1_000_000  # rows of a row group, Arrow's own number
# Words of DuckDB, and Spark's for them.
IN_SPARK = (
    (r"([^()]*) IGNORE NULLS\)", r"\1) IGNORE NULLS"),
    (r" // ", " DIV "),
    (r"\(FROM ", "(SELECT * FROM "),
    (r"NOT MATERIALIZED|MATERIALIZED", ""),
    (r"arg_(min|max)", r"\1_by"),
    (r"(\w+) IS NOT DISTINCT FROM (\w+)", r"(\1 <=> \2)"),
    (r"(\w+) IS DISTINCT FROM (\w+)", r"(NOT \1 <=> \2)"),
)
FILES, SHUFFLED, BARE, SQL = "tasks read files", "Spark's scan and shuffle", "bare hand-over", "SQL"
SETTINGS = {"spark.driver.memory": "6g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and where its events lie."""

    kind: KindInSql
    frame: DataFrame

    def count(self, scan: Scan, report: gpu_cep.RunReport | None = None) -> int:
        """Return the number of matches that gpu_match counts."""
        return total(gpu_cep.gpu_match(self.frame, self.kind.query, output="count", scan=scan, report=report, **_options(self.kind)))

    def hand_over(self) -> int:
        """Return the number of rows that Python gets, shuffled by key."""
        spread = self.frame.repartition("key") if self.kind.kind.keyed else self.frame.repartition(1)
        return total(handed_over(spread))

    def by_sql(self) -> int:
        """Return the number of matches that SQL finds; raise AnalysisException if Spark does not know some of its words."""
        self.frame.createOrReplaceTempView("events")
        text = self.kind.hand_written()
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
    }


def measured(asked: Asked, repeats: int) -> dict[str, float]:
    """Return the best seconds of each way, turn by turn; raise AssertionError unless they count alike.

    The first turn, in which workers start and load kernels, does not count. A way that cannot answer a question has no time.
    """
    best: dict[str, float] = {}
    counted: dict[str, int] = {}
    for turn in range(repeats + 1):
        for way, answer in ways(asked).items():
            begin = time.perf_counter()
            try:
                counted[way] = answer()
            except (UnsupportedError, AnalysisException) as fault:
                print(f"{asked.kind.name}, {way}: {str(fault).splitlines()[0]}", file=sys.stderr)
                continue
            spent = time.perf_counter() - begin
            print(f"{asked.kind.name}, {way}, turn {turn}: {spent:.2f} s, {counted[way]:,}", file=sys.stderr)
            if turn:
                best[way] = min(spent, best.get(way, spent))
    assert len({count for way, count in counted.items() if way != BARE}) == 1, f"{asked.kind.name}: the ways count {counted}"
    return best


def row(name: str, best: Mapping[str, float]) -> list[str]:
    """Return a question's seconds, and how many times as long as the files' road the other ways take."""
    known = [f"{best[way]:.2f}" if way in best else "" for way in (FILES, SHUFFLED, BARE, SQL)]
    ratios = [f"{best[way] / best[FILES]:.1f} ×" if FILES in best and way in best else "" for way in (SHUFFLED, BARE, SQL)]
    return [name, *known, *ratios]


def asked_of(name: str, count: int, folder: Path, spark: SparkSession) -> Asked:
    kind, path = KindInSql(KINDS[name], count), folder / f"{name}.parquet"
    pq.write_table(kind.stored(kind.events(count)), path, row_group_size=min(GROUP, count // 10))
    return Asked(kind, spark.read.parquet(str(path)))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure who should read Parquet files under Spark.")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--cores", type=int, default=CORES)
    parser.add_argument("--kinds", nargs="*", choices=IN_SQL, default=IN_SQL)
    options = parser.parse_args(argv)
    # a question that Spark's SQL cannot ask is left out, and no fault
    logging.getLogger("SQLQueryContextLogger").disabled = True
    spark = session(options.cores)
    rows = [["question", FILES, SHUFFLED, BARE, SQL, *(f"{way} / files" for way in (SHUFFLED, BARE, SQL))]]
    try:
        for name in options.kinds:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(row(name, measured(asked_of(name, options.events, Path(folder), spark), options.repeats)))
    finally:
        spark.stop()
    print(f"Seconds for {options.events:,} events on {options.cores} cores; the best of {options.repeats} warm turns.\n")
    print(pages.table(rows, figures=len(rows[0]) - 1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

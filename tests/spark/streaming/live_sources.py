"""Sources, sinks and queries of streams for tests; as a command, a query in a process of its own, which may be killed.

``python -m tests.spark.streaming.live_sources FOLDER`` answers :data:`OPEN` over the files in FOLDER/in, with timeouts.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep_spark.streaming.checks import ROCKS, STORE
from tests.spark.quick import SETTINGS

SECOND, START = 1_000_000, 1_800_000_000_000_000
INSTANT = pa.timestamp("us", "UTC")
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
SCHEMA = "ts timestamp, type string, k double, x long"
OPEN = "PARTITION BY k PATTERN SEQ(A a, B b+) WHERE a.x < b.x WITHIN 5 seconds"
PAIRS = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 seconds"
ROWS = (
    "MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts, x MEASURES FIRST(ts) AS begin, LAST(x) AS x, count(*) AS n "
    "PATTERN (A B+) WITHIN 5 SECONDS DEFINE A AS type = 'A', B AS type = 'B' OR x > FIRST(x))"
)
LEVELS = "DEFINE H AS x > 4, L AS x <= 4 PATTERN H meets L WITHIN 5 seconds"


def events(rows: int, seed: int) -> pa.Table:
    """A second between events, which come up to a second and a half too late, of few keys: NULL, NaN, zeros of either sign."""
    random = np.random.default_rng(seed)
    places = np.argsort(np.arange(rows) + random.integers(0, 2, rows), kind="stable")
    return pa.table(
        {
            "ts": pa.array(START + np.repeat(np.arange(rows // 2), 2)[:rows] * SECOND, INSTANT),
            "type": pa.array(random.choice(list("ABC"), rows)),
            "k": pa.array(random.choice([0.0, -0.0, np.nan, 1.5, 2.5], rows), mask=random.random(rows) < 0.2),
            "x": pa.array(random.integers(0, 9, rows)),
        }
    ).take(pa.array(places))


def write(folder: Path, table: pa.Table, files: int) -> None:
    """Further files of a source, each a micro-batch; the source takes them by their times."""
    folder.mkdir(exist_ok=True)
    size, known = -(-table.num_rows // files), len(list(folder.glob("*.parquet")))
    for number in range(files):
        path = folder / f".{known + number}"
        pq.write_table(table.slice(number * size, size), path)
        os.utime(path, (10**9 + known + number,) * 2)
        path.rename(folder / f"{known + number}.parquet")


def source(spark: SparkSession, folder: Path, delay: str = "2 seconds") -> DataFrame:
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
    return read.withWatermark("ts", delay)


def run(found: DataFrame, folder: Path) -> Any:
    """All that has come goes into files; returns what Spark told of each micro-batch."""
    writing = found.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    progress: list[Any] = []
    while True:
        query = writing.start(str(folder / "found"))
        try:
            query.awaitTermination()
        except StreamingQueryException as fault:
            if not lost_worker(fault):
                raise
            progress += query.recentProgress
            continue
        return [*progress, *query.recentProgress]


def lost_worker(fault: Exception | None) -> bool:
    """Return whether a query failed since a worker of Spark's driver did not start within the ten seconds that Spark waits for it.

    On a busy machine it does not. The query goes on where it was if it is started again.
    """
    return "failed to connect back" in str(fault)


def figures(progress: Any, name: str) -> int:
    """The sum of one of our figures over micro-batches."""
    told = [row.asDict() for each in progress for told, row in each["observedMetrics"].items() if told.startswith("gpu_cep")]
    return sum(by_name(row)[name] for row in told)


def by_name(row: dict[str, Any]) -> dict[str, Any]:
    """The figures by their names, which Spark Connect tells apart from them."""
    return dict(zip((field["name"] for field in row["schema"]["fields"]), row["values"], strict=True)) if "schema" in row else row


def end() -> pa.Table:
    """An event so late that all before it is certain."""
    return pa.table({"ts": pa.array([START + 1_000 * SECOND], INSTANT), "type": ["Z"], "k": [0.0], "x": [0]})


def session_of_its_own() -> SparkSession:
    """The session of a process of its own, with as many partitions of the state as tests have."""
    given = {**SETTINGS, "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", STORE: ROCKS, CHANGELOG: "true"}
    return SparkSession.builder.master("local[2]").config(map=given).getOrCreate()


if __name__ == "__main__":
    place = Path(sys.argv[1])
    run(cep.gpu_match(source(session_of_its_own(), place / "in"), OPEN, timeouts=True), place)

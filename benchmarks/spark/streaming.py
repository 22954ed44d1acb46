"""Streaming DataFrames: what gpu_match takes beside the bare packed road, by the number of keys; and what is kept of fresh keys.

``python -m benchmarks.spark.streaming [--rows N] [--batches N] [--keys N …] [--windows N]`` prints two tables. The first compares, for each
number of keys, a query with a road that packs, shuffles and stores the same rows and matches nothing. The second follows a stream whose
keys are new in every window. Nothing is written.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import gpu_cep
from benchmarks.record import pages
from benchmarks.spark.sessions import BATCH_ROWS, SHUFFLE_PARTITIONS, spark_session
from benchmarks.spark.times import cpu_seconds
from gpu_cep_spark.schemas import batch_schema
from gpu_cep_spark.streaming.checks import ROCKS, STORE
from gpu_cep_spark.streaming.packing import PACKED, PackedGroup, Packing, pack_partition
from gpu_cep_spark.tasks.handshake import send

ROWS, BATCHES, KEYS, WINDOWS = 500_000, 6, (10, 1_000, 100_000, 1_000_000), 40
# The seconds of events in a micro-batch, in a window, and by which events come too late.
SPAN, WINDOW, DELAY = 20, 10, 1
QUERY = f"PARTITION BY k PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN {WINDOW} seconds RETURN a.x AS x, c.ts AS at"
SCHEMA = "ts timestamp, type string, k long, x double"
START, SECOND = 1_800_000_000_000_000, 1_000_000
SETTINGS = {
    SHUFFLE_PARTITIONS: "2",
    BATCH_ROWS: "100000",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    STORE: ROCKS,
}


@dataclass(frozen=True, slots=True)
class StreamedRun:
    """A run over micro-batches: rows per second of the clock and microseconds of cores a row, without the first two, which load code."""

    rate: float
    cores: float
    progress: list[Any]


def events(rows: int, keys: int, number: int, *, fresh: bool = False) -> pa.Table:
    """Return the events of one micro-batch, of four types, in no order within the lateness."""
    random = np.random.default_rng(number)
    times = np.arange(rows) * (SPAN * SECOND // rows) + random.integers(0, DELAY * SECOND, rows)
    own = random.integers(0, keys, rows) + (keys * number if fresh else 0)
    return pa.table(
        {
            "ts": pa.array(START + number * SPAN * SECOND + times, pa.timestamp("us", "UTC")),
            "type": pa.array(np.array(list("ABCD"))[random.integers(0, 4, rows)]),
            "k": own,
            "x": random.random(rows),
        }
    )


def written(folder: Path, rows: int, batches: int, keys: int, *, fresh: bool = False) -> Path:
    folder.mkdir()
    for number in range(batches):
        path = folder / f"{number:04}.parquet"
        pq.write_table(events(rows, keys, number, fresh=fresh), path)
        os.utime(path, (10**9 + number,) * 2)
    return folder


def source(session: SparkSession, folder: Path) -> DataFrame:
    read = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
    return read.withWatermark("ts", f"{2 * DELAY} seconds")


def bare_road(frame: DataFrame) -> DataFrame:
    """Return the query's events in the columns that it reads, packed by bucket, shuffled and added to a state that nobody reads."""
    kinds = F.when(F.col("type") == "A", 0).when(F.col("type") == "B", 1).otherwise(2).cast("byte")
    sent = frame.where("type IN ('A', 'B', 'C')").select("ts", kinds, "k", "x", F.hash("k").alias("keys"))
    named = sent.toDF(*(f"c{place}" for place in range(4)), "keys")
    packing = Packing(batch_schema(named.schema, "UTC"), 0, "ts", (PackedGroup((0, 1, 2, 3), queries=1, hashed=4),), partitions=2)
    packed = named.mapInArrow(send(partial(pack_partition, packing)), PACKED)
    return packed.groupBy("bucket").transformWithStateInPandas(storing("events", "binary"), "rows long", "append", "eventTime")


def storing(column: str, kind: str) -> StatefulProcessor:
    """Return a processor that adds each row's `column`, of the type `kind`, to its key's state, and gives no row."""

    # local, so that it travels by value
    class Storing(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self._kept = handle.getListState("kept", f"value {kind}")

        def handleInputRows(self, key: Any, rows: Iterable[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            for frame in rows:
                for value in frame[column]:
                    self._kept.appendValue((value,))
            return iter(())

        def close(self) -> None:
            pass

    return Storing()


def run(found: DataFrame, rows: int) -> StreamedRun:
    """Return what all micro-batches take, read one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        stamps: list[float] = []

        def note(frame: DataFrame, _: int) -> None:
            frame.write.format("noop").mode("append").save()
            stamps.append(cpu_seconds())

        query = found.writeStream.foreachBatch(note).option("checkpointLocation", folder).trigger(availableNow=True).start()
        query.awaitTermination()
        progress = [each for each in query.recentProgress if each["numInputRows"]]
    seconds = sum(each["durationMs"]["triggerExecution"] for each in progress[2:]) / 1e3
    busy = stamps[len(progress) - 1] - stamps[1]
    known = rows * len(progress[2:])
    return StreamedRun(known / seconds, 1e6 * busy / known, progress)


def by_keys(session: SparkSession, place: Path, rows: int, batches: int, keys: list[int]) -> str:
    table = [["keys", "bare road", "cores", "gpu_match", "cores", "of bare", "cores of bare", "matches", "kept events"]]
    for number in keys:
        folder = written(place / f"keys{number}", rows, batches, number)
        bare = run(bare_road(source(session, folder)), rows)
        full = run(gpu_cep.gpu_match(source(session, folder), QUERY), rows)
        told = [row for each in full.progress for row in each["observedMetrics"].values()]
        rates = [f"{bare.rate:,.0f} rows/s", f"{bare.cores:.2f} µs", f"{full.rate:,.0f} rows/s", f"{full.cores:.2f} µs"]
        ratios = [f"{full.rate / bare.rate:.2f}", f"{full.cores / bare.cores:.2f}"]
        table.append([f"{number:,}", *rates, *ratios, f"{sum(row['matches'] for row in told):,}", f"{max(row['kept'] for row in told):,}"])
        print(table[-1], file=sys.stderr)
    return pages.table(table, figures=9)


def of_fresh_keys(session: SparkSession, place: Path, windows: int) -> str:
    """Return what a state holds of a stream whose keys are new in every micro-batch, which is as long as two windows."""
    rows = 20_000
    folder = written(place / "fresh", rows, windows, rows // 2, fresh=True)
    progress = run(gpu_cep.gpu_match(source(session, folder), QUERY), rows).progress
    table = [["micro-batch", "keys so far", "kept events", "their bytes", "rows of state", "bytes of RocksDB"]]
    for number in sorted({*range(1, windows, max(1, windows // 8)), windows - 1}):
        (told,), (state,) = progress[number]["observedMetrics"].values(), progress[number]["stateOperators"]
        figures = (number, (number + 1) * rows // 2, told["kept"], told["bytes"], state["numRowsTotal"], state["memoryUsedBytes"])
        table.append([f"{figure:,}" for figure in figures])
    return pages.table(table, figures=6)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure gpu_match over streaming DataFrames.")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--batches", type=int, default=BATCHES)
    parser.add_argument("--keys", type=int, nargs="*", default=KEYS)
    parser.add_argument("--windows", type=int, default=WINDOWS)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, spark_session(2, "3g", SETTINGS) as session:
        print(f"`{QUERY}`; micro-batches of {options.rows:,} rows and {SPAN} s, local[2], load {os.getloadavg()[0]:.1f}\n")
        print(by_keys(session, Path(folder), options.rows, options.batches, options.keys))
        if options.windows:
            print(f"\nFresh keys in every micro-batch:\n\n{of_fresh_keys(session, Path(folder), options.windows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

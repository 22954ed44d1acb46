"""MATCH_RECOGNIZE on Spark: gpu_match beside what Spark takes to shuffle, sort and hand over the same rows.

``python -m benchmarks.spark.row_patterns [--events N] [--repeats N] [--keys N …]`` checks the answers against match(), and prints for each
number of partitions the seconds of each way and their ratios.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

import gpu_cep
from benchmarks.record import pages
from benchmarks.spark.floor import handed_over, total
from benchmarks.spark.sessions import BATCH_ROWS, spark_session
from benchmarks.spark.times import SparkSeconds, least_seconds

EVENTS, REPEATS, ROW_GROUPS, BATCH = 4_000_000, 3, 8, 100_000
NUMBERS = (100, 100_000)
PATTERNS = {
    "V": """MATCH_RECOGNIZE (
        PARTITION BY {key} ORDER BY ts MEASURES FIRST(price) AS top, LAST(D.price) AS bottom, LAST(U.price) AS rebound
        PATTERN (S D+ U+) DEFINE D AS price < PREV(price), U AS price > PREV(price))""",
    "runs": """MATCH_RECOGNIZE (
        PARTITION BY {key} ORDER BY ts MEASURES count(*) AS n PATTERN ((A | B)+) DEFINE A AS price > 60, B AS price < 40)""",
}
BARE, SORTED, OURS = "shuffled", "shuffled and sorted", "gpu_match"


def events(number: int, numbers: tuple[int, ...]) -> pa.Table:
    """Return prices at different times, in no order, with a column of keys for each number of partitions."""
    random = np.random.default_rng(11)
    keys = {f"k{each}": random.integers(0, each, number) for each in numbers}
    return pa.table({"ts": random.permutation(number), "price": random.integers(0, 100, number), "unread": random.random(number), **keys})


def bare(frame: DataFrame, key: str, *, ordered: bool) -> int:
    """Return how many rows arrive in Python, in the columns and with the tasks of gpu_match."""
    shuffled = frame.select(key, "ts", "price").repartition(8, key)
    return total(handed_over(shuffled.sortWithinPartitions(key, "ts") if ordered else shuffled))


def ours(frame: DataFrame, pattern: str) -> int:
    return gpu_cep.gpu_match(frame, pattern).count()


def ways(frame: DataFrame, key: str) -> dict[str, Callable[[], int]]:
    plain: dict[str, Callable[[], int]] = {
        BARE: partial(bare, frame, key, ordered=False),
        SORTED: partial(bare, frame, key, ordered=True),
    }
    return plain | {f"{OURS}, {name}": partial(ours, frame, pattern.format(key=key)) for name, pattern in PATTERNS.items()}


def check(frame: DataFrame, table: pa.Table, key: str) -> None:
    """Raise AssertionError unless Spark returns as many rows as match()."""
    for pattern in PATTERNS.values():
        text = pattern.format(key=key)
        found, expected = ours(frame, text), gpu_cep.match(table, text).num_rows
        assert found == expected, f"{text}: {found}, not {expected}"


def page(found: dict[int, dict[str, SparkSeconds]], number: int, repeats: int) -> str:
    names = list(next(iter(found.values())))
    table = [["partitions", *names, *(f"{name} / {SORTED} (clock, of cores)" for name in names if name.startswith(OURS))]]
    for keys, best in found.items():
        seconds = [f"{each.clock:.2f} s" for each in best.values()]
        pairs = [(best[name], best[SORTED]) for name in names if name.startswith(OURS)]
        table.append([f"{keys:,}", *seconds, *(f"{one.clock / other.clock:.2f}, {one.cores / other.cores:.2f}" for one, other in pairs)])
    return f"{number:,} rows, local[2], {BATCH:,} rows a batch, the best of {repeats} warm runs\n\n" + pages.table(table, figures=10)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure MATCH_RECOGNIZE under Spark beside Spark's own sort.")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--keys", type=int, nargs="+", default=NUMBERS)
    options = parser.parse_args(argv)
    numbers, table = tuple(options.keys), events(options.events, tuple(options.keys))
    found: dict[int, dict[str, SparkSeconds]] = {}
    with tempfile.TemporaryDirectory() as folder, spark_session(2, "4g", {BATCH_ROWS: str(BATCH)}) as spark:
        path = Path(folder) / "rows.parquet"
        pq.write_table(table, path, row_group_size=max(1, options.events // ROW_GROUPS))
        frame = spark.read.parquet(str(path))
        for keys in numbers:
            check(frame, table, f"k{keys}")
            best = {name: SparkSeconds() for name in ways(frame, f"k{keys}")}
            for _ in range(options.repeats):
                best = {name: least_seconds(way, best[name]) for name, way in ways(frame, f"k{keys}").items()}
            found[keys] = best
    print(page(found, options.events, options.repeats))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

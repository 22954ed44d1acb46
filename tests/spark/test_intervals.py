"""gpu_match finds the situations and matches that match finds, however the rows are spread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import gpu_cep as cep
from gpu_cep.errors import PatternError, UnsupportedError
from tests.spark.conftest import LOCAL_PARTITIONS
from tests.spark.samples import as_set
from tests.spark.test_matching import assert_same, spread

QUERIES = {
    "two names": "DEFINE A AS a, B AS x > 50 PATTERN A overlaps B; A during B; A meets B",
    "window": "DEFINE A AS a, B AS x > 50, C AS NOT a PATTERN A overlaps B; A before B AND B before C; B overlaps C WITHIN 20",
    "durations": "DEFINE A AS a AT LEAST 2, B AS x > 30 AT MOST 40, C AS n > 4"
    " PATTERN A before B; A starts B AND B contains C; B after C WITHIN 40",
    "returned": "DEFINE A AS a, B AS n > 2 PATTERN A overlaps B; A contains B; A finishes B"
    " RETURN start(A) AS s, end(B) AS e, duration(A) AS d, count(B) AS c, max(B.x) AS m, first(A.user) AS u, B.n AS ns",
    "decided by a prefix": "DEFINE A AS a, B AS n > 2 PATTERN A starts B; A equals B; A started-by B; A meets B",
    "a name in no constraint": "DEFINE A AS a, B AS x > 70, C AS n = 8 PATTERN A before B WITHIN 8",
    "text": "DEFINE A AS type = 'A' OR type = 'B', B AS type IN ('B', 'C') PATTERN A overlaps B; B overlaps A; A equals B",
}
DETECT = ("final", "early")


def streams(rows: int, seed: int, distinct_times: bool = True) -> pa.Table:
    """Events of a few streams with NULL conditions and NULL keys, in no order."""
    random = np.random.default_rng(seed)
    times = random.permutation(rows) if distinct_times else random.integers(0, rows // 4, rows)
    return pa.table(
        {
            "unread": pa.nulls(rows, pa.string()),
            "ts": pa.array(times, pa.int64()),
            "type": pa.array(random.choice(list("ABC"), rows)),
            "key": pa.array(random.choice(["k1", "k2", "k3"], rows), mask=random.random(rows) < 0.2),
            "user": pa.array(random.integers(0, 3, rows), pa.int32(), mask=random.random(rows) < 0.1),
            "a": pa.array(random.random(rows) < 0.6, mask=random.random(rows) < 0.05),
            "x": pa.array(random.integers(0, 100, rows).astype(float), mask=random.random(rows) < 0.05),
            "n": pa.array(random.integers(0, 9, rows), pa.int64()),
        }
    )


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("detect", DETECT)
@pytest.mark.parametrize("partitions", [LOCAL_PARTITIONS, *(pytest.param(number, marks=pytest.mark.full) for number in (1, 5))])
def test_random_streams(spark: SparkSession, name: str, detect: str, partitions: int) -> None:
    table = streams(200, seed=partitions)
    expected = assert_same(spread(spark, table, partitions), QUERIES[name], table, partition_by="key", detect=detect)
    assert expected.num_rows, "a query without a match tests nothing"


@pytest.mark.parametrize("detect", ["final", pytest.param("early", marks=pytest.mark.full)])
@pytest.mark.parametrize("output", ["matches", "events", "count"])
@pytest.mark.parametrize("keys", [None, "user", ["key", "user"]])
def test_outputs_and_keys(spark: SparkSession, output: str, keys: Any, detect: str) -> None:
    table = streams(150, seed=3)
    assert assert_same(spread(spark, table), QUERIES["two names"], table, partition_by=keys, output=output, detect=detect).num_rows


@pytest.mark.parametrize("detect", DETECT)
def test_ties_are_broken_by_order_by_and_then_by_the_columns_that_are_read(spark: SparkSession, detect: str) -> None:
    table = streams(150, seed=4, distinct_times=False)
    query, options = QUERIES["two names"], {"partition_by": "key", "detect": detect}
    for order_by, whole in (((), ["key", "a", "x"]), (("n",), ["n", "key", "a", "x"])):
        frames = [spread(spark, table, partitions) for partitions in (1, 6)]
        found = {tuple(as_set(cep.gpu_match(frame, query, order_by=order_by, columns=["x"], **options).toArrow())) for frame in frames}
        assert found == {tuple(as_set(cep.match(table, query, order_by=whole, columns=["x"], **options)))}


def test_finishes_of_1983(spark: SparkSession) -> None:
    table = streams(200, seed=5)
    frame = spread(spark, table)
    query = "PARTITION BY user DEFINE A AS a, B AS n > 3 PATTERN A finishes B"
    both = [assert_same(frame, query, table, allen=allen, output="count").to_pylist() for allen in ("paper", "1983")]
    assert both[0] != both[1]


@pytest.mark.parametrize("output", ["matches", "events", "count"])
def test_gaps(spark: SparkSession, output: str) -> None:
    table = streams(200, seed=9)
    options = {"partition_by": "key", "output": output}
    found = assert_same(spread(spark, table), QUERIES["durations"], table, gap=3, **options)
    assert found.num_rows
    assert as_set(found) != as_set(cep.match(table, QUERIES["durations"], **options))


@pytest.mark.parametrize("output", ["matches", "events", "count"])
def test_no_events(spark: SparkSession, output: str) -> None:
    table = streams(4, seed=6)
    assert_same(spark.createDataFrame(table).limit(0), QUERIES["returned"], table.slice(0, 0), partition_by="key", output=output)


@pytest.mark.surface
def test_zoned_times(spark: SparkSession) -> None:
    table = streams(100, seed=7)
    moments = pa.array(table["ts"].to_numpy() * 60_000_000, pa.timestamp("us", "Europe/Zurich"))
    zoned = table.set_column(table.column_names.index("ts"), "ts", moments)
    query = "DEFINE A AS a AT LEAST 2 minutes, B AS n > 3 PATTERN A overlaps B; A before B WITHIN 12 minutes"
    returned = f"{query} RETURN duration(A) AS d, end(B) AS e"
    frame = spread(spark, zoned)
    assert assert_same(frame, returned, frame.toArrow(), partition_by="user").num_rows


@pytest.mark.surface
def test_faults_are_raised_on_the_driver(spark: SparkSession) -> None:
    frame = spark.createDataFrame(streams(4, seed=8))
    with pytest.raises(PatternError, match="no situations satisfy A before B AND B before C AND C before A"):
        cep.gpu_match(frame, "DEFINE A AS a, B AS a, C AS a PATTERN A before B AND B before C AND C before A")
    with pytest.raises(UnsupportedError, match="is not supported for situations"):
        cep.gpu_match(frame, QUERIES["two names"], output="compressed")

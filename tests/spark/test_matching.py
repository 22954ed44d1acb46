"""gpu_match finds what match finds, however the rows are spread."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from examples.chemo import P1, P2, chemo
from tests.effort import every_value
from tests.spark.conftest import LOCAL_PARTITIONS
from tests.spark.samples import QUERIES, as_set, streams

OUTPUTS = ("matches", "events", "count")


def spread(spark: SparkSession, table: pa.Table, partitions: int = LOCAL_PARTITIONS) -> DataFrame:
    """`table` as a DataFrame in `partitions` pieces; Spark shuffles the rows for it, unless it makes so many of them anyway."""
    frame = spark.createDataFrame(table)
    return frame if partitions == LOCAL_PARTITIONS else frame.repartition(partitions)


def assert_same(frame: DataFrame, query: Any, rows: pa.Table, **options: Any) -> pa.Table:
    """The matches in the rows of `frame`, once they are known to be the same locally and on Spark."""
    expected = cep.match(rows, query, **options)
    found = cep.gpu_match(frame, query, **options)
    assert found.columns == expected.column_names
    assert as_set(found.toArrow()) == as_set(expected)
    return expected


@pytest.fixture(scope="module")
def treatments(spark: SparkSession) -> tuple[DataFrame, pa.Table]:
    """The events of the example, with times of the zone that Spark gives them."""
    frame = spread(spark, chemo())
    return frame, frame.toArrow()


@every_value(output=OUTPUTS, strategy=["skip_till_next_match", "skip_till_any_match"])
def test_chemo(treatments: tuple[DataFrame, pa.Table], output: str, strategy: str) -> None:
    frame, rows = treatments
    for query in (P1, P2):
        options = {"timestamp": "T", "type_column": "L", "strategy": strategy, "output": output}
        assert assert_same(frame, query, rows, **options).num_rows


def test_a_query_built_in_python(spark: SparkSession) -> None:
    a, b = cep.var("a", "A"), cep.var("b", "B").plus()
    query = cep.seq(a, b).where(b.x > a.x).within(10).partition_by("key").returning(a.n, many=cep.count(b))
    table = streams(300, seed=2)
    assert assert_same(spread(spark, table), query, table).equals(cep.match(table, str(query)))


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("partitions", [LOCAL_PARTITIONS, *(pytest.param(number, marks=pytest.mark.full) for number in (1, 7))])
def test_random_streams(spark: SparkSession, name: str, partitions: int) -> None:
    table = streams(300, seed=partitions)
    expected = assert_same(spread(spark, table, partitions), QUERIES[name], table)
    assert expected.num_rows, "a query without a match tests nothing"


@pytest.mark.parametrize("name", ["derived key", "both", "no key", "branches", "negation between derived keys"])
@pytest.mark.parametrize("output", ["events", "count"])
def test_other_outputs(spark: SparkSession, name: str, output: str) -> None:
    table = streams(200, seed=3)
    assert_same(spread(spark, table), QUERIES[name], table, output=output)


@pytest.mark.parametrize(
    ("name", "after_match"),
    [
        ("derived key", "skip_past_last"),
        ("both", "skip_past_last"),
        ("any match", "skip_past_last"),
        ("any match", "skip_to_next"),
        ("branches", "skip_to_next"),
    ],
)
def test_after_match(spark: SparkSession, name: str, after_match: str) -> None:
    """Streams are those of partition_by, wherever derived keys would send their events."""
    table = streams(200, seed=5)
    frame = spread(spark, table)
    kept = assert_same(frame, QUERIES[name], table, after_match=after_match)
    assert 0 < kept.num_rows < cep.match(table, QUERIES[name]).num_rows
    assert_same(frame, QUERIES[name], table, after_match=after_match, output="count")


def test_what_is_pruned_does_not_show(spark: SparkSession) -> None:
    table = streams(200, seed=4)
    assert_same(spread(spark, table), QUERIES["both"], table, prune=False)


@pytest.mark.parametrize("ties", ["strict", "position"])
def test_ties_are_broken_by_the_columns_that_are_read(spark: SparkSession, ties: str) -> None:
    table = streams(200, seed=5, distinct_times=False)
    query = "PARTITION BY user PATTERN SEQ(A a, B b+) WHERE b.x > a.x WITHIN 9 RETURN a.x AS ax, b.x AS bx"
    results = {tuple(as_set(cep.gpu_match(spread(spark, table, n), query, ties=ties).toArrow())) for n in (1, 2, 6)}
    ordered = cep.match(table, query, ties=ties, order_by=["type", "x"])
    assert results == {tuple(as_set(ordered))}


def test_columns_chosen_for_the_output(spark: SparkSession) -> None:
    table = streams(200, seed=6)
    expected = assert_same(spread(spark, table), QUERIES["derived key"], table, columns=["n", "unread"])
    assert expected.schema.field("a").type.num_fields == 2


@every_value(name=["no key", "derived key", "partition by", "count window"], output=OUTPUTS)
def test_no_events(spark: SparkSession, name: str, output: str) -> None:
    table = streams(10, seed=7)
    assert_same(spark.createDataFrame(table).limit(0), QUERIES[name], table.slice(0, 0), output=output)


@pytest.mark.surface
def test_awkward_column_names(spark: SparkSession) -> None:
    table = streams(100, seed=8).rename_columns(["u", "the time", "type", "a.key", "Type", "a`x", "n"]).drop_columns("Type")
    query = 'PATTERN SEQ(A a, B b) WHERE a."a.key" = b."a.key" WITHIN 20 RETURN a."a.key" AS "out.key", b.n AS "an `n`"'
    assert assert_same(spark.createDataFrame(table), query, table, timestamp="the time").num_rows


@pytest.mark.surface
def test_zoned_times(spark: SparkSession) -> None:
    table = streams(100, seed=9)
    moments = pa.array(table["ts"].to_numpy() * 60_000_000, pa.timestamp("us", "Europe/Zurich"))
    zoned = table.set_column(table.column_names.index("ts"), "ts", moments)
    frame = spread(spark, zoned)
    assert assert_same(frame, QUERIES["both"].replace("WITHIN 15", "WITHIN 15 minutes"), frame.toArrow()).num_rows


@pytest.mark.surface
def test_every_type_is_carried(spark: SparkSession) -> None:
    frame = spark.range(12).selectExpr(
        "id AS ts",
        "IF(id % 2 = 0, 'A', 'B') AS type",
        "CAST(id AS BYTE) AS byte",
        "CAST(id / 8 AS FLOAT) AS real",
        "CAST(id / 8 AS DECIMAL(9, 3)) AS exact",
        "DATE'2024-02-28' + CAST(id AS INT) AS day",
        "TIMESTAMP'2024-03-31 01:30:00' + id * INTERVAL '20' MINUTE AS instant",
        "TIMESTAMP_NTZ'2024-03-31 01:30:00' + id * INTERVAL '20' MINUTE AS wall",
        "id * INTERVAL '1' HOUR AS lasting",
        "CAST(CAST(id AS STRING) AS BINARY) AS raw",
        "ARRAY(id, NULL) AS list",
        "NAMED_STRUCT('in', NAMED_STRUCT('at', TIMESTAMP'2024-01-01 00:00:00')) AS nested",
        "MAP('k', id) AS map",
        "NULL AS nothing",
    )
    rows = frame.toArrow()
    assert assert_same(frame, "PATTERN SEQ(A a, B b+) WITHIN 3", rows).num_rows
    single = "PATTERN SEQ(A a, B b) WITHIN 3 RETURN a.exact AS e, b.wall AS w, b.day - a.day AS days, b.instant - a.instant AS gap"
    assert assert_same(frame, single, rows).num_rows
    several = "PATTERN SEQ(A a, B b+) WITHIN 3 RETURN b.instant AS i, b.raw AS r, max(b.wall) AS w, sum(b.exact) AS s, min(b.real) AS m"
    assert assert_same(frame, several, rows).num_rows


def test_keys_that_are_equal_meet(spark: SparkSession) -> None:
    """0.0 and -0.0 are one key, and so are all NaN."""
    x = [0.0, -0.0, float("nan"), float("nan"), None, None]
    table = pa.table({"ts": range(6), "x": x, "type": list("ABABAB")})
    for query, expected in (("PARTITION BY x PATTERN SEQ(A a, B b)", 3), ("PATTERN SEQ(A a, B b) WHERE [x]", 1)):
        assert assert_same(spread(spark, table), query, table).num_rows == expected


@pytest.mark.surface
def test_results_compose(spark: SparkSession) -> None:
    table = streams(300, seed=10)
    pairs = "PARTITION BY key PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.n AS n"
    runs = "PARTITION BY key PATTERN SEQ(p, q) WHERE p.n < q.n WITHIN 30 RETURN p.n AS low, q.n AS high"
    local = cep.match(cep.match(table, pairs), runs, timestamp="match_end", order_by=["match_start", "n"])
    spread_out = cep.gpu_match(cep.gpu_match(spread(spark, table), pairs), runs, timestamp="match_end", order_by=["match_start", "n"])
    assert local.num_rows
    assert as_set(spread_out.toArrow()) == as_set(local)


@pytest.mark.usual
def test_many_small_streams_are_few_calls(spark: SparkSession) -> None:
    count, each = 30_000, 10
    table = pa.table(
        {
            "ts": np.tile(np.arange(each), count),
            "key": np.repeat(np.arange(count), each),
            "type": pa.array(list("AXBXAXXBXX") * count),
        }
    )
    frame = cep.gpu_match(spark.createDataFrame(table), "PARTITION BY key PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.ts AS at")
    before = time.monotonic()
    assert frame.count() == 2 * count
    assert time.monotonic() - before < 200


def test_columns_that_no_output_carries_are_no_fault(spark: SparkSession) -> None:
    found = cep.gpu_match(spark.createDataFrame(streams(40, seed=2)), "PATTERN A a RETURN a.ts AS t", columns="x")
    assert found.columns == ["match_start", "match_end", "t"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("derived key", {"after_match": "skip_past_last"}),
        ("no key", {"slices": 40}),
        ("branches", {"slices": 60, "after_match": "skip_past_last"}),
        ("negation between derived keys", {}),
        ("strict contiguity", {}),
    ],
)
def test_timeouts(spark: SparkSession, name: str, options: dict[str, Any]) -> None:
    table = streams(300, seed=6)
    local = {key: value for key, value in options.items() if key != "slices"}
    found = cep.gpu_match(spread(spark, table), QUERIES[name], timeouts=True, **options)
    expected = cep.match(table, QUERIES[name], timeouts=True, **local)
    assert found.columns == expected.column_names
    assert as_set(found.toArrow()) == as_set(expected)
    assert set(expected["kind"].to_pylist()) == {"match", "timeout"}

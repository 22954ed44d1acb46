"""The caller's functions, and correlations of lists, on executors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numba import njit
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep_spark.schemas import LENGTH
from tests.spark.samples import as_set, streams

QUERY = """PARTITION BY user PATTERN SEQ(A a, B b+) WHERE skip_till_any_match { near(a.n, b.n) < limit(a.x) } WITHIN 20
    RETURN a.n AS a, near(a.n, count(b)) AS d, b.n AS bs"""


def functions(distance: float) -> dict[str, Callable[..., Any]]:
    """Functions that no module holds: they must travel."""
    half = njit(lambda x: x / 2)
    return {"near": lambda x, y: abs(x - y), "limit": lambda x: distance + half(x) / 50}


def with_lists(spark: SparkSession, table: pa.Table, metadata: Any) -> DataFrame:
    return spark.createDataFrame(table).withMetadata("h", metadata)


def lists(rows: int) -> pa.Table:
    rng = np.random.default_rng(31)
    values = [None if number % 11 == 5 else rng.integers(0, 5, 4).astype(float).tolist() for number in range(rows)]
    return streams(rows, seed=31).append_column("h", pa.array(values, pa.list_(pa.float64(), 4)))


@pytest.mark.surface
def test_functions_travel(spark: SparkSession) -> None:
    table = streams(150, seed=30)
    frame = spark.createDataFrame(table)
    found = [as_set(cep.gpu_match(frame, QUERY, functions=functions(distance)).toArrow()) for distance in (1.0, 3.0)]
    assert found == [as_set(cep.match(table, QUERY, functions=functions(distance))) for distance in (1.0, 3.0)]
    assert 0 < len(found[0]) < len(found[1])


def test_functions_of_one_event_read_all_their_columns(spark: SparkSession) -> None:
    table = streams(150, seed=32)
    query = "PATTERN SEQ(A a, B b) WHERE [key] AND near(a.n, a.user) < 3 WITHIN 20 RETURN b.n AS n"
    found = cep.gpu_match(spark.createDataFrame(table), query, functions=functions(1.0))
    expected = cep.match(table, query, functions=functions(1.0))
    assert expected.num_rows
    assert as_set(found.toArrow()) == as_set(expected)


@pytest.mark.surface
def test_faults_are_told_on_the_driver(spark: SparkSession) -> None:
    frame = spark.createDataFrame(streams(10, seed=33))
    with pytest.raises(cep.PatternError, match="cannot be compiled"):
        cep.gpu_match(frame, "PATTERN A a WHERE f(a.x) > 1", functions={"f": lambda x: x.missing})


def test_arrays_of_a_length_that_their_metadata_say(spark: SparkSession) -> None:
    table = lists(80)
    query = """PARTITION BY user PATTERN SEQ(A a, B b) WHERE corr(a.h, b.h) > 0.2 WITHIN 30
        RETURN a.h AS h, b.h AS later, corr(a.h, b.h) AS c"""
    found = cep.gpu_match(with_lists(spark, table, {LENGTH: 4}), query)
    expected = cep.match(table, query)
    assert expected.num_rows
    assert as_set(found.toArrow()) == as_set(expected)
    # what a query returns has its length still
    again = "PATTERN SEQ(p, q) WHERE corr(p.h, q.later) < 1 WITHIN 40 RETURN corr(p.later, q.h) AS c"
    ends = {"timestamp": "match_start", "order_by": ["match_end", "user"]}
    assert as_set(cep.gpu_match(found, again, **ends).toArrow()) == as_set(cep.match(expected, again, **ends))


def test_whole_events_hold_lists(spark: SparkSession) -> None:
    table = lists(60)
    query = "PARTITION BY user PATTERN SEQ(A a, B b+) WHERE corr(a.h, b.h) > 0 WITHIN 30"
    columns = ["ts", "h"]
    found = cep.gpu_match(with_lists(spark, table, {LENGTH: 4}), query, columns=columns)
    expected = cep.match(table, query, columns=columns)
    assert expected.num_rows
    assert as_set(found.toArrow()) == as_set(expected)


def test_arrays_of_any_length_are_refused(spark: SparkSession) -> None:
    with pytest.raises(cep.PatternError, match="under Spark, which has none, give the length in the column's metadata"):
        cep.gpu_match(spark.createDataFrame(lists(10)), "PATTERN SEQ(A a, B b) WHERE corr(a.h, b.h) > 0")


@pytest.mark.parametrize(("column", "length"), [("h", 0), ("h", "4"), ("x", 4)])
def test_lengths_that_a_column_cannot_have(spark: SparkSession, column: str, length: Any) -> None:
    frame = spark.createDataFrame(lists(10)).withMetadata(column, {LENGTH: length})
    with pytest.raises(cep.PatternError, match=f"column '{column}' of type .* has no length {length!r}"):
        cep.gpu_match(frame, "PATTERN SEQ(A a, B b)")


def test_an_array_of_another_length_is_an_error(spark: SparkSession) -> None:
    frame = with_lists(spark, lists(40), {LENGTH: 3})
    with pytest.raises(PySparkException, match="column 'h'"):
        cep.gpu_match(frame, "PATTERN SEQ(A a, B b) WHERE corr(a.h, b.h) > 0").toArrow()


def test_case_chooses_on_executors_as_in_process(spark: SparkSession) -> None:
    table = streams(150, seed=35)
    query = """PARTITION BY user PATTERN SEQ(A a, B b) WHERE CASE WHEN a.n > 2 THEN a.key ELSE 'k1' END = b.key OR b.n < a.n WITHIN 20
        RETURN CASE WHEN a.n < b.n THEN 'rise' WHEN a.n > b.n THEN b.key END AS trend, CASE a.n WHEN 1 THEN b.n ELSE 0.5 END AS n"""
    found = cep.gpu_match(spark.createDataFrame(table), query)
    expected = cep.match(table, query)
    assert {"rise", None} < set(expected["trend"].to_pylist())
    assert as_set(found.toArrow()) == as_set(expected)


def test_medians_and_distinct_values_on_executors(spark: SparkSession) -> None:
    table = streams(150, seed=36)
    query = "PARTITION BY user PATTERN SEQ(A a, B b+, C c) WITHIN 40 RETURN median(b.n) AS m, count(DISTINCT b.key) AS k, median(b.x) AS x"
    found = cep.gpu_match(spark.createDataFrame(table), query)
    expected = cep.match(table, query)
    assert max(expected["k"].to_pylist()) > 1
    assert as_set(found.toArrow()) == as_set(expected)

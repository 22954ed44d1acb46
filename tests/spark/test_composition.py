"""Results as the events of the next query, and partial sequences, under Spark."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import gpu_cep as cep
from tests.spark.samples import as_set, streams

pytestmark = pytest.mark.surface

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# (a, b) and (c, b): nothing orders a and c
PARTIAL = "PARTITION BY user PATTERN AND(SEQ(A a, B b), SEQ(C c, B b)) WHERE a.x < b.x WITHIN 30 RETURN a.n AS a, b.n AS b, c.n AS c"


def test_the_example(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = import_module("composition")
    # Spark gives plain timestamps the session's zone
    frame = spark.createDataFrame(example.readings())
    found = example.cascades(cep.gpu_match, frame).toArrow()
    assert found.num_rows == 2
    assert as_set(found) == as_set(example.cascades(cep.match, frame.toArrow()))


def test_lists_and_structs_pass_through(spark: SparkSession) -> None:
    pairs = "PARTITION BY key PATTERN SEQ(A a, B b+) WITHIN 12 RETURN a, b AS rest, b.x AS xs, count(b) AS n"
    ends = {"timestamp": "match_end", "order_by": ["match_start", "n"]}
    later = "PARTITION BY key PATTERN SEQ(p, q) WHERE p.n < q.n WITHIN 40 RETURN p.a AS a, q.rest AS rest, p.xs AS xs, p"
    table = streams(200, seed=21)
    found = cep.gpu_match(cep.gpu_match(spark.createDataFrame(table), pairs), later, **ends)
    expected = cep.match(cep.match(table, pairs), later, **ends)
    assert expected.num_rows
    assert as_set(found.toArrow()) == as_set(expected)


@pytest.mark.parametrize("strategy", ["skip_till_next_match", "skip_till_any_match"])
def test_partial_sequences(spark: SparkSession, strategy: str) -> None:
    table = streams(150, seed=22)
    expected = cep.match(table, PARTIAL, strategy=strategy)
    found = cep.gpu_match(spark.createDataFrame(table), PARTIAL, strategy=strategy)
    assert expected.num_rows
    assert as_set(found.toArrow()) == as_set(expected)


def test_a_result_composes_with_sql(spark: SparkSession) -> None:
    table = streams(150, seed=23)
    pairs = "PARTITION BY key PATTERN SEQ(A a, B b) WITHIN 9 RETURN a.x AS x, b.x - a.x AS rise"
    rising = cep.gpu_match(spark.createDataFrame(table), pairs).where("rise > 0")
    steeper = "PATTERN SEQ(p, q) WHERE [key] RETURN q.rise - p.rise AS more"
    ends = {"timestamp": "match_end", "order_by": "match_start"}
    again, expected = cep.gpu_match(rising, steeper, **ends), cep.match(rising.toArrow(), steeper, **ends)
    assert expected.num_rows
    assert as_set(again.toArrow()) == as_set(expected)

"""A compressed result made in several Spark partitions enumerates and counts all that match finds."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import gpu_cep as cep
from gpu_cep.errors import EventError
from tests.spark.samples import QUERIES, streams
from tests.spark.test_matching import spread

pytestmark = pytest.mark.surface

LABELS_ONLY = "PARTITION BY user PATTERN SEQ(A a+, B b+) WHERE skip_till_any_match { [key] } WITHIN 12"


def events_bound(matches: list[dict]) -> list[str]:
    """Matches as texts in order, in which NaN equals itself."""
    return sorted(repr(sorted((name, [event["ts"] for event in events]) for name, events in match.items())) for match in matches)


@pytest.mark.parametrize("query", [LABELS_ONLY, QUERIES["derived key"], QUERIES["partition by"]], ids=["labels", "derived", "conditions"])
def test_all_partitions_make_one_result(spark: SparkSession, query: str) -> None:
    table = streams(500, seed=4)
    nodes = cep.gpu_match(spread(spark, table), query, output="compressed")
    local = cep.match(table, query, output="compressed")
    assert nodes.columns == [name for name in local.table.column_names if name != "row"]
    found = cep.Compressed.from_table(nodes.toArrow())
    assert events_bound(list(found)) == events_bound(list(local))
    assert found.count() == local.count() > 10
    with pytest.raises(EventError, match="no row numbers"):
        found.indices()


def test_a_stream_of_the_nodes_is_a_result(spark: SparkSession) -> None:
    table = streams(200, seed=5)
    nodes = cep.gpu_match(spread(spark, table), LABELS_ONLY, output="compressed", columns=["ts"])
    part = cep.Compressed.from_table(nodes.filter(F.col("user") == 1).toArrow())
    wanted = cep.match(table.filter(pc.field("user") == 1), LABELS_ONLY, output="compressed")
    assert part.count() == wanted.count() > 0


def test_more_matches_than_a_long_counts(spark: SparkSession) -> None:
    frame = spark.range(100).selectExpr("id AS ts", "'A' AS type")
    nodes = cep.gpu_match(frame, "PATTERN A a+", strategy="skip_till_any_match", output="compressed", columns=["ts"])
    assert cep.Compressed.from_table(nodes.toArrow()).count() == 2**100 - 1

"""The table function finds what match finds, and says what is wrong with a call when it is analysed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import gpu_cep as cep
from tests.spark import test_intervals
from tests.spark.samples import QUERIES, as_set, physical_plan, streams
from tests.spark.streaming.live_sources import events as live_events

EVENTS = streams(300, seed=1)
TIMED = live_events(60, seed=1)


@pytest.fixture(scope="module")
def sql(spark: SparkSession) -> Iterator[SparkSession]:
    cep.register(spark)
    spark.createDataFrame(EVENTS).createOrReplaceTempView("events")
    yield spark
    spark.catalog.dropTempView("events")


def call(pattern: str, source: str = "events", **keywords: Any) -> str:
    """A query of the table function; `keywords` are SQL text."""
    quoted = pattern.replace("'", "\\'")
    given = "".join(f", {name} => {value}" for name, value in keywords.items())
    return f"SELECT * FROM gpu_match(TABLE({source}), pattern => '{quoted}'{given})"


@pytest.mark.parametrize("name", ["derived key", "both", "no key", "branches", "count window", "negation between derived keys"])
@pytest.mark.surface
def test_the_same_matches(sql: SparkSession, name: str) -> None:
    found = sql.sql(call(QUERIES[name]))
    expected = cep.match(EVENTS, QUERIES[name])
    assert found.columns == expected.column_names
    assert as_set(found.toArrow()) == as_set(expected)


@pytest.mark.parametrize("name", ["both", *(pytest.param(name, marks=pytest.mark.full) for name in ("derived key", "no key"))])
@pytest.mark.parametrize("output", ["events", "count"])
def test_other_outputs(sql: SparkSession, name: str, output: str) -> None:
    found = sql.sql(call(QUERIES[name], output=f"'{output}'"))
    assert as_set(found.toArrow()) == as_set(cep.match(EVENTS, QUERIES[name], output=output))


@pytest.mark.parametrize("after_match", ["skip_past_last", "skip_to_next"])
def test_after_match(sql: SparkSession, after_match: str) -> None:
    found = sql.sql(call(QUERIES["any match"], after_match=f"'{after_match}'"))
    assert as_set(found.toArrow()) == as_set(cep.match(EVENTS, QUERIES["any match"], after_match=after_match))


@pytest.mark.surface
def test_keywords_as_sql_writes_them(sql: SparkSession) -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 10"
    keywords = {"partition_by": "array('key', 'user')", "order_by": "'n'", "columns": "array('n')", "max_matches": "1000", "prune": "false"}
    keywords["worker_memory"] = "'20kB'"
    expected = cep.match(EVENTS, query, partition_by=["key", "user"], order_by="n", columns="n", prune=False)
    assert expected.num_rows
    assert as_set(sql.sql(call(query, **keywords)).toArrow()) == as_set(expected)


@pytest.mark.surface
def test_a_part_of_a_table(sql: SparkSession) -> None:
    query = QUERIES["derived key"]
    some = EVENTS.filter(pa.compute.greater(EVENTS["n"], 3))
    assert as_set(sql.sql(call(query, "SELECT * FROM events WHERE n > 3")).toArrow()) == as_set(cep.match(some, query))


def test_no_events(sql: SparkSession) -> None:
    nothing = "SELECT * FROM events WHERE n > 1000"
    for output in ("matches", "count"):
        assert sql.sql(call(QUERIES["no key"], nothing, output=f"'{output}'")).toArrow().num_rows == 0


def test_situations(sql: SparkSession) -> None:
    query, events = test_intervals.QUERIES["returned"], test_intervals.streams(200, seed=1)
    sql.createDataFrame(events).createOrReplaceTempView("situations")
    found = sql.sql(call(query, "situations", partition_by="'key'", gap="2.5")).toArrow()
    assert found.num_rows
    assert as_set(found) == as_set(cep.match(events, query, partition_by="key", gap=2.5))


@pytest.mark.surface
def test_functions_under_a_name_of_ones_own(sql: SparkSession) -> None:
    cep.register(sql, "matches_of", functions={"twice": lambda x: 2 * x})
    query = "PATTERN SEQ(A a, B b) WHERE twice(a.n) = b.n AND [key] WITHIN 30"
    found = sql.sql(call(query).replace("gpu_match", "matches_of"))
    assert as_set(found.toArrow()) == as_set(cep.match(EVENTS, query, functions={"twice": lambda x: 2 * x}))


def test_only_the_columns_that_are_read_are_shuffled(sql: SparkSession) -> None:
    plan = physical_plan(sql.sql(call("PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5 RETURN a.n AS n")))
    shuffled = next(line for line in plan.splitlines() if "named_struct" in line)
    assert "unread" not in shuffled
    assert "user" not in shuffled


RULES = {
    "up": "PARTITION BY key PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 20 RETURN a.n AS n",
    "both": "PARTITION BY key PATTERN SEQ(B a, C b) WHERE [user] WITHIN 20 RETURN a.n AS n",
    "typed": "PARTITION BY key PATTERN SEQ(D a, NOT(A b), C c) WHERE a.type <> 'x' WITHIN 30 RETURN a.n AS n",
}


def call_all(rules: dict[str, str], **keywords: str) -> str:
    """A query of the table function with many patterns."""
    texts = ", ".join("'{}', '{}'".format(name, text.replace("'", "\\'")) for name, text in rules.items())
    given = "".join(f", {name} => {value}" for name, value in keywords.items())
    return f"SELECT * FROM gpu_match(TABLE(events), patterns => map({texts}){given})"


@pytest.mark.parametrize("output", ["matches", "events", "count"])
def test_many_patterns_share_one_call(sql: SparkSession, output: str) -> None:
    found = sql.sql(call_all(RULES, output=f"'{output}'"))
    expected = cep.match_all(EVENTS, RULES, output=output)
    assert found.columns == expected.column_names
    assert physical_plan(found).count("ArrowEvalPythonUDTF") == 1
    assert as_set(found.toArrow()) == as_set(expected)
    assert expected.num_rows


def test_patterns_with_keys_of_their_own_meet_in_what_they_share(sql: SparkSession) -> None:
    rules = {"one": "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 9", "two": "PATTERN SEQ(A a, B b) WHERE [user] WITHIN 9"}
    found = sql.sql(call_all(rules, output="'count'"))
    assert as_set(found.toArrow()) == as_set(cep.match_all(EVENTS, rules, output="count"))


PAIRS = {
    "by x": "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 5 seconds RETURN b.ts AS at",
    "all": "PATTERN SEQ(A a, B b) WITHIN 5 seconds RETURN b.ts AS at",
}


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_many_patterns_return_instants_in_any_session(sql: SparkSession, zone: str) -> None:
    before = sql.conf.get("spark.sql.session.timeZone")
    sql.conf.set("spark.sql.session.timeZone", zone)
    try:
        cep.register(sql, "match_in_zone")
        sql.createDataFrame(TIMED).createOrReplaceTempView("timed")
        found = sql.sql(call_all(PAIRS).replace("gpu_match(TABLE(events)", "match_in_zone(TABLE(timed)"))
        assert as_set(found.toArrow()) == as_set(cep.match_all(TIMED, PAIRS))
    finally:
        sql.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize("name", PAIRS)
def test_spark_starts_no_stream_with_the_function(sql: SparkSession, tmp_path: Path, name: str) -> None:
    sql.readStream.format("rate").load().selectExpr("timestamp AS ts", "'A' AS type", "value AS x").createOrReplaceTempView("live")
    for query in (call(PAIRS[name], "live"), call_all({name: PAIRS[name]}).replace("events", "live")):
        writing = sql.sql(query).writeStream.format("noop").option("checkpointLocation", str(tmp_path))
        with pytest.raises(AnalysisException, match=r"(?s)streaming.* gpu_cep.gpu_match\(\) takes a streaming DataFrame"):
            writing.start()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param(call("PATTERN SEQ(A a"), "the query ends too early", marks=pytest.mark.surface),
        pytest.param(call("PATTERN SEQ(A a, B b) WHERE a.y > 1 WITHIN 3"), "unknown attribute 'y'", marks=pytest.mark.surface),
        (call("PATTERN A a", max_matches="length(uuid())"), "max_matches must be a constant"),
        (call_all({"wrong": "PATTERN A a WHERE a.y > 1"}), "pattern 'wrong': unknown attribute 'y'"),
        (call("PATTERN A a", patterns="map('a', 'PATTERN A a')"), "give pattern => '…', or patterns => map("),
        ("SELECT * FROM gpu_match(TABLE(events), patterns => array('PATTERN A a'))", "patterns must be a constant map of names to texts"),
        ("SELECT * FROM gpu_match(TABLE(events) PARTITION BY key, pattern => 'PATTERN A a')", "PARTITION BY"),
        *(
            pytest.param(query, message, marks=pytest.mark.full)
            for query, message in (
                (call("PATTERN A a", timestmp="'ts'"), "did you mean 'timestamp'?"),
                (call("PATTERN A a", timeouts="true"), "gpu_cep.gpu_match() finds timeouts"),
                (call("PATTERN A a", output="'compressed'"), "output='compressed' is not supported in SQL"),
                (call("PATTERN A a", output="'indices'"), "output='indices' is not supported in SQL; supported: matches, events, count"),
                ("SELECT * FROM gpu_match(TABLE(events), pattern => 3)", "pattern must be constant text"),
                ("SELECT * FROM gpu_match('events', pattern => 'PATTERN A a')", "the first argument is a table"),
            )
        ),
    ],
)
def test_faults_are_told_when_a_query_is_analysed(sql: SparkSession, query: str, message: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        sql.sql(query)
    assert message in str(caught.value)

"""What a streaming DataFrame cannot be asked is refused on the driver, by name and with what to do instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import gpu_cep as cep
from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep_spark.streaming.checks import ROCKS, STORE
from tests.spark.streaming.live_sources import LEVELS, PAIRS, ROWS, SCHEMA, events, source

pytestmark = pytest.mark.usefixtures("rocks")


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    (tmp_path / "in").mkdir()
    return source(spark, tmp_path / "in")


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("PATTERN SEQ(A a, B b)", {}, "a stream needs a window: .*\n.*hint: add WITHIN and a length of time, such as WITHIN 5 minutes"),
        ("PARTITION BY k PATTERN SEQ(A a, B b) WITHIN 3 EVENTS", {}, "of all keys would be kept\n.*hint: .*, or time_to_live="),
        (PAIRS, {"time_to_live": "1 day"}, "time_to_live= is for windows of a number of events with partition_by"),
        (ROWS, {"time_to_live": "1 day"}, "time_to_live= is not supported for MATCH_RECOGNIZE"),
        (ROWS, {"engine": "gpu"}, "engine='gpu' is not supported for MATCH_RECOGNIZE over a stream"),
        (LEVELS, {"gap": "3 seconds"}, "a stream with gap= and detect='final' is not supported.*\n.*hint: give detect='early'"),
        (LEVELS, {"output": "events"}, "output='events' is not supported for a streaming DataFrame of situations; supported: matches"),
        (LEVELS, {"timeouts": True}, "timeouts=True is not supported for situations"),
        (PAIRS, {"timeouts": True, "strategy": "skip_till_any_match"}, "timeouts=True is not supported under skip_till_any_match"),
        (PAIRS, {"late": "rows", "output": "events"}, "late='rows' is not supported with output='events'; supported: matches"),
        ("MATCH_RECOGNIZE (MEASURES count(*) AS n PATTERN (A B))", {}, "(?s)a stream of MATCH_RECOGNIZE without ORDER BY.*without WITHIN"),
        (ROWS.replace("WITHIN 5 SECONDS", ""), {}, r"without WITHIN, .*\n.*hint: add WITHIN and a length of time"),
        (ROWS.replace("5 SECONDS", "5 EVENTS"), {}, "PARTITION BY and WITHIN a number of rows, of which all keys would be kept"),
        (ROWS.replace("B+)", "B+ $)"), {}, r"line 1, column \d+: a stream with \$ is not supported"),
        (ROWS.replace("ts, x", "x").replace("5 SECONDS", "5"), {}, "column 'x' is BIGINT, of which Spark keeps no watermark"),
        (ROWS, {"slices": "1 hour"}, "slices= has no meaning for a streaming DataFrame"),
        (ROWS, {"output": "events"}, "output='events' is not supported for MATCH_RECOGNIZE"),
        (PAIRS, {"output": "count"}, r"output='count' is not supported for a streaming DataFrame; supported: matches, events\n.*groupBy"),
        (PAIRS, {"output": "compressed"}, "output='compressed' is not supported for a streaming DataFrame; supported: matches, events"),
        (PAIRS, {"output": "indices"}, "supported: matches"),
        (PAIRS, {"algorithm": "brute_force"}, "brute_force"),
        (PAIRS, {"slices": "1 hour"}, "slices= has no meaning for a streaming DataFrame\n.*hint: leave it out"),
        (PAIRS, {"scan": "spark", "worker_memory": "1GB"}, r"(?s)worker_memory= has no meaning.*scan= has no meaning"),
        (PAIRS, {"report": cep.RunReport()}, r"report= has no meaning .*\n.*query.lastProgress\['observedMetrics'\]"),
    ],
)
def test_what_streams_cannot_be_asked_is_refused_by_name(stream: DataFrame, query: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        cep.gpu_match(stream, query, **options)


@pytest.mark.parametrize("query", [f"{PAIRS} RETURN a.x AS x", ROWS])
def test_late_events_are_no_rows_if_spark_does_not_send_a_column(stream: DataFrame, query: str) -> None:
    odd = stream.withColumn("months", F.expr("INTERVAL '1' MONTH"))
    assert cep.gpu_match(odd, query).isStreaming
    with pytest.raises(UnsupportedError, match="column 'months' holds an interval of months"):
        cep.gpu_match(odd, query, late="rows")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"late": "drpo"}, "late='drpo' is unknown; expected one of drop, error, rows\n.*did you mean 'drop'"),
        ({"emit": "windows"}, "emit='windows' is unknown; expected one of certain, window\n.*did you mean 'window'"),
        ({"every": "soon"}, "every='soon' is no length of time"),
        ({"every": 5}, "every"),
    ],
)
def test_faults_of_keywords_are_told_at_once(stream: DataFrame, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PatternError, match=message):
        cep.gpu_match(stream, PAIRS, **options)


@pytest.mark.parametrize("name", ["emit", "every", "late", "time_to_live"])
def test_keywords_of_streams_are_refused_for_a_batch(spark: SparkSession, name: str) -> None:
    given = {"emit": "window", "every": "5 seconds", "late": "error", "time_to_live": "1 day"}
    frame = spark.createDataFrame(events(2, seed=1))
    with pytest.raises(PatternError, match=f"{name}= is for a streaming DataFrame, and this one is not"):
        cep.gpu_match(frame, PAIRS, **{name: given[name]})


def test_all_that_is_wrong_with_a_stream_is_told_at_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    plain = spark.readStream.schema(SCHEMA + ", day date, n long, local timestamp_ntz, at timestamp").parquet(str(tmp_path / "in"))
    spark.conf.unset(STORE)
    with pytest.raises(UnsupportedError) as caught:
        cep.gpu_match(plain, "PATTERN SEQ(A a, B b)", output="count")
    spark.conf.set(STORE, ROCKS)
    told = str(caught.value)
    assert all(part in told for part in ("needs a window", "'count'", "no watermark on timestamp column 'ts'", "RocksDB", STORE))
    assert "hint: df.withWatermark('ts', '10 seconds')" in told
    with pytest.raises(UnsupportedError, match=r"no watermark on timestamp column 'ts'; it has one on 'at'"):
        cep.gpu_match(plain.withWatermark("at", "1 second"), PAIRS)
    for name, kind, window in (("day", "DATE", "5 days"), ("n", "BIGINT", "5"), ("local", "TIMESTAMP_NTZ", "5 seconds")):
        with pytest.raises(UnsupportedError, match=f"'{name}' is {kind}, of which Spark keeps no watermark\n.*hint: make a TIMESTAMP"):
            cep.gpu_match(plain, f"PATTERN SEQ(A a, B b) WITHIN {window}", timestamp=name)


def test_heartbeats_come_to_streams_of_instants(spark: SparkSession, stream: DataFrame) -> None:
    with pytest.raises(UnsupportedError, match=r"has a watermark already, .*\n.*hint: call heartbeats\(\) first"):
        cep.heartbeats(stream, idle="5 seconds")
    with pytest.raises(UnsupportedError, match="heartbeats are for a streaming DataFrame"):
        cep.heartbeats(spark.createDataFrame(events(2, seed=1)), idle="5 seconds")
    with pytest.raises(PatternError, match="idle='5' is no length of time that a clock tells"):
        cep.heartbeats(stream, idle="5")
    with pytest.raises(PatternError, match=r"there is no column 'tss'.*\n.*did you mean 'ts'"):
        cep.heartbeats(stream, idle="5 seconds", timestamp="tss")
    with pytest.raises(UnsupportedError, match="column 'x' is no TIMESTAMP"):
        cep.heartbeats(stream, idle="5 seconds", timestamp="x")

"""gpu_match_all over a streaming DataFrame: one stateful query for all patterns, with Spark's watermark, state store and checkpoints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep.errors import CepError, PatternError, PatternSyntaxError, UnsupportedError
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery
from tests.spark.samples import as_set, physical_plan
from tests.spark.streaming.live_sources import ROWS, SCHEMA, end, events, figures, run, source, write

pytestmark = pytest.mark.usefixtures("rocks")
RULES: dict[str, str | cep.Rule] = {
    "rising": "PATTERN SEQ(A a, B b) WHERE a.k = b.k AND a.x < b.x WITHIN 5 seconds RETURN a.x AS x, b.ts AS at",
    "long": "PATTERN SEQ(A a, B b, NOT(C c)) WHERE [x] WITHIN 9 seconds RETURN a.x AS x, b.ts AS at",
    "equal": "PATTERN SEQ(A a, A b) WHERE [x] AND [type] WITHIN 5 seconds RETURN a.x AS x, b.ts AS at",
    "near": cep.Rule("PATTERN SEQ(B a, C b) WITHIN 1 second RETURN a.x AS x, b.ts AS at", {"after_match": "skip_past_last"}),
}
KEYED = "PATTERN SEQ(A a, B b) WITHIN 3 EVENTS"
ORDER = ["type", "x", "k"]
PLAIN = "PATTERN SEQ(A a, B b) WITHIN 5 seconds"
ROBUST = "PATTERN SEQ(A a, B b) WHERE robust_skip_till_next_match { a.x < b.x }"


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    (tmp_path / "in").mkdir()
    return source(spark, tmp_path / "in")


def test_a_stream_has_the_matches_of_a_batch_also_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    told = events(240, seed=5)

    def asked(rules: dict[str, Any]) -> DataFrame:
        return cep.gpu_match_all(source(spark, tmp_path / "in"), rules, late="rows", order_by=ORDER)

    write(tmp_path / "in", told.slice(0, 160), 1)
    found = asked(RULES)
    progress = run(found, tmp_path)
    late = told.slice(0, 2)
    write(tmp_path / "in", told.slice(160), 1)
    write(tmp_path / "in", pa.concat_tables([late, end()]), 1)
    # the order of the rules does not matter
    progress += run(asked(dict(reversed(RULES.items()))), tmp_path)
    rows = spark.read.parquet(str(tmp_path / "found"))
    assert rows.schema.names == found.schema.names
    assert rows.schema.names[:2] == ["pattern", "kind"]
    expected = cep.match_all(told, RULES, order_by=ORDER)
    assert {*expected["pattern"].to_pylist()} == {*RULES}
    assert as_set(rows.filter("kind = 'match'").drop("kind", "event").toArrow()) == as_set(expected)
    returned = rows.filter("kind = 'late' AND pattern IS NULL").select("event.*").toArrow()
    assert as_set(returned) == as_set(late)
    assert (figures(progress, "late"), figures(progress, "matches")) == (2, expected.num_rows)
    assert all(len(each["stateOperators"]) == 1 for each in progress)


def test_one_stateful_query_has_all_patterns(stream: DataFrame) -> None:
    plan = physical_plan(cep.gpu_match_all(stream, RULES))
    assert len(re.findall(r"(?m)TransformWithStateInP\w+ ", plan)) == 1
    assert plan.count("Exchange") == 1
    assert "Filter" in plan, "what no pattern binds is not sent"


def test_what_shares_events_is_explained(stream: DataFrame) -> None:
    counted = {"counted": "PATTERN SEQ(A a, B b) WITHIN 3 EVENTS RETURN a.x AS x, b.ts AS at"}
    wrong = {"wrong": "PATTERN SEQ(A a, B b) RETURN a.x AS x, b.ts AS at"}
    told = str(cep.explain_all(stream, {**RULES, **counted, **wrong})).splitlines()
    assert told[3].startswith("error: pattern 'wrong': a stream needs a window")
    assert told[:3] == [
        "one stateful query; events in one bucket, on one core: they are one stream; a window of a number of events shares none: counted",
        "one stateful query; events in one bucket, on one core: they are one stream: rising, near",
        "one stateful query; events by x; 1 of them with more keys, by which equal rows are equal in these: long, equal",
    ]
    assert str(cep.explain_all(stream, RULES, every="1 second", late="rows", emit="window", timeouts=True)).count("one stateful query") == 2
    told = str(cep.explain_all(stream, {"far": PLAIN, "keyed": KEYED}, time_to_live="1 day", partition_by="k"))
    assert "events by k; a window of a number of events shares none: keyed" in told


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rare": "a"}, UnsupportedError, "rare= has no meaning for a streaming DataFrame"),
        ({"late": "drpo"}, PatternError, "late='drpo' is unknown; .*\n.*did you mean 'drop'"),
        ({"emit": "windows"}, PatternError, "emit='windows' is unknown; .*\n.*did you mean 'window'"),
        ({"timestamp": "k"}, UnsupportedError, "timestamp column 'k' is DOUBLE, of which Spark keeps no watermark"),
    ],
)
def test_what_a_stream_cannot_be_asked_is_not_explained_either(
    stream: DataFrame, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    rules = {"pairs": PLAIN if "timestamp" not in options else "PATTERN SEQ(A a, B b) WITHIN 5"}
    for ask in (cep.explain_all, cep.gpu_match_all):
        with pytest.raises(error, match=message):
            ask(stream, rules, **options)


def test_faults_of_rules_are_explained_with_the_keywords_of_the_stream(stream: DataFrame) -> None:
    rules = {"pairs": PLAIN, "robust": f"{ROBUST} WITHIN 5 seconds"}
    told = cep.explain_all(stream, rules, timeouts=True, every="soon")
    assert "every='soon' is no length of time" in str(told.failed["pairs"])
    told = cep.explain_all(stream, rules, timeouts=True)
    assert [*told.failed] == ["robust"]
    assert [each.patterns for each in told.shared] == [("pairs",)]


@pytest.mark.parametrize(
    ("rules", "options", "error", "message"),
    [
        ({"loose": "PATTERN SEQ(A a, B b)"}, {}, UnsupportedError, "pattern 'loose': a stream needs a window: .*\n.*hint: add WITHIN"),
        ({"torn": "PATTERN SEQ(A a, B"}, {}, PatternSyntaxError, "line 1, column .*: pattern 'torn'"),
        (
            {"keyed": "PARTITION BY k PATTERN SEQ(A a, B b) WITHIN 3 EVENTS RETURN a.x AS x, b.ts AS at"},
            {},
            UnsupportedError,
            r"pattern 'keyed': .*of all keys would be kept\n.*hint: .*, or time_to_live=.*gpu_match_all\(\) of a streaming DataFrame",
        ),
        ({}, {"time_to_live": "long"}, PatternError, "time_to_live='long' is no length of time"),
        ({}, {"time_to_live": 0}, PatternError, "time_to_live=0 must be more than nothing"),
        ({"rows": ROWS}, {}, UnsupportedError, "pattern 'rows': MATCH_RECOGNIZE is not supported here"),
        ({}, {"output": "count"}, UnsupportedError, "output='count' is not supported for a streaming DataFrame"),
        ({}, {"worker_memory": "1GB"}, UnsupportedError, "worker_memory= has no meaning for a streaming DataFrame"),
        ({}, {"rare": "a"}, UnsupportedError, "rare= has no meaning for a streaming DataFrame"),
        ({}, {"late": "drpo"}, PatternError, "late='drpo' is unknown; .*\n.*did you mean 'drop'"),
        ({}, {"every": "soon"}, PatternError, "every='soon' is no length of time"),
        ({"other": "PATTERN SEQ(A a, B b) WITHIN 3 seconds"}, {}, PatternError, "the results of the patterns 'rising' and 'other'"),
        ({"by x": cep.Rule(RULES["rising"], {"timestamp": "x", "time_unit": "s"})}, {}, PatternError, "differ in timestamp="),
    ],
)
def test_what_a_stream_cannot_be_asked_is_refused_by_name(
    stream: DataFrame, rules: dict[str, Any], options: dict[str, Any], error: type[CepError], message: str
) -> None:
    with pytest.raises(error, match=message):
        cep.gpu_match_all(stream, {**RULES, **rules}, **options)


def test_a_stream_without_a_watermark_is_refused_once_for_all(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(UnsupportedError, match="no watermark on timestamp column 'ts'") as refused:
        cep.gpu_match_all(spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in")), RULES)
    assert "pattern" not in str(refused.value)


@pytest.mark.surface
def test_patterns_with_an_error_may_be_left_out_and_results_be_apart(stream: DataFrame) -> None:
    failures: dict[str, CepError] = {}
    rules = {**RULES, "loose": "PATTERN SEQ(A a, B b)", "whole": "PATTERN SEQ(A a, B b) WITHIN 5 seconds"}
    found = cep.gpu_match_all(stream, rules, on_error="report", failures=failures, split=True, every="1 second", emit="window")
    assert list(found) == [*RULES, "whole"]
    assert all(frame.isStreaming for frame in found.values())
    assert found["whole"].columns == ["match_start", "match_end", "a", "b"]
    assert list(failures) == ["loose"]


def test_a_time_to_live_is_for_the_patterns_that_have_a_use_for_it(stream: DataFrame) -> None:
    rules = {"plain": PLAIN, "keyed": cep.Rule(KEYED, {"partition_by": "k"})}
    found = cep.gpu_match_all(stream, rules, time_to_live="1 day", split=True)
    assert {name: frame.columns[0] for name, frame in found.items()} == {"plain": "match_start", "keyed": "k"}
    with pytest.raises(UnsupportedError, match=r"pattern 'keyed': .*of all keys would be kept"):
        cep.gpu_match_all(stream, rules, split=True)


def test_what_is_apart_is_planned_once(stream: DataFrame) -> None:
    with patch.object(NarrowQuery, "of", wraps=NarrowQuery.of) as planned:
        found = cep.gpu_match_all(stream, RULES, split=True)
    assert planned.call_count == len(found) == len(RULES)


def test_streams_that_are_apart_have_watermarks_of_their_own(stream: DataFrame) -> None:
    rules = {"pairs": PLAIN, "dropping": cep.Rule(PLAIN, {"nulls": "drop"})}
    with pytest.raises(PatternError, match="'pairs' and 'dropping' differ in timestamp=, nulls= or time_unit="):
        cep.gpu_match_all(stream, rules)
    assert [*cep.gpu_match_all(stream, rules, split=True)] == ["pairs", "dropping"]
    timed = stream.withColumn("at", stream["ts"].cast("timestamp_ntz").cast("timestamp"))
    rules |= {"other": cep.Rule(PLAIN, {"timestamp": "at"})}
    missing = "pattern 'other': the streaming DataFrame has no watermark on timestamp column 'at'; it has one on 'ts'"
    with pytest.raises(UnsupportedError, match=missing):
        cep.gpu_match_all(timed, rules, split=True)
    failures: dict[str, CepError] = {}
    assert len(cep.gpu_match_all(timed, rules, split=True, on_error="report", failures=failures)) == 2
    assert [*failures] == ["other"]


@pytest.mark.parametrize("ask", [cep.gpu_match_all, cep.explain_all])
def test_keywords_of_streams_are_refused_for_a_batch(spark: SparkSession, ask: Any) -> None:
    with pytest.raises(PatternError, match="every= is for a streaming DataFrame"):
        ask(spark.createDataFrame(events(4, seed=1)), RULES, every="1 second")


def test_heartbeats_are_no_events(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    read = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    frame = cep.heartbeats(read, idle="1 second").withWatermark("ts", "1 second")
    plan = physical_plan(cep.gpu_match_all(frame, RULES, late="rows"))
    assert plan.index("NOT gpu_cep heartbeat") < plan.index("EventTimeWatermark")

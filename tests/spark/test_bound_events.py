"""A DataFrame whose columns' roles are said once is asked as a table is."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import gpu_cep as cep
from gpu_cep.errors import EventError, MatchLimitExceeded, PatternError, UnsupportedError
from gpu_cep_spark import bound_events
from gpu_cep_spark.tasks.failures import workers_errors
from tests.spark.samples import streams

pytestmark = pytest.mark.surface

QUERY = "PATTERN SEQ(A a, B b) WHERE a.n < b.n WITHIN 50"
EVENTS = streams(60, seed=3)
LOCAL = cep.events(EVENTS, partition_by="key")


@pytest.fixture
def bound(spark: SparkSession) -> cep.SparkEvents:
    return cep.events(spark.createDataFrame(EVENTS), partition_by="key")


def test_methods_answer_as_in_the_process(bound: cep.SparkEvents) -> None:
    found = bound.match(QUERY, columns="n")
    expected = LOCAL.match(QUERY, columns="n")
    assert expected.num_rows
    assert pa.table(found.orderBy(*found.columns[:3]).toArrow()).num_rows == expected.num_rows
    assert bound.count(QUERY) == expected.num_rows
    assert bound.count(f"{QUERY} RETURN a.n", strategy="strict_contiguity", tuning=cep.Tuning(prune=False)) == LOCAL.count(
        QUERY, strategy="strict_contiguity"
    )
    assert repr(bound) == "SparkEvents(DataFrame, timestamp='ts', partition_by='key', type_column='type', nulls='error')"
    assert bound.count("PATTERN SEQ(A a, B b) WHERE a.n < 0 AND b.n < 0 AND a.n > b.n + 1000000") == 0


def test_explaining_runs_no_job(bound: cep.SparkEvents) -> None:
    with pytest.raises(PatternError, match=r"events\(df\)\.explain\(pattern\) says how"):
        cep.explain(bound.data, QUERY)
    explained = str(bound.explain(QUERY, output="count")).splitlines()
    assert explained[:6] == str(LOCAL.explain(QUERY, output="count")).splitlines()[:6]


def test_drawing_collects_the_events(bound: cep.SparkEvents, monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"{LOCAL.count(QUERY):,} matches" in bound.report(QUERY, timelines=0).html
    assert bound.plot(QUERY, match=1).figure is not None
    monkeypatch.setattr(bound_events, "MOST_DRAWN", EVENTS.num_rows - 1)
    with pytest.raises(UnsupportedError, match=f"more than {EVENTS.num_rows - 1:,}; take some first"):
        bound.plot(QUERY)


def test_a_count_raises_what_workers_find(spark: SparkSession, bound: cep.SparkEvents) -> None:
    untimed = cep.events(spark.createDataFrame(pa.table({"ts": [1, None], "type": ["A", "B"]})))
    told = r"^timestamp column 'ts' holds 1 NULL in one partition of the events; .*; the pattern is PATTERN SEQ\(A a, B b\) WITHIN 5$"
    with pytest.raises(EventError, match=told):
        untimed.count("PATTERN SEQ(A a, B b) WITHIN 5")
    with pytest.raises(EventError, match="timestamp column 'ts' holds 1 NULL"):
        untimed.plot("PATTERN SEQ(A a, B b) WITHIN 5")
    with pytest.raises(MatchLimitExceeded, match="max_matches=1 "):
        bound.count("PATTERN SEQ(A a, B b) WITHIN 50", max_matches=1)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            "…\ngpu_cep.errors.EventError: one\n  two; the pattern is PATTERN a\n\n\tat org.apache",
            EventError,
            "one\n  two; the pattern is PATTERN a",
        ),
        ("…\ngpu_cep.errors.MatchLimitExceeded: many\n\n\tat org.apache", MatchLimitExceeded, "many"),
        ("…\ngpu_cep.errors.OtherError: one", PySparkException, "…\ngpu_cep.errors.OtherError: one"),
        ("…\nValueError: one", PySparkException, "…\nValueError: one"),
    ],
)
def test_failures_of_workers_are_told_as_what_they_are(text: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=f"^{re.escape(message)}$"), workers_errors():
        raise PySparkException(text)


def test_tuning_for_a_process_is_refused(bound: cep.SparkEvents) -> None:
    with pytest.raises(PatternError, match="threads is for runs in this process, not for Spark"):
        bound.match(QUERY, tuning=cep.Tuning(threads=2))
    with pytest.raises(PatternError, match="gpu_match\\(\\) takes the events first"):
        cep.gpu_match(QUERY, bound.data)

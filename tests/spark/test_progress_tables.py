"""gpu_progress has the rows of progress, however the events are spread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import gpu_cep as cep
from tests.effort import examples
from tests.spark.samples import as_set, streams

FUNNEL = "PARTITION BY user PATTERN SEQ(A a, B b, C c) WITHIN 30"


@pytest.mark.surface
@pytest.mark.parametrize("options", [{}, {"strategy": "partition_contiguity"}, {"slices": 40}, {"scan": "spark"}])
def test_each_start_came_as_far_as_in_one_process(spark: SparkSession, options: dict[str, Any]) -> None:
    events = streams(200, 7)
    local = {name: value for name, value in options.items() if name == "strategy"}
    expected = cep.progress(events, FUNNEL, **local)
    found = cep.gpu_progress(spark.createDataFrame(events), FUNNEL, **options)
    assert found.columns == expected.column_names
    assert as_set(found.toArrow()) == as_set(expected)
    assert set(expected["completed"].to_pylist()) == {True, False} or local


SHAPES = ("SEQ({} a, {} b)", "SEQ({} a, {} b+, {} A)", "SEQ({} a, NOT({} n), {} b)", "AND({} a, {} b)", "SEQ({} a, OR({} b, {} c), {} d?)")


@examples(3, 20)
@given(st.sampled_from(SHAPES), st.lists(st.sampled_from("ABCD"), min_size=4, max_size=4), st.integers(0, 99), st.integers(2, 40))
def test_random_funnels(spark: SparkSession, shape: str, types: list[str], seed: int, window: int) -> None:
    events, text = streams(60, seed), f"PATTERN {shape.format(*types)} WHERE [user] WITHIN {window}"
    found = cep.gpu_progress(spark.createDataFrame(events), text)
    assert as_set(found.toArrow()) == as_set(cep.progress(events, text))


def test_files_are_asked_by_their_paths(spark: SparkSession, tmp_path: Path) -> None:
    events = streams(80, 3)
    pq.write_table(events, tmp_path / "events.parquet")
    found = cep.gpu_progress(spark, str(tmp_path / "events.parquet"), FUNNEL)
    assert as_set(found.toArrow()) == as_set(cep.progress(events, FUNNEL))


@pytest.mark.parametrize(
    ("pattern", "options", "error", "message"),
    [
        (f"{FUNNEL} RETURN a.n AS n", {}, cep.PatternError, "progress.. has columns of its own"),
        (FUNNEL, {"late": "rows"}, cep.UnsupportedError, "late='rows' is not supported by gpu_progress"),
        (FUNNEL, {"every": 3}, cep.PatternError, "every"),
    ],
)
def test_what_has_no_progress_is_refused(spark: SparkSession, pattern: str, options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        cep.gpu_progress(spark.createDataFrame(streams(4, 1)), pattern, **options)


def test_names_that_differ_in_case_alone_are_refused(spark: SparkSession) -> None:
    events = spark.createDataFrame(streams(4, 1)).withColumnRenamed("user", "Reached")
    with pytest.raises(cep.PatternError, match=r"two columns 'Reached' and 'reached', whose names differ in case alone\n.*input column"):
        cep.gpu_progress(events, "PATTERN SEQ(A a, B b) WITHIN 9", partition_by=iter(["Reached"]))
    with pytest.raises(cep.PatternError, match=r"two columns 'Key' and 'key', .*\n.*rename the variable"):
        cep.gpu_progress(events, "PATTERN SEQ(A Key, B b) WITHIN 9", partition_by="key")

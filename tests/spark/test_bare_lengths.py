"""A length of time without a unit under Spark: the rule and the errors of :func:`gpu_cep.match`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DateType, StringType, StructField, StructType, TimestampType
from pyspark.sql.udtf import AnalyzeArgument

import gpu_cep as cep
from gpu_cep.analysis.options import Options
from gpu_cep.errors import PatternError
from gpu_cep.plan.settings import Settings
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery
from gpu_cep_spark.schemas import arrow_schema
from gpu_cep_spark.slices.choice import KnownStreams, choose_slicing
from gpu_cep_spark.slices.cut import Slicing
from gpu_cep_spark.sql import Registration, analyze_call
from tests.spark.samples import as_set

QUERY = "PATTERN SEQ(A a, B b) WITHIN 3600000"
KINDS = {"timestamp": TimestampType(), "date": DateType()}


def rows(kind: str) -> StructType:
    return StructType([StructField("ts", KINDS[kind]), StructField("type", StringType())])


def planned(kind: str, query: str, **options: Any) -> NarrowQuery:
    """What gpu_match plans before it needs a session."""
    return NarrowQuery.of(query, arrow_schema(rows(kind), "UTC"), Options(**options), Settings())


def analyzed(kind: str, query: str, **keywords: Any) -> object:
    """What the table function of SQL does when a query is analysed."""
    given = {name: AnalyzeArgument(StringType(), value, False, True) for name, value in keywords.items()}
    pattern = AnalyzeArgument(StringType(), query, False, True)
    return analyze_call(Registration("gpu_match", "UTC", 8, None), AnalyzeArgument(rows(kind), None, True, False), pattern, given)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", [planned, analyzed])
def test_the_error_is_that_of_match(way: Any, kind: str) -> None:
    with pytest.raises(PatternError) as in_the_process:
        cep.match(arrow_schema(rows(kind), "UTC").empty_table(), QUERY)
    with pytest.raises(PatternError) as caught:
        way(kind, QUERY)
    assert str(caught.value) == str(in_the_process.value)
    assert "the window 3600000 needs a unit" in str(caught.value)
    assert way(kind, QUERY, time_unit="ms")


def sliced(kind: str, slices: Any, time_unit: str | None, window: str = "60 days") -> Slicing | None:
    plan = planned(kind, f"PATTERN SEQ(A a, B b) WITHIN {window}").plan
    return choose_slicing(plan, slices, time_unit, KnownStreams(2, lambda: 2, lambda: None, lambda: None, lambda: None, keyed=True)).slicing


@pytest.mark.parametrize(
    ("kind", "slices", "message", "fix"),
    [
        ("timestamp", 99, "ts is timestamp[us, UTC]: the length of slices 99 needs a unit", "slices='99 seconds'"),
        ("timestamp", "7.5", "ts is timestamp[us, UTC]: the length of slices 7.5 needs a unit", "slices='7.5 seconds'"),
        ("date", 99, "ts is date: the length of slices 99 needs a unit", "slices='99 days'"),
    ],
)
@pytest.mark.parametrize("window", ["60 days", "3 EVENTS"])
def test_so_is_that_of_slices(kind: str, slices: Any, message: str, fix: str, window: str) -> None:
    with pytest.raises(PatternError) as caught:
        sliced(kind, slices, None, window)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == message
    assert diagnostic.hint is not None
    assert diagnostic.hint.startswith(f"write {fix}, or say by time_unit=")


def test_slices_count_the_time_unit() -> None:
    for kind, slices, unit, text in (("timestamp", 9, "weeks", "63 days"), ("date", 99, "days", "99 days")):
        assert sliced(kind, slices, unit) == sliced(kind, text, None) == sliced(kind, text, "ms")


@pytest.mark.parametrize("slices", ["auto", *(pytest.param(each, marks=pytest.mark.full) for each in (7_200_000, "2 hours"))])
def test_files_of_any_unit_have_the_same_matches(spark: SparkSession, tmp_path: Path, slices: Any) -> None:
    times = pa.array([each * 900 for each in range(200)], pa.timestamp("s", "UTC"))
    events = pa.table({"ts": times, "type": ["ABCCBA"[each * 7 % 6] for each in range(200)]})
    found = []
    for unit in ("ms", "us"):
        kind = pa.timestamp(unit, "UTC")
        pq.write_table(events.set_column(0, "ts", times.cast(kind)), tmp_path / f"{unit}.parquet")
        local = cep.match(tmp_path / f"{unit}.parquet", QUERY, time_unit="ms")
        far = cep.gpu_match(spark.read.parquet(str(tmp_path / f"{unit}.parquet")), QUERY, time_unit="ms", slices=slices).toArrow()
        found += [as_set(table.cast(far.schema)) for table in (local, far)]
    assert found == [found[0]] * 4
    assert found[0]

"""What workers did comes back beside the matches, and is the same as what the engine says of one local run."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import gpu_cep as cep
from gpu_cep.errors import PatternError
from gpu_cep_spark.reports.row_metrics import first_execution
from gpu_cep_spark.reports.run_report import _NO_FIGURES, COUNTS, STAGES
from tests.spark import test_intervals
from tests.spark.conftest import ROOT
from tests.spark.samples import QUERIES, as_set, streams
from tests.spark.test_matching import spread

pytestmark = pytest.mark.surface

EVENTS = streams(300, seed=1)


def test_what_was_done_is_known_after_an_action(spark: SparkSession) -> None:
    report, profile = cep.RunReport(), cep.Profile()
    found = cep.gpu_match(spread(spark, EVENTS), QUERIES["partition by"], report=report, slices=None)
    expected = cep.match(EVENTS, QUERIES["partition by"], profile=profile)
    assert as_set(found.toArrow()) == as_set(expected)
    assert report.counts["matches"] == profile.counts["matches"] == expected.num_rows
    assert report.counts["filtered"] == profile.counts["filtered"] == report.counts["events"]
    assert report.counts["tasks"] >= report.counts["parts"] == report.engines["cpu"] >= 1
    assert {"reading", "labels", "matching"} <= report.seconds.keys()
    assert f"matches {expected.num_rows}" in str(report)
    assert "parts on cpu" in str(report)


def test_spark_tells_what_it_read_and_shuffled(spark: SparkSession, tmp_path: Path) -> None:
    """Row groups that a filter rules out are not read, rows that no variable takes not shuffled; other scans of the action do not count."""
    size = 4_000
    kinds = ["ABXY"[place % 4] for place in range(size)]
    events = pa.table({"ts": range(size), "k": [place % 3 for place in range(size)], "type": kinds})
    pq.write_table(events, tmp_path / "t", row_group_size=500)
    report = cep.RunReport()
    late = spark.read.parquet(str(tmp_path / "t")).where("ts >= 2000")
    found = cep.gpu_match(late, "PATTERN SEQ(A a, B b) WITHIN 9", partition_by="k", report=report, slices=None)
    assert found.join(spark.range(5), F.col("id") == F.col("k")).count() > 0
    assert report.counts["events"] == 1_000
    assert report.rows == ({"read": 2_000, "shuffled": 1_000} if isinstance(spark, SparkSession) else {})
    assert str(report).startswith("read 2,000 → shuffled 1,000 → tasks" if report.rows else "tasks")


def test_the_first_action_of_a_report_is_the_one_it_tells_of() -> None:
    plans = [(1, 900, "mine"), (2, 1_000, "other"), (3, 1_100, "of mine"), (4, 1_200, "mine again")]
    known = [
        SimpleNamespace(number=number, submissionTime=partial(int, begun), physicalPlanDescription=partial(str, text))
        for number, begun, text in plans
    ]
    store = SimpleNamespace(executionsList=lambda: SimpleNamespace(size=known.__len__, apply=known.__getitem__))
    assert first_execution(store, "mine", 1.0).number == 3
    assert first_execution(store, "mine", 0.5).number == 1
    assert first_execution(store, "yours", 0.5) is None


def test_every_stage_that_the_engine_times_is_reported() -> None:
    """A stage that is not listed would be timed on every worker, and dropped on the way to the driver."""
    sources = [path for folder in ("gpu_cep", "spark_glue") for path in (ROOT / folder).rglob("*.py")]
    timed = {stage for path in sources for stage in re.findall(r'profile\.stage\("([a-z ]+)"\)', path.read_text(encoding="utf-8"))}
    assert timed == {*STAGES}
    counted = {name for path in sources for name in re.findall(r'profile\.add\("([a-z ]+)"', path.read_text(encoding="utf-8"))}
    assert counted <= {*COUNTS}


def test_rows_of_match_recognize_are_counted(spark: SparkSession) -> None:
    report, profile = cep.RunReport(), cep.Profile()
    text = "MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts MEASURES A.ts AS begun PATTERN (A B+) DEFINE B AS B.x > PREV(B.x))"
    found = cep.gpu_match(spread(spark, EVENTS), text, report=report)
    expected = cep.match(EVENTS, text, profile=profile)
    assert found.count() == expected.num_rows > 0
    assert {name: report.counts[name] for name in ("rows", "partitions", "matches")} == profile.counts


def test_slices_tell_of_their_copies(spark: SparkSession) -> None:
    report = cep.RunReport()
    found = cep.gpu_match(spread(spark, EVENTS), QUERIES["no key"], report=report, slices=8)
    assert as_set(found.toArrow()) == as_set(cep.match(EVENTS, QUERIES["no key"]))
    bindable = sum(kind in "AC" for kind in EVENTS["type"].to_pylist())
    assert report.counts["events"] - report.counts["copies"] == bindable
    assert report.counts["copies"] > 0


@pytest.mark.parametrize("output", ["events", "count", "compressed"])
def test_every_output_can_be_reported(spark: SparkSession, output: str) -> None:
    report = cep.RunReport()
    found = cep.gpu_match(spread(spark, EVENTS), QUERIES["both"], output=output, report=report).toArrow()
    plain = cep.gpu_match(spread(spark, EVENTS), QUERIES["both"], output=output).toArrow()
    assert found.column_names == plain.column_names
    assert found.num_rows == plain.num_rows
    assert report.counts["events"] > 0


def test_situations_and_their_durations(spark: SparkSession) -> None:
    report, query = cep.RunReport(), test_intervals.QUERIES["returned"]
    events = test_intervals.streams(200, seed=1)
    found = cep.gpu_match(spread(spark, events), query, partition_by="key", report=report)
    assert as_set(found.toArrow()) == as_set(cep.match(events, query, partition_by="key"))
    assert report.counts["situations"] > 0
    assert report.engines == {"cpu": report.counts["parts"]}


def test_no_events(spark: SparkSession) -> None:
    report = cep.RunReport()
    found = cep.gpu_match(spark.createDataFrame(EVENTS).filter("n > 1000"), QUERIES["both"], report=report)
    assert found.count() == 0
    assert "events" not in report.counts
    assert report.engines == {}


@pytest.mark.parametrize("options", [{}, {"output": "events", "slices": 8}])
def test_no_row_comes_of_the_tasks(spark: SparkSession, options: Any) -> None:
    """Adaptive execution drops a stage of which nothing comes, also one inside the result, and its figures with it."""
    report = cep.RunReport()
    found = cep.gpu_match(spread(spark, EVENTS), "PATTERN SEQ(A a, NONE b) WITHIN 3", report=report, **options)
    assert found.groupBy(found.columns[0]).count().collect() == []
    assert report.counts == report.engines == report.seconds == {}
    assert _NO_FIGURES in str(report)


def test_an_action_leaves_its_tasks_before_their_end(spark: SparkSession) -> None:
    report = cep.RunReport()
    cep.gpu_match(spark.createDataFrame(EVENTS), "PATTERN A a", report=report, slices=None).take(1)
    assert report.counts == {}
    assert _NO_FIGURES in str(report)


def test_a_report_is_for_one_call(spark: SparkSession) -> None:
    report = cep.RunReport()
    with pytest.raises(PatternError, match="given to no gpu_match"):
        print(report)
    frame = spark.createDataFrame(EVENTS)
    cep.gpu_match(frame, QUERIES["both"], report=report)
    with pytest.raises(PatternError, match="another gpu_match"):
        cep.gpu_match(frame, QUERIES["both"], report=report)

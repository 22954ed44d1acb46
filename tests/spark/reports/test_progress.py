"""How far an action is: what is shown of it on a terminal and elsewhere, and what is said when it has finished."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

import gpu_cep as cep
from gpu_cep.errors import PatternError
from gpu_cep_spark.reports import progress, run_report
from tests.spark.conftest import CONNECT
from tests.spark.samples import QUERIES, as_set, streams

pytestmark = pytest.mark.surface

EVENTS = streams(300, seed=1)


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import time

    time.sleep(1)
    yield from batches


def slow(spark: SparkSession, report: cep.RunReport) -> DataFrame:
    """Matches that take more than three seconds: six tasks of one each, two at a time."""
    events = spark.createDataFrame(EVENTS)
    return cep.gpu_match(events.repartition(6).mapInArrow(slowly, events.schema), QUERIES["partition by"], report=report, slices=None)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> io.StringIO:
    written = io.StringIO()
    terminal = getattr(request, "param", False)
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=written, force_terminal=terminal, width=200))
    monkeypatch.setattr(progress, "_EVERY", 0.25)
    return written


@pytest.mark.parametrize("shown", [False, pytest.param(True, marks=pytest.mark.full)], indirect=True, ids=["file", "terminal"])
def test_tasks_are_shown_while_an_action_runs_and_the_report_at_its_end(spark: SparkSession, shown: io.StringIO) -> None:
    report = cep.RunReport()
    found = slow(spark, report)
    with report.progress():
        table = found.toArrow()
    assert as_set(table) == as_set(cep.match(EVENTS, QUERIES["partition by"]))
    # how many run at a glance is up to the machine
    assert re.search(r"\d of \d+ tasks in \d stages? so far, [1-9] running", shown.getvalue())
    assert shown.getvalue().endswith(f"{report}\n")
    assert f"matches {table.num_rows:,}" in str(report)


def settled(tasks: Callable[[], progress.Tasks], done: int) -> progress.Tasks:
    """Return the tasks once so many are done: Spark tells of them a little after the action."""
    end = time.monotonic() + 60
    while tasks().done < done and time.monotonic() < end:
        time.sleep(0.05)
    return tasks()


@pytest.mark.skipif(CONNECT, reason="the server tells of tasks that are skipped, too")
def test_all_tasks_are_done_in_the_end_and_those_of_others_do_not_count(spark: SparkSession) -> None:
    spark.range(10).repartition(3).count()
    with progress._tasks_of(spark) as tasks:
        assert tasks() == progress.Tasks()
        spark.range(100, numPartitions=5).repartition(3).write.format("noop").mode("overwrite").save()
        assert settled(tasks, 8) == progress.Tasks(stages=2, done=8, running=0, known=8)
    assert not spark.sparkContext.getJobTags()
    spark.range(10).count()
    assert tasks().known == 8


def test_a_listener_is_there_no_longer_than_the_action(spark: SparkSession) -> None:
    with progress._tasks_of(spark) as tasks:
        spark.range(10, numPartitions=2).collect()
    # a handler on Connect is told before an action ends, and of a short one perhaps nothing
    seen = tasks() if CONNECT else settled(tasks, 2)
    spark.range(10, numPartitions=7).collect()
    assert tasks() == seen


def test_of_an_action_that_fails_there_is_no_report(spark: SparkSession, shown: io.StringIO) -> None:
    report = cep.RunReport()
    found = cep.gpu_match(spark.createDataFrame(EVENTS), QUERIES["both"], report=report, max_matches=1)
    with pytest.raises(Exception, match="max_matches=1"), report.progress():
        found.toArrow()
    assert "events" not in shown.getvalue()
    assert CONNECT or not spark.sparkContext.getJobTags()


def test_of_no_action_nothing_is_known(spark: SparkSession, shown: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_report, "_PATIENCE", 0.2)
    report = cep.RunReport()
    with pytest.raises(PatternError, match="given to no gpu_match"), report.progress():
        raise AssertionError("nothing is to be shown")
    cep.gpu_match(spark.createDataFrame(EVENTS), QUERIES["both"], report=report)
    with report.progress():
        spark.range(3).collect()
    assert run_report._NO_FIGURES in shown.getvalue()

"""Executors whose gpu_cep is missing, or does not fit the driver's, and errors inside tasks: one sentence each."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep_spark.tasks.handshake import send
from tests.spark.samples import QUERIES, streams

ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "gpu_cep":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""
OLDER = """
from gpu_cep.plan import event_plan

event_plan.PLAN_VERSION -= 1
"""


@pytest.fixture
def workers_start_with(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Lets Python workers run some code before anything else, as if their machine were another one."""
    environment = spark.sparkContext.environment
    before = dict(environment)

    def start_with(code: str) -> None:
        (tmp_path / "sitecustomize.py").write_text(code)
        environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])

    yield start_with
    environment.clear()
    environment.update(before)


def failure(frame: DataFrame) -> str:
    """What a user sees when a task fails."""
    with pytest.raises(PythonException) as caught:
        frame.collect()
    return str(caught.value)


def asked(spark: SparkSession, query: str = QUERIES["both"], **options: Any) -> DataFrame:
    return cep.gpu_match(spark.createDataFrame(streams(100, seed=1)), query, **options)


def test_an_executor_without_the_package(spark: SparkSession, workers_start_with: Callable[[str], None]) -> None:
    workers_start_with(ABSENT)
    text = failure(asked(spark))
    assert text.count("cannot import gpu_cep: No module named 'gpu_cep'; install the driver's release there, gpu_cep ") == 1
    assert "ImportError: the Python worker on " in text
    assert "During handling" not in text


IN_SQL = "SELECT * FROM gpu_match(TABLE(handed), pattern => 'PATTERN SEQ(A a, B b) WITHIN 30', partition_by => 'key')"
ON_EXECUTORS = "import sys\n\nif not any('analyze' in argument for argument in sys.orig_argv):\n"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ABSENT, "cannot import gpu_cep: No module named 'gpu_cep'; install the driver's release there, gpu_cep "),
        pytest.param(OLDER, "gpu_cep.errors.EngineUnavailable: the Python worker on ", marks=pytest.mark.full),
    ],
)
def test_sql_says_so_too(spark: SparkSession, workers_start_with: Callable[[str], None], code: str, told: str) -> None:
    """Queries are analysed beside the driver, which has the package."""
    spark.createDataFrame(streams(100, seed=1)).createOrReplaceTempView("handed")
    workers_start_with(ON_EXECUTORS + indent(code, "    "))
    cep.register(spark)
    assert failure(spark.sql(IN_SQL)).count(told) == 1


def test_an_executor_with_another_version(spark: SparkSession, workers_start_with: Callable[[str], None]) -> None:
    workers_start_with(OLDER)
    text = failure(asked(spark))
    assert text.count("gpu_cep.errors.EngineUnavailable: the Python worker on ") == 1
    assert "and the driver of (" in text
    assert cep.__version__ in text


def test_an_error_names_stream_window_and_pattern_once(spark: SparkSession) -> None:
    query = "PARTITION BY key\nPATTERN SEQ(A a, B b)\nWITHIN 30"
    text = failure(asked(spark, query, max_matches=2))
    last = text.strip().splitlines()[-1]
    assert last.startswith("gpu_cep.errors.MatchLimitExceeded: more than max_matches=2 matches, in the window that starts at ts=")
    assert last.endswith("; the pattern is PARTITION BY key PATTERN SEQ(A a, B b) WITHIN 30")
    for part in ("max_matches=2", "of stream key=", "PATTERN SEQ"):
        assert text.count(part) == 1
    assert "\tat " not in text
    assert len(text.splitlines()) < 30


def test_a_fault_of_the_events_names_the_pattern(spark: SparkSession) -> None:
    events = streams(20, seed=1)
    untimed = events.set_column(events.schema.get_field_index("ts"), "ts", pa.nulls(20, pa.int64()))
    query = cep.seq(cep.var("a", "A"), cep.var("b", "B")).within(5).partition_by("key")
    text = failure(cep.gpu_match(spark.createDataFrame(untimed), query))
    assert "gpu_cep.errors.EventError: timestamp column 'ts' holds " in text
    assert "the pattern is PARTITION BY key PATTERN SEQ(A a, B b) WITHIN 5" in text


def test_workers_collect_no_modules(spark: SparkSession) -> None:
    """Spark collects garbage after each task; what a worker has loaded is left out of that, from its first task on."""

    def frozen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        yield pa.record_batch({"frozen": [gc.get_freeze_count()]})

    found = spark.range(0, 2, 1, 2).mapInArrow(send(frozen), "frozen long").collect()
    assert all(row.frozen > 50_000 for row in found)

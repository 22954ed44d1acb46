"""Tasks that each read all files, and keep some streams by a hash of their keys, find what Spark's scan and shuffle find."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import gpu_cep as cep
from gpu_cep.errors import UnsupportedError
from gpu_cep_spark import file_matching
from gpu_cep_spark.files import pieces as file_pieces
from gpu_cep_spark.files import readings
from tests.effort import every_value
from tests.spark.conftest import CONNECT
from tests.spark.samples import as_set, matched_here
from tests.spark.slices.test_slices import QUERIES, streams

pytestmark = pytest.mark.skipif(CONNECT, reason="a client of Spark Connect does not see plans")

ROWS = 400
EVENTS, ENDLESS = "PATTERN SEQ(A a, B b) WITHIN 4 EVENTS", "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { a.n < c.n }"
INTERVALS = "DEFINE A AS n % 5 <> 0, B AS type = 'B' PATTERN A overlaps B; A before B WITHIN 9"


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few rows be several pieces, which are read in several portions."""
    monkeypatch.setattr(file_pieces, "FEWEST_ROWS", 20)
    monkeypatch.setattr(file_pieces, "ROWS_OF_START", 20)
    monkeypatch.setattr(file_matching, "PORTION", 2_000)


def frame_of(spark: SparkSession, folder: Path, table: pa.Table, group: int = 40) -> DataFrame:
    """The events in three files, each with a third of the rows of each stream; Spark runs no job that looks for their schema."""
    folder.mkdir()
    for number in range(3):
        rows = table.take(pa.array(np.arange(number, table.num_rows, 3)))
        pq.write_table(rows, folder / f"part {number}.parquet", row_group_size=group)
    return spark.read.schema(from_arrow_schema(table.schema)).parquet(str(folder))


def assert_same(frame: DataFrame, query: str, rows_read: pa.Table | None = None, **options: Any) -> list[str]:
    """The rows that tasks by several buckets of files find, which are those of Spark's scan, if no rows are given."""
    report = cep.RunReport()
    found = cep.gpu_match(frame, query, scan="files", report=report, **options)
    rows = as_set(found.toArrow())
    assert rows == as_set(matched_here(frame, query, rows=rows_read, **options))
    assert "2 pieces by a hash of keys, which each read all rows" in report.scan
    assert report.counts["tasks"] == 2
    return rows


def texts(table: pa.Table) -> pa.Table:
    """The events with keys of text, some of which are NULL."""
    words = pc.choose(pc.bit_wise_and(table["n"], 3), pa.scalar("a b"), pa.scalar("ü"), pa.scalar(""), pa.scalar(None, pa.string()))
    return table.append_column("word", words)


@every_value(query=[EVENTS, ENDLESS, INTERVALS, QUERIES["next"]], keys=["s", "word", ("k", "word")])
def test_buckets_hold_whole_streams(spark: SparkSession, tmp_path: Path, query: str, keys: Any) -> None:
    table = texts(streams(ROWS, 4))
    assert assert_same(frame_of(spark, tmp_path / "t", table), query, table, partition_by=keys, slices=None)


@every_value(output=["matches", "events", "count"], after_match=["all", "skip_past_last"])
def test_outputs(spark: SparkSession, tmp_path: Path, output: Any, after_match: Any) -> None:
    table = streams(ROWS, 2)
    frame = frame_of(spark, tmp_path / "t", table)
    options = {"output": output, "after_match": after_match, "ties": "position"}
    assert assert_same(frame.where("n <> 7"), EVENTS, table.filter(pc.field("n") != 7), partition_by="s", **options)


def test_keys_of_conditions(spark: SparkSession, tmp_path: Path) -> None:
    table = streams(ROWS, 6)
    frame = frame_of(spark, tmp_path / "t", table)
    for output in ("matches", "count"):
        assert assert_same(frame, "PATTERN SEQ(A a, C c) WHERE skip_till_any_match { [k] }", table, output=output)


@pytest.mark.parametrize(("query", "options"), [(EVENTS, {}), (ENDLESS, {"output": "count"}), (QUERIES["next"], {"slices": None})])
def test_one_task_reads_a_stream_without_keys(spark: SparkSession, tmp_path: Path, query: str, options: Any) -> None:
    table, report = streams(90, 5), cep.RunReport()
    frame = frame_of(spark, tmp_path / "t", table)
    found = as_set(cep.gpu_match(frame, query, scan="files", report=report, **options).toArrow())
    assert found == as_set(matched_here(frame, query, rows=table, **options))
    assert found
    assert "one piece, since" in report.scan
    assert report.counts["tasks"] == 1


def test_times_in_no_order_are_read_by_keys(spark: SparkSession, tmp_path: Path) -> None:
    table = streams(ROWS, 3)
    assert assert_same(frame_of(spark, tmp_path / "t", table), QUERIES["next"], table, partition_by="s")


def test_what_a_match_needs_may_be_in_another_portion(spark: SparkSession, tmp_path: Path) -> None:
    """Each row group has one type only, so that no portion has all that a match needs."""
    table = streams(ROWS, 3).sort_by("type")
    assert assert_same(frame_of(spark, tmp_path / "t", table), QUERIES["any"], table, partition_by="s")


def test_text_is_a_dictionary_in_some_portions_only(spark: SparkSession, tmp_path: Path) -> None:
    rows = 70_000
    random = np.random.default_rng(5)
    times = pa.table({"ts": random.permutation(rows), "type": random.choice(list("ABCD"), rows)})
    few, many = (pa.array([f"user {number}" for number in random.integers(0, most, rows)]) for most in (900, 10**9))
    for number, users in enumerate((few, many, few)):
        pq.write_table(times.append_column("user", users), tmp_path / f"part {number}.parquet")
    assert len(assert_same(spark.read.parquet(str(tmp_path)), "PATTERN SEQ(A a, B b) WITHIN 60 EVENTS", partition_by="user")) > 100


def test_events_without_a_time(spark: SparkSession, tmp_path: Path) -> None:
    table = streams(ROWS, 1)
    times = pc.if_else(pc.equal(table["n"], 30), pa.scalar(None, pa.int64()), table["ts"])
    frame = frame_of(spark, tmp_path / "t", table.set_column(0, "ts", times))
    assert assert_same(frame, EVENTS, partition_by="s", nulls="drop")
    with pytest.raises(PySparkException, match=r"timestamp column 'ts' holds .* NULL"):
        cep.gpu_match(frame, EVENTS, partition_by="s", scan="files").collect()


def test_files_without_any_column_that_is_read(spark: SparkSession, tmp_path: Path) -> None:
    frame_of(spark, tmp_path / "t", pa.table({"other": np.arange(ROWS)}))
    frame = spark.read.schema("ts BIGINT, type STRING, s BIGINT").parquet(str(tmp_path / "t"))
    with pytest.raises(PySparkException, match=r"timestamp column 'ts' holds .* NULL"):
        cep.gpu_match(frame, "PATTERN SEQ(a, b) WITHIN 4 EVENTS", partition_by="s", scan="files").collect()


def test_why_tasks_do_not_read_all(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = frame_of(spark, tmp_path / "t", streams(ROWS, 1))
    monkeypatch.setattr(readings, "SCANNED", 0.5)
    monkeypatch.setattr(readings, "SHUFFLED", 1.6)
    told = "2 tasks by a hash of keys would each read all rows, and Spark's scan of all rows and shuffle of 46%"
    assert told in reason(frame, QUERIES["next"], partition_by="s")
    # of an unfiltered stream Spark shuffles all rows
    assert assert_same(frame, EVENTS, partition_by="s")
    told = "2 tasks by a hash of keys would each read all rows, and Spark's scan of all rows and shuffle of 10%"
    assert told in reason(frame.where("n < 40"), EVENTS, partition_by="s")


def test_the_share_is_sampled_by_what_filters_read(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the names of folders say counts as in the files, and columns that no filter reads are not asked for."""
    table, read, sample = streams(ROWS, 1), [], file_matching.sample_filters
    for number, day in enumerate(["1", "2", "3", "__HIVE_DEFAULT_PARTITION__"]):
        (tmp_path / "t" / f"day={day}").mkdir(parents=True)
        pq.write_table(table.take(pa.array(np.arange(number, ROWS, 4))), tmp_path / "t" / f"day={day}" / "a.parquet", row_group_size=25)
    monkeypatch.setattr(file_matching, "sample_filters", lambda *asked: read.append(asked[2]) or sample(*asked))
    monkeypatch.setattr(readings, "SCANNED", 0.1)
    monkeypatch.setattr(readings, "SHUFFLED", 1.0)
    frame = spark.read.parquet(str(tmp_path / "t"))
    assert "shuffle of 50% take" in reason(frame.where("day > 1"), EVENTS, partition_by="s")
    bound = np.isin(table["type"].to_numpy(), ["A", "B"])
    assert f"shuffle of {bound.mean():.0%} take" in reason(frame, QUERIES["next"], partition_by="s")
    share = np.sum(bound[0::4]) + np.sum(bound[2::4])
    assert f"shuffle of {share / ROWS:.0%} take" in reason(frame.where("day <> 2 AND n >= 0"), QUERIES["next"], partition_by="s")
    assert read == [["day"], ["type"], ["day", "n", "type"]]


def test_tasks_are_more_than_cores_where_a_worker_may_hold_less(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, tmp_path / "t", streams(ROWS, 1))
    report, options = cep.RunReport(), {"partition_by": "s", "slices": None}
    found = cep.gpu_match(frame, EVENTS, scan="files", worker_memory=4_000, report=report, **options)
    assert as_set(found.toArrow()) == as_set(cep.gpu_match(frame, EVENTS, scan="spark", **options).toArrow())
    assert re.search(r"^tasks read files: [468] pieces by a hash of keys, which each read all rows", report.scan)
    told = r"\d\d tasks by a hash of keys would each read all rows, and .* shuffle of 100% take 2 cores as long as 9.0 readings"
    assert re.search(told, reason(frame, EVENTS, worker_memory=300, **options))


def reason(frame: DataFrame, query: str, **options: Any) -> str:
    with pytest.raises(UnsupportedError, match="scan='files' is not possible") as raised:
        cep.gpu_match(frame, query, scan="files", **options)
    return str(raised.value)


def test_a_file_that_changes_is_named(spark: SparkSession, tmp_path: Path) -> None:
    found = cep.gpu_match(frame_of(spark, tmp_path / "t", streams(ROWS, 1)), EVENTS, partition_by="s", scan="files")
    pq.write_table(streams(ROWS, 2), tmp_path / "t" / "part 1.parquet")
    with pytest.raises(PySparkException, match=r"part 1\.parquet: it has changed since the query was made"):
        found.collect()

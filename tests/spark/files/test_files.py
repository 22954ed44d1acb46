"""Tasks that read Parquet files themselves find what Spark's scan and shuffle find."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

import gpu_cep as cep
from gpu_cep.errors import EventError, PatternError, UnsupportedError
from gpu_cep.keywords import read_keywords
from gpu_cep_spark.file_matching import DividedFiles, ScanRequest, find_pieces
from gpu_cep_spark.files import footers as file_footers
from gpu_cep_spark.files import pieces as file_pieces
from gpu_cep_spark.jobs import Job
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery
from gpu_cep_spark.schemas import arrow_schema
from tests.effort import every_pair, every_value
from tests.spark.conftest import CONNECT
from tests.spark.samples import as_set, matched_here
from tests.spark.slices.test_slices import QUERIES, streams
from tests.spark.test_contract import physical_plan

pytestmark = pytest.mark.skipif(CONNECT, reason="a client of Spark Connect does not see plans")

ROWS = 400
INTERVALS = "DEFINE A AS n % 5 <> 0, B AS type = 'B' PATTERN A overlaps B; A before B WITHIN 9"


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few rows be several pieces, of which each is a task, and let these read rows several times."""
    monkeypatch.setattr(file_pieces, "FEWEST_ROWS", 20)
    monkeypatch.setattr(file_pieces, "ROWS_OF_START", 20)
    monkeypatch.setattr(file_pieces, "PIECES_PER_CORE", 2)
    monkeypatch.setattr(file_pieces, "CHEAP", 9.0)
    monkeypatch.setattr(file_pieces, "DEAREST", 9.0)
    monkeypatch.setattr(file_pieces, "HARDLY_LESS", 9.0)


def in_order(rows: int = ROWS, seed: int = 1) -> pa.Table:
    return streams(rows, seed).sort_by("ts")


def write(table: pa.Table, folder: Path, files: int = 3, group: int = 40) -> str:
    """A folder of files, each with the next rows of the table."""
    folder.mkdir(exist_ok=True)
    share = -(-table.num_rows // files)
    for number in range(files):
        pq.write_table(table.slice(number * share, share), folder / f"part {number}.parquet", row_group_size=group)
    return str(folder)


def read(spark: SparkSession, table: pa.Table, folder: Path, **layout: int) -> DataFrame:
    """The files of a table; Spark, which is told their schema, runs no job that looks for it."""
    return spark.read.schema(from_arrow_schema(table.schema)).parquet(write(table, folder, **layout))


def assert_same(frame: DataFrame, query: str, rows_read: pa.Table | None = None, *, typed: bool = False, **options: Any) -> list[str]:
    """The rows that tasks which read files find, which are those of Spark's scan; several tasks read.

    Spark does not scan for rows that are given. If `typed`, the columns are compared with those of Spark's scan, too.
    """
    report = cep.RunReport()
    found = cep.gpu_match(frame, query, scan="files", report=report, **options)
    assert not typed or found.dtypes == cep.gpu_match(frame, query, scan="spark", **options).dtypes
    rows = as_set(found.toArrow())
    assert rows == as_set(matched_here(frame, query, rows=rows_read, **options))
    assert report.counts["tasks"] > 1, report.scan
    return rows


# what strategies read around a slice is tested without Spark, and those of the fast suite read on, back and on, or nothing around it
@pytest.mark.parametrize(
    "name",
    [
        name if name in ("next", "contiguity of partitions", "both", "no time") else pytest.param(name, marks=pytest.mark.full)
        for name in QUERIES
    ],
)
def test_slices_of_files_have_the_matches_of_streams(spark: SparkSession, tmp_path: Path, name: str) -> None:
    table = in_order(seed=len(name))
    assert assert_same(read(spark, table, tmp_path / "t"), QUERIES[name], table, partition_by="s")


@every_pair(keys=[None, "s"], after_match=["all", "skip_to_next", "skip_past_last"], output=["matches", "events", "count"])
def test_outputs(spark: SparkSession, tmp_path: Path, keys: Any, after_match: Any, output: Any) -> None:
    table = in_order(300)
    frame = read(spark, table, tmp_path / "t")
    options = {"partition_by": keys, "output": output, "after_match": after_match}
    ties = {"ties": "position"} if after_match == "skip_past_last" else {}
    assert assert_same(frame, QUERIES["next"], table, typed=True, **options, **ties)


@pytest.mark.parametrize("output", ["matches", "events", "count"])
def test_slices_with_many_matches_far_from_their_borders(spark: SparkSession, tmp_path: Path, output: Any) -> None:
    table = in_order(900)
    frame = read(spark, table, tmp_path / "t", group=100)
    options = {"partition_by": "k", "after_match": "skip_past_last", "ties": "position"}
    assert assert_same(frame, "PATTERN SEQ(A a, B b) WITHIN 5", table, output=output, **options)


def test_one_piece_answers_everything(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_pieces, "FEWEST_ROWS", ROWS)
    monkeypatch.setattr(file_pieces, "ROWS_OF_START", ROWS)
    table = in_order()
    frame = read(spark, table, tmp_path / "t")
    for query in (QUERIES["next"], QUERIES["both"], "PATTERN SEQ(A a, B b) WITHIN 3 EVENTS", INTERVALS, "PATTERN SEQ(A a, D d)"):
        found = cep.gpu_match(frame, query, scan="files", partition_by="s")
        assert as_set(found.toArrow()) == as_set(matched_here(frame, query, rows=table, partition_by="s"))


def test_projections_and_filters_of_the_frame(spark: SparkSession, tmp_path: Path) -> None:
    frame = read(spark, in_order(), tmp_path / "t")
    shown = frame.where("k IS NOT NULL AND (type IN ('A', 'B') OR n >= 100) AND NOT n = 7")
    shown = shown.select(F.col("n").alias("number"), F.col("ts").alias("when"), "type", F.col("s").alias("key"))
    assert assert_same(shown, "PATTERN SEQ(A a, B b) WHERE a.number < b.number WITHIN 6", timestamp="when", partition_by="key")


def folders(table: pa.Table, folder: Path, key: str) -> str:
    pq.write_to_dataset(table, str(folder), partition_cols=[key], row_group_size=50)
    return str(folder)


@every_value(
    query=["PATTERN SEQ(A a, B b+) WITHIN 6", "PATTERN SEQ(A a, B b) WITHIN 4 EVENTS", "PATTERN SEQ(A a, B b, C c)", INTERVALS],
    key=["k", "word"],
)
def test_folders_of_a_key_are_whole_streams(spark: SparkSession, tmp_path: Path, query: str, key: str) -> None:
    table = in_order(200)
    words = pc.choose(table["k"].fill_null(0), pa.scalar("a b"), pa.scalar("x/y=%"), pa.scalar("ü"))
    frame = spark.read.parquet(folders(table.append_column("word", words), tmp_path / "t", key))
    # names of folders are what the JVM takes them for
    rows = frame.toArrow()
    held = rows.filter(pc.field(key).is_valid())
    assert assert_same(frame, query, rows, typed=True, partition_by=key)
    assert assert_same(frame.where(f"{key} IS NOT NULL"), query, held, partition_by=key, output="count")


def test_row_groups_of_a_key_are_whole_streams(spark: SparkSession, tmp_path: Path) -> None:
    table = streams(400, 3)
    for key in range(0, 21, 3):
        write(table.filter((pc.field("s") >= key) & (pc.field("s") < key + 3)), tmp_path / "t", files=1, group=15)
        (tmp_path / "t" / "part 0.parquet").rename(tmp_path / "t" / f"of {key}.parquet")
    frame = spark.read.parquet(str(tmp_path / "t"))
    assert assert_same(frame, "PATTERN SEQ(A a, C c) WITHIN 4 EVENTS", partition_by="s")


def test_row_groups_that_share_a_key_are_no_whole_streams(spark: SparkSession, tmp_path: Path) -> None:
    table = streams(400, 3).filter(pc.field("s").is_valid()).sort_by("s")
    report = cep.RunReport()
    cep.gpu_match(
        read(spark, table, tmp_path / "t", group=15), "PATTERN SEQ(A a, C c) WITHIN 4 EVENTS",
        partition_by="s", scan="files", report=report,
    )  # fmt: skip
    assert "by a hash of keys" in report.scan


@contextmanager
def told(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    yield
    spark.conf.set(name, str(before))


def reason(frame: DataFrame, query: str = QUERIES["next"], **options: Any) -> str:
    with pytest.raises(UnsupportedError, match="scan='files' is not possible") as raised:
        cep.gpu_match(frame, query, scan="files", **options)
    return str(raised.value)


def test_what_is_no_scan_is_spark_s(spark: SparkSession, tmp_path: Path) -> None:
    frame, report = read(spark, in_order(), tmp_path / "t"), cep.RunReport()
    assert "Limit" in reason(frame.limit(300))
    cep.gpu_match(frame.limit(300), QUERIES["next"], report=report)
    assert re.match("Spark reads the events: .*Limit", report.scan)
    assert "node Sample" in reason(frame.sample(0.5, seed=1))
    assert "is computed" in reason(frame.withColumn("n", F.col("n") + 1), "PATTERN SEQ(A a, B b) WHERE a.n < b.n WITHIN 6")
    assert "only Spark computes" in reason(frame.where("n % 2 = 0"))
    assert "floats" in reason(frame.where("ts < 7.5D"))
    columns = "ts long, n long, type string collate UTF8_LCASE, other string collate UTF8_LCASE"
    collated = spark.read.schema(columns).parquet(str(tmp_path / "t")).where("type < other")
    assert "under a collation" in reason(collated, "PATTERN SEQ(a, b) WHERE a.n < b.n WITHIN 6 RETURN a.n AS n")
    assert "node Join" in reason(frame.join(frame.select("n").distinct(), "n"))
    assert "a window of events" in reason(frame, "PATTERN SEQ(A a, B b) WITHIN 4 EVENTS", worker_memory=400)
    assert "without a window" in reason(frame, "PATTERN SEQ(A a, B b)", worker_memory=400)
    assert "slices=None" in reason(frame, slices=None, worker_memory=400)
    cached = frame.cache()
    assert "InMemoryRelation" in reason(cached)
    cached.unpersist()
    with told(spark, "spark.sql.files.ignoreCorruptFiles", "true"):
        assert "ignoreCorruptFiles" in reason(frame)
    assert "ignoremissingfiles" in reason(spark.read.option("ignoreMissingFiles", True).parquet(str(tmp_path / "t")))
    csv.write_csv(in_order(), tmp_path / "events.csv")
    assert "CSVFileFormat" in reason(spark.read.schema(frame.schema).csv(str(tmp_path / "events.csv"), header=True))


def test_times_in_no_order_are_spark_s(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_pieces, "DEAREST", 1.5)
    frame = read(spark, streams(ROWS, 1), tmp_path / "t")
    assert "times overlap so much" in reason(frame)


def test_few_rows_are_spark_s_unless_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    frame = read(spark, in_order(), tmp_path / "t")
    report = cep.RunReport()
    cep.gpu_match(frame, QUERIES["next"], report=report)
    assert "fewer than 65,536 rows" in report.scan
    assert "Range" in physical_plan(cep.gpu_match(frame, QUERIES["next"], scan="files"))


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"scan": "file"}, PatternError, "scan='file' is not one of auto, spark, files"),
    ({"scan": "files", "slices": 9}, UnsupportedError, "cuts along row groups"),
])  # fmt: skip
def test_faults(spark: SparkSession, tmp_path: Path, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cep.gpu_match(read(spark, in_order(), tmp_path / "t"), QUERIES["next"], **options)


def test_what_was_read_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    table = in_order().set_column(1, "type", pa.array(["A", "B"] * 100 + ["C"] * 200))
    frame = read(spark, table, tmp_path / "t", files=1, group=50)
    report = cep.RunReport()
    found = cep.gpu_match(frame, "PATTERN SEQ(A a, B b) WITHIN 1", scan="files", report=report)
    assert found.count() > 0
    assert "slices of time" in report.scan
    assert "of 1 files with 8 row groups and 400 rows" in report.scan
    assert 4 <= report.counts["row groups read"] < 8
    assert report.rows == {"read": report.counts["rows read"], "shuffled": 0}
    assert report.counts["bytes read"] > 0
    assert str(report).endswith(report.scan)
    late = cep.RunReport()
    cep.gpu_match(frame.where("ts > 20"), "PATTERN SEQ(A a, B b) WITHIN 1", scan="files", report=late)
    assert "with 2 row groups and 100 rows" in late.scan, late.scan
    bound = cep.events(frame.where("n % 2 = 0"))
    assert str(bound.explain(QUERIES["next"])).splitlines()[-1].startswith("source     Spark reads the events: its filter has")


def test_slices_are_even_without_row_groups_that_no_match_needs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_pieces, "PIECES_PER_CORE", 4)
    table = in_order().set_column(1, "type", pa.array(["C"] * 240 + ["A", "B"] * 80))
    frame = read(spark, table, tmp_path / "t", files=2, group=20)
    query = "PATTERN SEQ(A a, B b) WITHIN 1"
    found = pieces_of(frame, query)
    assert found.told.endswith("of 2 files with 20 row groups and 400 rows, without 12 in which no event bears on a match")
    rows = [int(found.footers.groups.rows[piece.places].sum()) for piece in found.pieces.pieces]
    assert len(rows) > 1
    assert max(rows) <= 60
    assert assert_same(frame, query, table)
    assert assert_same(frame, query, table, partition_by="s")


def test_row_groups_far_from_rare_events_are_left_out(spark: SparkSession, tmp_path: Path) -> None:
    types = np.array(["A", "B"] * 200)
    types[[45, 46, 355]] = "R"
    table = in_order().set_column(1, "type", pa.array(types))
    frame = read(spark, table, tmp_path / "t", files=2, group=10)
    query = "PATTERN SEQ(A a, R r) WITHIN 1"
    groups = pieces_of(frame, query).footers.groups
    assert 2 <= len(groups) < 20
    assert {(0, 4), (1, 15)} <= set(zip(groups.file.tolist(), groups.group.tolist(), strict=True))
    assert assert_same(frame, query, table)
    assert len(pieces_of(frame, "PATTERN SEQ(A a, B b) WITHIN 1").footers.groups) == 40


@pytest.mark.parametrize(("query", "groups"), [("SEQ(A a, NOT C c, R r)", [4, 5, 6]), ("SEQ(A a, R r)", [4, 6]), ("SEQ(A a, C c)", [4, 5])])
def test_row_groups_of_negated_events_are_kept(spark: SparkSession, tmp_path: Path, query: str, groups: list[int]) -> None:
    types = np.array(["D"] * 400)
    types[40:70] = ["A"] * 10 + ["C"] * 10 + ["R"] * 10
    table = in_order().set_column(1, "type", pa.array(types)).set_column(0, "ts", pa.array(range(400)))
    frame = read(spark, table, tmp_path / "t", files=1, group=10)
    assert pieces_of(frame, f"PATTERN {query} WITHIN 30").footers.groups.group.tolist() == groups


def test_nothing_is_found_where_all_row_groups_are_left_out(spark: SparkSession, tmp_path: Path) -> None:
    table = in_order()
    frame = read(spark, table, tmp_path / "t")
    for options in ({"output": "count"}, {"output": "count", "partition_by": "s"}, {}):
        found = cep.gpu_match(frame, "PATTERN SEQ(A a, Z z) WITHIN 1", scan="files", **options)
        assert as_set(found.toArrow()) == as_set(cep.match(table, "PATTERN SEQ(A a, Z z) WITHIN 1", **options))


def pieces_of(frame: DataFrame, query: str) -> DividedFiles:
    """How the files of a DataFrame are divided."""
    narrow = NarrowQuery.of(query, arrow_schema(frame.schema, "UTC"), *read_keywords({}))
    return find_pieces(Job(frame, narrow, "UTC", None, None), ScanRequest("files", "auto", from_paths=False))


@pytest.mark.parametrize("nulls", ["error", "drop"])
def test_rows_without_a_time(spark: SparkSession, tmp_path: Path, nulls: str) -> None:
    table = in_order()
    times = pa.array([None if place % 50 == 3 else time for place, time in enumerate(table["ts"].to_pylist())], pa.int64())
    frame = read(spark, table.set_column(0, "ts", times), tmp_path / "t")
    if nulls == "drop":
        assert assert_same(frame, QUERIES["both"], partition_by="s", nulls=nulls)
        return
    with pytest.raises(PySparkException, match=r"timestamp column 'ts' holds .* NULL"):
        cep.gpu_match(frame, QUERIES["both"], partition_by="s", scan="files").collect()
    assert assert_same(frame.where("ts IS NOT NULL"), QUERIES["both"], partition_by="s")


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.date32(), pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.int32()])
def test_times(spark: SparkSession, tmp_path: Path, kind: pa.DataType) -> None:
    table = in_order()
    whole = table["ts"].cast(pa.int32() if kind == pa.date32() else pa.int64())
    if kind == pa.timestamp("ms", "UTC"):
        whole = pc.multiply(whole, 1000)
    unit = {"date32[day]": " days", "timestamp[us]": " us", "timestamp[ms, tz=UTC]": " s"}.get(str(kind), "")
    query = QUERIES["both"].replace("WITHIN 6", f"WITHIN 6{unit.replace(' us', ' seconds')}")
    if kind == pa.timestamp("us"):
        whole = pc.multiply(whole, 1_000_000)
    table = table.set_column(0, "ts", whole.cast(kind))
    frame = read(spark, table, tmp_path / "t")
    query = query.replace(" s", " seconds") if unit == " s" else query
    assert assert_same(frame, query, table, typed=True, partition_by="s")


def test_little_memory_splits_streams_and_slices(spark: SparkSession, tmp_path: Path) -> None:
    table = in_order(2_000)
    frame = read(spark, table, tmp_path / "t", group=100)
    assert assert_same(frame, QUERIES["next"], table, partition_by="s", worker_memory=40_000)


@pytest.mark.parametrize("memory", [pytest.param(None, marks=pytest.mark.full), 4_000_000])
def test_text_that_comes_as_dictionaries(spark: SparkSession, tmp_path: Path, memory: int | None) -> None:
    """From 65,536 rows of a row group on, a worker reads text as dictionaries; pieces that do not fit are split and spilled."""
    rows = 150_000
    random = np.random.default_rng(5)
    users = pa.DictionaryArray.from_arrays(random.integers(0, 900, rows), [f"user {number}" for number in range(900)])
    table = pa.table({"ts": range(rows), "type": random.choice(list("ABCD"), rows), "user": users.cast(pa.string())})
    frame = read(spark, table, tmp_path / "t", files=1, group=70_000)
    query = "PATTERN SEQ(A a, B b) WITHIN 60"
    assert len(assert_same(frame.where("user <> 'user 7'"), query, partition_by="user", worker_memory=memory)) > 100


def test_footers_of_many_files_are_read_by_a_job(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_footers, "MOST_ON_DRIVER", 2)
    table = in_order()
    assert assert_same(read(spark, table, tmp_path / "t", files=5), QUERIES["next"], table, partition_by="s")


def test_a_file_that_changes_is_named(spark: SparkSession, tmp_path: Path) -> None:
    folder = write(in_order(), tmp_path / "t")
    found = cep.gpu_match(spark.read.parquet(folder), QUERIES["next"], scan="files")
    pq.write_table(in_order(seed=9), tmp_path / "t" / "part 1.parquet")
    with pytest.raises(PySparkException, match=r"part 1\.parquet: it has changed since the query was made"):
        found.collect()
    (tmp_path / "t" / "part 1.parquet").unlink()
    with pytest.raises(PySparkException, match=r"part 1\.parquet: there is no such file"):
        found.collect()


def test_tasks_read_row_groups_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "events.parquet")
    pq.write_table(pa.table({"ts": range(20)}), path, row_group_size=2)
    for groups in ([5, 6, 7, 8], [7, 8], [0, 9]):
        assert [group.id for group in file_footers.fragment_of(path, None, groups).row_groups] == groups


def test_a_broken_footer_is_named_at_the_call(spark: SparkSession, tmp_path: Path) -> None:
    folder = write(in_order(), tmp_path / "t")
    frame = spark.read.parquet(folder)
    path = tmp_path / "t" / "part 2.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(EventError, match=r"cannot read .*part 2\.parquet"):
        cep.gpu_match(frame, QUERIES["next"])


def test_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    frame = read(spark, in_order().slice(0, 0), tmp_path / "t")
    for output, keys, rows in (("matches", "s", 0), ("count", None, 1), ("events", None, 0)):
        found = cep.gpu_match(frame, QUERIES["next"], scan="files", output=output, partition_by=keys)
        assert len(found.collect()) == rows

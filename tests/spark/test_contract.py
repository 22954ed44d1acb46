"""What gpu_match promises beside its matches: laziness, push-down, pruned columns, early errors."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep.errors import EventError, PatternError, PatternSyntaxError, UnsupportedError
from gpu_cep_spark.assembly import total_counts
from tests.spark.samples import QUERIES, streams

pytestmark = pytest.mark.surface


def explode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        raise RuntimeError("a job ran")
    yield from ()


def physical_plan(frame: DataFrame) -> str:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        frame.explain("formatted")
    return shown.getvalue()


@pytest.fixture
def source(spark: SparkSession) -> DataFrame:
    """Events that cannot be read."""
    schema = spark.createDataFrame(streams(1, seed=0)).schema
    return spark.range(1).mapInArrow(explode, schema)


@pytest.fixture
def parquet(spark: SparkSession, tmp_path: Path) -> DataFrame:
    pq.write_table(streams(100, seed=1), tmp_path / "events.parquet")
    return spark.read.parquet(str(tmp_path / "events.parquet"))


def test_the_schema_is_known_without_a_job(source: DataFrame) -> None:
    frame = cep.gpu_match(source, QUERIES["partition by"])
    assert frame.columns == ["key", "match_start", "match_end", "n", "many", "most"]
    assert dict(frame.dtypes)["most"] == "double"
    with pytest.raises(PySparkException, match="a job ran"):
        frame.collect()


@pytest.mark.parametrize(
    ("query", "options", "error", "message"),
    [
        ("PATTERN SEQ(A a B b)", {}, PatternSyntaxError, "line 1"),
        ("PATTERN SEQ(A a, B b) WHERE a.pricee > 1", {}, PatternError, "pricee"),
        ("PATTERN SEQ(A a, B b)", {"timestamp": "when"}, PatternError, "when"),
        ("PATTERN SEQ(A a, B b)", {"partition_by": "nokey"}, PatternError, "nokey"),
        ("PATTERN SEQ(A a, B b)", {"output": "indices"}, UnsupportedError, "matches, events, count"),
        ("PATTERN SEQ(A a, B b)", {"algorithm": "brute_force"}, UnsupportedError, "ses_automaton"),
        ("PATTERN SEQ(A a, B b)", {"engine": "tpu"}, PatternError, "auto, cpu, gpu"),
        ("PATTERN SEQ(A a, B b)", {"gpu_memory": "8 gallons"}, PatternError, "gpu_memory"),
        ("PATTERN SEQ(A a, B b)", {"columns": ["nothing"]}, PatternError, "nothing"),
        ("PATTERN SEQ(A a, NOT(C c)) ", {}, PatternError, "no window"),
        ("PATTERN SEQ(A a, B b+) WHERE b[3].n = 1", {}, UnsupportedError, r"b\[3\]"),
        ("PATTERN SEQ(A a, B b)", {"after_match": "skip"}, PatternError, "skip_past_last"),
    ],
)
def test_faults_are_raised_on_the_driver(
    source: DataFrame, query: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        cep.gpu_match(source, query, **options)


PAIRS = "PATTERN SEQ(A a, B b) WITHIN 1"
ALL_ROWS = "MATCH_RECOGNIZE (ORDER BY ts ALL ROWS PER MATCH PATTERN (A B) DEFINE A AS type = 'A')"


def test_intervals_of_months_may_stand_beside_what_is_read(spark: SparkSession) -> None:
    odd = "INTERVAL '1' MONTH AS months, array(named_struct('of', make_interval(1))) AS nested"
    frame = spark.sql(f"SELECT id AS ts, if(id % 2 = 0, 'A', 'B') AS type, {odd} FROM range(6)")
    for query in (PAIRS, ALL_ROWS):
        with pytest.raises(UnsupportedError, match=r"(?s)column 'months' holds an interval of months, .*by columns=.*'nested'"):
            cep.gpu_match(frame, query)
    assert cep.gpu_match(frame, PAIRS, columns=["ts", "type"]).count() == 3


@pytest.mark.parametrize("table", [streams(1, seed=0), streams(1, seed=0).to_pandas(), None])
def test_other_tables_are_refused(table: object) -> None:
    with pytest.raises(EventError, match=r"cannot read .*(Table|DataFrame|NoneType); expected a Spark DataFrame; .* gpu_cep.match"):
        cep.gpu_match(table, "PATTERN SEQ(A a, B b)")


@pytest.mark.parametrize(
    ("path", "reader"),
    [
        ("clicks.parquet", "parquet('clicks.parquet')"),
        ("clicks.csv.gz", "csv('clicks.csv.gz', header=True, inferSchema=True)"),
        (Path("clicks.jsonl"), "json('clicks.jsonl')"),
        ("clicks", "parquet('clicks')"),
    ],
)
def test_a_path_is_read_by_spark_first(path: str | Path, reader: str) -> None:
    with pytest.raises(EventError, match=rf"takes a DataFrame, not a path; give spark.read.{re.escape(reader)}$"):
        cep.gpu_match(path, "PATTERN SEQ(A a, B b)")


def test_match_collects_no_data_frame_and_names_gpu_match(spark: SparkSession) -> None:
    frame, query = spark.createDataFrame(streams(9, seed=0)), "PATTERN SEQ(A a, B b) WITHIN 1"
    with pytest.raises(PatternError, match=r"^events: a Spark DataFrame .*gpu_match\(df, pattern\).* df\.toArrow\(\)"):
        cep.match(frame, query)
    with pytest.raises(PatternError, match="gpu_match"):
        cep.report(frame, query)
    assert cep.match(frame.toArrow(), query, output="count").num_rows == 1


def test_null_timestamps_are_reported_although_no_variable_binds_them(spark: SparkSession) -> None:
    table = pa.table({"ts": [1, None, None], "type": ["A", "X", "X"], "key": ["k", "k", "k"]})
    frame = cep.gpu_match(spark.createDataFrame(table), "PARTITION BY key PATTERN SEQ(A a, B b)")
    with pytest.raises(PySparkException, match=r"EventError.*'ts'.*2"):
        frame.collect()


@pytest.mark.parametrize(
    ("times", "query", "slices", "told"),
    [
        ([None, 1, 2, 9, 10], "PATTERN SEQ(a, b) WITHIN 8", 8, "holds 1 NULL in one partition of the events; nulls='drop'"),
        ([None, 1, 2, 9, 10], "PATTERN SEQ(a, b) WITHIN 3 EVENTS", 8, "holds 1 NULL in one partition of the events; nulls='drop'"),
        ([None, None, 1, 2], "PARTITION BY type PATTERN SEQ(a, b)", None, "holds 2 NULLs in one partition of the events; nulls='drop'"),
        ([1.0, float("nan"), 2.0], "PATTERN SEQ(a, b) WITHIN 8", 8, "holds 1 NaN in one partition of the events; nulls='drop'"),
    ],
    ids=["copies behind", "copies by number", "keys", "NaN"],
)
def test_missing_timestamps_of_a_partition_are_not_told_as_those_of_all_events(
    spark: SparkSession, times: list[float | None], query: str, slices: int | None, told: str
) -> None:
    frame = spark.createDataFrame(pa.table({"ts": times, "type": ["A"] * len(times)}))
    with pytest.raises(PySparkException) as caught:
        cep.gpu_match(frame, query, slices=slices).collect()
    assert f"EventError: timestamp column 'ts' {told} leaves these events out; the pattern is" in str(caught.value)


@pytest.mark.parametrize("slices", [None, 60])
def test_max_matches_is_an_error_that_names_the_stream_alone(spark: SparkSession, slices: int | None) -> None:
    events = spark.createDataFrame(streams(100, seed=2))
    frame = cep.gpu_match(events, "PATTERN SEQ(A a, B b) WITHIN 50", partition_by="key", max_matches=1, slices=slices)
    with pytest.raises(PySparkException, match=r"MatchLimitExceeded: more than max_matches=1 .* of stream key='[^']*'; the pattern"):
        frame.collect()


def test_a_count_beyond_64_bits_is_an_error(spark: SparkSession) -> None:
    parts = spark.createDataFrame(pa.table({"count": [2**62, 2**62]}))
    with pytest.raises(PySparkException, match="more than 2"):
        total_counts(parts, ["count"]).collect()
    assert total_counts(parts.limit(1), ["count"]).collect() == [(2**62,)]


@pytest.mark.parametrize("key", ["key", "a.key", "Count"])
def test_counts_of_slices_are_added_up_by_one_task_for_each_core(spark: SparkSession, key: str) -> None:
    parts = spark.createDataFrame(pa.table({key: [None, "x", None, "x"], "count": [1, 2, 4, 8]}))
    found = total_counts(parts, [key, "count"])
    assert found.columns == [key, "count"]
    assert {tuple(row) for row in found.collect()} == {(None, 5), ("x", 10)}
    assert re.findall(r"hashpartitioning\(.*, (\d+)\)", physical_plan(found)) == ["2"]


@pytest.mark.usual
def test_properties_reach_the_parquet_reader(parquet: DataFrame) -> None:
    plan = physical_plan(cep.gpu_match(parquet, QUERIES["derived key"]))
    pushed = next(line for line in plan.splitlines() if "PushedFilters" in line)
    for part in ("EqualTo(type,A)", "EqualTo(type,B)", "EqualTo(type,C)", "IsNull(ts)", "IsNotNull(key)"):
        assert part in pushed
    assert plan.count("MapInArrow") == plan.count("Exchange") > 0


def test_only_the_columns_that_are_read_leave_the_file(parquet: DataFrame) -> None:
    plan = physical_plan(cep.gpu_match(parquet, QUERIES["partition by"]))
    schema = next(line for line in plan.splitlines() if "ReadSchema" in line)
    assert "unread" not in schema
    assert "user" not in schema
    assert "key" in schema


@pytest.mark.parametrize("query", [QUERIES["count window"], QUERIES["a variable without properties"]])
def test_nothing_is_pushed_where_every_event_counts(parquet: DataFrame, query: str) -> None:
    assert "PushedFilters" not in physical_plan(cep.gpu_match(parquet, query))


def test_prune_false_pushes_nothing(parquet: DataFrame) -> None:
    assert "PushedFilters" not in physical_plan(cep.gpu_match(parquet, QUERIES["derived key"], prune=False))


def test_a_count_window_shuffles_by_the_streams_own_keys(parquet: DataFrame) -> None:
    plan = physical_plan(cep.gpu_match(parquet, QUERIES["count window"]))
    arguments = next(line for line in plan.splitlines() if "hashpartitioning" in line)
    assert arguments.count("#") == 1

"""Streams that are cut into slices of time have the matches that they have whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.keywords import read_keywords
from gpu_cep_spark import slice_matching
from gpu_cep_spark.assembly import assemble
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery, SlicedQuery
from gpu_cep_spark.slices.statistics import time_span
from gpu_cep_spark.slices.sums import add_up
from tests.effort import every_value
from tests.spark.samples import as_set
from tests.spark.test_contract import physical_plan
from tests.spark.test_matching import spread

WINDOW = 6
QUERIES = {
    "next": "PATTERN SEQ(A a, B b+) WITHIN 6",
    "any": "PATTERN SEQ(A a, C c) WHERE skip_till_any_match { a.k < c.k } WITHIN 6",
    "any order": "PATTERN SEQ(AND(A a, B b), C c) WHERE [k] WITHIN 6",
    "robust": "PATTERN SEQ(A a, B b+, C c) WHERE robust_skip_till_next_match { sum(b.n) < c.n } WITHIN 6",
    "contiguity": "PATTERN SEQ(A a, B b+) WHERE strict_contiguity { a.n <> b.n } WITHIN 6",
    "contiguity of partitions": "PATTERN SEQ(A a, OR(B b, SEQ(NOT(D d), C c*))) WHERE partition_contiguity { [k] } WITHIN 6",
    "leading": "PATTERN SEQ(NOT(B b), A a, C c) WITHIN 6",
    "trailing": "PATTERN SEQ(A a, C c, NOT(B b)) WHERE b.k = a.k WITHIN 6",
    "both": "PATTERN SEQ(AND(A a+, NOT(B b)), OR(C c, D d)) WITHIN 6",
    "returned": "PATTERN SEQ(A a, B b?) WITHIN 6 RETURN a.n AS n, count(b) AS many, b",
    "no time": "PATTERN AND(A a, B b) WHERE skip_till_any_match { a.k = b.k } WITHIN 0",
}


def streams(rows: int, seed: int) -> pa.Table:
    """Streams of few keys whose times tie and stand at borders of slices, below zero, too."""
    random = np.random.default_rng(seed)
    near = random.choice([-13, -12, -7, -6, -1, 0, 1, 5, 6, 7, 12, 17, 18, 24, 25], rows)
    times = np.where(random.random(rows) < 0.5, near, random.integers(-14, 30, rows))
    return pa.table(
        {
            "ts": pa.array(times, pa.int64()),
            "type": pa.array(random.choice(list("ABCD"), rows)),
            "s": pa.array(random.integers(0, rows // 20 + 1, rows), mask=random.random(rows) < 0.05),
            "k": pa.array(random.integers(0, 3, rows), mask=random.random(rows) < 0.05),
            "n": pa.array(np.arange(rows), pa.int64()),
        }
    )


def assert_same(spark: SparkSession, table: pa.Table, query: str, **options: Any) -> pa.Table:
    """The matches, which are the same in slices of any length and in whole streams."""
    return assert_same_of(spread(spark, table), query, rows=table, **options)


def assert_same_of(frame: DataFrame, query: str, slices: Any = WINDOW, rows: pa.Table | None = None, **options: Any) -> pa.Table:
    """The same of a DataFrame, whose rows need not be collected if they are given."""
    expected = cep.match(frame.toArrow() if rows is None else rows, query, order_by="n", **options)
    found = cep.gpu_match(frame, query, order_by="n", slices=slices, **options)
    assert found.columns == expected.column_names
    assert as_set(found.toArrow()) == as_set(expected)
    return expected


@pytest.mark.parametrize("name", QUERIES)
def test_slices_have_the_matches_of_streams(spark: SparkSession, name: str) -> None:
    assert assert_same(spark, streams(400, seed=len(name)), QUERIES[name], partition_by="s").num_rows


# which matches come first is the engine's to say; the fast suite asks with an order, and without one
@pytest.mark.parametrize("order", [None, "a.n - c.n desc", *(pytest.param(each, marks=pytest.mark.full) for each in ("c.s", "a.k"))])
def test_some_matches_of_each_first_event(spark: SparkSession, order: str | None) -> None:
    query, options = "PATTERN SEQ(A a, C c) WHERE skip_till_any_match { } WITHIN 6", {"limit_per_start": 2, "order_matches_by": order}
    table = streams(200, seed=5)
    for slices in (WINDOW, None):
        kept = assert_same_of(spark.createDataFrame(table), query, slices=slices, rows=table, output="events", **options)
        assert 0 < kept.num_rows < cep.match(table, query, order_by="n", output="events").num_rows
        assert_same_of(spark.createDataFrame(table), query, slices=slices, rows=table, output="count", **options)


@every_value(name=["any", "returned"], asked=[("events", None), ("events", ("s", "k")), ("count", None)])
def test_outputs(spark: SparkSession, name: str, asked: tuple[str, Any]) -> None:
    output, keys = asked
    wanted = QUERIES[name].replace("a.k < c.k", "a.n < c.n")
    assert assert_same(spark, streams(150, seed=1), wanted, partition_by=keys, output=output, columns=["n"]).num_rows


def test_no_task_gets_all_rows_of_matches_to_number_them(spark: SparkSession) -> None:
    found = cep.gpu_match(spark.createDataFrame(streams(20, seed=1)), QUERIES["next"], output="events", slices=WINDOW)
    plan = physical_plan(found)
    steps = re.findall(r"^\(\d+\) (\w+)", plan, re.MULTILINE)
    assert [step for step in steps if step in ("MapInArrow", "Window", "BroadcastHashJoin")] == ["MapInArrow"] * 2
    assert "SinglePartition" not in plan


@pytest.mark.parametrize(
    ("name", "output", "keys"),
    [
        ("next", "matches", "s"),
        ("next", "events", None),
        ("any order", "events", "k"),
        ("any order", "count", "s"),
        ("next", "count", None),
    ],
)
def test_matches_past_the_last_event_of_the_one_before(spark: SparkSession, name: str, output: str, keys: Any) -> None:
    table, options = streams(300, seed=2), {"partition_by": keys, "output": output, "ties": "position"}
    assert assert_same(spark, table, QUERIES[name], after_match="skip_past_last", **options).num_rows
    kept = [cep.match(table, QUERIES[name], after_match=mode, order_by="n", ties="position").num_rows for mode in ("all", "skip_past_last")]
    assert kept[0] > kept[1]


def test_a_task_adds_up_the_counts_of_a_streams_slices_unless_they_might_overflow() -> None:
    options, settings = read_keywords({"partition_by": "s", "output": "count"})
    plan = SlicedQuery.of(NarrowQuery.of(QUERIES["next"], streams(20, seed=0).schema, options, settings)).plan
    counts = pa.table({"s": [1, None, 1, None], "slice": [0, 0, 1, 1], "count": [2, 3, 4, 5]})
    assert as_set(add_up(plan, counts)) == as_set(pa.table({"s": [1, None], "count": [6, 8]}))
    many = counts.set_column(2, "count", pa.array([1 << 62, 3, 1 << 62, 5]))
    assert add_up(plan, many) == many.drop_columns("slice")


@pytest.mark.parametrize("output", ["count", "matches"])
def test_slices_settle_what_lies_far_from_their_borders(spark: SparkSession, output: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []

    def counting(found: DataFrame, *rest: Any, **named: Any) -> DataFrame:
        sent.append(found.count())
        return assemble(found, *rest, **named)

    monkeypatch.setattr(slice_matching, "assemble", counting)
    query, table = "PATTERN SEQ(A a, B b) WITHIN 5", streams(900, seed=6).set_column(0, "ts", pa.array(range(900)))
    options = {"after_match": "skip_past_last", "ties": "position", "order_by": "n", "output": output}
    found = cep.gpu_match(spark.createDataFrame(table), query, slices=100, **options).toArrow()
    wanted = cep.match(table, query, **options)
    assert as_set(found) == as_set(wanted)
    assert 2 * sent[0] < (wanted["count"][0].as_py() if output == "count" else wanted.num_rows)


@pytest.mark.parametrize(("slices", "prune", "missing"), [(WINDOW, True, None), (None, False, np.nan)])
def test_events_without_a_time_are_left_out(spark: SparkSession, slices: int | None, prune: bool, missing: float | None) -> None:
    table = streams(150, seed=4)
    untimed = np.arange(150) % 3 == 0
    kept = table.filter(pa.array(~untimed))
    times = [missing if gone else float(time) for time, gone in zip(table["ts"].to_pylist(), untimed, strict=True)]
    frame = spread(spark, table.set_column(0, "ts", pa.array(times, pa.float64(), from_pandas=False)))
    options = {"partition_by": "s", "order_by": "n", "prune": prune}
    wanted = cep.match(kept.set_column(0, "ts", kept["ts"].cast(pa.float64())), QUERIES["next"], **options)
    found = cep.gpu_match(frame, QUERIES["next"], slices=slices, nulls="drop", **options)
    assert wanted.num_rows
    assert as_set(found.toArrow()) == as_set(wanted)


def test_the_first_match_of_each_event(spark: SparkSession) -> None:
    assert assert_same(spark, streams(200, seed=3), QUERIES["any"], after_match="skip_to_next", output="events").num_rows


@pytest.mark.parametrize(
    ("output", "keys", "after_match"), [("matches", "s", "skip_past_last"), ("events", None, "all"), ("count", None, "skip_past_last")]
)
def test_no_events(spark: SparkSession, output: str, keys: Any, after_match: str) -> None:
    frame = spark.createDataFrame(streams(2, seed=4)).limit(0)
    assert_same_of(frame, QUERIES["next"], partition_by=keys, output=output, after_match=after_match)


TIMES = {
    "date": ("DATE_FROM_UNIX_DATE(CAST(ts AS INT))", " days"),
    "zoned": ("TIMESTAMP_SECONDS(1711846800 + 600 * ts)", "0 minutes"),
    "zoneless": ("TIMESTAMP_NTZ'2024-10-27 02:30:00' + ts * INTERVAL '10' MINUTE", "0 minutes"),
    "short": ("CAST(ts AS SHORT)", ""),
}


@pytest.mark.parametrize("name", TIMES)
def test_times(spark: SparkSession, name: str) -> None:
    """Some of them stand where clocks are changed."""
    time, unit = TIMES[name]
    frame = spread(spark, streams(300, seed=5)).selectExpr(f"{time} AS ts", "type", "s", "k", "n")
    assert assert_same_of(frame, f"{QUERIES['both']}{unit}", partition_by="s", slices=f"7{unit}").num_rows


@pytest.mark.parametrize("window", ["0", "0.1", "0.3", "1125899906842624"])
def test_float_times(spark: SparkSession, window: str) -> None:
    """What rounding lets into a window, infinite times and those that are further apart than windows are long."""
    random = np.random.default_rng(6)
    times = np.concatenate([random.integers(-20, 20, 300) * 0.1, 1e17 + random.integers(0, 40, 80) * 16.0, [np.inf, -np.inf] * 8])
    table = streams(len(times), seed=7)
    timed = table.set_column(0, "ts", pa.array(random.permutation(times)))
    query = "PATTERN SEQ(NOT(D d), AND(A a, B b), NOT(C c)) WHERE skip_till_any_match { a.k = b.k }"
    assert assert_same(
        spark, timed, f"{query} WITHIN {window}", slices="0.25" if window == "0" else window, output="events", columns="n"
    ).num_rows


def test_integers_at_the_ends_of_their_range(spark: SparkSession) -> None:
    ends = np.iinfo(np.int64)
    times = [ends.min, ends.min + 1, ends.min + 5, -6, -1, 0, 5, ends.max - 6, ends.max - 1, ends.max]
    table = pa.table({"ts": pa.array(times * 2, pa.int64()), "type": ["A"] * 10 + ["B"] * 10, "n": range(20)})
    for length in (6, 2**61):
        query = "PATTERN SEQ(AND(A a, B b), NOT(C c)) WITHIN 6"
        assert assert_same(spark, table, query, slices=length, strategy="skip_till_any_match").num_rows


COUNTED = {
    "next": "PATTERN SEQ(A a, B b+) WITHIN 4 EVENTS",
    "any": "PATTERN SEQ(A a, C c) WHERE skip_till_any_match { a.k < c.k } WITHIN 9 EVENTS",
    "contiguity": "PATTERN SEQ(A a, B b+) WHERE strict_contiguity { a.n <> b.n } WITHIN 3 EVENTS",
    "both": "PATTERN SEQ(AND(A a+, NOT(B b)), OR(C c, D d)) WITHIN 3 EVENTS",
    "one": "PATTERN A a WITHIN 1 EVENTS",
}


@pytest.mark.parametrize(("name", "length", "keys"), [*zip(COUNTED, (2, 11, 4, 2, 30), ("s", None, "s", None, "s"), strict=True)])
def test_windows_of_events(spark: SparkSession, name: str, length: int, keys: Any) -> None:
    """Many slices are empty, and the next events are several slices away."""
    table = streams(120, seed=10)
    apart = table.set_column(0, "ts", pa.array(table["ts"].to_numpy() ** 3))
    assert assert_same(spark, apart, COUNTED[name], partition_by=keys, slices=length).num_rows


@pytest.mark.parametrize(("output", "after_match"), [("events", "all"), ("count", "skip_past_last")])
def test_outputs_of_windows_of_events(spark: SparkSession, output: str, after_match: str) -> None:
    options = {"partition_by": "s", "output": output, "after_match": after_match, "slices": 5, "ties": "position"}
    assert assert_same(spark, streams(200, seed=11), COUNTED["next"], **options).num_rows


SITUATIONS = {
    "overlapping": "DEFINE A AS k = 1, B AS type = 'B' OR type = 'C' PATTERN A overlaps B; A during B; A meets B; A before B WITHIN 9",
    "long": "DEFINE A AS n % 5 <> 0, B AS k <> 2 AT LEAST 1 PATTERN A overlaps B; B contains A; A before B WITHIN 20 RETURN count(A) AS c",
}


@every_value(name=list(SITUATIONS), asked=[("matches", None, "auto", "early"), ("events", "s", 20, "final"), ("count", None, 23, "final")])
def test_situations(spark: SparkSession, name: str, asked: tuple[str, Any, Any, str]) -> None:
    """Those that begin with a slice are told from those that go on, however far back the event before is."""
    output, keys, length, detect = asked
    table = streams(300, seed=12)
    apart = table.set_column(
        0, "ts", pa.array(np.where(table["n"].to_numpy() % 3 == 0, 50 * table["ts"].to_numpy(), table["ts"].to_numpy()))
    )
    assert assert_same(spark, apart, SITUATIONS[name], partition_by=keys, output=output, slices=length, detect=detect).num_rows


@pytest.mark.parametrize(
    ("query", "slices", "error", "message"),
    [
        (QUERIES["next"], 5, PatternError, "at least as long as the window"),
        (QUERIES["no time"], 0, PatternError, "longer than nothing"),
        (QUERIES["next"], "long", PatternError, "no length of time"),
        (QUERIES["next"], "3 minutes", PatternError, "time_unit"),
        ("PATTERN SEQ(A a, B b)", 5, UnsupportedError, "without a window"),
        ("PATTERN SEQ(A a, B b) WITHIN 9223372036854775807", 5, UnsupportedError, "so long a window"),
    ],
)
@pytest.mark.surface
def test_faults(spark: SparkSession, query: str, slices: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cep.gpu_match(spark.createDataFrame(streams(2, seed=8)), query, slices=slices)


def test_a_stream_without_a_key_is_more_than_one_partition(spark: SparkSession) -> None:
    frame = spread(spark, streams(4, seed=9), 2)
    assert "SinglePartition" not in physical_plan(cep.gpu_match(frame, QUERIES["next"]))
    assert "SinglePartition" in physical_plan(cep.gpu_match(frame, QUERIES["next"], slices=None))


@pytest.mark.parametrize("kind", [pa.int32(), pa.float64(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")])
def test_how_far_times_are_apart_is_known_of_files(spark: SparkSession, tmp_path: Path, kind: pa.DataType) -> None:
    times = pa.array(np.arange(5, 95, dtype=np.int32)).cast(pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    pq.write_table(pa.table({"ts": times, "n": pa.nulls(90, pa.int64())}), tmp_path / "a file.parquet", row_group_size=40)
    frame = spark.read.parquet(str(tmp_path))
    assert time_span(frame, "ts", kind) == 89
    assert time_span(frame.withColumnRenamed("ts", "when"), "when", kind) is None
    assert time_span(frame, "n", pa.int64()) is None
    assert time_span(spark.range(3), "id", pa.int64()) is None


@pytest.mark.parametrize("kind", ["bigint", "double", "timestamp"])
def test_a_row_without_a_time_is_told_of_once(spark: SparkSession, kind: str) -> None:
    frame = spark.sql(f"SELECT CAST(NULL AS {kind}) AS ts, 'A' AS type")
    query, unit = "PATTERN SEQ(NOT(n), A a, B b) WITHIN 6 SECONDS", None if kind == "timestamp" else "s"
    with pytest.raises(PySparkException, match="'ts' holds 1 NULL"):
        cep.gpu_match(frame, query, time_unit=unit, slices="1 minute").collect()


def test_events_that_differ_when_they_are_read_again_are_an_error(spark: SparkSession) -> None:
    def drawn(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # local, so that it travels by value
        for batch in batches:
            yield batch.set_column(0, "ts", pa.array(np.random.default_rng().integers(0, 2**40, batch.num_rows)))

    source = spark.createDataFrame(streams(60, seed=14))
    frame = source.mapInArrow(drawn, source.schema)
    with pytest.raises(PySparkException, match="read twice"):
        cep.gpu_match(frame, COUNTED["next"], slices=100).collect()


@pytest.mark.parametrize("query", [QUERIES["both"], SITUATIONS["overlapping"]])
@pytest.mark.surface
def test_slices_of_files(spark: SparkSession, tmp_path: Path, query: str) -> None:
    pq.write_table(streams(200, seed=13), tmp_path / "events.parquet")
    frame = spark.read.parquet(str(tmp_path / "events.parquet"))
    assert assert_same_of(frame, query, slices="auto").num_rows

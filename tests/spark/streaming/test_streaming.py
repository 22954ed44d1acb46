"""gpu_match over a streaming DataFrame: with Spark's watermark, state store, checkpoints and sinks."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import gpu_cep as cep
from gpu_cep_spark.streaming.packing import partition_of
from tests.spark.samples import as_set, physical_plan
from tests.spark.streaming.live_sources import (
    INSTANT,
    LEVELS,
    OPEN,
    PAIRS,
    ROWS,
    SCHEMA,
    SECOND,
    START,
    end,
    events,
    figures,
    lost_worker,
    run,
    source,
    write,
)

pytestmark = pytest.mark.usefixtures("rocks")
TAKEN = "PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x < c.x WITHIN 9 seconds RETURN a.x AS x, c.ts AS at"


def ask_statement(told: DataFrame) -> DataFrame:
    return cep.sql(f"SELECT k, x + n AS total FROM told {ROWS} AS m WHERE n > 0", spark=told.sparkSession, told=told)


def ask_taken(told: DataFrame) -> DataFrame:
    return cep.gpu_match(told, TAKEN, after_match="skip_past_last", timeouts=True)


@pytest.mark.parametrize("ask", [pytest.param(lambda told: cep.gpu_match(told, OPEN), marks=pytest.mark.full), ask_taken, ask_statement])
def test_a_stream_has_the_matches_of_a_batch_also_after_a_restart(
    spark: SparkSession, tmp_path: Path, ask: Callable[[DataFrame], DataFrame]
) -> None:
    told = events(300, seed=5)
    write(tmp_path / "in", told.slice(0, 150), 1)
    found = ask(source(spark, tmp_path / "in"))
    progress = run(found, tmp_path)
    forget_last(tmp_path)
    write(tmp_path / "in", told.slice(150), 1)
    write(tmp_path / "in", end(), 1)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    progress += run(ask(source(spark, tmp_path / "in")), tmp_path)
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    expected = ask(spark.createDataFrame(told)).toArrow()
    assert expected.num_rows > 5
    rows = spark.read.parquet(str(tmp_path / "found"))
    assert rows.schema.names == found.schema.names == expected.column_names
    assert as_set(rows.toArrow()) == as_set(expected)
    # of a micro-batch that ran twice, what was told last
    once = {each["batchId"]: each for each in progress}.values()
    assert len(once) == len(progress) - 1
    assert figures(once, "late") == 0
    of_matches = expected["kind"].to_pylist().count("match") if ask is ask_taken else expected.num_rows
    assert figures(once, "matches") == of_matches
    # the last micro-batch has emptied all buckets but the one that says whose the checkpoint is; a row pattern may bind the last
    # event, which is kept with a clock and a timer
    assert progress[-1]["stateOperators"][0]["numRowsTotal"] == 1 + 3 * (ask is ask_statement)


def forget_last(folder: Path) -> None:
    """Take back that the last micro-batch has ended, as if the process had been killed behind its work: it runs again."""
    commits, sink = folder / "checkpoint" / "commits", folder / "found" / "_spark_metadata"
    last = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
    for place in (commits, sink):
        (place / f"{last}").unlink()
        (place / f".{last}.crc").unlink()


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (OPEN, {"detected_at": True}),
        pytest.param(OPEN, {"timeouts": True}, marks=pytest.mark.full),
        pytest.param(LEVELS, {"partition_by": "k", "detect": "early"}, marks=pytest.mark.full),
    ],
    ids=["matches", "timeouts", "situations"],
)
def test_what_follows_goes_by_the_time_at_which_matches_are_certain(
    spark: SparkSession, tmp_path: Path, query: str, options: dict[str, Any]
) -> None:
    def counted(found: DataFrame) -> DataFrame:
        return found.groupBy(F.window("detected_at", "4 seconds")).count()

    told = events(120, seed=6)
    write(tmp_path / "in", told, 2)
    # what is certain behind the last watermark is in a window of time that stays open
    write(tmp_path / "in", end(), 1)
    progress = run(counted(cep.gpu_match(source(spark, tmp_path / "in"), query, **options)), tmp_path)
    expected = counted(cep.gpu_match(spark.createDataFrame(told), query, **options)).toArrow()
    assert expected.num_rows > 5
    assert as_set(spark.read.parquet(str(tmp_path / "found")).toArrow()) == as_set(expected)
    assert not sum(state["numRowsDroppedByWatermark"] for each in progress for state in each["stateOperators"])


def test_a_time_that_may_be_behind_the_watermark_is_none_of_events(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", events(4, seed=6), 1)
    told = source(spark, tmp_path / "in")
    for options in ({"detected_at": True, "every": "10 seconds"}, {"timeouts": True, "after_match": "skip_past_last"}):
        found = cep.gpu_match(told, OPEN, **options)
        assert "spark.watermarkDelayMs" not in found.schema["detected_at"].metadata


LATE = 3


@pytest.fixture(scope="module")
def answered(spark: SparkSession, rocks: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table, Any]:
    """The folder of a query that has ended, with its source, checkpoint and sink; the events in time; and what Spark told."""
    folder, told = tmp_path_factory.mktemp("answered"), events(120, seed=4)
    write(folder / "in", told, 2)
    write(folder / "in", pa.concat_tables([told.slice(0, LATE), end()]), 1)
    return folder, told, run(cep.gpu_match(source(spark, folder / "in"), TAKEN, timeouts=True, late="rows"), folder)


def test_late_events_and_timeouts_are_rows_beside_the_matches(spark: SparkSession, answered: tuple[Path, pa.Table, Any]) -> None:
    folder, told, progress = answered
    rows = spark.read.parquet(str(folder / "found"))
    assert rows.schema.names == cep.gpu_match(source(spark, folder / "in"), TAKEN, timeouts=True, late="rows").schema.names
    expected = cep.match(told, TAKEN, timeouts=True)
    kinds = expected["kind"].to_pylist()
    assert {*kinds} == {"match", "timeout"}
    both = rows.filter("kind <> 'late'").drop("event").toArrow()
    assert as_set(both) == as_set(expected)
    returned = rows.filter("kind = 'late'").select("event.*").toArrow()
    assert as_set(returned) == as_set(told.slice(0, LATE))
    assert figures(progress, "late") == LATE
    assert figures(progress, "matches") == kinds.count("match")


def test_another_pattern_than_the_checkpoints_is_refused(spark: SparkSession, answered: tuple[Path, pa.Table, Any]) -> None:
    folder, told, _ = answered
    write(folder / "in", told.set_column(0, "ts", pc.add(told["ts"], pa.scalar(2_000 * SECOND, pa.duration("us")))), 1)
    with pytest.raises(StreamingQueryException, match="the checkpoint belongs to another query, whose pattern is"):
        run(cep.gpu_match(source(spark, folder / "in"), TAKEN.replace("9", "8"), timeouts=True, late="rows"), folder)


def test_late_rows_of_a_row_pattern_come_out_or_end_the_query(spark: SparkSession, tmp_path: Path) -> None:
    told = events(120, seed=4)
    write(tmp_path / "in", told, 2)
    write(tmp_path / "in", pa.concat_tables([told.slice(0, 3), end()]), 1)
    progress = run(cep.gpu_match(source(spark, tmp_path / "in"), ROWS, late="rows", every="3 seconds"), tmp_path)
    rows = spark.read.parquet(str(tmp_path / "found"))
    expected = cep.match(told, ROWS)
    assert as_set(rows.filter("kind = 'match'").drop("kind", "event").toArrow()) == as_set(expected)
    assert as_set(rows.filter("kind = 'late'").select("event.*").toArrow()) == as_set(told.slice(0, 3))
    assert (figures(progress, "late"), figures(progress, "matches")) == (3, expected.num_rows)
    with pytest.raises(StreamingQueryException, match=r"1 event is late: .* the pattern is MATCH_RECOGNIZE"):
        run(cep.gpu_match(source(spark, tmp_path / "in"), ROWS, late="error"), tmp_path / "again")


def test_it_is_known_to_which_partition_spark_sends_a_bucket(spark: SparkSession) -> None:
    numbers = np.array([*range(200), -1, 2**31 - 1, -(2**31)], np.int32)
    frame = spark.createDataFrame(pa.table({"bucket": numbers})).repartition(7, "bucket")
    sent = frame.select("bucket", F.spark_partition_id().alias("partition")).toArrow().sort_by("bucket")
    assert sent["partition"].to_pylist() == partition_of(np.sort(numbers), 7).tolist()


def test_heartbeats_are_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    read = spark.readStream.schema(SCHEMA.replace("ts ", "at ")).parquet(str(tmp_path / "in"))
    frame = cep.heartbeats(read, idle="1 second", timestamp="at").withWatermark("at", "1 second")
    plan = physical_plan(cep.gpu_match(frame, ROWS.replace("ts", "at")))
    assert "NOT gpu_cep heartbeat" in plan
    assert plan.index("NOT gpu_cep heartbeat") < plan.index("EventTimeWatermark")


def test_each_start_of_a_stream_has_the_row_that_it_has_in_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    told = events(120, seed=4)
    write(tmp_path / "in", told, 2)
    write(tmp_path / "in", end(), 1)
    found = cep.gpu_progress(source(spark, tmp_path / "in"), OPEN)
    run(found, tmp_path)
    rows = spark.read.parquet(str(tmp_path / "found"))
    expected = cep.progress(told, OPEN)
    assert rows.schema.names == found.schema.names == expected.column_names
    assert as_set(rows.toArrow()) == as_set(expected)


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (LEVELS, {"partition_by": "k", "detect": "early"}),
        # of buckets without Spark the fast suite asks these, too
        pytest.param(PAIRS, {"partition_by": "k", "output": "events"}, marks=pytest.mark.full),
        (PAIRS, {"partition_by": "k", "emit": "window"}),
        pytest.param("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS", {}, marks=pytest.mark.full),
        # so far apart are no two events that a match may bind
        ("PARTITION BY k PATTERN SEQ(A a, B b+) WITHIN 3 EVENTS", {"time_to_live": "900 seconds"}),
    ],
)
def test_other_questions_than_those_of_one_window_of_time(spark: SparkSession, tmp_path: Path, query: str, options: dict[str, Any]) -> None:
    told = pa.concat_tables([events(120, seed=4), end()])
    write(tmp_path / "in", told, 2)
    write(tmp_path / "in", end().set_column(0, "ts", pa.array([START + 2_000 * SECOND], INSTANT)), 1)
    run(cep.gpu_match(source(spark, tmp_path / "in"), query, **options), tmp_path)
    of_batch = {name: value for name, value in options.items() if name not in ("time_to_live", "emit")}
    expected = cep.gpu_match(spark.createDataFrame(told), query, **of_batch).toArrow()
    assert expected.num_rows > 5
    assert as_set(spark.read.parquet(str(tmp_path / "found")).toArrow()) == as_set(expected)


def test_a_source_that_falls_silent_does_not_stop_time(spark: SparkSession, tmp_path: Path) -> None:
    now = int(time.time() * SECOND)
    told = pa.table({"ts": pa.array([now - SECOND, now], INSTANT), "type": ["A", "B"], "k": [1.0] * 2, "x": [1, 2]})
    write(tmp_path / "in", told, 1)
    read = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    frame = cep.heartbeats(read, idle="1 second").withWatermark("ts", "1 second")
    # a variable without a type would bind a heartbeat, too
    found = cep.gpu_match(frame, "PATTERN SEQ(A a, b+) WITHIN 4 seconds")
    writing = found.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writing.trigger(processingTime="2 seconds").start(str(tmp_path / "found"))
    progress: Any = []
    try:
        while figures(progress, "matches") < 1:
            assert not any(_is_beyond(each, now + 5 * SECOND) for each in progress), "the window is over, and no match has come"
            if not query.isActive and lost_worker(query.exception()):
                query = writing.start(str(tmp_path / "found"))
            assert query.isActive, query.exception()
            time.sleep(1)
            progress = query.recentProgress
    finally:
        query.stop()
    rows = spark.read.parquet(str(tmp_path / "found")).toArrow()
    assert as_set(rows) == as_set(cep.match(told, "PATTERN SEQ(A a, b+) WITHIN 4 seconds"))


def _is_beyond(progress: Any, time: int) -> bool:
    """Whether a micro-batch had a watermark that is behind a time, in microseconds since 1970."""
    told = progress["eventTime"].get("watermark")
    return told is not None and datetime.fromisoformat(told) > datetime.fromtimestamp(time / SECOND, UTC)


@pytest.mark.surface
def test_late_events_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    first = pa.table({"ts": pa.array([START, START + 10 * SECOND], INSTANT), "type": ["A", "A"], "k": [1.0] * 2, "x": [1, 1]})
    border = pa.array([START + 8 * SECOND, START + 8 * SECOND + 1], INSTANT)
    second = pa.table({"ts": border, "type": ["A", "B"], "k": [1.0] * 2, "x": [1, 2]})
    write(tmp_path / "in", pa.concat_tables([first, second]), 2)
    progress = run(cep.gpu_match(source(spark, tmp_path / "in"), PAIRS), tmp_path)
    assert (figures(progress, "late"), figures(progress, "events")) == (1, 3)


def test_the_watermark_moves_with_events_that_no_variable_binds(spark: SparkSession, tmp_path: Path) -> None:
    """Spark pushes filters that do not read the time below the watermark, also where it knows that no time is NULL."""
    (tmp_path / "in").mkdir()
    known = source(spark, tmp_path / "in").withColumn("ts", F.coalesce("ts", F.timestamp_seconds(F.lit(0)))).withWatermark("ts", "1 second")
    plan = physical_plan(cep.gpu_match(known, PAIRS, columns=["x"]))
    assert plan.index("Filter") < plan.index("EventTimeWatermark")
    assert not re.search(r"Filter [^\n]*type", plan[plan.index("EventTimeWatermark") :])

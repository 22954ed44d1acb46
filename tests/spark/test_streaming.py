"""gpu_match over a streaming DataFrame: with Spark's watermark, state store, checkpoints and sinks."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from signal import SIGKILL
from subprocess import DEVNULL, Popen
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import gpu_cep as cep
from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep_spark.live_checks import ROCKS, STORE
from gpu_cep_spark.live_packing import partition_of
from tests.docs.blocks import BLOCK
from tests.spark.conftest import ROOT
from tests.spark.live_sources import CHANGELOG, INSTANT, OPEN, SCHEMA, SECOND, START, end, events, lost_worker, run, source, write
from tests.spark.samples import as_set, physical_plan

PAIRS = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 seconds"
TAKEN = "PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x < c.x WITHIN 9 seconds RETURN a.x AS x, c.ts AS at"
ROWS = (
    "MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts, x MEASURES FIRST(ts) AS begin, LAST(x) AS x, count(*) AS n "
    "PATTERN (A B+) WITHIN 5 SECONDS DEFINE A AS type = 'A', B AS type = 'B' OR x > FIRST(x))"
)
LEVELS = "DEFINE H AS x > 4, L AS x <= 4 PATTERN H meets L WITHIN 5 seconds"


@pytest.fixture(scope="module", autouse=True)
def rocks(spark: SparkSession) -> Iterator[None]:
    # of the state one partition and no snapshots: each costs a task and a worker in every micro-batch, and these the most
    given = {STORE: ROCKS, CHANGELOG: "true", "spark.sql.shuffle.partitions": "1"}
    before = {name: spark.conf.get(name, None) for name in given}
    for name, value in given.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def figures(progress: Any, name: str) -> int:
    told = [row.asDict() for each in progress for told, row in each["observedMetrics"].items() if told.startswith("gpu_cep")]
    return sum(by_name(row)[name] for row in told)


def by_name(row: dict[str, Any]) -> dict[str, Any]:
    """The figures by their names, which Spark Connect tells apart from them."""
    return dict(zip((field["name"] for field in row["schema"]["fields"]), row["values"], strict=True)) if "schema" in row else row


@pytest.mark.parametrize(("query", "options"), [(OPEN, {}), (TAKEN, {"after_match": "skip_past_last"}), (ROWS, {})])
def test_a_stream_has_the_matches_of_a_batch_also_after_a_restart(
    spark: SparkSession, tmp_path: Path, query: str, options: dict[str, Any]
) -> None:
    told = events(300, seed=5)
    write(tmp_path / "in", told.slice(0, 150), 2)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    found = cep.gpu_match(source(spark, tmp_path / "in"), query, **options)
    progress = run(found, tmp_path)
    write(tmp_path / "in", told.slice(150), 2)
    write(tmp_path / "in", end(), 1)
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    progress += run(cep.gpu_match(source(spark, tmp_path / "in"), query, **options), tmp_path)
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    expected = cep.gpu_match(spark.createDataFrame(told), query, **options).toArrow()
    assert expected.num_rows > 5
    rows = spark.read.parquet(str(tmp_path / "found"))
    assert rows.schema.names == found.schema.names == expected.column_names
    assert as_set(rows.toArrow()) == as_set(expected)
    assert figures(progress, "late") == 0
    assert figures(progress, "matches") == expected.num_rows
    # the last micro-batch has emptied all buckets; a row pattern may bind the last event, which is kept with a clock and a timer
    assert progress[-1]["stateOperators"][0]["numRowsTotal"] == 3 * (query == ROWS)


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
    write(tmp_path / "in", told, 3)
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


def test_late_events_and_timeouts_are_rows_beside_the_matches(spark: SparkSession, tmp_path: Path) -> None:
    told = events(120, seed=4)
    write(tmp_path / "in", told, 2)
    late = told.slice(0, 3)
    write(tmp_path / "in", late, 1)
    write(tmp_path / "in", end(), 1)
    found = cep.gpu_match(source(spark, tmp_path / "in"), TAKEN, timeouts=True, late="rows")
    progress = run(found, tmp_path)
    rows = spark.read.parquet(str(tmp_path / "found"))
    assert rows.schema.names == found.schema.names
    expected = cep.gpu_match(spark.createDataFrame(told), TAKEN, timeouts=True)
    kinds = expected.groupBy("kind").count().toArrow()
    assert dict(zip(kinds["kind"].to_pylist(), kinds["count"].to_pylist(), strict=True)).keys() == {"match", "timeout"}
    both = rows.filter("kind <> 'late'").drop("event").toArrow()
    assert as_set(both) == as_set(expected.toArrow())
    returned = rows.filter("kind = 'late'").select("event.*").toArrow()
    assert as_set(returned) == as_set(late)
    assert figures(progress, "late") == 3
    assert figures(progress, "matches") == expected.filter("kind = 'match'").count()


def test_a_statement_asks_row_patterns_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    told = events(120, seed=4)
    write(tmp_path / "in", told, 1)
    write(tmp_path / "in", end(), 1)
    statement = f"SELECT k, x + n AS total FROM told {ROWS} AS m WHERE n > 2"
    run(cep.sql(statement, spark=spark, told=source(spark, tmp_path / "in")), tmp_path)
    expected = cep.sql(statement, spark=spark, told=spark.createDataFrame(told)).toArrow()
    assert expected.num_rows > 5
    assert as_set(spark.read.parquet(str(tmp_path / "found")).toArrow()) == as_set(expected)


def test_late_rows_of_a_row_pattern_come_out_or_end_the_query(spark: SparkSession, tmp_path: Path) -> None:
    told = events(120, seed=4)
    write(tmp_path / "in", told, 2)
    write(tmp_path / "in", told.slice(0, 3), 1)
    write(tmp_path / "in", end(), 1)
    progress = run(cep.gpu_match(source(spark, tmp_path / "in"), ROWS, late="rows", every="3 seconds"), tmp_path)
    rows = spark.read.parquet(str(tmp_path / "found"))
    expected = cep.gpu_match(spark.createDataFrame(told), ROWS).toArrow()
    assert as_set(rows.filter("kind = 'match'").drop("kind", "event").toArrow()) == as_set(expected)
    assert as_set(rows.filter("kind = 'late'").select("event.*").toArrow()) == as_set(told.slice(0, 3))
    assert (figures(progress, "late"), figures(progress, "matches")) == (3, expected.num_rows)
    with pytest.raises(StreamingQueryException, match=r"events are late: .* the pattern is MATCH_RECOGNIZE"):
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
    assert as_set(rows.toArrow()) == as_set(cep.gpu_progress(spark.createDataFrame(told), OPEN).toArrow())
    assert sorted(rows.toArrow()["reached"].to_pylist()) == sorted(expected["reached"].to_pylist())


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (LEVELS, {"partition_by": "k", "detect": "early"}),
        (PAIRS, {"partition_by": "k", "output": "events"}),
        ("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS", {}),
    ],
)
def test_other_questions_than_those_of_one_window_of_time(
    spark: SparkSession, tmp_path: Path, query: str, options: dict[str, Any]
) -> None:
    told = pa.concat_tables([events(120, seed=4), end()])
    write(tmp_path / "in", told, 2)
    write(tmp_path / "in", end().set_column(0, "ts", pa.array([START + 2_000 * SECOND], INSTANT)), 1)
    run(cep.gpu_match(source(spark, tmp_path / "in"), query, **options), tmp_path)
    expected = cep.gpu_match(spark.createDataFrame(told), query, **options).toArrow()
    assert expected.num_rows > 5
    assert as_set(spark.read.parquet(str(tmp_path / "found")).toArrow()) == as_set(expected)


# What grows in the course of a micro-batch, in this order, so that a process is killed behind each of its steps.
PLACES = ("checkpoint/offsets", "checkpoint/state", "found", "checkpoint/commits")


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.full)])
def test_a_process_that_is_killed_neither_loses_nor_repeats_a_match(spark: SparkSession, tmp_path: Path, kills: int) -> None:
    chance, told = Random(kills), events(160, seed=8)
    write(tmp_path / "in", told, 4 * kills + 2)
    write(tmp_path / "in", end(), 1)
    for _ in range(kills):
        kill_behind(["-m", "tests.spark.live_sources", str(tmp_path)], tmp_path / chance.choice(PLACES), chance.random())
    run(cep.gpu_match(source(spark, tmp_path / "in"), OPEN, timeouts=True), tmp_path)
    expected = cep.gpu_match(spark.createDataFrame(told), OPEN, timeouts=True).toArrow()
    assert expected.num_rows > 30
    assert as_set(spark.read.parquet(str(tmp_path / "found")).toArrow()) == as_set(expected)


def kill_behind(command: list[str], place: Path, seconds: float) -> None:
    """Run a query in a process of its own, and kill it so long after something new came to a place."""
    before = files_in(place)
    process = Popen([sys.executable, *command], cwd=ROOT, start_new_session=True, stderr=DEVNULL)
    try:
        while files_in(place) == before:
            # however busy the machine is; a query that comes to nothing ends by itself
            assert process.poll() is None, "it ended by itself"
            time.sleep(0.005)
        time.sleep(seconds)
    finally:
        os.killpg(process.pid, SIGKILL)
        process.wait()


def files_in(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


def test_the_recipe_in_the_docs_also_if_it_is_killed_in_the_middle(spark: SparkSession, tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / "docs" / "streams.md").read_text(encoding="utf-8"))
    (recipe,) = (code for language, code in blocks if language == "python" and "readStream" in code)
    # its paths are relative, and Java does not follow Python into another folder
    names = {name: str(tmp_path / name) for name in ("payments", "alarms", "alarms-state")}
    for name, path in names.items():
        recipe = recipe.replace(f'"{name}"', repr(path))
    write(tmp_path / "payments", payments((0, "Small", 7, 1), (2, "Small", 8, 1)), 1)
    script = tmp_path / "recipe.py"
    session = "from tests.spark.live_sources import session_of_its_own\nspark = session_of_its_own()"
    script.write_text(f"{session}\n{recipe}\nquery.awaitTermination()\n")
    # the first payments are in its state then
    kill_behind([str(script)], tmp_path / "alarms-state" / "commits", 0.1)
    write(tmp_path / "payments", payments((5, "Large", 7, 500), (6, "Large", 8, 500), (90, "Small", 8, 1)), 1)
    known: dict[str, Any] = {"spark": spark}
    exec(recipe, known)
    known["query"].processAllAvailable()
    known["query"].stop()
    found = spark.read.parquet(names["alarms"]).toArrow()
    assert sorted(found.column("card").to_pylist()) == [7, 8]
    assert found.column_names == ["match_start", "match_end", "card", "at"]


def payments(*given: tuple[int, str, int, int]) -> pa.Table:
    """Payments by second, type, card and amount."""
    seconds, kinds, cards, amounts = zip(*given, strict=True)
    times = pa.array([START + second * SECOND for second in seconds], INSTANT)
    return pa.table({"ts": times, "type": list(kinds), "card": list(cards), "amount": list(amounts)})


def test_another_pattern_than_the_checkpoints_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", events(40, seed=1), 1)
    run(cep.gpu_match(source(spark, tmp_path / "in"), PAIRS, partition_by="k"), tmp_path)
    write(tmp_path / "in", events(80, seed=2).slice(40), 1)
    with pytest.raises(StreamingQueryException, match="the checkpoint holds events that are kept for another query, whose pattern is"):
        run(cep.gpu_match(source(spark, tmp_path / "in"), PAIRS.replace("5", "6"), partition_by="k"), tmp_path)


def test_a_source_that_falls_silent_does_not_stop_time(spark: SparkSession, tmp_path: Path) -> None:
    now = int(time.time() * SECOND)
    told = pa.table({"ts": pa.array([now - SECOND, now], INSTANT), "type": ["A", "B"], "k": [1.0] * 2, "x": [1, 2]})
    write(tmp_path / "in", told, 1)
    read = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    frame = cep.heartbeats(read, idle="1 second").withWatermark("ts", "1 second")
    # a variable without a type would bind a heartbeat, too
    found = cep.gpu_match(frame, "PATTERN SEQ(A a, b+) WITHIN 4 seconds")
    writing = found.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writing.trigger(processingTime="500 milliseconds").start(str(tmp_path / "found"))
    progress: Any = []
    try:
        while figures(progress, "matches") < 1:
            assert not any(_is_beyond(each, now + 5 * SECOND) for each in progress), "the window is over, and no match has come"
            if not query.isActive and lost_worker(query.exception()):
                query = writing.start(str(tmp_path / "found"))
            assert query.isActive, query.exception()
            time.sleep(0.2)
            progress = query.recentProgress
    finally:
        query.stop()
    rows = spark.read.parquet(str(tmp_path / "found")).toArrow()
    assert as_set(rows) == as_set(cep.gpu_match(spark.createDataFrame(told), "PATTERN SEQ(A a, b+) WITHIN 4 seconds").toArrow())


def _is_beyond(progress: Any, time: int) -> bool:
    """Whether a micro-batch had a watermark that is behind a time, in microseconds since 1970."""
    told = progress["eventTime"].get("watermark")
    return told is not None and datetime.fromisoformat(told) > datetime.fromtimestamp(time / SECOND, UTC)


def test_heartbeats_come_to_streams_of_instants(spark: SparkSession, stream: DataFrame) -> None:
    with pytest.raises(UnsupportedError, match=r"has a watermark already, .*\n.*hint: call heartbeats\(\) first"):
        cep.heartbeats(stream, idle="5 seconds")
    with pytest.raises(UnsupportedError, match="heartbeats are for a streaming DataFrame"):
        cep.heartbeats(spark.createDataFrame(events(2, seed=1)), idle="5 seconds")
    with pytest.raises(PatternError, match="idle='5' is no length of time that a clock tells"):
        cep.heartbeats(stream, idle="5")
    with pytest.raises(PatternError, match=r"there is no column 'tss'.*\n.*did you mean 'ts'"):
        cep.heartbeats(stream, idle="5 seconds", timestamp="tss")
    with pytest.raises(UnsupportedError, match="column 'x' is no TIMESTAMP"):
        cep.heartbeats(stream, idle="5 seconds", timestamp="x")


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


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    (tmp_path / "in").mkdir()
    return source(spark, tmp_path / "in")


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("PATTERN SEQ(A a, B b)", {}, "a stream needs a window: .*\n.*hint: give the window a length of time, such as WITHIN 5 minutes"),
        ("PARTITION BY k PATTERN SEQ(A a, B b) WITHIN 3 EVENTS", {}, "keeps the last events of every key for ever"),
        (LEVELS, {"gap": "3 seconds"}, "a stream with gap= and detect='final' is not supported.*\n.*hint: give detect='early'"),
        (LEVELS, {"output": "events"}, "output='events' is not supported for a streaming DataFrame of situations; supported: matches"),
        (LEVELS, {"timeouts": True}, "timeouts=True is not supported for situations"),
        (PAIRS, {"timeouts": True, "strategy": "skip_till_any_match"}, "timeouts=True is not supported under skip_till_any_match"),
        (PAIRS, {"late": "rows", "output": "events"}, "late='rows' is not supported with output='events'; supported: matches"),
        ("MATCH_RECOGNIZE (MEASURES count(*) AS n PATTERN (A B))", {}, "(?s)a stream of MATCH_RECOGNIZE without ORDER BY.*without WITHIN"),
        (ROWS.replace("WITHIN 5 SECONDS", ""), {}, r"without WITHIN, .*\n.*hint: add WITHIN and a length of time"),
        (ROWS.replace("5 SECONDS", "5 EVENTS"), {}, "PARTITION BY and WITHIN a number of rows, of which all keys would be kept"),
        (ROWS.replace("B+)", "B+ $)"), {}, r"line 1, column \d+: a stream with \$ is not supported"),
        (ROWS.replace("ts, x", "x").replace("5 SECONDS", "5"), {}, "column 'x' is BIGINT, of which Spark keeps no watermark"),
        (ROWS, {"slices": "1 hour"}, "slices= has no meaning for a streaming DataFrame"),
        (ROWS, {"output": "events"}, "output='events' is not supported for MATCH_RECOGNIZE"),
        (PAIRS, {"output": "count"}, r"output='count' is not supported for a streaming DataFrame; supported: matches, events\n.*groupBy"),
        (PAIRS, {"output": "compressed"}, "output='compressed' is not supported for a streaming DataFrame; supported: matches, events"),
        (PAIRS, {"output": "indices"}, "supported: matches"),
        (PAIRS, {"algorithm": "brute_force"}, "brute_force"),
        (PAIRS, {"slices": "1 hour"}, "slices= has no meaning for a streaming DataFrame\n.*hint: leave it out"),
        (PAIRS, {"scan": "spark", "worker_memory": "1GB"}, r"(?s)worker_memory= has no meaning.*scan= has no meaning"),
        (PAIRS, {"report": cep.RunReport()}, r"report= has no meaning .*\n.*query.lastProgress\['observedMetrics'\]"),
    ],
)
def test_what_streams_cannot_be_asked_is_refused_by_name(stream: DataFrame, query: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        cep.gpu_match(stream, query, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"late": "drpo"}, "late='drpo' is unknown; expected one of drop, error, rows\n.*did you mean 'drop'"),
        ({"emit": "window"}, "emit='window' is unknown; expected one of certain"),
        ({"every": "soon"}, "every='soon' is no length of time"),
        ({"every": 5}, "every"),
    ],
)
def test_faults_of_keywords_are_told_at_once(stream: DataFrame, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PatternError, match=message):
        cep.gpu_match(stream, PAIRS, **options)


@pytest.mark.parametrize("name", ["emit", "every", "late"])
def test_keywords_of_streams_are_refused_for_a_batch(spark: SparkSession, name: str) -> None:
    given = {"emit": "certain", "every": "5 seconds", "late": "error"}
    frame = spark.createDataFrame(events(2, seed=1))
    if name == "emit":
        assert cep.gpu_match(frame, PAIRS, emit="certain").columns
        return
    with pytest.raises(PatternError, match=f"{name}= is for a streaming DataFrame, and this one is not"):
        cep.gpu_match(frame, PAIRS, **{name: given[name]})


def test_all_that_is_wrong_with_a_stream_is_told_at_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    plain = spark.readStream.schema(SCHEMA + ", day date, n long, local timestamp_ntz, at timestamp").parquet(str(tmp_path / "in"))
    spark.conf.unset(STORE)
    with pytest.raises(UnsupportedError) as caught:
        cep.gpu_match(plain, "PATTERN SEQ(A a, B b)", output="count")
    spark.conf.set(STORE, ROCKS)
    told = str(caught.value)
    assert all(part in told for part in ("needs a window", "'count'", "no watermark on timestamp column 'ts'", "RocksDB", STORE))
    assert "hint: df.withWatermark('ts', '10 seconds')" in told
    with pytest.raises(UnsupportedError, match=r"no watermark on timestamp column 'ts'; it has one on 'at'"):
        cep.gpu_match(plain.withWatermark("at", "1 second"), PAIRS)
    for name, kind, window in (("day", "DATE", "5 days"), ("n", "BIGINT", "5"), ("local", "TIMESTAMP_NTZ", "5 seconds")):
        with pytest.raises(UnsupportedError, match=f"'{name}' is {kind}, of which Spark keeps no watermark\n.*hint: make a TIMESTAMP"):
            cep.gpu_match(plain, f"PATTERN SEQ(A a, B b) WITHIN {window}", timestamp=name)

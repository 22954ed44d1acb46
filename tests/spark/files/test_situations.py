"""Situations in slices of files: a task reads back until it knows the event before of each stream, and finds what the table has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

import gpu_cep as cep
from gpu_cep.engine.answers import answer_schema
from gpu_cep.engine.input.event_filter import wanted_events
from gpu_cep.engine.input.row_groups import read_row_groups
from gpu_cep.keywords import read_keywords
from gpu_cep_spark.file_matching import DividedFiles, reading_of
from gpu_cep_spark.files import outside_events
from gpu_cep_spark.files import pieces as file_pieces
from gpu_cep_spark.files import reading as file_reading
from gpu_cep_spark.files.footers import Footers, fingerprint, fragment_of
from gpu_cep_spark.files.pieces import Workers
from gpu_cep_spark.files.places import NoScanError
from gpu_cep_spark.files.scans import FileScan
from gpu_cep_spark.jobs import keys_of_shuffle
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery
from gpu_cep_spark.tasks.worker import Work, match_partition
from tests.drawn.situations import Size, situation_cases
from tests.effort import every_value, examples
from tests.spark.conftest import CONNECT
from tests.spark.samples import as_set, matched_here

KINDS = (pa.int64(), pa.float64(), pa.timestamp("us"))
CASES = situation_cases(Size(events=30, names=3)).filter(
    lambda case: "WITHIN" in case.text and case.events.schema.field("ts").type in KINDS
)
QUERY = "PARTITION BY k DEFINE P AS on, Q AS odd PATTERN P overlaps Q; Q overlaps P; P before Q; P contains Q; Q starts P WITHIN 30"


@pytest.fixture(autouse=True)
def _small_pieces() -> Iterator[None]:
    """Let few rows be many pieces, and let these read rows several times."""
    limits = {"FEWEST_ROWS": 1, "ROWS_OF_START": 1, "CHEAP": 99.0, "DEAREST": 99.0, "HARDLY_LESS": 99.0}
    with patch.multiple(file_pieces, **limits), patch.multiple(outside_events, TOGETHER=1, AT_ONCE=2):
        yield


def pieces_of(path: Path, query: NarrowQuery, cores: int, size: int | None = None) -> DividedFiles:
    """What the driver makes of a file; raises NoScanError if it cannot be divided."""
    columns, plan = tuple(query.events.names), query.plan
    groups = read_row_groups([fragment_of(str(path))], query.events, columns[plan.query.timestamp], columns)
    scan = FileScan((str(path),), columns, query.events, StructType(), {}, None)
    footers = Footers(groups, (), (fingerprint(str(path)),), len(groups), int(groups.rows.sum()))
    pieces = file_pieces.divide(plan, scan, footers, (), Workers(cores, size), lambda: 1.0, whole=False)
    return DividedFiles(scan, wanted_events(plan, query.events), footers, pieces)


def found_in(path: Path, query: NarrowQuery, cores: int) -> tuple[list[str], int]:
    """The matches that all tasks find, and how many these are."""
    found, result = pieces_of(path, query, cores), answer_schema(query.plan, query.events)
    assert found.pieces.timed or len(found.pieces.pieces) < 2
    work = Work(query.plan, "", query.events, {}, keys_of_shuffle(query.plan), result, files=reading_of(query, found))
    numbers = range(len(found.pieces.pieces))
    tasks = [list(match_partition(work, [pa.record_batch({"id": pa.array([number], pa.int64())})])) for number in numbers]
    return sorted(repr(row) for batches in tasks for batch in batches for row in batch.to_pylist()), len(tasks)


@settings(examples(60, 2_000), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CASES, st.integers(1, 4), st.integers(2, 8), st.booleans())
def test_slices_have_the_matches_of_the_table(tmp_path: Path, case, group, cores, ordered):
    events = case.events.sort_by("ts") if ordered else case.events
    narrow = NarrowQuery.of(case.text, events.schema, *read_keywords(case.options))
    read = events.select(narrow.events.names)
    path = tmp_path / "events.parquet"
    pq.write_table(read, path, row_group_size=group)
    try:
        with patch.object(outside_events, "TOGETHER", 1 if cores % 2 else 5):
            found, _ = found_in(path, narrow, cores)
    except NoScanError:
        assume(False)
    expected = cep.match(read, case.text, **{**case.options, "order_by": list(narrow.options.order_by)})
    assert found == sorted(repr(row) for row in expected.to_pylist())


def test_events_of_one_time_are_in_several_row_groups(tmp_path: Path) -> None:
    """The last one by its columns is not the last of the file."""
    on, odd = (np.isin(range(8), places) for places in ([1, 3], [5, 6]))
    table = pa.table({"ts": [4, 5, 5, 6, 7, 8, 9, 10], "on": on, "odd": odd})
    path, query = tmp_path / "ties.parquet", "DEFINE P AS on, Q AS odd PATTERN P before Q WITHIN 9 RETURN start(P) AS since"
    pq.write_table(table, path, row_group_size=1)
    found, tasks = found_in(path, NarrowQuery.of(query, table.schema, *read_keywords({})), 8)
    assert tasks > 4
    expected = cep.match(table, query, order_by=["on", "odd"]).to_pylist()
    assert [row["since"] for row in expected] == [5]
    assert found == [repr(row) for row in expected]


def test_events_of_the_time_at_which_a_slice_begins_are_not_before_it(tmp_path: Path) -> None:
    """The last event of each row group, and the first of the next one, are of one time."""
    places = np.arange(40)
    times = places - places // 5
    table = pa.table({"ts": times, "on": times % 8 >= 4, "odd": np.isin(times % 8, [1, 2])})
    path, query = tmp_path / "borders.parquet", "DEFINE P AS on, Q AS odd PATTERN P before Q WITHIN 9 RETURN start(P) AS since"
    pq.write_table(table, path, row_group_size=5)
    found, tasks = found_in(path, NarrowQuery.of(query, table.schema, *read_keywords({})), 8)
    assert tasks > 4
    expected = cep.match(table, query, order_by=["on", "odd"]).to_pylist()
    assert len(expected) == 3
    assert found == sorted(repr(row) for row in expected)


def steps(rows: int = 400) -> pa.Table:
    """Two streams in turn, and a third in place of both for a while; `on` and `odd` hold for some events one after the other."""
    places = np.arange(rows)
    keys = np.where(places % 90 < 60, places % 2, 2)
    return pa.table({"ts": places, "k": [f"user {key}" for key in keys], "on": places % 20 < 9, "odd": places // 4 % 2 == 1})


@pytest.mark.parametrize("groups", [0, 3])
def test_no_more_is_read_back_than_is_needed(tmp_path: Path, groups: int) -> None:
    table, path = steps(), tmp_path / "steps.parquet"
    if groups:
        # a stream that is nowhere before the last slice
        keys = pa.array([*table["k"].to_pylist()[:-1], "new"])
        table = table.set_column(1, "k", keys)
    pq.write_table(table, path, row_group_size=50)
    narrow = NarrowQuery.of(QUERY, table.schema, *read_keywords({}))
    found = pieces_of(path, narrow, 2)
    last = found.pieces.pieces[-1]
    assert len(found.pieces.pieces) == 2
    # 50 events have all streams, which 30 need not have
    assert [int(found.footers.groups.latest[place]) for place in last.earlier] == sorted(range(49, last.own.begin, 50), reverse=True)
    result = answer_schema(narrow.plan, narrow.events)
    work = Work(narrow.plan, "", narrow.events, {}, narrow.plan.query.partition_by, result, files=reading_of(narrow, found))
    with patch("gpu_cep_spark.files.outside_events.read_outside", wraps=file_reading.read_outside) as read:
        list(match_partition(work, [pa.record_batch({"id": pa.array([1], pa.int64())})]))
    assert read.call_count == (len(last.earlier) if groups else 1)


def test_many_streams_are_read_back_for_together(tmp_path: Path) -> None:
    """As many row groups at a time as can have an event of each stream that is still sought."""
    keys = np.concatenate([np.repeat(np.arange(40), 10), np.tile(np.arange(40), 10)])
    table, path = steps(800).set_column(1, "k", pa.array(keys)), tmp_path / "steps.parquet"
    pq.write_table(table, path, row_group_size=10)
    narrow = NarrowQuery.of(QUERY, table.schema, *read_keywords({}))
    with patch("gpu_cep_spark.files.outside_events.read_outside", wraps=file_reading.read_outside) as read:
        found, tasks = found_in(path, narrow, 2)
    assert tasks == 2
    numbers = [len(call.args[1]) for call in read.call_args_list]
    assert numbers[0] == 4
    assert sum(numbers) <= 41
    assert found == sorted(repr(row) for row in cep.match(table, QUERY, order_by=["k", "on", "odd"]).to_pylist())


@pytest.mark.skipif(CONNECT, reason="a client of Spark Connect does not see plans")
@every_value(
    output=["matches", "events", "count"],
    options=[{}, {"detect": "early"}, {"gap": 3}, {"gap": 3, "detect": "early"}, {"worker_memory": 20_000}, {"partition_by": None}],
)
def test_tasks_that_read_files_answer_as_spark_does(spark: SparkSession, tmp_path: Path, output: str, options: dict[str, Any]) -> None:
    for number in range(4):
        pq.write_table(steps().slice(100 * number, 100), tmp_path / f"part {number}.parquet", row_group_size=30)
    frame = spark.read.parquet(str(tmp_path))
    if "detect" in options:
        frame = frame.where("on OR odd OR ts < 60")
    query = QUERY.partition(" k ")[2] if "partition_by" in options else QUERY
    report = cep.RunReport()
    found = as_set(cep.gpu_match(frame, query, scan="files", output=output, report=report, **options).toArrow())
    rows = None if "detect" in options else steps()
    assert found == as_set(matched_here(frame, query, rows=rows, output=output, **options))
    assert found
    assert "slices of time, which read" in report.scan
    assert "and back to the event before of each stream" in report.scan
    assert ("and on to one behind" in report.scan) == (options == {"gap": 3})


@pytest.mark.parametrize("detect", ["final", "early"])
def test_a_gap_ends_a_situation_however_late_the_next_event_comes(tmp_path: Path, detect: str) -> None:
    table, path = steps(), tmp_path / "silent.parquet"
    # the first stream is silent from 105 on, and heard of once more at the end; the second is never heard of again
    times, first, second = table["ts"].to_numpy(), *(np.asarray(table["k"]) == f"user {key}" for key in (0, 1))
    heard = table.filter(pa.array(second & (times < 300) | first & ((times < 105) | (times == times[first].max()))))
    pq.write_table(heard, path, row_group_size=10)
    options = {"detect": detect, "gap": 4}
    narrow = NarrowQuery.of(QUERY, heard.schema, *read_keywords(options))
    found, tasks = found_in(path, narrow, 8)
    assert tasks > 4
    assert found == sorted(repr(row) for row in cep.match(heard, QUERY, order_by=list(narrow.options.order_by), **options).to_pylist())
    assert found


def test_the_event_that_shows_a_gap_may_be_in_a_row_group_that_a_slice_reads(tmp_path: Path) -> None:
    """Behind all that bears on the matches of the slice: a task cuts it off, and finds it again."""
    first = pa.table({"ts": [240, 241, 242, 243, 295], "k": ["x"] * 5, "on": [True, True, False, False, False]})
    first = first.append_column("odd", pa.array([False, False, False, True, False]))
    others = pa.table({"ts": np.arange(400), "k": ["y"] * 400, "on": [False] * 400, "odd": [False] * 400})
    table, path = pa.concat_tables([first, others]).sort_by("ts"), tmp_path / "silent.parquet"
    with pq.ParquetWriter(path, table.schema) as file:
        for begin in range(0, 400, 50):
            file.write_table(table.filter((pc.field("ts") >= begin) & (pc.field("ts") < begin + 50)))
    query, options = "PARTITION BY k DEFINE P AS on, Q AS odd PATTERN P before Q WITHIN 20", {"gap": 4}
    narrow = NarrowQuery.of(query, table.schema, *read_keywords(options))
    found, tasks = found_in(path, narrow, 8)
    assert tasks > 4
    assert len(found) == 1
    assert found == [repr(row) for row in cep.match(table, query, order_by=list(narrow.options.order_by), **options).to_pylist()]


def test_slices_that_read_back_longer_than_a_shuffle_are_refused(tmp_path: Path) -> None:
    """Each may read all rows before its slice; without keys an event before is in the row group before."""
    path, table = tmp_path / "steps.parquet", steps(2_000)
    pq.write_table(table, path, row_group_size=20)
    without = QUERY.partition(" k ")[2]
    keyed, whole = (NarrowQuery.of(text, table.schema, *read_keywords({})) for text in (QUERY, without))
    assert len(pieces_of(path, keyed, 16).pieces.pieces) == len(pieces_of(path, whole, 16).pieces.pieces) > 12
    assert len(pieces_of(path, whole, 24).pieces.pieces) >= 20
    told = r"2\d slices of time may have a core read all rows 1.\d times, .* take 24 cores as long as 0.8 readings"
    with pytest.raises(NoScanError, match=told):
        pieces_of(path, keyed, 24)


def test_a_worker_s_memory_may_ask_for_more_slices_than_cores(tmp_path: Path) -> None:
    path, table = tmp_path / "steps.parquet", steps(2_000)
    pq.write_table(table, path, row_group_size=20)
    keyed = NarrowQuery.of(QUERY, table.schema, *read_keywords({}))
    size = int(pieces_of(path, keyed, 2).footers.groups.size.sum())
    assert 9 < len(pieces_of(path, keyed, 2, size // 12).pieces.pieces) < 18
    told = r"\d+ slices of time may have a core read all rows \d\d.\d times, .* take 2 cores as long as 9.0 readings"
    with pytest.raises(NoScanError, match=told):
        pieces_of(path, keyed, 2, size // 60)

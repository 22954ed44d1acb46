"""A worker takes no more of the events at a time than it has room for, and finds what it would find in all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import gpu_cep as cep
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.errors import MatchLimitExceeded, PatternError
from gpu_cep.keywords import make_options
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from gpu_cep_spark import jobs
from gpu_cep_spark.tasks import results
from gpu_cep_spark.tasks.handshake import make_stage
from gpu_cep_spark.tasks.results import in_batches
from gpu_cep_spark.tasks.spill import Hashes, Room, spill_folder, stream_hashes, whole_streams
from gpu_cep_spark.tasks.worker import Work, match_partition
from gpu_cep_spark.tasks.worker_memory import LEAST, LIMIT, WORKING, bytes_of_events
from tests.spark.samples import QUERIES, as_set, streams

ROWS = 3_000
NOT_NUMBERS = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)
KEYS = {
    "numbers": (pa.array([None if n % 50 == 0 else n % 400 for n in range(ROWS)], pa.int64()),),
    # NumPy's values stay below the NULLs
    "values below nulls": (pa.array(np.arange(ROWS) % 700, mask=np.arange(ROWS) % 20 < 2),),
    "floats": (pa.array([(0.0, -0.0, *NOT_NUMBERS, n % 90 / 7)[n % 5] for n in range(ROWS)], from_pandas=False),),
    "texts": (pa.array([None if n % 60 == 0 else f"key {n % 333}" for n in range(ROWS)]),),
    "days": (pa.array([n % 365 for n in range(ROWS)], pa.int32()).view(pa.date32()),),
    "decimals": (pa.array([n % 200 for n in range(ROWS)]).cast(pa.decimal128(19)).cast(pa.decimal128(12, 0)),),
    "several": (pa.array([n % 9 for n in range(ROWS)]), pa.array([n % 2 == 0 for n in range(ROWS)]), pa.array(list("abc") * (ROWS // 3))),
    "one heavy": (pa.array([n % 40 if n % 3 == 0 else -1 for n in range(ROWS)]),),
}


def keyed(keys: tuple[pa.Array, ...]) -> pa.Table:
    """A row for each value of the keys k0, k1, …, and its number."""
    return pa.table({"ts": np.arange(ROWS)} | {f"k{number}": key for number, key in enumerate(keys)})


def room_for(events: pa.Table, limit: int, folder: Path) -> Room:
    """Room for `limit` bytes of the streams of k0, k1, …"""
    names = tuple(name for name in events.column_names if name != "ts")
    query = f"PARTITION BY {', '.join(names)} PATTERN SEQ(a, b)"
    plan = make_plan(query, events.schema, make_options(), Settings())
    assert isinstance(plan, EventPlan)

    def hashes(table: pa.Table) -> Hashes:
        return stream_hashes(EventColumns(table, plan.query, threads=1), plan.stream_keys)

    return Room(limit, str(folder), hashes)


def stream_names(table: pa.Table) -> list[str]:
    """The stream of each row, as a text in which NULL, NaN and zero are one value each."""
    columns = [column.to_pylist() for name, column in zip(table.column_names, table.columns, strict=True) if name != "ts"]
    return [repr(tuple(value + 0 if isinstance(value, float) else value for value in values)) for values in zip(*columns, strict=True)]


@pytest.mark.parametrize("kind", KEYS)
def test_streams_stay_whole(kind: str, tmp_path: Path) -> None:
    events = keyed(KEYS[kind])
    limit = events.nbytes // 20
    parts = list(whole_streams(events.to_batches(max_chunksize=100), room_for(events, limit, tmp_path)))
    assert sorted(pa.concat_tables(parts)["ts"].to_pylist()) == list(range(ROWS))
    assert len(parts) > 4
    found = [set(stream_names(part)) for part in parts]
    assert sum(map(len, found)) == len(set.union(*found)) > 4
    assert all(part.nbytes <= limit or len(names) == 1 for part, names in zip(parts, found, strict=True))


def test_rows_of_a_stream_keep_their_order(tmp_path: Path) -> None:
    events = keyed(KEYS["numbers"])
    for part in whole_streams(events.to_batches(max_chunksize=100), room_for(events, 2_000, tmp_path)):
        times = [part.filter(pc.equal(part["k0"], key))["ts"].to_pylist() for key in part["k0"].unique().to_pylist() if key is not None]
        assert all(own == sorted(own) for own in times)


def test_what_fits_is_not_written(tmp_path: Path) -> None:
    events = keyed(KEYS["texts"])
    room = room_for(events, 2 * events.nbytes, tmp_path / "no such folder")
    assert [part.num_rows for part in whole_streams(events.to_batches(), room)] == [ROWS]
    assert list(whole_streams([], room)) == []


def test_files_have_no_names_and_are_closed(tmp_path: Path) -> None:
    events = keyed(KEYS["numbers"])
    before = len(os.listdir("/proc/self/fd"))
    parts = whole_streams(events.to_batches(max_chunksize=100), room_for(events, 2_000, tmp_path))
    assert next(parts).num_rows
    assert len(os.listdir("/proc/self/fd")) > before
    assert not list(tmp_path.iterdir())
    parts.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_memory_follows_the_room_and_not_the_events(tmp_path: Path) -> None:
    rows, limit = 20_000, 1 << 22
    schema = pa.schema({"ts": pa.int64(), "k0": pa.int64(), "x": pa.float64(), "y": pa.float64()})

    def batches(number: int) -> Iterator[pa.RecordBatch]:
        for batch in range(number):
            ts = np.arange(rows) + rows * batch
            yield pa.record_batch([ts, ts % 1_000, ts * 0.5, ts * 0.25], schema=schema)

    def peak(number: int) -> int:
        events = schema.empty_table().select(["ts", "k0"])
        before, most = pa.total_allocated_bytes(), 0
        room = room_for(events, limit, tmp_path)
        for part in whole_streams(batches(number), Room(limit, str(tmp_path), lambda table: room.hashes(table.select(["ts", "k0"])))):
            assert part.nbytes <= limit
            most = max(most, pa.total_allocated_bytes() - before)
        return most

    assert rows * 4 * 8 * 100 > 15 * limit
    assert peak(100) < 4 * limit


def test_partitions_take_turns_among_folders(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    environment = {"SPARK_LOCAL_DIRS": ",".join(map(str, [*folders, tmp_path / "gone"]))}
    assert [spill_folder(environment, partition) for partition in range(3)] == [str(folders[0]), str(folders[1]), str(folders[0])]
    assert Path(spill_folder({}, 5)).is_dir()


def test_the_room_of_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_cep_spark.tasks.worker_memory.free_memory", lambda: 1 << 34)
    monkeypatch.setattr("gpu_cep_spark.tasks.worker_memory.address_space", lambda: 60 << 20)
    assert bytes_of_events(4_000, {LIMIT: "100"}, 8) == 4_000 // WORKING
    assert bytes_of_events(None, {LIMIT: "100"}, 8) == (40 << 20) // WORKING
    assert bytes_of_events(None, {LIMIT: "50"}, 8) == LEAST // WORKING
    assert bytes_of_events(None, {}, 8) == (1 << 33) // 8 // WORKING


@pytest.mark.parametrize("size", [0, "much", 1.5])
def test_no_size(spark: SparkSession, size: Any) -> None:
    with pytest.raises(PatternError, match="worker_memory must be a number of bytes"):
        cep.gpu_match(spark.createDataFrame(streams(10, seed=1)), QUERIES["both"], worker_memory=size)


@pytest.fixture
def work_of(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The work that a call of gpu_match ships, and its batches."""
    kept: list[Work] = []

    def keep(work: Work) -> Any:
        kept.append(work)
        return make_stage(work)

    def call(events: pa.Table, query: str, **options: Any) -> tuple[Work, list[pa.RecordBatch]]:
        cep.gpu_match(spark.createDataFrame(events.slice(0, 1)), query, slices=None, **options)
        work = kept.pop()
        columns = [events[name] for name in work.events.names]
        for number, constants in work.codes.items():
            columns[number] = pc.index_in(columns[number], pa.array(constants)).cast(pa.int8())
        table = pa.table(columns, names=[f"c{number}" for number in range(len(columns))])
        return work, table.to_batches(max_chunksize=50)

    monkeypatch.setattr(jobs, "make_stage", keep)
    return call


PARTITIONED = ["derived key", "partition by", "both", "any match", "count window", "branches", "robust", "partition contiguity"]


@pytest.mark.parametrize("name", PARTITIONED)
@pytest.mark.parametrize("output", ["matches", "events"])
def test_parts_give_the_matches_of_all(work_of: Any, name: str, output: str, caplog: pytest.LogCaptureFixture) -> None:
    events = streams(600, seed=2)
    work, batches = work_of(events, QUERIES[name], output=output, worker_memory=4_000 * WORKING)
    with caplog.at_level("INFO", "gpu_cep"):
        found = pa.Table.from_batches(match_partition(work, batches), schema=work.result)
    assert ("bytes of events do not fit 4,000: they wait in" in caplog.text) == bool(work.keys)
    assert as_set(found) == as_set(cep.match(events, QUERIES[name], output=output)) != []


@pytest.mark.parametrize("name", ["derived key", "no key", "any match"])
def test_parts_are_counted_and_compressed_together(spark: SparkSession, name: str) -> None:
    table = streams(600, seed=3)
    frame = spark.createDataFrame(table)
    expected = cep.match(table, QUERIES[name], output="count")["count"].to_pylist()
    counted = cep.gpu_match(frame, QUERIES[name], output="count", worker_memory=8_000)
    assert counted.toArrow()["count"].to_pylist() == expected != [0]
    nodes = cep.gpu_match(frame, QUERIES[name], output="compressed", worker_memory=8_000)
    assert cep.Compressed.from_table(nodes.toArrow()).count() == expected[0]


SITUATIONS = "PARTITION BY key DEFINE low AS n < 5, high AS x > 40 PATTERN low overlaps high; low before high WITHIN 200"


def test_situations_too(work_of: Any) -> None:
    events = streams(600, seed=4)
    work, batches = work_of(events, SITUATIONS, worker_memory=4_000 * WORKING)
    found = pa.Table.from_batches(match_partition(work, batches), schema=work.result)
    assert as_set(found) == as_set(cep.match(events, SITUATIONS)) != []


@pytest.mark.parametrize("query", [QUERIES["partition by"], SITUATIONS], ids=["events", "situations"])
def test_bounds_are_for_all_parts_together(work_of: Any, query: str) -> None:
    events = streams(600, seed=2)
    total = cep.match(events, query).num_rows
    work, batches = work_of(events, query, worker_memory=4_000 * WORKING, max_matches=total)
    assert sum(batch.num_rows for batch in match_partition(work, batches)) == total
    work, batches = work_of(events, query, worker_memory=4_000 * WORKING, max_matches=total - 1)
    with pytest.raises(MatchLimitExceeded, match=f"more than max_matches={total - 1:,} matches, in the window .* of stream key="):
        list(match_partition(work, batches))
    work, batches = work_of(events, query, worker_memory=4_000 * WORKING, max_steps=20)
    with pytest.raises(MatchLimitExceeded, match="more than max_steps=20 steps"):
        list(match_partition(work, batches))


def test_batches_follow_the_width_of_rows() -> None:
    wide = pa.table({"n": range(1_000), "text": ["x" * (1 << (n % 12)) for n in range(1_000)]})
    parts = list(in_batches(wide, 20_000))
    assert pa.concat_tables(parts).equals(wide)
    assert all(part.nbytes <= 20_000 for part in parts)
    assert len(parts) < 4 * wide.nbytes / 20_000
    assert [part.num_rows for part in in_batches(pa.table({"n": np.zeros(results.RESULT_ROWS + 2)}))] == [results.RESULT_ROWS // 2 + 1] * 2
    assert list(in_batches(wide.slice(0, 0))) == []


def test_a_row_that_arrow_cannot_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MOST_BYTES", 1_000)
    with pytest.raises(MatchLimitExceeded, match=r"one row of the result takes 2,\d+ bytes, and Arrow holds 1,000"):
        list(in_batches(pa.table({"text": ["x" * 2_000]}), 100))

"""Text of Parquet files comes as dictionaries where it has few values; columns are joined unless they are long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import dataset, parquet

import gpu_cep as cep
from gpu_cep.engine.input import parquet_files
from gpu_cep.engine.input.sources import source_of
from gpu_cep.engine.input.wanted_events import Wanted
from tests.engine.input.files import LEVELS

pytestmark = pytest.mark.usefixtures("short_files_have_dictionaries")


def read_types(events: Any, *columns: str) -> list[pa.DataType]:
    source = source_of(events)
    assert source is not None
    part = source.read_part(columns, None)
    assert part.schema.types == source.read(columns).schema.types
    return part.table.schema.types


ENCODED = pa.dictionary(pa.int32(), pa.string())


def test_text_of_few_values_comes_as_dictionaries(tmp_path):
    size = 50_000
    table = pa.table(
        {
            "ts": np.arange(size),
            "type": np.array(["A", "B", "N"])[np.arange(size) % 3],
            "large": pa.array(np.array(["x", "y"])[np.arange(size) % 2], pa.large_string()),
            "a.b": np.array(["x", "y"])[np.arange(size) % 2],
            "unique": [f"number {number:09}" for number in range(size)],
            "known": pa.array(np.arange(size) % 7).cast(pa.string()).dictionary_encode(),
        }
    )
    path = tmp_path / "events.parquet"
    parquet.write_table(table, path)
    names = table.column_names
    assert read_types(path, *names) == [pa.int64(), ENCODED, ENCODED, pa.string(), pa.string(), ENCODED]
    assert read_types(dataset.dataset(path), *names) == read_types(path, *names)
    text = "PATTERN SEQ(A a, B b+, N n) WHERE a.large = 'x' WITHIN 2 EVENTS"
    for asked in ({"output": output, "partition_by": "large"} for output in ("matches", "events", "count")):
        assert cep.match(path, text, **asked).equals(cep.match(table, text, **asked))
    parquet.write_table(table, tmp_path / "plain.parquet", use_dictionary=False)
    assert read_types(tmp_path / "plain.parquet", "type") == [pa.string()]


def test_short_files_are_opened_once(tmp_path, monkeypatch):
    parquet.write_table(LEVELS, tmp_path / "levels.parquet")
    monkeypatch.setattr(parquet_files, "_SOME_ROWS", 21)
    assert read_types(tmp_path / "levels.parquet", "type") == [pa.string()]
    monkeypatch.setattr(parquet_files, "_SOME_ROWS", 20)
    assert read_types(tmp_path / "levels.parquet", "type") == [ENCODED]


def test_a_column_that_is_no_text_in_some_file_stays_as_it_is(tmp_path):
    for name, values in (("a", ["1", "2"]), ("b", pa.array([3, 4]))):
        parquet.write_table(pa.table({"ts": [1, 2], "type": ["A", "B"], "v": values}), tmp_path / f"{name}.parquet")
    parquet.write_table(pa.table({"ts": [3]}), tmp_path / "c.parquet")
    assert read_types(tmp_path, "type", "v") == [ENCODED, pa.string()]
    source = source_of(tmp_path)
    assert source is not None
    assert source.read_part(["type", "v"], None).table.to_pydict() == {"type": ["A", "B", "A", "B", None], "v": ["1", "2", "3", "4", None]}


def test_a_data_set_of_own_reading_options_keeps_them(tmp_path):
    parquet.write_table(LEVELS, tmp_path / "levels.parquet")
    form = dataset.ParquetFileFormat(read_options=dataset.ParquetReadOptions(binary_type=pa.large_binary()))
    given = dataset.dataset(tmp_path, format=form)
    assert read_types(given, "type", "s") == [pa.string(), pa.string()]
    held = dataset.dataset(tmp_path, format=dataset.ParquetFileFormat(dictionary_columns=["s"]))
    assert read_types(held, "type", "s") == [ENCODED, ENCODED]
    assert cep.match(held, "PATTERN SEQ(A a, B b) RETURN a.s AS s").schema.field("s").type == ENCODED


def test_columns_are_joined_unless_they_are_too_long(tmp_path, monkeypatch):
    parquet.write_table(LEVELS.append_column("list", [[[number] for number in range(20)]]), tmp_path / "levels.parquet", row_group_size=5)
    source = source_of(tmp_path / "levels.parquet")
    assert source is not None
    asked = []
    monkeypatch.setattr(
        parquet_files, "_joined", lambda column, _joined=parquet_files._joined: asked.append(column.num_chunks) or _joined(column)
    )
    names = ("x", "type", "s", "list")
    assert source.read(names).equals(parquet.read_table(tmp_path / "levels.parquet").select(names))
    assert not asked
    monkeypatch.setattr(parquet_files, "_MANY_ROWS", 20)
    whole = source.read(names)
    assert [whole[name].num_chunks for name in names] == [1, 1, 1, 1]
    assert asked == [4, 4, 4, 4]
    monkeypatch.setattr(parquet_files, "_MOST_JOINED", 40)
    parts = source.read(names)
    assert [parts[name].num_chunks for name in names] == [1, 4, 4, 4]
    assert parts.equals(whole)


def batches_of(*texts: list[str], codes: pa.DataType) -> pa.Table:
    """Return events of which each batch has a dictionary of its own."""
    kind = pa.dictionary(codes, pa.string())
    columns = [pa.array(each).dictionary_encode().cast(kind) for each in texts]
    times = np.split(np.arange(sum(map(len, texts))), np.cumsum([len(each) for each in texts])[:-1])
    return pa.Table.from_batches([pa.record_batch({"ts": ts, "type": each}) for ts, each in zip(times, columns, strict=True)])


NARROW = [(pa.int8(), 100), (pa.uint8(), 200), (pa.int16(), 20_000)]
TEXT = "PATTERN SEQ(a) WITHIN 1"
ASKED: list[dict[str, Any]] = [
    {"pattern": TEXT},
    {"pattern": TEXT, "output": "events"},
    {"pattern": f"{TEXT} RETURN a.type AS type"},
    {"pattern": TEXT, "output": "count", "partition_by": "type"},
]
# How events come whose batches have more texts together than there are codes.
GIVEN: dict[str, Callable[[pa.Table, Path], Any]] = {
    "table": lambda table, _: table,
    "reader": lambda table, _: table.to_reader(),
    "folder": lambda _, folder: folder,
    "files": lambda _, folder: sorted(folder.iterdir()),
    "data set": lambda _, folder: dataset.dataset(folder),
    "filtered": lambda _, folder: dataset.dataset(folder).filter(pc.field("ts") >= 0),
}


@pytest.mark.parametrize(("codes", "each"), NARROW)
@pytest.mark.parametrize("given", GIVEN)
def test_batches_may_have_more_texts_than_codes(codes, each, given, tmp_path):
    texts = [[f"{batch} {number}" for number in range(each)] for batch in range(2)]
    table = batches_of(*texts, codes=codes)
    for number, batch in enumerate(table.to_batches()):
        parquet.write_table(pa.Table.from_batches([batch]), tmp_path / f"{number}.parquet")
    decoded = table.cast(pa.schema([("ts", pa.int64()), ("type", pa.string())]))
    for asked in ASKED:
        found, plain = (cep.match(events, **asked) for events in (GIVEN[given](table, tmp_path), decoded))
        assert found.num_rows == plain.num_rows == 2 * each
        assert found.to_pylist() == plain.to_pylist()


def test_batches_with_the_same_texts_keep_their_codes():
    texts = [f"text {number}" for number in range(100)]
    table = batches_of(texts, texts[::-1], codes=pa.int8())
    found = cep.match(table, "PATTERN SEQ(a) WITHIN 1", output="events")
    assert found.schema.field("type").type == table.schema.field("type").type


@pytest.mark.parametrize("codes", [pa.int8(), pa.int32()])
def test_files_with_few_codes_are_read_in_part(codes, tmp_path):
    for number, batch in enumerate(batches_of(["A", "B"], ["C", "D"], codes=codes).to_batches()):
        parquet.write_table(pa.Table.from_batches([batch]), tmp_path / f"{number}.parquet")
    source = source_of(tmp_path)
    assert source is not None
    wanted = Wanted(dataset.field("ts") >= 2, "ts", {})
    part = source.read_part(["ts", "type"], wanted)
    assert part.groups == (1, 2)
    assert part.table.to_pydict() == {"ts": [2, 3], "type": ["C", "D"]}
    grouped = source.group(["ts", "type"], "ts", wanted)
    assert grouped is not None
    assert grouped.counts == (1, 2)

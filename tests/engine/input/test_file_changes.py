"""A file that changes, goes or breaks while it is read: the right answer, or an error that names the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

import gpu_cep as cep
from gpu_cep.engine.input import grouped_files, readers
from gpu_cep.engine.input.sources import source_of

ROWS, FILES = 400, 4
QUERY = "PATTERN SEQ(A a, B b) WITHIN 5"


def events(number: int, seed: int = 0) -> pa.Table:
    """The events of one file: those of files with higher numbers are later."""
    random = np.random.default_rng([seed, number])
    return pa.table({
        "ts": np.arange(number * ROWS, (number + 1) * ROWS), "type": random.choice(["A", "B", "C"], ROWS), "x": random.random(ROWS),
    })  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(FILES):
        put(tmp_path / f"{number}.parquet", events(number))
    return tmp_path


def put(path: Path, table: pa.Table) -> None:
    parquet.write_table(table, path, row_group_size=50)


def replace(path: Path) -> None:
    put(path, events(2, seed=1))


def shorten(path: Path) -> None:
    put(path, events(2).slice(0, 100))


def delete(path: Path) -> None:
    path.unlink()


def cut_the_footer(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def spoil_a_page(path: Path) -> None:
    held = path.read_bytes()
    path.write_bytes(held[:200] + bytes(400) + held[600:])


LOCATIONS: dict[str, Callable[[Path], Any]] = {
    "folder": str,
    "glob": lambda folder: f"{folder}/*.parquet",
    "list": lambda folder: [folder / f"{number}.parquet" for number in range(FILES)],
    "dataset": dataset.dataset,
}
CHANGES = (replace, shorten, delete, cut_the_footer)


@pytest.mark.parametrize("location", LOCATIONS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_once_it_is_open_is_named(folder, location, change):
    source = source_of(LOCATIONS[location](folder))
    assert source is not None
    assert source.read(["ts", "x"]).num_rows == FILES * ROWS
    change(folder / "2.parquet")
    with pytest.raises(cep.EventError, match=r"cannot read \S*2\.parquet: it was replaced, changed or deleted since it was opened"):
        source.read(["ts", "x"])


@pytest.mark.parametrize("location", LOCATIONS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_between_slices_is_named(folder, location, change):
    expected = cep.match(pa.concat_tables(map(events, range(FILES))), QUERY)
    with patch.object(readers, "_MANY_ROWS", 0):
        asked = LOCATIONS[location](folder)
        assert cep.match(asked, QUERY, memory=20_000).equals(expected)
        reader = cep.match(asked, QUERY, memory=20_000, result="reader")
        first = reader.read_next_batch()
        # the slice behind may have been read ahead
        assert first.to_pylist() == expected.slice(0, first.num_rows).to_pylist()
        change(folder / "2.parquet")
        with pytest.raises(cep.EventError, match=r"cannot read \S*2\.parquet: it was replaced, changed or deleted since it was opened"):
            reader.read_all()


def test_a_file_that_changes_while_it_is_read_is_named(folder, monkeypatch):
    source = source_of(str(folder))
    assert source is not None
    read = grouped_files.ParquetFiles._table

    def slow(files: Any, fragments: Any, *rest: Any) -> pa.Table:
        with patch("gpu_cep.engine.input.parquet_files._table", lambda *_: replace(folder / "2.parquet") or pa.table({"ts": [1]})):
            return read(files, fragments, *rest)

    monkeypatch.setattr(grouped_files.ParquetFiles, "_table", slow)
    with pytest.raises(cep.EventError, match=r"2\.parquet: it was replaced"):
        source.read(["ts"])


@pytest.mark.parametrize("location", ["folder", "glob", "list"])
@pytest.mark.parametrize("spoil", [cut_the_footer, spoil_a_page])
@pytest.mark.parametrize("memory", [None, 20_000])
def test_a_broken_file_is_named(folder, location, spoil, memory):
    spoil(folder / "2.parquet")
    with patch.object(readers, "_MANY_ROWS", 0), pytest.raises(cep.EventError, match=r"2\.parquet") as caught:
        cep.match(LOCATIONS[location](folder), QUERY, memory=memory)
    assert caught.value.__cause__ is not None


def test_files_that_stay_are_read(folder):
    (folder / "3.parquet").touch()
    source = source_of(str(folder))
    assert source is not None
    put(folder / "4.parquet", events(4))
    assert source.read(["ts"]).num_rows == FILES * ROWS

"""Codes that no value of their dictionary has are an error before anything reads by them."""

from __future__ import annotations

import io
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import dataset, parquet

import gpu_cep as cep
from gpu_cep.engine.input import encodings, parquet_files
from gpu_cep.engine.input.encodings import decode_table, inspect_dictionaries
from gpu_cep.engine.input.sources import source_of
from gpu_cep.errors import EventError
from tests.effort import examples

KINDS = st.sampled_from([pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()])
QUERY = "PATTERN SEQ(A a, B b)"
DAMAGED = "column 'type' is damaged: one of its codes is that of none of the 2 values"


def encoded(codes: list[int | None], values: int, kind: pa.DataType) -> pa.Array:
    texts = pa.array([f"t{number}" for number in range(values)], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(codes, kind), texts, safe=False)


def damaged(code: int = 2) -> pa.Table:
    types = pa.DictionaryArray.from_arrays(pa.array([0, code, 1], pa.int32()), pa.array(["A", "B"]), safe=False)
    return pa.table({"ts": [1, 2, 3], "type": types, "v": [1, 2, 3]})


@st.composite
def chunked(draw: st.DrawFn) -> list[tuple[list[int | None], int]]:
    """The codes of chunks, and how many values the dictionary of each has."""
    codes = st.lists(st.one_of(st.none(), st.integers(0, 4)), max_size=4)
    return draw(st.lists(st.tuples(codes, st.integers(0, 5)), max_size=3))


@examples(200, 2_000)
@given(chunked(), KINDS, st.sampled_from([1, 1 << 15]))
def test_exactly_codes_without_a_value_are_an_error(chunks, kind, long):
    arrays = [encoded(codes, values, kind) for codes, values in chunks]
    table = pa.table({"c": pa.chunked_array(arrays, pa.dictionary(kind, pa.string()))})
    with patch.object(encodings, "_LONG", long):
        if all(code is None or code < values for codes, values in chunks for code in codes):
            assert decode_table(table) is table
        else:
            with pytest.raises(EventError, match="column 'c' is damaged"):
                decode_table(table)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
def test_codes_below_zero_are_an_error_and_what_lies_under_null_is_not(kind):
    with pytest.raises(EventError, match="none of the 3 values"):
        decode_table(pa.table({"c": encoded([0, -1], 3, kind)}))
    with pytest.raises(EventError, match="none of the 3 values"):
        decode_table(pa.table({"c": pa.chunked_array([encoded([0, 1], 3, kind), encoded([-1], 3, kind)])}))
    under = pa.Array.from_buffers(kind, 2, [pa.py_buffer(b"\x01"), pa.array([1, 100], kind).buffers()[1]])
    hidden = pa.DictionaryArray.from_arrays(under, pa.array(["x", "y"]), safe=False)
    assert decode_table(pa.table({"c": hidden}))["c"].to_pylist() == ["y", None]
    # a slice does not look beyond itself
    part = encoded([7, 1, 0, 7], 2, kind).slice(1, 2)
    assert decode_table(pa.table({"c": part}))["c"].to_pylist() == ["t1", "t0"]


def test_dictionaries_of_other_values_than_text_are_looked_through():
    numbers = pa.DictionaryArray.from_arrays(pa.array([0, 2], pa.int8()), pa.array([1.5, 2.5]), safe=False)
    with pytest.raises(EventError, match="column 'n' is damaged"):
        decode_table(pa.table({"n": numbers}))


def as_file(table: pa.Table, path) -> str:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    return str(path)


@pytest.mark.parametrize("code", [2, -1, 1 << 30])
@pytest.mark.parametrize(
    "given",
    [
        lambda table, path: table,
        lambda table, path: table.to_batches()[0],
        lambda table, path: SimpleNamespace(__arrow_c_stream__=table.__arrow_c_stream__),
        lambda table, path: as_file(table, path / "events.arrow"),
        lambda table, path: dataset.dataset(table),
        lambda table, path: dataset.dataset(as_file(table, path / "events.arrow"), format="ipc"),
    ],
    ids=["table", "batch", "stream", "file", "data set", "data set of files"],
)
def test_no_query_reads_by_them(tmp_path, code, given):
    events = given(damaged(code), tmp_path)
    for _ in range(2):
        with pytest.raises(EventError, match=DAMAGED):
            cep.match(events, QUERY)


def test_readers_and_streams_refuse_them():
    reader = pa.RecordBatchReader.from_batches(damaged().schema, damaged().to_batches())
    with pytest.raises(EventError, match=DAMAGED):
        cep.match(reader, QUERY)
    stream = cep.stream(f"{QUERY} WITHIN 5", damaged().schema)
    with pytest.raises(EventError, match=DAMAGED):
        stream.push(damaged())


def test_a_table_is_looked_through_once(monkeypatch):
    table = pa.table({"c": encoded([0, 1], 2, pa.int8())})
    assert not inspect_dictionaries(table)
    monkeypatch.setattr("gpu_cep.engine.input.encodings.check_codes", None)
    assert not inspect_dictionaries(table)


@pytest.fixture
def damaged_file(monkeypatch, tmp_path) -> str:
    """A Parquet file whose codes of 10 bits are 1,023 somewhere, while its dictionary has fewer values."""
    codes = np.random.default_rng(1).integers(0, 1000, 5000)
    held = io.BytesIO()
    parquet.write_table(pa.table({"ts": np.arange(5000), "type": [f"t{code}" for code in codes]}), held, compression="none")
    written = bytearray(held.getvalue())
    begin = parquet.read_metadata(io.BytesIO(written)).row_group(0).column(1).data_page_offset + 200
    written[begin : begin + 60] = b"\xff" * 60
    path = tmp_path / "events.parquet"
    path.write_bytes(written)
    monkeypatch.setattr(parquet_files, "_SOME_ROWS", 1)
    return str(path)


def test_damaged_parquet_is_refused(damaged_file):
    with pytest.raises(EventError, match="column 'type' is damaged"):
        cep.match(damaged_file, "PATTERN SEQ(t1 a, t2 b)")
    source = source_of(damaged_file)
    assert source is not None
    assert source.files is not None
    with pytest.raises(EventError, match="column 'type' is damaged"):
        list(source.files.read_in_turns(["type"], None))


def test_damaged_parquet_is_refused_before_its_dictionaries_are_joined(damaged_file, monkeypatch, tmp_path):
    """Arrow numbers the codes of unlike dictionaries anew, as if all were right."""
    monkeypatch.setattr(parquet_files, "_MANY_ROWS", 1)
    types = [f"u{number % 900}" for number in range(5000)]
    parquet.write_table(pa.table({"ts": np.arange(5000), "type": types}), tmp_path / "more.parquet")
    with pytest.raises(EventError, match="column 'type' is damaged"):
        cep.match([str(tmp_path / "more.parquet"), damaged_file], "PATTERN SEQ(t1 a, u2 b)")

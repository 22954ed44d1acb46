"""Chunks of text with dictionaries of any kind are joined into one array with one dictionary, and match as plain text does."""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.input import chunks, joined_texts, text_codes
from gpu_cep.engine.input.joined_texts import join_texts, one_array

TEXTS = st.sampled_from(["", "A", "B", "C", "Zürich", "a longer text"])
INDEX_TYPES = [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64()]
KINDS = st.builds(pa.dictionary, st.sampled_from(INDEX_TYPES), st.sampled_from([pa.string(), pa.large_string()]), st.booleans())
# Which numbers of values are joined by hashes: all, or none.
MANY = {True: {"_LONG": 0, "_MANY": 0}, False: {"_LONG": 1 << 18}}
SHARED = ["A", "B", "Zürich"]


@st.composite
def chunked(draw: st.DrawFn, kind: st.SearchStrategy[pa.DataType] = KINDS) -> pa.ChunkedArray:
    """Return chunks of which some are empty, have NULL alone, values twice, values that no row has, or one dictionary with others."""
    arrow, parts = draw(kind), []
    shared = pa.array(SHARED, arrow.value_type)
    for _ in range(draw(st.integers(1, 6))):
        own = pa.array(draw(st.lists(TEXTS, max_size=5)), arrow.value_type)
        values = draw(st.sampled_from([own, shared, pa.array(SHARED, arrow.value_type)]))
        codes = draw(st.lists(st.none() | st.integers(0, len(values) - 1) if len(values) else st.none(), max_size=5))
        indices = pa.array([None, *codes], arrow.index_type).slice(1)
        parts.append(pa.DictionaryArray.from_arrays(indices, values, ordered=arrow.ordered))
    return pa.chunked_array(parts, arrow)


@given(chunked(), st.booleans(), st.integers(1, 3))
def test_joined_chunks_have_the_same_text(column, many, threads):
    with patch.multiple(text_codes, **MANY[many]):
        joined = join_texts(column, threads)
    joined.validate(full=True)
    assert joined.type == column.type
    assert joined.to_pylist() == column.to_pylist()
    values = joined.dictionary.to_pylist()
    assert len(set(values)) == len(values)
    assert set(values) <= {value for chunk in column.chunks for value in chunk.dictionary.to_pylist()}
    assert one_array(column, threads).to_pylist() == column.to_pylist()


@given(chunked(st.just(pa.dictionary(pa.int32(), pa.string()))), st.integers(1, 40))
def test_more_text_than_an_array_holds_gets_larger_offsets(column, most):
    with patch.multiple(text_codes, **MANY[True]), patch.object(joined_texts, "MOST_TEXT", most), patch.object(chunks, "MOST_TEXT", most):
        joined = join_texts(column)
    assert joined.to_pylist() == column.to_pylist()


@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize(("kind", "each"), [(pa.int8(), 100), (pa.uint8(), 200)])
def test_codes_for_the_values_of_all_chunks_are_wide_enough(kind, each, many):
    parts = [
        pa.DictionaryArray.from_arrays(pa.array(range(each), kind), pa.array([f"{batch} {value}" for value in range(each)]))
        for batch in range(2)
    ]
    column = pa.chunked_array(parts)
    with patch.multiple(text_codes, **MANY[many]):
        joined = join_texts(column)
    assert joined.type == pa.dictionary(pa.int32(), pa.string())
    assert joined.to_pylist() == column.to_pylist()
    assert join_texts(pa.chunked_array([parts[0], parts[0]])).type == column.type


def test_codes_of_null_may_be_any():
    codes = pa.Array.from_buffers(pa.int32(), 3, [pa.py_buffer(b"\5"), pa.array([0, 1 << 30, 1], pa.int32()).buffers()[1]])
    parts = [pa.DictionaryArray.from_arrays(codes, pa.array(values), safe=False) for values in (["A", "B"], ["B", "C"])]
    with patch.multiple(text_codes, **MANY[True]):
        joined = join_texts(pa.chunked_array(parts))
    assert joined.to_pylist() == ["A", None, "B", "B", None, "C"]


ASKED = [
    "PARTITION BY k PATTERN SEQ(a, b) WITHIN 3",
    "PATTERN SEQ(a, b) WHERE { [k] } WITHIN 3",
    "PATTERN SEQ(A a, B b) WITHIN 3",
    "PATTERN SEQ(a, b) WHERE { a.k < b.k } WITHIN 3",
]


@pytest.mark.filterwarnings("ignore::gpu_cep.AbsentValueWarning")
@given(chunked(), st.sampled_from(ASKED), st.booleans())
def test_chunks_match_as_plain_text_does(column, text, many):
    events = pa.table({"ts": range(len(column)), "k": column, "type": column})
    plain = events.cast(pa.schema([("ts", pa.int64()), ("k", column.type.value_type), ("type", column.type.value_type)]))
    for output in ("matches", "events", "count"):
        with patch.multiple(text_codes, **MANY[many]):
            found = cep.match(events, text, output=output)
        expected = cep.match(plain, text, output=output)
        assert found.to_pylist() == expected.to_pylist()

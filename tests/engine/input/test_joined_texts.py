"""Chunks of text with dictionaries of any kind are joined into one array with one dictionary, and match as plain text does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.events import stream_keys
from gpu_cep.engine.input import chunks, event_columns, joined_texts, text_codes, text_columns
from gpu_cep.engine.input.joined_texts import join_texts, one_array
from gpu_cep.keywords import make_options
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan

TEXTS = st.sampled_from(["", "A", "B", "C", "Zürich", "a longer text"])
INDEX_TYPES = [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64()]
KINDS = st.builds(pa.dictionary, st.sampled_from(INDEX_TYPES), st.sampled_from([pa.string(), pa.large_string()]), st.booleans())
# Which numbers of values are joined by hashes: all, or none.
MANY = {True: {"_LONG": 0, "_MANY": 0}, False: {"_LONG": 1 << 18}}
# All rows are few enough for their text to be encoded apart, whatever the share of those that matter; or none are.
FEW = {True: 0, False: 1 << 40}
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
@given(chunked(), st.sampled_from(ASKED), st.booleans(), st.booleans(), st.integers(1, 2))
def test_chunks_match_as_plain_text_does(column, text, many, few, threads):
    events = pa.table({"ts": range(len(column)), "k": column, "type": column})
    plain = events.cast(pa.schema([("ts", pa.int64()), ("k", column.type.value_type), ("type", column.type.value_type)]))
    for output in ("matches", "events", "count"):
        expected = cep.match(plain, text, output=output)
        with patch.multiple(text_codes, **MANY[many]), few_rows(few):
            for given_events in (events, plain):
                found = cep.match(given_events, text, output=output, threads=threads)
                assert found.schema.names == expected.schema.names
                assert found.to_pylist() == expected.to_pylist()


@contextmanager
def few_rows(few: bool) -> Iterator[None]:
    """Let any rows be few, or none."""
    with patch.object(stream_keys, "FEW_OF_MANY", FEW[few]), patch.object(event_columns, "FEW_OF_MANY", FEW[few]):
        yield


@pytest.mark.parametrize("dictionary", [True, False])
def test_keys_of_rows_without_a_label_are_not_encoded(dictionary):
    batches = [pa.array([f"key {number % 7} {batch % 2}" for number in range(batch, batch + 10)]) for batch in range(4)]
    keys = pa.chunked_array([batch.dictionary_encode() if dictionary else batch for batch in batches])
    types = pa.array(["A" if row % 5 == 0 else "B" if row % 5 == 2 else "N" for row in range(len(keys))])
    events = pa.table({"ts": range(len(keys)), "k": keys, "type": types})
    text = "PARTITION BY k PATTERN SEQ(A a, B b) WITHIN 40"
    expected = cep.match(events, text, output="indices")
    sizes = []

    def encode(array, threads=1):
        sizes.append(len(array))
        return encode_text(array, threads)

    encode_text = text_codes.encode_text
    with patch.multiple(text_codes, **MANY[True]), few_rows(True), patch.object(text_columns, "encode_text", encode):
        found = cep.match(events, text, output="indices")
    assert found.equals(expected)
    assert found.num_rows
    assert sizes == [16]


def test_nulls_are_counted_without_joining_chunks():
    codes = pa.array([0, 1, None])
    keys = pa.chunked_array([pa.DictionaryArray.from_arrays(codes, pa.array(values)) for values in (["A", "B"], ["C", "A"])])
    events = pa.table({"ts": range(len(keys)), "k": keys})
    plan = make_plan("PARTITION BY k PATTERN SEQ(a, b) WITHIN 3", events.schema, make_options(), Settings())
    columns = event_columns.EventColumns(events, plan.query, threads=1)
    assert columns.null_count(1) == 2
    assert columns.chunks(1) is not None


def test_plain_texts_that_a_result_takes_are_not_looked_at():
    """To tell whether a column has many values takes longer than to take a few of them."""
    rows = 1000
    notes = pa.array([f"note {row}" for row in range(rows)])
    events = pa.table({"ts": range(rows), "x": range(rows), "note": pa.chunked_array([notes.slice(0, 400), notes.slice(400)])})
    with patch.multiple(text_codes, **MANY[True]), patch.object(text_columns, "are_many", wraps=text_codes.are_many) as looked:
        found = cep.match(events, "PATTERN SEQ(a) WHERE a.x = 500 WITHIN 5")
    assert [match["note"] for match in found["a"].to_pylist()] == ["note 500"]
    assert not looked.called

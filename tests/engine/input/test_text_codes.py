"""Dictionaries of text: which chunks have the same one, and how threads make one."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.input import many_texts, text_codes, text_columns
from gpu_cep.engine.input.many_texts import hash_rows
from gpu_cep.engine.input.text_codes import dictionaries_of, encode_text
from gpu_cep.rule_sets import runs

VALUES = pa.array(["A", "B", "A", "B", None, "C"])


def chunk_with(dictionary: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), dictionary)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), st.booleans()), min_size=1, max_size=12))
def test_dictionaries_at_one_place_in_memory_stand_once(slices):
    other = pa.concat_arrays([VALUES, VALUES.slice(0, 0)])
    given_ones = [(other if copied else VALUES).slice(first, length) for first, length, copied in slices]
    with patch.object(text_codes, "_LARGE", 1):
        found = dictionaries_of([chunk_with(values) for values in given_ones])
    places = dict.fromkeys((first, min(length, 6 - first), copied) for first, length, copied in slices)
    assert found == [(other if copied else VALUES).slice(first, length) for first, length, copied in places]


def test_small_dictionaries_are_not_asked_where_they_lie():
    assert len(dictionaries_of([chunk_with(VALUES)] * 3)) == 3


@given(
    texts=st.lists(st.sampled_from(["", "a", "Zürich", *map(str, range(9))]) | st.none(), max_size=40),
    kind=st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int16(), pa.string())]),
    first=st.integers(0, 5),
    threads=st.integers(2, 5),
    most=st.integers(0, 12),
)
def test_threads_make_the_codes_of_one(texts, kind, first, threads, most):
    array = pa.array(texts, kind).slice(first)
    with patch.object(text_codes, "_REPEATED", most), patch.object(text_codes, "_SAMPLED", 30):
        found = encode_text(array, threads)
    expected = encode_text(array)
    assert found.values.equals(expected.values)
    assert found.codes.dtype == np.int32
    assert found.codes.tolist() == expected.codes.tolist()
    assert [[*found.values.to_pylist(), None][code] for code in found.codes] == array.to_pylist()


@pytest.mark.parametrize(("distinct", "repeated", "many"), [(2_000, 0, True), (40, 2_000, False), (0, 2_000, False)])
def test_text_is_looked_at_in_places_that_are_spread_over_it(distinct, repeated, many):
    texts = [*map(str, range(distinct)), *["a"] * repeated]
    for given_texts in (pa.array(texts), pa.chunked_array([texts[:7], [], texts[7:]])):
        with patch.multiple(text_codes, _LONG=0, _MANY=24, _SAMPLED=32):
            assert text_codes.are_many(given_texts) is many


ALIKE = [*(f"https://example.com/{number}/index.html" for number in range(3)), "", "0", "00", "Zürich", "Zürich 1", "12345678", "123456789"]


@given(
    texts=st.lists(st.sampled_from(ALIKE) | st.text(max_size=20) | st.none(), max_size=60),
    kind=st.sampled_from([pa.string(), pa.large_string()]),
    first=st.integers(0, 5),
    threads=st.integers(1, 4),
    rows=st.integers(1, 20),
    hashes=st.integers(0, 64),
)
def test_text_of_many_values_has_the_codes_of_arrow(texts, kind, first, threads, rows, hashes):
    """Also where hashes are so short that different texts have the same one."""
    array = pa.array(texts, kind).slice(first)
    expected = encode_text(array)

    def cut(*arguments):
        return hash_rows(*arguments) & np.uint64(2**64 - 2 ** (64 - hashes))

    with patch.multiple(text_codes, _LONG=0, _MANY=0), patch.multiple(many_texts, _PART_ROWS=rows, hash_rows=cut):
        found = encode_text(array, threads)
    assert found.values.equals(expected.values)
    assert found.codes.dtype == np.int32
    assert found.codes.tolist() == expected.codes.tolist()


@pytest.mark.parametrize("texts", [("a", "b"), ("", "a"), ("ab", "ac"), ("12345678", "12345679"), ("123456789", "12345678x"), ALIKE[:2]])
def test_different_texts_of_one_hash_are_not_equal(texts):
    array = pa.array([texts[0], texts[1], texts[0]])
    assert many_texts.encode_many(array, 1)[0].tolist() == [0, 1, 0]
    with patch.object(many_texts, "hash_rows", lambda *_: np.zeros(3, np.uint64)):
        assert many_texts.encode_many(array, 1) is None
        assert many_texts.encode_many(array.take(pa.array([0, 0, 2])), 1)[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize(("rules", "kinds"), [(1, "AB"), (2, "AB"), (2, "ABCDEFGH")])
def test_the_threads_of_a_run_encode_text(rules, kinds):
    """Also where several rules share the columns, or those of the rows that they all read."""
    size = len(kinds) << 13
    events = pa.table({"ts": range(size), "type": list(kinds) * (1 << 13), "k": [str(e % 3) for e in range(size)]})
    queries = {str(number): f"PARTITION BY k PATTERN SEQ(A a, B b) WITHIN {len(kinds)}" for number in range(rules)}
    with patch.object(text_columns, "encode_text", wraps=encode_text) as encoded, patch.object(runs, "_MANY_ROWS", 1):
        if rules == 1:
            cep.match(events, queries["0"], threads=3)
        else:
            cep.match_all(events, queries, threads=3)
    assert encoded.called
    assert {threads for _, threads in (call.args for call in encoded.call_args_list)} == {3}

"""Dictionaries of text: which chunks have the same one, and how threads make one."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.input import text_codes, text_columns
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

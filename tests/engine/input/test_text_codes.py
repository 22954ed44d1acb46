"""Dictionaries of text: which chunks have the same one, and how threads make one."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.input import text_codes
from gpu_cep.engine.input.text_codes import dictionaries_of, encode_text

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

"""Dictionaries of text: which chunks have the same one."""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.input import text_codes
from gpu_cep.engine.input.text_codes import dictionaries_of

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

"""Tests of texts that are held by their bytes: what they are, and for which arrays they are held."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.input.few_texts import MOST, ascend, few_are_distinct, few_texts

TEXTS = st.lists(st.text("aé\0", max_size=3), min_size=1, max_size=5)
TYPES = st.sampled_from([pa.string(), pa.large_string()])


@given(TEXTS, TYPES, st.data())
def test_few_texts_are_those_of_the_array_however_it_is_sliced(texts, kind, data):
    first = data.draw(st.integers(0, len(texts) - 1))
    own = texts[first:]
    few = few_texts(pa.array(texts, kind).slice(first))
    assert few.array().to_pylist() == own
    assert few_are_distinct(few) == (len({*own}) == len(own))
    assert ascend(few) == all(before.encode() < after.encode() for before, after in pairwise(own))


@given(TEXTS, TEXTS)
def test_few_texts_are_equal_if_the_arrays_are(left, right):
    assert (few_texts(pa.array(left)) == few_texts(pa.array(right))) == (left == right)


def test_bytes_that_are_no_text_are_held():
    array = pa.array([b"\xff", b""], pa.binary()).view(pa.string())
    assert few_texts(array).listed() == [b"\xff", b""]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([], pa.string()),
        pa.array(["a", None]),
        pa.array([str(number) for number in range(MOST + 1)]),
        pa.array(["long" * 2_000]),
        pa.array([1, 2]),
        pa.array([b"a"], pa.binary()),
    ],
    ids=["none", "NULL", "many", "long", "numbers", "bytes"],
)
def test_other_arrays_are_not_held(array):
    assert few_texts(array) is None

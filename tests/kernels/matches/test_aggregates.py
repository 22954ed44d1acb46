"""Aggregates over segments against plain sums and searches, in event order."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.matches.aggregates import count_present, extreme_places, sum_floats, sum_ints

INTEGERS = st.one_of(st.integers(-3, 3), st.sampled_from([-(2**63), 2**63 - 1, 2**62]))
FLOATS = st.one_of(st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, 1e16, -1e16]), st.floats(width=32))


def segments_of(values):
    """Segments of values of which some are NULL (None)."""
    return st.lists(st.lists(st.one_of(values, st.none()), max_size=6), max_size=5)


def flat(segments, dtype):
    places = np.concatenate([[0], np.cumsum([len(segment) for segment in segments])]).astype(np.int64)
    values = [value for segment in segments for value in segment]
    nulls = np.array([value is None for value in values], np.bool_)
    return places, np.array([0 if value is None else value for value in values], dtype), nulls


def present(segment):
    return [value for value in segment if value is not None]


def wrapped(total):
    return (total + 2**63) % 2**64 - 2**63


def passes_over_the_edge(segment):
    """Whether a wrapping sum wraps on the way, back again included."""
    total = 0
    for value in present(segment):
        if wrapped(total + value) != total + value:
            return True
        total += value
    return False


def bits(values):
    """Floats as their bytes, so that NaN is itself and -0.0 is not 0.0."""
    return [struct.pack("d", math.nan if value != value else value) for value in values]


@given(segments_of(INTEGERS))
def test_count_present(segments):
    places, _, nulls = flat(segments, np.int64)
    counts = np.full(len(segments), -1)
    count_present(0, len(segments), places, nulls, counts)
    assert counts.tolist() == [len(present(segment)) for segment in segments]


@given(segments_of(FLOATS))
def test_sum_floats_adds_in_event_order(segments):
    places, values, nulls = flat(segments, np.float64)
    sums = np.full(len(segments), -1.0)
    sum_floats(0, len(segments), places, values, nulls, sums)
    expected = []
    for segment in segments:
        total = 0.0
        for value in present(segment):
            total += value
        expected.append(total)
    assert bits(sums.tolist()) == bits(expected)


@given(segments_of(INTEGERS))
def test_sum_ints_marks_overflows(segments):
    places, values, nulls = flat(segments, np.int64)
    sums = np.full(len(segments), -1)
    overflowed = np.ones(len(segments), np.bool_)
    sum_ints(0, len(segments), places, values, nulls, sums, overflowed)
    exact = [[sum(present(segment)[: k + 1]) for k in range(len(present(segment)))] or [0] for segment in segments]
    assert overflowed.tolist() == [passes_over_the_edge(segment) for segment in segments]
    assert sums.tolist() == [wrapped(partial[-1]) for partial in exact]


@pytest.mark.parametrize(("dtype", "values"), [(np.int64, INTEGERS), (np.float64, FLOATS)], ids=["integers", "floats"])
@pytest.mark.parametrize(("sign", "best"), [(1, min), (-1, max)], ids=["min", "max"])
def test_extreme_places(dtype, values, sign, best):
    @given(segments_of(values))
    def check(segments):
        places, array, nulls = flat(segments, dtype)
        found = np.full(len(segments), -2)
        extreme_places(0, len(segments), places, array, nulls, sign, found)
        assert found.tolist() == [expected_place(int(begin), segment, best) for begin, segment in zip(places, segments, strict=False)]

    check()


def expected_place(begin, segment, best):
    places = [k for k, value in enumerate(segment) if value is not None]
    if not places:
        return -1
    unordered = [k for k in places if math.isnan(segment[k])]
    return begin + (unordered or [best(places, key=lambda k: segment[k])])[0]

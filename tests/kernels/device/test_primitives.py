"""Parallel primitives, over NumPy in CuPy's place, against the sequential kernels whose results they give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.device import primitives
from gpu_cep_kernels.intervals import situations
from gpu_cep_kernels.labels_decide import runs
from gpu_cep_kernels.phase_one import window_conditions
from tests.kernels.streams import problems

WIDTHS = pytest.mark.parametrize("word", [np.uint8, np.uint16, np.uint32, np.uint64])
LABELS = st.lists(st.integers(0, 255), max_size=20)


@WIDTHS
def test_prefix_counts(word):
    @given(LABELS)
    def check(values):
        labels = np.array(values, word)
        expected = np.empty((8, len(labels) + 1), np.int32)
        window_conditions.prefix_counts(labels, 8, expected)
        found = primitives.prefix_counts(np, labels.reshape(1, -1), 8)
        assert found.dtype == expected.dtype
        assert found.tolist() == expected.tolist()

    check()


@pytest.mark.parametrize("flags", [[], [False], [True], [False] * 9, [False, True, False]])
def test_any_set(flags):
    assert primitives.any_set(np.array(flags, np.bool_)) is any(flags)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_streams(sizes):
    numbers = primitives.stream_numbers(np, np.cumsum(sizes)[:-1], sum(sizes))
    assert numbers.tolist() == [number for number, size in enumerate(sizes) for _ in range(size)]


@given(problems(), st.data())
def test_covered_events(problem, data):
    pattern, stream = problem
    arrays = stream.arrays(len(pattern.level))
    size = len(stream.labels)
    starts = np.array([e for e in range(size) if data.draw(st.booleans())], np.int64)
    inside = {e for start in starts for e in stream.window(start)}
    assert primitives.covered_events(np, starts, arrays.ends[starts], size).tolist() == [e in inside for e in range(size)]


@WIDTHS
@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.sampled_from([1, 2, 4]))
def test_first_without(word, values, bit):
    words = np.array(values, word)
    expected, found = (np.full(len(words) + 2, -1, np.int32) for _ in range(2))
    runs.find_repeats(words, word(bit), expected)
    primitives.first_without(np, words, word(bit), found)
    assert found.tolist() == expected.tolist()


@WIDTHS
@given(st.lists(st.integers(0, 7), min_size=1, max_size=12), st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=4), st.data())
def test_entering_events(word, values, masks, data):
    enters, own = np.array(values, word), data.draw(st.integers(0, len(values)))
    expected = np.full(own + 1, -1, np.int64)
    expected = expected[: runs.select_entering(own, enters, np.array(masks, word), expected)]
    found = primitives.entering_events(np, enters, [word(mask) for mask in masks], own)
    assert found.dtype == np.int64
    assert found.tolist() == expected.tolist()


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 5)), min_size=1, max_size=9), st.sampled_from([np.int32, np.int64]))
def test_events_in_ranges(ranges, kind):
    first, last = (np.array(ends, kind) for ends in zip(*((begin, begin + length) for begin, length in ranges), strict=True))
    inside = {e for begin, length in ranges for e in range(begin, begin + length + 1)}
    found = primitives.events_in_ranges(np, first, last, 20)
    assert found.tolist() == [e in inside for e in range(20)]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 7)), max_size=12))
def test_paired_borders(changes):
    """Each border turns some names of its stream on or off; what is left on at the end stays without an end."""
    streams, flipped = (np.array([change[part] for change in changes], np.uint16) for part in (0, 1))
    before = [np.bitwise_xor.reduce(flipped[:b][streams[:b] == streams[b]], initial=0) for b in range(len(changes))]
    opened, closed = flipped & ~np.array(before, np.uint16), flipped & np.array(before, np.uint16)
    order = np.argsort(streams, kind="stable")
    counts, ends = np.zeros((2, 3), np.int64)
    situations.count_crossings(order, opened, closed, counts, ends)
    begins = np.cumsum(counts) - counts
    expected = [np.full(counts.sum(), -1, np.int64) for _ in range(2)]
    situations.pair_borders(order, opened, closed, begins.copy(), np.cumsum(ends) - ends, *expected)
    opening, closing, sizes = primitives.paired_borders(np, streams, opened, closed, 3)
    assert opening.tolist() == expected[0].tolist()
    assert closing.tolist() == expected[1][: ends.sum()].tolist()
    assert sizes == counts.tolist()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=12))
def test_stable_order(pairs):
    keys = [np.array(key) for key in zip(*pairs, strict=True)]
    assert primitives.stable_order(np, keys).tolist() == sorted(range(len(pairs)), key=lambda e: pairs[e])
    assert primitives.stable_order(np, keys[:1]).tolist() == sorted(range(len(pairs)), key=lambda e: pairs[e][0])


@given(st.lists(st.sampled_from([-(2**63), -1, 0, 5, 2**63 - 1]), max_size=12))
def test_dense_codes_ascend_with_the_values(values):
    codes, count = primitives.dense_codes(np, np.array(values, np.int64))
    distinct = sorted(set(values))
    assert codes.tolist() == [distinct.index(value) for value in values]
    assert count == len(distinct)

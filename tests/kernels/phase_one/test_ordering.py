"""Streams by counting sort, and time order inside them, against Python's stable sort."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.phase_one.ordering import (
    exclusive_offsets,
    find_destinations,
    gather,
    histogram,
    mark_disordered_streams,
    put,
    scatter,
    scatter_times,
    sort_streams,
    streams_of,
)

STREAMS = 4
INTEGER_TIMES = st.sampled_from([-(2**63), -1, 0, 1, 2, 2**63 - 1])
FLOAT_TIMES = st.sampled_from([-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf])
BOTH = pytest.mark.parametrize(("dtype", "times"), [(np.int64, INTEGER_TIMES), (np.float64, FLOAT_TIMES)])


def integers(values):
    return np.array(values, np.int64)


@given(
    st.lists(st.tuples(st.integers(0, STREAMS - 1), st.booleans()), max_size=30), st.integers(0, 30),
    st.one_of(st.just([]), st.permutations(range(STREAMS))),
)  # fmt: skip
def test_counting_sort_is_stable_over_slices(events, cut, order):
    keys = np.array([key for key, _ in events], np.int32)
    kept = [row for row, (_, keep) in enumerate(events) if keep]
    slices = [integers([row for row in kept if row < cut]), integers([row for row in kept if row >= cut])]
    counts, offsets = np.zeros((2, STREAMS), np.int64), np.empty(STREAMS + 1, np.int64)
    places = [np.full(len(rows), -1) for rows in slices]
    for part, rows in enumerate(slices):
        histogram(rows + 7, 7, keys, counts[part], places[part])
        assert places[part].tolist() == keys[rows].tolist()
    assert counts.sum(axis=0).tolist() == [sum(keys[row] == k for row in kept) for k in range(STREAMS)]
    exclusive_offsets(counts, integers(order), offsets)
    times, column = np.arange(len(events)) * 7, np.arange(len(events)) + 100
    out_times, out_rows, out = (np.full(len(kept), -1) for _ in range(3))
    for part, (rows, destinations) in enumerate(zip(slices, places, strict=True)):
        find_destinations(counts[part], destinations)
        assert scatter_times(rows + 7, 7, destinations, times, out_times)
        put(0, len(rows), destinations, rows, out_rows)
        scatter(0, len(rows), rows + 7, 7, destinations, column, out)
    placed = list(order) or list(range(STREAMS))
    expected = sorted(kept, key=lambda row: placed.index(keys[row]))
    assert out_rows.tolist() == expected
    assert out_times.tolist() == [7 * row for row in expected]
    assert out.tolist() == [100 + row for row in expected]
    sizes = [sum(keys[row] == k for row in kept) for k in placed]
    assert offsets.tolist() == [sum(sizes[:s]) for s in range(STREAMS + 1)]


@BOTH
def test_times_that_are_scattered_are_seen_to_fall(dtype, times):
    @given(st.data())
    def check(data):
        values = np.array(data.draw(st.lists(times, max_size=8)), dtype)
        rows = integers([row for row in range(len(values)) if data.draw(st.booleans())])
        destinations, out = integers(data.draw(st.permutations(range(len(rows))))), np.zeros(len(rows), dtype)
        picked = values[rows].tolist()
        assert scatter_times(rows, 0, destinations, values, out) == (picked == sorted(picked))
        assert out[destinations].tolist() == picked

    check()


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.data())
def test_streams_of(sizes, data):
    stream = [s for s, size in enumerate(sizes) for _ in range(size)]
    events = sorted(data.draw(st.lists(st.integers(0, len(stream) - 1), max_size=8))) if stream else []
    found = np.full(len(events), -1)
    streams_of(integers(events), integers([sum(sizes[:s]) for s in range(len(sizes) + 1)]), found)
    assert found.tolist() == [stream[event] for event in events]


def drawn_streams(data, times, dtype):
    sizes = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    total = int(offsets[-1])
    values = np.array(data.draw(st.lists(times, min_size=total, max_size=total)), dtype)
    ranked = data.draw(st.booleans())
    ranks = integers(data.draw(st.lists(st.integers(0, 2), min_size=total, max_size=total))) if ranked else np.empty(0, np.int64)
    return offsets, values, ranks


def place_in_time(times, ranks):
    return lambda e: (times[e], ranks[e] if len(ranks) else 0)


@BOTH
def test_sort_streams_sorts_each_stream_stably(dtype, times):
    @given(st.data())
    def check(data):
        offsets, values, ranks = drawn_streams(data, times, dtype)
        permutation, scratch = np.full(len(values), -1), np.empty(len(values), np.int64)
        sort_streams(0, len(offsets) - 1, offsets, values, ranks, permutation, scratch)
        key = place_in_time(values, ranks)
        expected = [e for span in itertools.pairwise(offsets) for e in sorted(range(*span), key=key)]
        assert permutation.tolist() == expected

    check()


@BOTH
def test_streams_out_of_order_are_marked(dtype, times):
    @given(st.data())
    def check(data):
        offsets, values, ranks = drawn_streams(data, times, dtype)
        key = place_in_time(values, ranks)
        spans = list(itertools.pairwise(offsets))
        low = data.draw(st.integers(0, len(spans)))
        disordered = np.zeros(len(spans), np.bool_)
        mark_disordered_streams(low, len(spans), offsets, values, ranks, disordered)
        unsorted = [sorted(range(*span), key=key) != list(range(*span)) for span in spans]
        assert disordered.tolist() == [False] * low + unsorted[low:]

    check()


def test_only_the_streams_asked_for_are_sorted():
    offsets, times = integers([0, 2, 4]), integers([2, 1, 2, 1])
    permutation = integers([-1, -1, -1, -1])
    sort_streams(1, 2, offsets, times, np.empty(0, np.int64), permutation, np.empty(4, np.int64))
    assert permutation.tolist() == [-1, -1, 3, 2]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), st.data())
def test_gather(values, data):
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=30) if values else st.just([]))
    out = np.zeros(len(rows), np.int64)
    gather(0, len(rows), np.array(rows, np.int32) + 7, 7, np.array(values, np.int64), out)
    assert out.tolist() == [values[row] for row in rows]

"""Match windows, ties and next occurrences against their definitions (thesis Def. 4.3)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.phase_one.windows import WindowLimits, mark_crowded, mark_streams, next_occurrences, window_ends

INTEGER_TIMES = st.one_of(st.integers(0, 8), st.sampled_from([-(2**63), -1, 2**63 - 1]))
FLOAT_TIMES = st.one_of(st.integers(0, 8).map(float), st.floats(-1e300, 1e300, allow_nan=False))
LENGTHS = st.one_of(st.integers(0, 5), st.sampled_from([2**63 - 1, 2**64 - 1]))


@st.composite
def ordered_streams(draw, times):
    """(offsets, times): streams in order of time, some of them empty."""
    streams = draw(st.lists(st.lists(times, max_size=8).map(sorted), min_size=1, max_size=4))
    offsets = np.concatenate([[0], np.cumsum([len(stream) for stream in streams])]).astype(np.int64)
    return offsets, [time for stream in streams for time in stream]


def machine(times, dtype):
    """Times as kernels see them: float64, or int64 seen as uint64."""
    return np.array(times, np.float64) if dtype is np.float64 else np.array(times, np.int64).view(np.uint64)


def marked(offsets, times, dtype, low=0, high=None):
    """What mark_streams says of the events [low, high)."""
    batch = machine(times, dtype)[low:high]
    stream_end, after = np.full(len(batch), -1, np.int32), np.full(len(batch) + 1, -1, np.int32)
    first = int(np.searchsorted(offsets, low, side="right")) - 1
    last = int(np.searchsorted(offsets, low + len(batch), side="left"))
    return mark_streams(low, offsets, first, last, batch, stream_end, after), stream_end, after


BOTH = pytest.mark.parametrize(
    ("dtype", "times", "lengths"),
    [(np.uint64, INTEGER_TIMES, LENGTHS), (np.float64, FLOAT_TIMES, st.one_of(LENGTHS.map(float), st.just(np.inf)))],
    ids=["integers", "floats"],
)


@BOTH
def test_mark_streams(dtype, times, lengths):
    @given(ordered_streams(times), st.data())
    def check(streams, data):
        offsets, values = streams
        low = data.draw(st.integers(0, len(values)))
        high = data.draw(st.integers(low, len(values)))
        ties, stream_end, after = marked(offsets, values, dtype, low, high)
        ends = [min(int(offsets[offsets > low + e][0]), high) - low for e in range(high - low)]
        batch = values[low:high]
        assert stream_end.tolist() == ends
        assert after.tolist() == [
            *(next((f for f in range(e, end) if batch[f] > batch[e]), end) for e, end in enumerate(ends)),
            high - low,
        ]
        assert ties == sum(e + 1 < end and batch[e] == batch[e + 1] for e, end in enumerate(ends))

    check()


@BOTH
def test_window_ends(dtype, times, lengths):
    @given(ordered_streams(times), lengths, st.data())
    def check(streams, length, data):
        offsets, values = streams
        _, stream_end, _ = marked(offsets, values, dtype)
        expected = [e + sum(values[f] - values[e] <= length for f in range(e, end)) for e, end in enumerate(stream_end)]
        starts = [e for e in range(len(values)) if data.draw(st.booleans())]
        starts = data.draw(st.permutations(starts) | st.just(starts))
        inside = [data.draw(st.integers(e, expected[e] - 1)) for e in starts]
        ends = np.full(len(starts), -1, np.int32)
        begins, known = np.array(starts, np.int64), np.array(inside, np.int64)
        window_ends(0, len(starts), begins, known, WindowLimits(machine(values, dtype), stream_end, dtype(length)), ends)
        assert ends.tolist() == [expected[e] for e in starts]

    check()


@BOTH
def test_mark_crowded(dtype, times, lengths):
    @given(ordered_streams(times), lengths, st.integers(1, 5))
    def check(streams, length, fewest):
        offsets, values = streams
        _, stream_end, _ = marked(offsets, values, dtype)
        windows = [range(e, e + sum(values[f] - values[e] <= length for f in range(e, end))) for e, end in enumerate(stream_end)]
        marks = np.zeros(len(values), np.bool_)
        mark_crowded(0, len(values), fewest, WindowLimits(machine(values, dtype), stream_end, dtype(length)), marks)
        assert marks.tolist() == [any(e in window and len(window) >= fewest for window in windows) for e in range(len(values))]

    check()


@given(st.lists(st.integers(0, 7), max_size=20), st.sampled_from([0, 61]))
def test_next_occurrences(labels, shift):
    variables, size = 3 + shift, len(labels)
    occurrence = np.full((variables, size + 2), -1, np.int32)
    next_occurrences(np.array([label << shift for label in labels], np.uint64), variables, occurrence)
    for v in range(3):
        expected = [next((f for f in range(e, size) if labels[f] >> v & 1), size) for e in range(size + 2)]
        assert occurrence[shift + v].tolist() == expected

"""The input buffers of the lazy automata; what these find is held to the oracle by tests/conformance."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.phase_one.input_buffers import Streams, between, count_labels, fill_buffers


@given(st.lists(st.integers(0, 7), max_size=20))
def test_each_buffer_holds_the_events_of_its_variable(labels):
    words, counts = np.array(labels, np.uint64), np.full(3, -1)
    count_labels(words, counts)
    buffers = [[e for e, label in enumerate(labels) if label >> v & 1] for v in range(3)]
    assert counts.tolist() == [len(buffer) for buffer in buffers]
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    events = np.full(int(first[-1]) + 1, -1)
    fill_buffers(words, first, events)
    assert events[:-1].tolist() == [e for buffer in buffers for e in buffer]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12).map(sorted), st.booleans(), st.data())
def test_between_two_events(times, strict, data):
    """Those of a part of a stream, which may end before either event does."""
    size = len(times)
    clock = np.array(times, np.uint64)
    prec, succ = data.draw(st.integers(-1, size - 1)), data.draw(st.integers(0, size))
    begin, end = data.draw(st.integers(0, max(prec + 1, 0))), data.draw(st.integers(0, size))

    def is_before(one: int, other: int) -> bool:
        return one < other and not (strict and times[one] == times[other])

    low, high = between(prec, succ, begin, end, Streams(np.array([0, size]), clock, clock, np.uint64(9), strict))
    fitting = [e for e in range(begin, end) if (prec < 0 or is_before(prec, e)) and (succ == size or is_before(e, succ))]
    assert [*range(low, high)] == fitting

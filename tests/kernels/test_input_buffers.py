"""The input buffers of the lazy automata; what these find is held to the oracle by tests/conformance."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.input_buffers import count_labels, fill_buffers


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

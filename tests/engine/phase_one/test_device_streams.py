"""The streams of a range of events, as a device numbers them, with the host in its place."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.phase_one.device.order_events import streams_of_range
from gpu_cep_kernels.device.interface import HOST


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8).filter(any), st.data())
def test_streams_are_numbered_from_the_first_in_the_range(sizes, data):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    low = data.draw(st.integers(0, int(offsets[-1]) - 1))
    high = data.draw(st.integers(low + 1, int(offsets[-1])))
    of_event = np.repeat(np.arange(len(sizes)), sizes)[low:high]
    streams, ends = streams_of_range(HOST, offsets, low, high)
    _, expected = np.unique(of_event, return_inverse=True)
    assert streams.tolist() == expected.tolist()
    assert ends.tolist() == (np.minimum(offsets[1:], high)[of_event] - low).tolist()
    assert streams.dtype == ends.dtype == np.int32

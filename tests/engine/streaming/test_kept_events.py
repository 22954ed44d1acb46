"""Events that come in no order are kept in order of time, those of one time in the order in which they came."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpu_cep.engine.streaming.kept_events import add_events
from gpu_cep.engine.streaming.state import StreamState, first_state

SCHEMA = pa.schema({"x": pa.int64()})
# Integers near each other, and so far apart that no difference of 32 bits, or of 64, tells them apart.
NEAR, FAR = st.integers(-4, 4) | st.integers(0, 1 << 18) | st.integers((1 << 32) - 3, (1 << 32) - 1), st.integers(-(1 << 63), (1 << 63) - 1)


def pushed(state: StreamState, times: npt.NDArray[np.generic]) -> StreamState:
    """The state with further events, whose column has their numbers."""
    numbers = np.arange(len(times)) + len(state.times)
    return add_events(state, pa.table({"x": numbers}, SCHEMA), times, numbers)


@example([0, -(1 << 63), (1 << 63) - 1], 0, np.int64)
@example([1 << 62, -(1 << 62) - 5, 100 - (1 << 62)], 0, np.int64)
@given(st.lists(NEAR, max_size=80) | st.lists(NEAR | FAR, max_size=40), st.integers(0, 80), st.sampled_from((np.int64, np.float64)))
def test_kept_events_are_in_order_of_time_and_of_arrival(times, cut, kind):
    given_times = np.array(times, kind)
    state = pushed(pushed(first_state(SCHEMA), given_times[:cut]), given_times[cut:])
    order = sorted(range(len(times)), key=lambda number: given_times[number])
    assert state.numbers.tolist() == state.events["x"].to_pylist() == order
    assert state.times.tolist() == given_times[order].tolist()


@pytest.mark.parametrize("span", [1 << 16, 1 << 31, 1 << 33])
def test_many_events_are_in_order_of_time(span):
    random = np.random.default_rng(span)
    mostly_sorted = np.sort(random.integers(0, span, 4_000))
    mostly_sorted[:3] = span
    for times in (random.integers(-span // 2, span // 2, 4_000), mostly_sorted):
        assert pushed(first_state(SCHEMA), times).numbers.tolist() == np.argsort(times, kind="stable").tolist()

"""The streams of a range of events, and of events that come back, as a device numbers them, with the host in its place."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.analysis.options import Options
from gpu_cep.engine.phase_one.computed_columns import event_columns
from gpu_cep.engine.phase_one.device.event_sources import ResidentEvents, streams_of_range
from gpu_cep.engine.phase_one.device.order_events import DeviceEvents
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from gpu_cep_kernels.device.interface import HOST
from gpu_cep_kernels.phase_one.placed_events import PlacedEvents


@given(st.lists(st.sampled_from([0, 0, 1, 2]), min_size=1, max_size=12).filter(any), st.data())
def test_streams_are_numbered_from_the_first_in_the_range(sizes, data):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    # most ranges hold several streams
    low = data.draw(st.integers(0, int(offsets[-1]) - 1) | st.just(0))
    high = data.draw(st.integers(low + 1, int(offsets[-1])) | st.just(int(offsets[-1])))
    of_event = np.repeat(np.arange(len(sizes)), sizes)[low:high]
    streams = streams_of_range(HOST, offsets, low, high)
    _, expected = np.unique(of_event, return_inverse=True)
    assert streams.tolist() == expected.tolist()
    assert streams.dtype == np.int32


EVENTS = pa.table({"ts": range(40), "type": ["A"] * 40})
PLAN = make_plan("PATTERN SEQ(A a, A b) WITHIN 3 EVENTS", EVENTS.schema, Options(), Settings())


@given(st.lists(st.integers(1, 3), min_size=1, max_size=10), st.data())
def test_events_that_come_back_stay_in_their_streams(sizes, data):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    size = int(offsets[-1])
    places = np.arange(size)
    of_event = np.repeat(np.arange(len(sizes)), sizes)
    placed = PlacedEvents(of_event.astype(np.uint16), places.astype(np.uint64), places.astype(np.int32), places[None].astype(np.uint8))
    events = DeviceEvents(placed, keys_ordered=True, tied=False, overlap=False)
    source = ResidentEvents(PLAN, event_columns(PLAN, EVENTS), events, HOST, data.draw(st.integers(1, 50)))
    picked = np.array(sorted(data.draw(st.sets(st.sampled_from(range(size)), min_size=1))), np.int64)
    cut = data.draw(st.integers(0, len(picked)))
    parts = [part for part in (picked[:cut], picked[cut:]) if len(part)]
    found, whole = source.ordered([source.copy(part) for part in parts], None), source.whole()
    # streams of which nothing is picked have no number
    assert found.offsets.tolist() == [0, *np.cumsum(np.unique(of_event[picked], return_counts=True)[1])]
    assert found.rows.tolist() == found.positions.tolist() == found.times.tolist() == picked.tolist()
    assert whole.offsets.tolist() == source.offsets.tolist() == offsets.tolist()
    assert whole.rows.tolist() == whole.positions.tolist() == whole.labels[0].tolist() == places.tolist()


def test_all_events_are_copied_as_they_are():
    placed = PlacedEvents(np.zeros(9, np.uint16), np.zeros(9, np.uint64), np.arange(9, dtype=np.int32), np.ones((1, 9), np.uint8))
    events = DeviceEvents(placed, keys_ordered=True, tied=True, overlap=False)
    source = ResidentEvents(PLAN, event_columns(PLAN, EVENTS), events, HOST, 5)
    with patch.object(HOST, "launch", side_effect=AssertionError("gathered")):
        assert source.copy(np.arange(9)).placed.rows.tolist() == list(range(9))
        with pytest.raises(AssertionError, match="gathered"):
            source.copy(np.arange(8))


def test_of_no_events_none_comes_back():
    placed = PlacedEvents(np.zeros(2, np.uint16), np.zeros(2, np.uint64), np.arange(2, dtype=np.int32), np.ones((1, 2), np.uint8))
    events = DeviceEvents(placed, keys_ordered=True, tied=True, overlap=False)
    found = ResidentEvents(PLAN, event_columns(PLAN, EVENTS), events, HOST, 5).ordered([], None)
    assert found.offsets.tolist() == [0, 0]
    assert found.rows.size == found.times.size == 0

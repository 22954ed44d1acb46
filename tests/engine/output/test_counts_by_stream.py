"""The numbers of matches that parts of the events have add up to those of streams."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.output.result_order import count_by_stream

PLAN = SimpleNamespace(derived=())


@given(st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=6), st.lists(st.integers(0, 36), max_size=4), st.data())
def test_parts_add_up_to_streams(streams, cuts, data):
    """Streams of any length, some of their events starts with so many matches, cut into parts anywhere."""
    totals = np.array([total for stream in streams for total in stream], np.int64)
    looked_at = np.array(data.draw(st.lists(st.booleans(), min_size=len(totals), max_size=len(totals))), np.bool_)
    starts = np.flatnonzero(looked_at)
    offsets = np.concatenate([[0], np.cumsum([len(stream) for stream in streams])]).astype(np.int64)
    ordered = SimpleNamespace(offsets=offsets, rows=np.arange(len(totals)) + 100, keys_ordered=True)
    parts = list(zip(np.split(starts, sorted(cuts)), np.split(totals[starts], sorted(cuts)), strict=True))
    rows, counts = count_by_stream(PLAN, None, ordered, parts)
    expected = []
    for low, high in zip(offsets[:-1], offsets[1:], strict=True):
        own = [event for event in range(low, high) if looked_at[event] and totals[event]]
        if own:
            expected.append((100 + own[0], int(totals[own].sum())))
    assert list(zip(rows.tolist(), counts.tolist(), strict=True)) == expected


def test_no_part_has_no_stream():
    rows, counts = count_by_stream(PLAN, None, SimpleNamespace(offsets=np.zeros(1, np.int64), rows=np.arange(0), keys_ordered=True), [])
    assert len(rows) == len(counts) == 0

"""Windows that reach from one batch of a device into the next, on a device that the CPU plays with spoilt memory."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep
from gpu_cep.engine.events.batches import cut_streams
from gpu_cep.engine.phase_one.device.card_memory import LARGEST_CHUNK, DeviceMemory, Labelling
from tests.effort import examples
from tests.gpu.pieces import Pieces
from tests.gpu.spoilt_device import SpoiltDevice, cupy_if_installed

QUERIES = [
    "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match { a.x < b.x AND b.x < c.x } WITHIN 30",
    "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match { a.x < b.x AND b.x < c.x } WITHIN 20 EVENTS",
    "PATTERN SEQ(A a, B b+, C c) WITHIN 25",
]


def events(random, size):
    """Few events of the first type: most events lie in windows that begin in a batch before."""
    types = random.choice(list("ABCZ"), size, p=[0.05, 0.4, 0.2, 0.35])
    ts, s, x = np.cumsum(random.integers(0, 3, size)), random.choice(["p", "q"], size, p=[0.9, 0.1]), random.integers(0, 9, size)
    return pa.table({"ts": ts, "type": types, "s": s, "x": x})


@pytest.mark.filterwarnings("ignore::gpu_cep.AbsentValueWarning")
@pytest.mark.parametrize("query", QUERIES)
@examples(25, 200)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(0, 120), batch=st.integers(1, 60), keys=st.sampled_from([None, "s"]))
def test_matches_are_those_of_the_cpu(query, seed, size, batch, keys):
    table = events(np.random.default_rng(seed), size)
    pieces = Pieces(bytes=1, chunk=1000, kept_events=1000, batch=batch, bound_events=7, ranked_values=1000)
    wanted = gpu_cep.match(table, query, engine="cpu", partition_by=keys, output="indices")
    device = SpoiltDevice(cupy_if_installed(), seed)
    with (
        patch("gpu_cep_kernels.device.selection._find_device", lambda: device),
        patch("gpu_cep.engine.phase_one.device.in_pieces.memory_of", lambda device, plan: pieces),
        patch("gpu_cep.engine.phase_one.device.on_device._batches", lambda source, memory, most: batches_of(source, memory.batch)),
    ):
        assert gpu_cep.match(table, query, engine="gpu", partition_by=keys, output="indices").equals(wanted)


def batches_of(source, size):
    """Batches of so many own events, however far their last windows reach."""
    return cut_streams(source.offsets, source.window_end, size) if source.total else []


@pytest.mark.parametrize(("travels", "expected"), [(True, LARGEST_CHUNK), (False, (1 << 36) // 4 // 40)])
def test_chunks_of_events_on_a_card_are_bounded_by_its_memory_alone(travels, expected):
    takes = Labelling(row_bytes=40, tables=0, arrays=1, rows=1 << 30, travels=travels)
    assert DeviceMemory(1 << 36).chunk_rows(takes) == expected

"""A device's passes over tiles, with several groups of them, against the CPU's sequential ones."""

from __future__ import annotations

import threading
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep
from gpu_cep.engine.phase_one.device import order_events
from gpu_cep.engine.phase_one.device.chunks import Chunk
from gpu_cep.engine.phase_one.device.kept_events import KeySpan, span_of_groups
from gpu_cep.engine.phase_one.device.tiles import firsts_behind, groups_of, numbers_before, tiles_of
from gpu_cep_kernels.phase_one.tiles import GROUP, NOWHERE, TILE
from tests.effort import every_pair
from tests.gpu.pieces import Pieces
from tests.gpu.spoilt_device import SpoiltDevice, cupy_if_installed

pytestmark = pytest.mark.filterwarnings("ignore::gpu_cep.AbsentValueWarning")

SEVERAL = 8 * TILE * GROUP + 100
SIZES = [1, TILE - 1, TILE, TILE + 1, TILE * GROUP, TILE * GROUP + 1, SEVERAL]


def events(size, random, streams, types="ABCXXXXX"):
    """Events of which most fit no variable; streams come in any order, and times tie."""
    return pa.table(
        {
            "ts": np.cumsum(random.integers(0, 3, size)) - 5,
            "type": random.choice([*types], size),
            "k": random.integers(0, streams, size) - 3,
            "f": random.integers(0, streams, size) / 2,
            "x": random.integers(0, 9, size),
        }
    )


def both(table, text, seed, **options):
    """What a spoilt device and the CPU give."""
    device = SpoiltDevice(cupy_if_installed(), seed)
    with patch("gpu_cep_kernels.device.selection._find_device", lambda: device):
        found = gpu_cep.match(table, text, engine="gpu", **options)
    return found, gpu_cep.match(table, text, engine="cpu", **options)


QUERIES = {
    "labels decide": ("PATTERN SEQ(A a, B b+, C c) WITHIN 40", {}),
    "conditions": ("PATTERN SEQ(A a, B b, C c) WHERE a.x <= 4 AND b.x > 2 AND a.x < c.x WITHIN 20", {}),
    "programs": ("PATTERN SEQ(A a, B b) WHERE a.x * 2 > 5 AND b.x > 1 AND b.k + b.x < 9 WITHIN 30", {}),
    "two columns are compared": ("PATTERN SEQ(A a, B b) WHERE a.x > 2 AND b.f < 2 AND b.x < 8 WITHIN 30", {}),
    "everything is kept": ("PATTERN SEQ(A a, B b) WITHIN 10", {"prune": ["chain"]}),
    "a number of events": ("PATTERN SEQ(A a, B b) WITHIN 9 EVENTS", {}),
    "of order by": ("PATTERN SEQ(A a, B b) WITHIN 9", {"order_by": "x"}),
}


@pytest.mark.parametrize("output", ["indices", "count"])
@pytest.mark.parametrize(("text", "options"), QUERIES.values(), ids=[*QUERIES])
def test_sizes_around_tiles_and_groups(text, options, output):
    for seed, size in enumerate(SIZES):
        found, expected = both(events(size, np.random.default_rng(seed), 5), text, seed, partition_by="k", output=output, **options)
        assert found.equals(expected), size
    assert expected.num_rows > 1


@pytest.mark.parametrize("keys", [None, "k", "f", ["k", "f"], "type"])
@pytest.mark.parametrize("streams", [1, 700])
def test_keys_of_all_kinds(keys, streams):
    table = events(SEVERAL, np.random.default_rng(7), streams, types="ABABC")
    text = "PATTERN SEQ(A a, A b) WITHIN 60"
    found, expected = both(table, text, 7, partition_by=keys, output="count")
    assert found.equals(expected)
    assert sum(found["count"].to_pylist()) > 0


@every_pair(spread=[1, 2**20, 2**40], variables=[2, 12, 40], keys=[None, "k", "wide"])
def test_many_events_are_sorted_by_way_of_packs(spread, variables, keys):
    """Times of several widths, codes of streams of 16 and 32 bits, and labels that fit beside them, or do not."""
    random = np.random.default_rng(variables)
    table = events(600, random, 7, types="ABABC")
    moved = random.permutation(600)
    table = table.set_column(0, "ts", pa.array((table["ts"].to_numpy()[moved] - 40) * spread))
    table = table.append_column("wide", pa.array(random.integers(0, 3, 600) * 10**6))
    names = ", ".join(f"{'A' if v % 2 == 0 else 'B'} v{v}" for v in range(variables))
    text = f"PATTERN SEQ(A a, B b) WITHIN {90 * spread}" if variables == 2 else f"PATTERN SEQ({names}) WITHIN {600 * spread}"
    launched = SpoiltDevice.launch
    with patch.object(order_events, "_MANY", 1), patch.object(SpoiltDevice, "launch", autospec=True, side_effect=launched) as launches:
        found, expected = both(table, text, 5, partition_by=keys, output="indices")
    assert found.equals(expected)
    assert expected.num_rows > 0
    assert {"pack_events", "gather_packed"} <= {call.args[1].__name__ for call in launches.call_args_list}


def test_streams_that_are_in_order_are_not_sorted():
    random = np.random.default_rng(3)
    table = events(SEVERAL, random, 9).sort_by([("k", "ascending"), ("ts", "ascending")])
    with patch("gpu_cep.engine.phase_one.device.order_events.stable_order", side_effect=AssertionError("sorted")):
        found, expected = both(table, QUERIES["labels decide"][0], 3, partition_by="k", output="count")
    assert found.equals(expected)


@pytest.mark.parametrize("rows", [TILE, TILE * GROUP])
def test_keys_that_fall_from_tile_to_tile_or_group_to_group(rows):
    table = pa.table({"ts": np.arange(2 * rows), "type": ["A", "B"] * rows, "k": np.repeat([1, 0], rows)})
    with patch.object(order_events, "_find_faults", wraps=order_events._find_faults) as looked:
        found, expected = both(table, "PATTERN SEQ(A a, B b) WITHIN 3", 1, partition_by="k", output="count")
    assert found.equals(expected)
    # the first pass has seen that streams are to be sorted
    assert looked.call_count == 1


def test_a_variable_that_occurs_once_is_found_from_afar():
    types = np.full(SEVERAL, "X")
    types[[0, 3, SEVERAL - 1]] = "A", "A", "B"
    table = pa.table({"ts": np.arange(SEVERAL), "type": types})
    found, expected = both(table, f"PATTERN SEQ(A a, B b) WITHIN {SEVERAL}", 1, output="indices", prune=["chain"])
    assert found.equals(expected)
    assert found.num_rows == 2


def test_what_is_carried_from_group_to_group():
    assert numbers_before(np.array([3, 0, 2])).tolist() == [0, 3, 3]
    firsts = np.array([[4, NOWHERE, 9], [NOWHERE, NOWHERE, NOWHERE]], np.int32)
    assert firsts_behind(firsts).tolist() == [[9, 9, NOWHERE], [NOWHERE] * 3]
    assert firsts_behind(firsts[:, :0]).shape == (2, 0)
    assert [tiles_of(0), tiles_of(TILE), tiles_of(TILE + 1), groups_of(TILE * GROUP + 1)] == [0, 1, 2, 2]


def test_spans_follow_one_another():
    one, other = KeySpan(2, 5, falls=False), KeySpan(5, 7, falls=False)
    assert one.followed_by(other) == KeySpan(2, 7, falls=False)
    assert other.followed_by(one) == KeySpan(2, 7, falls=True)
    assert KeySpan(1, 1, falls=True).followed_by(one).falls


@given(st.lists(st.lists(st.integers(-3, 3), max_size=3), max_size=5))
def test_the_span_of_groups_is_that_of_their_keys_in_a_row(groups):
    bounds = np.iinfo(np.int64)
    least = [min(keys, default=bounds.max) for keys in groups]
    greatest = [max(keys, default=bounds.min) for keys in groups]
    falls = [keys != sorted(keys) for keys in groups]
    found = span_of_groups(np.array([[len(keys) for keys in groups], least, greatest, falls], np.int64))
    row = [key for keys in groups for key in keys]
    assert found == KeySpan(min(row, default=bounds.max), max(row, default=bounds.min), falls=row != sorted(row))


def in_chunks(rows):
    """The device takes so many rows at a time."""
    pieces = Pieces(bytes=1, chunk=rows, kept_events=1 << 20, batch=1 << 20, bound_events=1 << 20, ranked_values=1 << 20)
    return patch("gpu_cep.engine.phase_one.device.in_pieces.memory_of", lambda device, plan: pieces)


@pytest.mark.parametrize(("text", "options"), QUERIES.values(), ids=[*QUERIES])
def test_what_chunks_need_comes_together_and_by_a_thread_behind_the_first(text, options):
    names, load_all = [], Chunk._load_all

    def noted(chunk, keys):
        names.append(threading.current_thread().name)
        return load_all(chunk, keys)

    with in_chunks(TILE * GROUP + 7), patch.object(Chunk, "_load_all", noted):
        found, expected = both(events(SEVERAL, np.random.default_rng(5), 5), text, 5, partition_by="k", output="indices", **options)
    assert found.equals(expected)
    assert len(names) == 9
    assert [name.startswith("gpu_cep-upload") for name in names] == [False] + [True] * 8


def test_a_fault_in_a_later_chunk_is_raised():
    numbers = pa.array([1] * 15 + [2**63], pa.uint64())
    table = pa.table({"ts": range(16), "type": ["A", "B"] * 8, "x": numbers})
    with in_chunks(4), pytest.raises(gpu_cep.errors.EventError, match="x"):
        both(table, "PATTERN SEQ(A a, B b) WHERE a.x > 0 WITHIN 3", 1)

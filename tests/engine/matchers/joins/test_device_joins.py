"""Joins on a device, which the CPU plays with spoilt memory, against those on the CPU; and how they are left to it."""

from __future__ import annotations

import math
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import gpu_cep
from gpu_cep import errors
from gpu_cep.engine.matchers.joins import device_joins, join_tree, workplace
from gpu_cep.engine.run import cut_batches
from gpu_cep.plan.join_trees import Join, Single
from gpu_cep_kernels.device import packing
from tests.gpu.spoilt_device import SpoiltDevice, cupy_if_installed

KEYED = "PATTERN SEQ(A a, B b, AND(C c, D d)) WHERE a.k = b.k AND c.y = d.y AND a.x < d.x AND a.x + c.x > b.x WITHIN 60"
QUERIES = {
    "keys and programs": KEYED,
    "comparisons": "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.y >= c.y WITHIN 40",
    "no conditions": "PATTERN AND(A a, SEQ(B b, C c)) WITHIN 15",
    "shared labels": "PATTERN SEQ(a, AND(b, c)) WHERE a.x > 45 AND b.x > 40 AND a.k = c.k WITHIN 30",
    "a number of events": "PATTERN SEQ(A a, B b, C c) WHERE a.k <> c.k WITHIN 12 EVENTS",
    "one variable": "PATTERN A a WHERE a.x > 25",
}
BUSHY = Join(Join(Single(3), Single(2)), Join(Single(1), Single(0)))


def events(size=500):
    rng = np.random.default_rng(4)
    return pa.table(
        {
            "ts": np.cumsum(rng.integers(0, 3, size)),
            "type": rng.choice(list("ABCD"), size),
            "s": rng.integers(0, 3, size),
            "k": rng.integers(0, 4, size),
            "x": pa.array(rng.integers(0, 50, size), mask=rng.random(size) < 0.1),
            "y": rng.choice([0.0, -0.0, 1.5, -2.0, math.nan], size),
        }
    )


def matched(query, engine, *, table=None, **options):
    defaults = {"output": "indices", "threads": 1, "algorithm": "join_tree", "strategy": "skip_till_any_match"}
    table = events() if table is None else table
    with patch("gpu_cep_kernels.device.selection._find_device", lambda: SpoiltDevice(cupy_if_installed(), 5)):
        return gpu_cep.match(table, query, engine=engine, **{**defaults, **options})


@pytest.fixture
def on_device():
    """Fails unless all tables of the test are joined on the device."""
    with patch.object(join_tree, "cpu_workplace", side_effect=AssertionError("joined on the CPU")):
        yield


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("output", ["indices", "count"])
@pytest.mark.parametrize("ties", ["strict", "position"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=[*QUERIES])
def test_a_device_joins_as_the_automaton_matches(query, ties, output):
    options = {"ties": ties, "output": output, "partition_by": "s"}
    wanted = matched(query, "cpu", algorithm="ses_automaton", **options)
    assert matched(query, "gpu", **options).equals(wanted)
    assert wanted.num_rows > 2


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("output", ["indices", "count"])
@pytest.mark.parametrize("size", [7, 100])
def test_slices_of_streams_and_small_tables_change_nothing(output, size):
    # few where each slice has few: one takes as long as hundreds of events
    options = {"output": output, "partition_by": "s", "table": events(300 if size < 10 else 500)}
    wanted = matched(KEYED, "cpu", algorithm="ses_automaton", **options)
    small = workplace.WorkBounds(5, 5, 3, 8)
    with (
        patch("gpu_cep.engine.run.cut_batches", lambda plan, ordered, *_: cut_batches(plan, ordered, size)),
        patch.object(join_tree, "cheapest_tree", lambda statistics: BUSHY),
        patch.object(device_joins, "WorkBounds", lambda *_: small),
    ):
        assert matched(KEYED, "gpu", **options).equals(wanted)
    assert wanted.num_rows > 2


@pytest.mark.usefixtures("on_device")
def test_an_overflow_and_a_limit_name_the_window():
    table = pa.table({"ts": [0, 1, 2, 3], "type": ["B", "A", "B", "A"], "x": [1, 2**62, 2**62, 1]})
    with pytest.raises(errors.EventError, match=r"integer overflow in a\.x \+ b\.x > 0, in the window that starts at ts=1"):
        matched("PATTERN SEQ(A a, B b) WHERE a.x + b.x > 0", "gpu", table=table)
    for options in ({"max_matches": 3}, {"max_steps": 3}):
        with pytest.raises(errors.MatchLimitExceeded, match="in the window that starts at ts="):
            matched(KEYED, "gpu", **options)


@pytest.mark.parametrize("output", ["indices", "count"])
def test_too_little_memory_leaves_the_joins_to_the_cpu(output, caplog):
    """The device fails in the midst of its work; what was counted before does not count."""
    calls, original = [], workplace.DeviceWorkplace.filter_partners

    def failing(*arguments):
        original(*arguments)
        calls.append(arguments)
        if len(calls) == 2:
            raise MemoryError("out of memory")

    wanted, expected = gpu_cep.Profile(), gpu_cep.Profile()
    on_cpu = matched(KEYED, "cpu", output=output, profile=expected)
    steps = expected.counts["pairs"]
    with patch.object(workplace.DeviceWorkplace, "filter_partners", failing):
        assert matched(KEYED, "gpu", output=output, profile=wanted, max_steps=steps).equals(on_cpu)
    assert len(calls) == 2
    assert wanted.counts["pairs"] == steps
    assert "joins run on the CPU: out of memory" in caplog.text


def test_a_budget_that_holds_no_candidates_leaves_the_joins_to_the_cpu():
    wanted = matched(KEYED, "cpu")
    with patch.object(device_joins, "_LEAST_CANDIDATES", 1 << 40), patch.object(join_tree, "device_workplace", side_effect=AssertionError):
        assert matched(KEYED, "gpu").equals(wanted)


def test_times_that_lie_on_the_device_stay_there():
    table = events().drop_columns(["x"])
    query, sizes, upload = "PATTERN SEQ(A a, B b, C c) WHERE a.k < c.k WITHIN 40", [], SpoiltDevice.upload

    def noted(device, array):
        sizes.append((array.dtype, array.shape[-1] if array.ndim else 0))
        return upload(device, array)

    # each array travels by itself
    with patch.object(SpoiltDevice, "upload", noted), patch.object(packing, "_SMALL", -1):
        found = matched(query, "gpu", table=table)
    assert found.equals(matched(query, "cpu", table=table))
    kept = pc.sum(pc.is_in(table["type"], pa.array(list("ABC")))).as_py()
    assert (np.dtype(np.int64), kept) in sizes, "values of k"
    assert (np.dtype(np.uint64), kept) not in sizes, "times"


def test_the_events_of_variables_go_to_the_device_once():
    """However often they are the left side of a join: its right side comes in many blocks."""
    query, sizes, upload = "PATTERN SEQ(A a, B b, C c) WHERE a.k < c.k WITHIN 40", [], SpoiltDevice.upload

    def noted(device, array):
        sizes.append((array.dtype, array.size))
        return upload(device, array)

    def in_blocks(search, batch, device):
        return workplace.DeviceWorkplace(device, workplace.WorkBounds(candidates=50, shared=50, rows=3, indexed=4))

    table = events()
    with patch.object(SpoiltDevice, "upload", noted), patch.object(join_tree, "device_workplace", in_blocks):
        found = matched(query, "gpu", table=table)
    assert found.equals(matched(query, "cpu", table=table))
    kept = pc.sum(pc.is_in(table["type"], pa.array(list("ABC")))).as_py()
    # one number stands behind those of events
    assert [size for kind, size in sizes if kind == np.int32 and size > 9] == [kept + 1]


def test_negations_functions_and_other_algorithms_are_the_cpus():
    query = "PATTERN SEQ(A a, NOT(D n), B b) WHERE a.k = b.k AND n.x > a.x WITHIN 30"
    calling = "PATTERN SEQ(A a, B b) WHERE less(a.k, b.k) > 1 WITHIN 30"
    functions = {"less": lambda one, other: other - one}
    with patch.object(join_tree, "device_workplace", side_effect=AssertionError):
        assert matched(query, "gpu").equals(matched(query, "cpu"))
        assert matched(calling, "gpu", functions=functions).equals(matched(calling, "cpu", functions=functions))
        assert matched(KEYED, "gpu", algorithm="auto").equals(matched(KEYED, "cpu"))

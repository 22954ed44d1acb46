"""A run on the device where it is bounded: by memory, by matches, by faults in the events; and what it reports."""

from __future__ import annotations

import logging
import re
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep
from gpu_cep.analysis.options import Options
from gpu_cep.engine.answers import answer
from gpu_cep.engine.events.own_events import OwnRows
from gpu_cep.engine.events.reported import Reported
from gpu_cep.engine.phase_one import engine_choice
from gpu_cep.engine.phase_one.device import direct_matches, in_pieces, label_and_order, on_device
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory
from gpu_cep.errors import EngineUnavailable, EventError, MatchLimitExceeded
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan

SIZE = 600
EVENTS = pa.table(
    {
        "ts": [e // 2 for e in range(SIZE)],
        "type": ["A", "B", "C"] * (SIZE // 3),
        "k": [None if e % 50 == 0 else e % 4 for e in range(SIZE)],
        "x": [(e * 7919) % 101 for e in range(SIZE)],
    }
)
# labels decide its matches, and those of the other do not
DIRECT = "PATTERN SEQ(A a, B b+, C c) WITHIN 9"
PAIRED = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match { a.x < b.x AND b.x < c.x } WITHIN 9"
BOTH = pytest.mark.parametrize("text", [DIRECT, PAIRED], ids=["direct", "paired"])


def on_cpu(text, **options):
    return gpu_cep.match(EVENTS, text, engine="cpu", **options)


def on_gpu(text, **options):
    return gpu_cep.match(EVENTS, text, engine="gpu", **options)


class Cramped(DeviceMemory):
    """No room to keep the events, nor for all that matches bind."""

    kept_events = SIZE // 6
    bound_events = SIZE // 12


def memory(found):
    """Patches what a run may take of the device's memory."""
    return patch.object(in_pieces, "memory_of", lambda device, plan: found)


@BOTH
@pytest.mark.parametrize("output", ["matches", "events", "indices", "count"])
@pytest.mark.parametrize("keys", [None, "k"])
def test_every_output_is_that_of_the_cpu(text, output, keys):
    assert on_gpu(text, output=output, partition_by=keys).equals(on_cpu(text, output=output, partition_by=keys))


@pytest.mark.parametrize("text", [DIRECT, PAIRED, PAIRED.replace("C c", "Z c")], ids=["direct", "paired", "no candidates"])
def test_the_waterfall_is_that_of_the_cpu(text):
    counts = []
    for engine in ("cpu", "gpu"):
        profile = gpu_cep.Profile()
        gpu_cep.match(EVENTS, text, engine=engine, algorithm="ses_automaton", partition_by="k", profile=profile)
        counts.append(profile.counts)
    assert counts[0] == counts[1]


@BOTH
def test_events_that_do_not_fit_are_ordered_on_the_host(text):
    with memory(Cramped(1 << 20)), patch.object(label_and_order, "_order_on_host", wraps=label_and_order._order_on_host) as on_host:
        found = on_gpu(text, partition_by="k")
    assert on_host.call_count == 1
    assert found.equals(on_cpu(text, partition_by="k"))


@BOTH
@pytest.mark.parametrize("found", [DeviceMemory(1 << 26), Cramped(1 << 20)], ids=["on the device", "on the host"])
@pytest.mark.parametrize("output", ["matches", "count"])
def test_matches_that_start_in_own_rows_are_those_of_the_cpu(text, found, output):
    own, results = OwnRows(np.arange(SIZE) % 7 < 4), []
    for engine in ("cpu", "gpu"):
        plan = make_plan(text, EVENTS.schema, Options(), Settings(engine=engine, output=output))
        with memory(found):
            results.append(answer(plan, EVENTS, reported=Reported(own)))
    assert results[0].num_rows > 1 or results[0]["count"][0].as_py() > 1
    assert results[0].equals(results[1])


@BOTH
def test_a_failed_allocation_is_tried_again_with_less_memory(text):
    tried = []
    original = on_device._phase_one

    def failing_twice(run, memory, **options):
        tried.append(memory.bytes)
        found = original(run, memory, **options)
        if len(tried) < 3:
            raise MemoryError("out of memory")
        return found

    profile = gpu_cep.Profile()
    with memory(DeviceMemory(1 << 26)), patch.object(on_device, "_phase_one", failing_twice):
        found = on_gpu(text, max_matches=on_cpu(text).num_rows, profile=profile)
    assert tried == [1 << 26, 1 << 25, 1 << 24]
    assert found.equals(on_cpu(text))
    assert profile.counts["filtered"] == SIZE


def test_allocations_that_never_succeed_are_an_error():
    failing = patch.object(on_device, "_phase_one", side_effect=MemoryError("2 GiB"))
    with failing, pytest.raises(EngineUnavailable, match=r"memory.*2 GiB.*engine='cpu'"):
        on_gpu(DIRECT)


def test_matches_that_bind_more_events_than_fit_come_back_in_slices():
    text = "PATTERN SEQ(A a, B b+, C c) WITHIN 9"
    with memory(Cramped(1 << 20)), patch.object(direct_matches, "bind_on_device", wraps=direct_matches.bind_on_device) as bind:
        found = on_gpu(text, output="indices", partition_by="k")
    assert bind.call_count > 1
    assert found.equals(on_cpu(text, output="indices", partition_by="k"))


LONG = "PATTERN SEQ(A a, B b+, C c) WITHIN 100000"


def many_events():
    return pa.table({"ts": list(range(3000)), "type": ["A", "B", "C"] * 1000})


def test_windows_that_no_batch_holds_are_an_error():
    with pytest.raises(EngineUnavailable, match="windows reach over 3,000 events of one stream, which take about") as raised:
        gpu_cep.match(many_events(), LONG, engine="gpu", gpu_memory=300_000)
    needed = re.search(r"about ([\d,]+) bytes", str(raised.value))[1].replace(",", "")
    found = gpu_cep.match(many_events(), LONG, engine="gpu", gpu_memory=int(needed), output="count")
    assert found.equals(gpu_cep.match(many_events(), LONG, engine="cpu", output="count"))


def test_windows_that_no_batch_holds_are_left_to_the_cpu_where_it_may_run(device, monkeypatch, caplog):
    monkeypatch.setattr("gpu_cep.engine.trials.choose_engine", lambda *_, **__: engine_choice.EngineChoice(device, "a test"))
    with caplog.at_level(logging.WARNING, "gpu_cep"):
        found = gpu_cep.match(many_events(), LONG, engine="auto", output="count", gpu_memory=300_000)
    assert found.equals(gpu_cep.match(many_events(), LONG, engine="cpu", output="count"))
    assert "cannot run on GPU because its memory does not suffice" in caplog.text


@pytest.mark.parametrize("output", ["indices", "count"])
@pytest.mark.parametrize("text", [DIRECT, PAIRED], ids=["direct", "paired"])
def test_too_many_matches_are_named_by_their_window(text, output):
    messages = []
    few = on_cpu(text).num_rows // 2
    for engine in ("cpu", "gpu"):
        with pytest.raises(MatchLimitExceeded) as raised:
            gpu_cep.match(EVENTS, text, engine=engine, algorithm="ses_automaton", max_matches=few, output=output, threads=1)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


def test_an_overflow_names_the_row():
    events = pa.table({"ts": [1, 2, 3], "type": ["A", "A", "B"], "x": [1, 2**62, 1]})
    with pytest.raises(EventError, match=r"integer overflow in .* at input row 1"):
        gpu_cep.match(events, "PATTERN SEQ(A a, B b) WHERE a.x * 3 > 5 OR a.x < 0 WITHIN 5", engine="gpu")


@pytest.mark.parametrize(("times", "what"), [([1, None, None], "2 NULLs"), ([1.0, float("nan"), 2.0], "1 NaN")])
def test_times_that_are_none(times, what):
    events = pa.table({"ts": times, "type": ["A", "B", "C"]})
    with pytest.raises(EventError, match=f"timestamp column 'ts' holds {what}"):
        gpu_cep.match(events, "PATTERN SEQ(A a, B b) WITHIN 5", engine="gpu")


class IllegalAddress(RuntimeError):
    status = 700


@pytest.fixture
def losing(monkeypatch):
    """Every run on the device ends with an illegal address; the device is there again after the test."""
    monkeypatch.setattr("gpu_cep_kernels.device.selection._lost", [])
    monkeypatch.setattr(on_device, "_phase_one", lambda *_, **options: (_ for _ in ()).throw(IllegalAddress("illegal memory access")))


@pytest.mark.usefixtures("losing")
def test_a_lost_device_is_an_error_then_and_later():
    with pytest.raises(EngineUnavailable, match=r"CUDA failed: IllegalAddress: illegal memory access.*use engine='cpu', or a new process"):
        on_gpu(DIRECT)
    with pytest.raises(EngineUnavailable, match=r"CUDA failed before in this process \(IllegalAddress: illegal memory access\)"):
        on_gpu(DIRECT)


@pytest.mark.usefixtures("losing")
def test_where_the_cpu_may_run_it_takes_over_from_a_lost_device(device, monkeypatch, caplog):
    monkeypatch.setattr("gpu_cep.engine.trials.choose_engine", lambda *_, **__: engine_choice.EngineChoice(device, "a test"))
    with caplog.at_level(logging.WARNING, "gpu_cep"):
        assert gpu_cep.match(EVENTS, DIRECT, engine="auto").equals(on_cpu(DIRECT))
    assert "cannot run on GPU because CUDA failed: IllegalAddress" in caplog.text

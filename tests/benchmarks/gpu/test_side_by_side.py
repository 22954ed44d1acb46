"""Processes that work side by side for the check of a card."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import wait

import pytest

from benchmarks.gpu.findings import BEGUN, FAULT, NOTE, Finding, note
from benchmarks.gpu.side_by_side import outcomes, processes
from gpu_cep_kernels.device.failures import DeviceLost


def answer(name: str) -> str:
    """The name, as late and as well as it says."""
    if name == "fails":
        raise MemoryError("no room")
    if name == "hangs":
        time.sleep(600)
    if name == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "loses the device":
        raise DeviceLost("an illegal address")
    return f"{name} done"


def test_what_fails_is_a_fault_and_what_is_late_a_note() -> None:
    begin = time.monotonic()
    with processes(2) as pool:
        called = {pool.submit(answer, name): name for name in ("one", "fails", "two", "hangs")}
        # the processes have started by now, and only one call goes on
        assert not wait([future for future, name in called.items() if name != "hangs"], 300).not_done
        found = list(outcomes(called, 1.0, lambda name, said: [note(f"{name}: {said}")]))
    notes = sorted(each.text for each in found if each.kind == NOTE)
    assert notes == ["Out of time before the end of: hangs.", "one: one done", "two: two done"]
    assert [each.text for each in found if each.kind == FAULT] == ["fails: out of memory: MemoryError: no room"]
    # a process that hangs is not waited for
    assert time.monotonic() - begin < 300


def test_a_process_that_is_killed_is_one_fault() -> None:
    with processes(1) as pool:
        called = {pool.submit(answer, name): name for name in ("is killed", "one", "two")}
        (found,) = outcomes(called, 300.0, lambda name, said: [])
    assert found.kind == FAULT
    assert "Left are: is killed, one, two." in found.text


def test_a_call_that_loses_the_device_is_the_last_that_was_begun() -> None:
    found: list[Finding] = []
    with processes(1) as pool:
        called = {pool.submit(answer, name): name for name in ("one", "loses the device", "two")}
        first = next(future for future, name in called.items() if name == "one")
        first.result(300)
        with pytest.raises(DeviceLost, match="illegal address"):
            found.extend(outcomes(called, 300.0, lambda name, said: []))
    begun = [each.text for each in found if each.kind == BEGUN]
    assert begun[-1] == "loses the device"
    assert set(begun) <= {"one", "two", "loses the device"}
    assert sum(each.kind == FAULT for each in found) == 1

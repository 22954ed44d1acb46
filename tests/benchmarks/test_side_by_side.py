"""Processes that work side by side for the check of a card."""

from __future__ import annotations

import time

from benchmarks.gpu.findings import FAULT, NOTE, note
from benchmarks.gpu.side_by_side import outcomes, processes


def answer(name: str) -> str:
    """The name, as late and as well as it says."""
    if name == "fails":
        raise MemoryError("no room")
    if name == "hangs":
        time.sleep(600)
    return f"{name} done"


def test_what_fails_is_a_fault_and_what_is_late_a_note() -> None:
    begin = time.monotonic()
    with processes(2) as pool:
        called = {pool.submit(answer, name): name for name in ("one", "fails", "two", "hangs")}
        # the processes have started by now
        assert next(future for future, name in called.items() if name == "two").result(100) == "two done"
        found = list(outcomes(called, 1.0, lambda name, said: [note(f"{name}: {said}")]))
    notes = sorted(each.text for each in found if each.kind == NOTE)
    assert notes == ["Out of time before the end of: hangs.", "one: one done", "two: two done"]
    assert [each.text for each in found if each.kind == FAULT] == ["fails: out of memory: MemoryError: no room"]
    # a process that hangs is not waited for
    assert time.monotonic() - begin < 300

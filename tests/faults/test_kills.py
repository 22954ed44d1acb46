"""A process that is killed at any step leaves the old file or the new one whole, and the next run is right."""

from __future__ import annotations

import multiprocessing
import signal
from itertools import count
from pathlib import Path

import pytest

from tests.faults.operations import OPERATIONS, run_killed

OLD = b"what was there before"
# What the fast suite kills, and at every which step; the full suite kills all at every step.
FAST = {"table.csv": 1, "plan.mmd": 1, "a.kernel": 1, "spilled.txt": 23}
CASES = [*FAST.items(), *(pytest.param(name, 1, marks=pytest.mark.full) for name in OPERATIONS if FAST.get(name) != 1)]


def killed(target: Path, at: int) -> int | None:
    """The exit code of a process that is killed at step `at`."""
    # children of a server that has loaded all and has no threads
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.faults.preloaded"])
    process = context.Process(target=run_killed, args=(target, at))
    process.start()
    process.join(timeout=120)
    return process.exitcode


@pytest.mark.parametrize(("name", "stride"), CASES)
def test_the_old_file_or_the_new_one_is_there(tmp_path, name, stride):
    folder = tmp_path / "results"
    folder.mkdir()
    target = folder / name
    assert killed(target, 0) == 0
    whole = target.read_bytes()
    for at in count(1, stride):
        target.write_bytes(OLD)
        ended = killed(target, at)
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        assert target.read_bytes() == OLD
        # what is left has a name of its own, which nothing reads
        assert killed(target, 0) == 0
        assert same(target.read_bytes(), whole)
    assert at > 2 * stride
    assert same(target.read_bytes(), whole)


def same(found: bytes, whole: bytes) -> bool:
    """Whether both are the same, but for the seconds that a report tells."""
    return found == whole or (found.startswith(b"<!") and abs(len(found) - len(whole)) < 100 and found[-20:] == whole[-20:])

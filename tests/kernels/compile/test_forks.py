"""Forks of a process whose other threads hold what the new process needs."""

from __future__ import annotations

import os
import signal
import threading
import time
import types
from collections.abc import Callable

import pytest
from numba.core.compiler_lock import global_compiler_lock

from gpu_cep_kernels.compile import forks, notices, turns

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked where the system can")


def in_fork(work: Callable[[], bool]) -> bool:
    """Return what work gives in a process that is forked now; False if it does not end."""
    child = os.fork()
    if not child:
        os._exit(not work())
    deadline = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    return ended[1] == 0


def take(lock) -> bool:
    lock.acquire()
    lock.release()
    return True


def test_a_lock_is_free_in_a_forked_process():
    lock = forks.free_after_fork()
    with lock:
        assert in_fork(lambda: take(lock))
        assert lock.locked()


def test_a_process_is_forked_once_no_other_thread_compiles():
    compiling, done = threading.Event(), threading.Event()

    def compile_long() -> None:
        with global_compiler_lock:
            compiling.set()
            time.sleep(0.3)
            done.set()

    thread = threading.Thread(target=compile_long)
    thread.start()
    compiling.wait()
    assert in_fork(lambda: done.is_set() and take(global_compiler_lock))
    thread.join()
    # neither the child nor this process keeps it
    assert in_fork(lambda: take(global_compiler_lock))


def test_a_turn_stays_with_the_process_that_took_it(tmp_path):
    turn, path = turns.Turn(), tmp_path / "kernel.lock"
    assert turn.take_free(path)

    def give_up_and_look() -> bool:
        turn.give_up()
        return turns.is_taken(path)

    assert in_fork(give_up_and_look)
    assert turns.is_taken(path)
    turn.give_up()
    assert not path.exists()
    assert not turns.is_taken(path)


def test_spans_of_other_threads_end_in_a_forked_process():
    told = threading.Event()

    def wait_for_it() -> bool:
        patience._left = 0.0
        with patience:
            return told.wait(30)

    # which does not run out before this process is forked, however busy the machine is
    patience = notices.Patience(3_600, told.set)
    with patience:
        assert in_fork(wait_for_it)


def test_where_processes_cannot_fork_a_lock_is_plain(monkeypatch):
    monkeypatch.delattr(os, "register_at_fork")
    # there, locks cannot be made anew
    monkeypatch.setattr(forks, "Lock", lambda: types.SimpleNamespace(held=False))
    assert not forks.free_after_fork().held

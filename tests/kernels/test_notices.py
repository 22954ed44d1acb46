"""What is said on stderr while kernels are compiled: one line, once a machine and version, and only where it takes long."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from gpu_cep_kernels.compile import kernel_cache, notices


@pytest.fixture
def told():
    return threading.Event()


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """A process that has said nothing yet, on a machine with an empty cache."""
    monkeypatch.setattr(notices, "_said", set())
    monkeypatch.delenv(notices.QUIET, raising=False)
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: tmp_path)
    return tmp_path


def test_who_does_not_wait_is_not_told(told):
    patience = notices.Patience(60, told.set)
    with patience, patience:
        pass
    assert not told.is_set()


def test_who_waits_is_told_while_it_lasts(told):
    with notices.Patience(0.01, told.set):
        assert told.wait(60)


def test_short_spans_add_up(told, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(notices, "time", SimpleNamespace(monotonic=lambda: now[0]))
    patience = notices.Patience(1_000, told.set)
    for _ in range(2):
        with patience:
            now[0] += 600
    assert not told.is_set()
    with patience:
        assert told.wait(60)


def test_threads_that_wait_are_told_once(told):
    said: list[int] = []

    def tell() -> None:
        said.append(1)
        told.set()

    patience = notices.Patience(0.01, tell)

    def wait() -> None:
        with patience:
            assert told.wait(60)
        for _ in range(2):
            with patience:
                time.sleep(0.02)

    with ThreadPoolExecutor(8) as threads:
        for each in [threads.submit(wait) for _ in range(8)]:
            each.result()
    assert said == [1]


def test_compiling_is_told_once_a_machine(fresh, capsys, monkeypatch):
    kernel_cache._tell_of_compiling()
    assert capsys.readouterr().err == f"gpu_cep: {notices.COMPILING}\n"
    monkeypatch.setattr(notices, "_said", set())  # as in another process
    kernel_cache._tell_of_compiling()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(notices, "package_version", lambda: "another")
    kernel_cache._tell_of_compiling()
    assert capsys.readouterr().err == f"gpu_cep: {notices.COMPILING}\n"


def test_nothing_is_said_where_that_is_wished_or_nobody_could_hear(fresh, capsys, monkeypatch):
    monkeypatch.setenv(notices.QUIET, "1")
    notices.say("aloud")
    assert capsys.readouterr().err == ""
    monkeypatch.delenv(notices.QUIET)
    monkeypatch.setattr(sys, "stderr", None)
    notices.say("into the void")


# Compiling lasts until it has been told.
SLOW = """
import threading
from gpu_cep_kernels.compile import kernel_cache, notices
from gpu_cep_kernels.compile.jit import sequential
tell, told, leave = kernel_cache.compiling._tell, threading.Event(), notices.Patience.__exit__
kernel_cache.compiling._left = 0.0
kernel_cache.compiling._tell = lambda: (tell(), told.set())
notices.Patience.__exit__ = lambda patience, *fault: (told.wait(60), leave(patience, *fault))[1]
@sequential(writes=())
def double(value) -> int:
    return value * 2
assert double(4) == 8
"""


def test_only_the_process_that_compiles_says_so(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop(notices.QUIET, None)

    def said() -> str:
        run = subprocess.run([sys.executable, "-c", SLOW], env=environment, capture_output=True, text=True, check=True)
        return run.stderr

    assert said() == f"gpu_cep: {notices.COMPILING}\n"
    for mark in (tmp_path / "gpu_cep").glob("said-*"):
        mark.unlink()
    assert said() == ""

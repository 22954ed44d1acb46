"""Processes that compile beside the one that started them."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest

from gpu_cep_kernels.compile import notices, processes

TOLD = """
import os
import sys
from pathlib import Path
from gpu_cep_kernels.compile import notices
Path(sys.argv[1]).write_text(f"{sys.argv[2:]} {os.environ[notices.QUIET]}")
"""
# A process that ends while what it has started goes on, and tells its number.
LEAVER = """
from gpu_cep_kernels.compile import processes
processes.start_beside("waiting", ())
(started,) = processes._started
print(started.pid, flush=True)
"""
# A process that tells which folder it keeps kernels in.
KEEPER = """
import sys
from pathlib import Path
from gpu_cep_kernels.compile.kernel_cache import cache_folder
Path(sys.argv[1]).write_text(str(cache_folder()))
"""


@pytest.fixture(autouse=True)
def own(monkeypatch):
    """What the test starts, without what queries of this process have started."""
    monkeypatch.setattr(processes, "_started", set())


@pytest.fixture
def library(monkeypatch, tmp_path) -> Path:
    """A folder of the path."""
    folder = tmp_path / "library"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    return folder


@pytest.fixture
def module(library) -> str:
    """A module that writes what it was given, in a folder of the path."""
    (library / "told_arguments.py").write_text(TOLD)
    return "told_arguments"


def arguments_of(module: str, tmp_path: Path) -> str:
    """What a process of that module was given."""
    told = tmp_path / "told"
    with processes.start_process(module, (told, 1, "a b")) as started:
        assert started.wait(60) == 0
    return told.read_text()


def test_a_module_runs_with_its_arguments_and_says_nothing(module, tmp_path):
    assert arguments_of(module, tmp_path) == "['1', 'a b'] 1"


def test_what_is_no_text_in_the_path_is_left_out(module, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [Path("nowhere"), *sys.path])
    assert arguments_of(module, tmp_path) == "['1', 'a b'] 1"


def test_a_module_of_the_working_folder_is_not_taken_for_the_librarys(module, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    (tmp_path / f"{module}.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    assert arguments_of(module, tmp_path) == "['1', 'a b'] 1"


@pytest.mark.parametrize("environment", [None, "environment"])
def test_kernels_are_kept_in_the_folder_of_the_process_that_starts_it(library, monkeypatch, tmp_path, environment):
    (library / "keeper.py").write_text(KEEPER)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "settings"))
    if environment is None:
        monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    else:
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / environment))
    assert arguments_of("keeper", tmp_path) == str(tmp_path / (environment or "settings") / "gpu_cep")


@pytest.mark.parametrize(
    ("executable", "frozen", "can"),
    [
        ("/usr/bin/python3.12", False, True),
        ("python.exe", False, True),
        ("/opt/conda/bin/python", True, False),
        ("/usr/sbin/uwsgi", False, False),
        ("", False, False),
        (None, False, False),
    ],
)
def test_only_python_itself_is_started(monkeypatch, executable, frozen, can):
    monkeypatch.setattr(sys, "executable", executable)
    monkeypatch.setattr(sys, "frozen", frozen, raising=False)
    assert processes.can_start() is can


@pytest.mark.parametrize("fault", [BlockingIOError("no more processes"), ValueError("embedded null byte")])
def test_why_no_process_can_be_started_is_said_once(monkeypatch, capsys, fault):
    def refuse(*_):
        raise fault

    monkeypatch.setattr(processes, "start_process", refuse)
    monkeypatch.setattr(notices, "_said", set())
    monkeypatch.delenv(notices.QUIET, raising=False)
    for _ in range(2):
        processes.start_beside("nowhere", ())
    (told,) = capsys.readouterr().err.splitlines()
    assert told.endswith(f"{type(fault).__name__}: {fault}")


def test_processes_that_have_ended_are_forgotten(module, tmp_path):
    processes.start_beside(module, (tmp_path / "told",))
    (started,) = processes._started
    while started in processes._started:
        processes.forget_ended()
        time.sleep(0.01)
    assert started.returncode == 0
    assert started.stdin is not None
    assert started.stdin.closed


@pytest.mark.parametrize("line", ["", "9 0\n"])
def test_a_process_that_ended_before_it_was_told_is_forgotten(library, line):
    (library / "ending.py").write_text("")
    started = processes.start_beside("ending", ())
    assert started is not None
    started.wait(60)
    processes.tell(started, line)
    processes.forget_ended()
    assert not processes._started


@pytest.fixture
def waiting(library) -> str:
    """A module that reads its input until that ends, in a folder of the path."""
    (library / "waiting.py").write_text("import sys; sys.stdin.read()")
    return "waiting"


def test_processes_end_with_the_one_that_started_them(waiting):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    # what is not waited for, or left open, would be told
    command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", LEAVER]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert told.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.stdout), 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked where the system can")
def test_a_forked_process_does_not_keep_alive_what_its_parent_started(waiting):
    processes.start_beside(waiting, ())
    (started,) = processes._started
    child = os.fork()
    if not child:
        os._exit(not (started.stdin is not None and started.stdin.closed and not processes._started))
    assert os.waitpid(child, 0)[1] == 0
    assert started.poll() is None
    processes._end_all()
    assert started.returncode is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked where the system can")
def test_no_forked_process_looks_for_garbage_in_what_it_shares():
    frozen = gc.get_freeze_count()
    forked = processes.fork_others(1)
    if not forked:
        os._exit(gc.get_freeze_count() <= frozen)
    gc.unfreeze()
    assert os.waitpid(forked[0], 0)[1] == 0

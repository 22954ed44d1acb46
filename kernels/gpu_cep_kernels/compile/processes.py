"""Start child processes that compile; they end with their parent."""

from __future__ import annotations

import atexit
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpu_cep_kernels.compile import notices
from gpu_cep_kernels.compile.forks import after_fork
from gpu_cep_kernels.compile.kernel_cache import FOLDER, given_folder

# The most bytes of the line that a child is told.
_MOST_TOLD = 100
# Child processes that were not seen to end. Each reads its input until that ends, and the input is open while the process is kept.
_started: set[subprocess.Popen[bytes]] = set()


def can_start() -> bool:
    """Return whether child processes can be started: whether `sys.executable` is Python.

    It is the application where one is frozen, or embeds Python.
    """
    return bool(sys.executable) and Path(sys.executable).name.lower().startswith("python") and not getattr(sys, "frozen", False)


def start_beside(module: str, arguments: Sequence[Any]) -> subprocess.Popen[bytes] | None:
    """Return a child process that runs a module of this package; None if none can be started.

    A notice says why.
    """
    try:
        process = start_process(module, arguments)
    except Exception as fault:
        # what is not compiled there is compiled by the query
        notices.say(f"no process can be started that compiles beside queries, which may take longer once: {type(fault).__name__}: {fault}")
        return None
    _started.add(process)
    return process


def tell(process: subprocess.Popen[bytes], line: str) -> None:
    """Give a child process a line of input, or end it if the line is empty."""
    if not line:
        process.kill()
    elif process.stdin is not None:
        # it may have ended
        with suppress(OSError):
            process.stdin.write(line.encode())


def read_told() -> str:
    """Return the line that the parent tells this process; it is empty if the parent has ended."""
    # what comes behind it is waited for by :func:`end_with_parent`
    return os.read(0, _MOST_TOLD).decode()


def start_process(module: str, arguments: Sequence[Any]) -> subprocess.Popen[bytes]:
    """Return a child process that runs a module of this package.

    It reads its input, which ends with this process.
    """
    # by name: this module is __main__ there
    command = [sys.executable, "-P", "-m", module, *map(str, arguments)]
    # Python itself ignores what is no text there
    path = os.pathsep.join(each for each in sys.path if isinstance(each, str))
    # the folder may have been set within this process
    environment = os.environ | {"PYTHONPATH": path, FOLDER: given_folder(), notices.QUIET: "1"}
    # without a buffer: what a process that has ended was not told would be written once more when its input is closed
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(command, bufsize=0, env=environment, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere)


def forget_ended() -> None:
    """Let the system forget the child processes that have ended."""
    for process in tuple(_started):
        if process.poll() is not None:
            _forget(process)


@atexit.register
def _end_all() -> None:
    """End the child processes.

    What they are about to keep on disk, they keep whole or not at all.
    """
    for process in tuple(_started):
        process.kill()
        process.wait()
        _forget(process)


def _leave_to_parent() -> None:
    """Forget the children of the process from which this one was forked: they end with that one."""
    for process in tuple(_started):
        process.returncode = 0
        _forget(process)


after_fork(_leave_to_parent)


def _forget(process: subprocess.Popen[bytes]) -> None:
    _started.discard(process)
    if process.stdin is not None:
        process.stdin.close()


def end_with_parent() -> None:
    """End this process as soon as its parent has ended, with which its input ends."""
    threading.Thread(target=_end_with_input, daemon=True).start()


def _end_with_input() -> None:
    """Read the input, and end this process when that ends."""
    while os.read(0, 1):
        pass
    os._exit(1)


def fork_others(others: int) -> list[int]:
    """Fork `others` processes; return them in the parent, and nothing in each of them."""
    forked: list[int] = []
    # a collector that looks through what processes share would copy each page of it
    gc.freeze()
    for _ in range(others):
        process = os.fork()
        if not process:
            return []
        forked.append(process)
    return forked

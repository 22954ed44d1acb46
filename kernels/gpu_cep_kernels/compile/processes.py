"""Start processes that compile beside this one; they end with it."""

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

# Bytes of the line that a process is told.
_MOST_TOLD = 100
# What this process has started, until it is seen to have ended: its input, which it reads until that ends, is open as long as it is kept.
_started: set[subprocess.Popen[bytes]] = set()


def can_start() -> bool:
    """Return whether `sys.executable` is Python; it is the application where one is frozen, or embeds Python."""
    return bool(sys.executable) and Path(sys.executable).name.lower().startswith("python") and not getattr(sys, "frozen", False)


def start_beside(module: str, arguments: Sequence[Any]) -> subprocess.Popen[bytes] | None:
    """Start a process that runs a module of this package, and ends with this one; return None if that fails, and a notice says why."""
    try:
        process = start_process(module, arguments)
    except Exception as fault:
        # what is not compiled there is compiled by the query
        notices.say(f"no process can be started that compiles beside queries, which may take longer once: {type(fault).__name__}: {fault}")
        return None
    _started.add(process)
    return process


def tell(process: subprocess.Popen[bytes], line: str) -> None:
    """Give a process that was started a line of input, or end it if that is empty."""
    if not line:
        process.kill()
    elif process.stdin is not None:
        # it may have ended
        with suppress(OSError):
            process.stdin.write(line.encode())


def read_told() -> str:
    """Return the line that the process which started this one tells it; it is empty if that one has ended."""
    # what comes behind it is waited for by :func:`end_with_parent`
    return os.read(0, _MOST_TOLD).decode()


def start_process(module: str, arguments: Sequence[Any]) -> subprocess.Popen[bytes]:
    """Return a process that runs a module of this package; it reads its input until that ends, as it does with this process."""
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
    """Let the system forget those processes that this one has started and that have ended."""
    for process in tuple(_started):
        if process.poll() is not None:
            _forget(process)


@atexit.register
def _end_all() -> None:
    """End the processes that this one has started; what they are about to keep on disk, they keep whole or not at all."""
    for process in tuple(_started):
        process.kill()
        process.wait()
        _forget(process)


def _leave_to_parent() -> None:
    """Forget the processes, which end with the one that started them, and not with this one that was forked from it."""
    for process in tuple(_started):
        process.returncode = 0
        _forget(process)


after_fork(_leave_to_parent)


def _forget(process: subprocess.Popen[bytes]) -> None:
    _started.discard(process)
    if process.stdin is not None:
        process.stdin.close()


def end_with_parent() -> None:
    """Let this process end as soon as the one that started it has ended: its input ends then."""
    threading.Thread(target=_end_with_input, daemon=True).start()


def _end_with_input() -> None:
    """Read the input, and end this process when that ends."""
    while os.read(0, 1):
        pass
    os._exit(1)


def fork_others(others: int) -> list[int]:
    """Fork so many processes; return them, or nothing in one of them."""
    forked: list[int] = []
    # a collector that looks through what processes share would copy each page of it
    gc.freeze()
    for _ in range(others):
        process = os.fork()
        if not process:
            return []
        forked.append(process)
    return forked

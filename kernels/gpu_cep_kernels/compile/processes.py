"""Start processes that compile beside this one; they end with it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from gpu_cep_kernels.compile import notices


def start_process(module: str, arguments: Sequence[Any]) -> subprocess.Popen[bytes]:
    """Return a process that runs a module of this package; it reads its input until that ends, as it does with this process."""
    # by name: this module is __main__ there
    command = [sys.executable, "-P", "-m", module, *map(str, arguments)]
    # Python itself ignores what is no text there
    path = os.pathsep.join(each for each in sys.path if isinstance(each, str))
    environment = os.environ | {"PYTHONPATH": path, notices.QUIET: "1"}
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


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
    for _ in range(others):
        process = os.fork()
        if not process:
            return []
        forked.append(process)
    return forked

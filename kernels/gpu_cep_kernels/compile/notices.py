"""Write notices to stderr: what takes long or goes wrong without failing, each once."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from importlib import metadata
from types import TracebackType

from gpu_cep_kernels.compile.forks import after_fork, free_after_fork

QUIET = "GPU_CEP_QUIET"
COMPILING = "compiling kernels for this machine, once (gpu-cep warmup does it ahead)"

_said: set[str] = set()
_lock = free_after_fork()


def say(text: str) -> None:
    """Write a line to stderr, unless this process has written it before or GPU_CEP_QUIET is set."""
    with _lock:
        if text in _said:
            return
        _said.add(text)
    if sys.stderr is not None and not os.environ.get(QUIET):
        print(f"gpu_cep: {text}", file=sys.stderr, flush=True)


def package_version() -> str:
    """Return the installed version of gpu_cep, or an empty text where it runs without being installed."""
    try:
        return metadata.version("gpu_cep")
    except metadata.PackageNotFoundError:
        return ""


class Patience:
    """Call a function, at most once, when the spans entered have lasted so many seconds together.

    A span is a ``with`` block. Several threads may enter spans, and spans may be
    nested: time counts once.
    """

    def __init__(self, seconds: float, tell: Callable[[], None]) -> None:
        self._left, self._tell = seconds, tell
        self._lock = free_after_fork()
        self._begin, self._told = 0.0, False
        self._leave_all()
        after_fork(self._leave_all)

    def _leave_all(self) -> None:
        """Begin outside of all spans, as in a process that is forked, where other threads do not go on."""
        self._inside = 0
        self._timer: threading.Timer | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1 and not self._told:
                self._begin = time.monotonic()
                self._timer = threading.Timer(max(0.0, self._left), self._run_out)
                self._timer.daemon = True
                self._timer.start()

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._timer is not None:
                self._timer.cancel()
                self._timer = None
                self._left -= time.monotonic() - self._begin

    def _run_out(self) -> None:
        """Call the function, unless it has been called or no span is entered any more."""
        with self._lock:
            if self._told or self._inside == 0:
                return
            self._told = True
        self._tell()

"""Let one process at a time compile a kernel, by the lock of a file."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from numba.core.compiler_lock import global_compiler_lock

from gpu_cep_kernels.compile.forks import after_fork, hold_while_forking

try:
    import fcntl

    _ALONE, _BESIDE_OTHERS = fcntl.LOCK_EX, fcntl.LOCK_SH
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]
    _ALONE = _BESIDE_OTHERS = 0

_MOST_SECONDS_IN_WAIT = 300.0
_SECONDS_BETWEEN_LOOKS = 0.05


class Turn:
    """Hold this process's turn to compile one kernel; other processes that need it wait.

    A process has one turn at a time for each of numba and numba-cuda, which compile for one thread at a time, and one to
    start processes that compile ahead.
    The turn ends with the process at the latest.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._path = Path()
        after_fork(self._leave_to_parent)

    def take(self, path: Path) -> None:
        """Wait until no other process has the turn of this name, and take it, unless this process has it already.

        After `_MOST_SECONDS_IN_WAIT` go on without it: the other process may have been stopped.
        """
        if self._file is not None and self._path == path:
            return
        self.give_up()
        limit = time.monotonic() + _MOST_SECONDS_IN_WAIT
        while not self._try(path) and time.monotonic() < limit:
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def take_free(self, path: Path) -> bool:
        """Take the turn of this name unless another process has it; return whether it was taken."""
        self.give_up()
        return self._try(path) and self._file is not None

    def _try(self, path: Path) -> bool:
        """Take the turn of this name unless another process has it; return False then, and True, too, where no file can be made."""
        try:
            file = path.open("ab")
        except OSError:
            return True
        if not (_is_locked(file) and _is_at(file, path)):
            file.close()
            return False
        self._file, self._path = file, path
        return True

    def _leave_to_parent(self) -> None:
        """Drop the turn in a forked process: it stays its parent's."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def give_up(self) -> None:
        """Give up the turn, if this process has one, so that others go on."""
        if self._file is not None:
            # the folder may be gone, or read-only by now
            with suppress(OSError), self._file:
                self._path.unlink()
            self._file = None


def is_taken(path: Path) -> bool:
    """Return whether a process has the turn of this name; a file of that name may be left of one that was ended."""
    try:
        file = path.open("r+b")
    except OSError:
        return False
    with file:
        # nobody who looks takes another one who looks for one who has the turn
        return not _is_locked(file, _BESIDE_OTHERS)


def _is_at(file: IO[bytes], path: Path) -> bool:
    """Return whether an open file still has this name: whoever had the turn removes the file, and the next one makes another."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def _is_locked(file: IO[bytes], kind: int = _ALONE) -> bool:
    """Return whether this process now holds a file's lock; True, too, where files cannot be locked."""
    try:
        if fcntl is not None:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


turn = Turn()
cuda_turn = Turn()
ahead_turn = Turn()
# only one thread at a time compiles, and nobody would go on in a forked process with what another one has begun
hold_while_forking(global_compiler_lock)

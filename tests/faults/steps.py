"""Make the n-th step of an operation fail, as SQLite's tests do: what it does to files, or what it allocates.

A test runs an operation with n = 1, 2, … until it ends before its n-th step. So it fails once at each place.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

# What changes a folder without opening a file there; the first argument is a path.
_CHANGES = ("replace", "mkdir")
# What concerns an open file, of which only a descriptor is given.
_SYNCS = ("fsync", "fchmod")


@dataclass
class Steps:
    """The steps of an operation, by name; before the one with the number `at`, from 1, `fail` is called."""

    at: int
    fail: Callable[[], Any]
    taken: list[str] = field(default_factory=list)

    @property
    def reached(self) -> bool:
        """Whether the step that fails has been taken."""
        return len(self.taken) >= self.at

    @property
    def fails_next(self) -> bool:
        return len(self.taken) + 1 == self.at

    def take(self, name: str) -> None:
        self.taken.append(name)
        if len(self.taken) == self.at:
            self.fail()


class File:
    """A file whose writes, flushes and end are steps; of a write that fails, the first half is done."""

    def __init__(self, file: Any, steps: Steps) -> None:
        self.file, self.steps = file, steps

    def write(self, held: Any) -> int:
        if self.steps.fails_next:
            self.file.write(memoryview(held)[: len(held) // 2])
            self.file.flush()
        self.steps.take("write")
        return self.file.write(held)

    def writelines(self, lines: Iterator[bytes]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self.steps.take("flush")
        self.file.flush()

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        was_open = not self.file.closed
        self.file.close()
        if was_open:
            self.steps.take("close")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


@contextmanager
def failing_writes(folder: Path, steps: Steps) -> Iterator[Steps]:
    """Inside, what is done to files in a folder is a step: opening them for writing, writes, syncs, new names."""
    opened, changed = builtins.open, {name: getattr(os, name) for name in (*_CHANGES, *_SYNCS)}

    def inside(path: Any) -> bool:
        return isinstance(path, (str, os.PathLike)) and Path(path).is_relative_to(folder)

    def open_file(path: Any, mode: str = "r", *given: Any, **named: Any) -> Any:
        if not inside(path) or not set(mode) & set("wxa+"):
            return opened(path, mode, *given, **named)
        steps.take("open")
        return File(opened(path, mode, *given, **named), steps)

    def change(name: str) -> Callable[..., Any]:
        def changing(path: Any, *given: Any, **named: Any) -> Any:
            if name in _SYNCS or inside(path):
                steps.take(name)
            return changed[name](path, *given, **named)

        return changing

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(builtins, "open", open_file)
        patched.setattr(io, "open", open_file)
        for name in changed:
            patched.setattr(os, name, change(name))
        yield steps


def each_step(fail: Callable[[], Any], stride: int = 1) -> Iterator[Steps]:
    """Give the steps of one run after another, of which the n-th fails, up to a run that ends before it; n grows by `stride`."""
    for at in count(1, stride):
        steps = Steps(at, fail)
        yield steps
        if not steps.reached:
            return


def full_disk() -> None:
    """Raise what the system raises where a disk is full."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def raising(fault: BaseException) -> Callable[[], None]:
    """Return a function that raises an error."""

    def fail() -> None:
        raise fault

    return fail

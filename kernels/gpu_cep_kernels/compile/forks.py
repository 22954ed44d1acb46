"""Keep locks usable in forked processes, where the threads that held them do not exist."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock
from typing import Protocol


class _Held(Protocol):
    """A lock, which one thread at a time holds."""

    def acquire(self) -> object:
        """Wait until no other thread holds the lock, and take it."""

    def release(self) -> None:
        """Let other threads take the lock."""


def after_fork(renew: Callable[[], object]) -> None:
    """Call a function in each process that is forked from this one, before anything else runs there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)


def free_after_fork() -> Lock:
    """Return a lock that nobody holds in a process that is forked from this one."""
    lock = Lock()
    # where processes cannot fork, locks have no such method
    after_fork(lambda: lock._at_fork_reinit())  # type: ignore[attr-defined]
    return lock


def hold_while_forking(lock: _Held) -> None:
    """Let this process be forked only while no other thread holds a lock; what it guards is whole in the new process then."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)

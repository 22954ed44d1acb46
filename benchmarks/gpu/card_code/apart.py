"""Call functions in processes of their own, which may end by a fault of memory."""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any


class Ended(Exception):
    """Say that a process ended before it had a result."""


class Raised(Exception):
    """Say which exception a call raised, and its text."""


@dataclass(frozen=True, slots=True)
class Running:
    """A call in a process that is a copy of this one."""

    process: BaseProcess
    end: Connection

    def outcome(self) -> Any:
        """Return what the call gives, or an exception that says what it raised or how its process ended; wait for it."""
        try:
            return self.end.recv()
        except EOFError:
            self.process.join()
            return Ended(f"ended by {_cause(self.process.exitcode or 0)}")
        finally:
            self.process.join()


def begin(function: Callable[..., Any], *arguments: Any) -> Running:
    """Begin a call in a copy of this process."""
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_call, args=(theirs, function, arguments))
    process.start()
    theirs.close()
    return Running(process, ours)


def _call(end: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Send what a call gives, or which exception it raised."""
    # whoever waits says what the process ended by
    faulthandler.disable()
    try:
        end.send(function(*arguments))
    except Exception as fault:
        # not every exception can be sent, or made anew from what was
        end.send(Raised(f"{type(fault).__name__}: {fault}"))


def _cause(code: int) -> str:
    """Return what a process ended by, and what that says of its arrays."""
    if code >= 0:
        return f"exit {code}"
    ended = signal.Signals(-code)
    return f"{ended.name}: it reads or writes outside of its arrays" if ended in (signal.SIGSEGV, signal.SIGBUS) else ended.name

"""Bounds on output and work: exceeding one is an error, never a truncation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import ClassVar, Protocol

from gpu_cep.engine.accounting.host_memory import free_memory
from gpu_cep.errors import CepError, MatchLimitExceeded
from gpu_cep.plan.settings import Settings

# Share of the memory free when the matching begins that the result may take, all copies on its way to a table included.
# The rest is for what a footprint cannot know: kernels' scratch, allocators' slack, text far longer than its column's mean.
MEMORY_SHARE = 0.8

LESS_MEMORY = "use output='count' or a narrower pattern"


class WindowError(Exception):
    """An error in a match window, raised with the position of the event at which that starts.

    :func:`gpu_cep.engine.events.window_names.name_windows` makes of it an
    `error` that names the window.
    """

    error: ClassVar[type[CepError]]

    def __init__(self, start: int, reason: str) -> None:
        super().__init__(reason)
        self.start = start
        self.reason = reason


class BudgetExceeded(WindowError):
    """A run found more matches, or made more steps, than it may."""

    error = MatchLimitExceeded


def memory_for_results(concurrent: int) -> int:
    """Bytes that the result of one of so many concurrent runs on this machine may take."""
    return int(free_memory() * MEMORY_SHARE) // concurrent


class Account(Protocol):
    """What a matcher answers to for what it finds and does; the parts of its result may take `memory` bytes."""

    @property
    def memory(self) -> int: ...

    def spend(self, matches: int, events: int, steps: int, start_of: Callable[[int], int]) -> None: ...


@dataclass
class Budget:
    """What one run may still produce; shared by its threads."""

    max_matches: int | None
    max_steps: int | None
    footprint: Footprint
    memory: int
    matches: int = 0
    bytes: int = 0
    steps: int = 0
    closed: bool = False
    _lock: Lock = field(default_factory=Lock, repr=False)

    def take_over(self, other: Budget) -> None:
        """Go on from what another budget of the same run has counted."""
        with self._lock:
            self.matches, self.bytes, self.steps = other.matches, other.bytes, other.steps

    def close(self) -> None:
        """End the run: threads that are still at work stop the next time they account for it."""
        self.closed = True

    def spend(self, matches: int, events: int, steps: int, start_of: Callable[[int], int]) -> None:
        """Account for matches found, the events they bind, and the steps made.

        Parameters
        ----------
        start_of
            Says at which event match i of these starts; and for ``i == matches``, the window that the search has come to.

        Raises
        ------
        BudgetExceeded
        """
        if self.closed:
            raise BudgetExceeded(start_of(matches), "the run has ended")
        with self._lock:
            before = self.matches
            self.matches += matches
            self.bytes += self.footprint.of(matches, events)
            self.steps += steps
            if self.max_matches is not None and self.matches > self.max_matches:
                beyond = max(0, self.max_matches - before)
                raise BudgetExceeded(start_of(beyond), f"more than max_matches={self.max_matches:,} matches")
            if self.bytes > self.memory:
                memory = f"{self.memory / 2**30:.1f} GiB"
                reason = f"the result of {self.matches:,} matches takes more than {memory}; {LESS_MEMORY}"
                raise BudgetExceeded(start_of(matches), reason)
            if self.max_steps is not None and self.steps > self.max_steps:
                raise BudgetExceeded(start_of(matches), f"more than max_steps={self.max_steps:,} steps")


@dataclass
class Spent:
    """What the runs over parts of the same events have found and done so far: bounds are for all of them together."""

    matches: int = 0
    steps: int = 0

    def budget(self, settings: Settings, footprint: Footprint, memory: int) -> Budget:
        """The budget of the next run."""
        return Budget(settings.max_matches, settings.max_steps, footprint, memory, matches=self.matches, steps=self.steps)

    def add(self, budget: Budget) -> None:
        """A run with a budget from here is over."""
        self.matches, self.steps = budget.matches, budget.steps


@contextmanager
def open_budget(settings: Settings, footprint: Footprint, concurrent: int, spent: Spent) -> Iterator[Budget]:
    """Give a run its budget, and end the run: then `spent` says what it took, too.

    Raises
    ------
    MatchLimitExceeded
        The run took more memory than there is.
    """
    budget = spent.budget(settings, footprint, memory_for_results(concurrent))
    try:
        yield budget
    except MemoryError:
        raise MatchLimitExceeded(f"out of memory while matching; {LESS_MEMORY}") from None
    finally:
        budget.close()
        spent.add(budget)


@dataclass
class Meter:
    """The account of one matcher in one batch, shared by its threads: tells how much of the run's budget it took."""

    budget: Account
    matches: int = 0
    steps: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def memory(self) -> int:
        """What the budget allows."""
        return self.budget.memory

    def spend(self, matches: int, events: int, steps: int, start_of: Callable[[int], int]) -> None:
        """As :meth:`Budget.spend`."""
        with self._lock:
            self.matches += matches
            self.steps += steps
        self.budget.spend(matches, events, steps, start_of)


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes that the whole result takes at its peak: so many per match, and so many per event that a match binds."""

    match: int
    event: int

    def of(self, matches: int, events: int) -> int:
        """Bytes that so many matches take, which bind so many events together."""
        return self.match * matches + self.event * events

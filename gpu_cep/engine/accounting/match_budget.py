"""Bound the matches, the steps and the memory of a run.

Exceeding a bound is an error; results are never truncated.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import ClassVar, Protocol

from gpu_cep.engine.accounting.host_memory import free_memory
from gpu_cep.errors import LESS_MEMORY, CepError, MatchLimitExceeded, ending_in
from gpu_cep.plan.settings import Settings
from gpu_cep.records import record

# Share of the free memory that the result may take, all copies on its way to a table included.
# The rest is for what a footprint cannot know: kernels' scratch, allocators' slack, text far longer than its column's mean.
MEMORY_SHARE = 0.8
# A result of fewer bytes fits any memory: it is not worth asking the system how much is free, for each push into a stream.
SMALL_RESULT = 1 << 24
# Up to this number int64 sums of counts are exact, even if the float sum that is compared with it was rounded down.
_MOST_COUNTED = 2.0**62


def refuse_uncountable(matches: float) -> None:
    """Raise MatchLimitExceeded if the number of matches, a sum of floats, may be more than a 64-bit count."""
    if matches > _MOST_COUNTED:
        raise MatchLimitExceeded("the number of matches does not fit a 64-bit count")


class WindowError(Exception):
    """An error in a match window; `start` is the position of the event at which the window starts.

    `remedy`: what to do about it; None if the reason says that.
    `error` is the type of the error that users get; its message names the window
    (:func:`gpu_cep.engine.events.window_names.name_windows`).
    """

    error: ClassVar[type[CepError]]
    remedy: ClassVar[str | None] = None

    def __init__(self, start: int, reason: str) -> None:
        super().__init__(reason)
        self.start = start
        self.reason = reason


class BudgetExceeded(WindowError):
    """A run found more matches, or made more steps, than it may."""

    error = MatchLimitExceeded


def memory_for_results(concurrent: int) -> int:
    """Return the bytes that the result of one of so many `concurrent` runs may take."""
    return int(free_memory() * MEMORY_SHARE) // concurrent


class Account(Protocol):
    """The protocol by which a matcher reports matches and steps.

    `memory` is the bytes that parts of its result may take.
    """

    @property
    def memory(self) -> int:
        """Return the bytes that the result may take."""

    def spend(self, matches: int, events: int, steps: int, start_of: Callable[[int], int]) -> None:
        """Count as :meth:`Budget.spend`."""

    def give_back(self, matches: int, events: int) -> None:
        """Take back bytes as :meth:`Budget.give_back`."""


@dataclass
class Budget:
    """The matches, steps and bytes of one run so far, and their bounds; shared by its threads.

    `measure_footprint` returns the bytes that the result's matches take, and `measure_memory` those that it may take; each is
    called when that first matters.
    """

    max_matches: int | None
    max_steps: int | None
    measure_footprint: Callable[[], Footprint]
    measure_memory: Callable[[], int]
    matches: int = 0
    bytes: int = 0
    steps: int = 0
    closed: bool = False
    _lock: Lock = field(default_factory=Lock, repr=False)

    @cached_property
    def footprint(self) -> Footprint:
        """Return the bytes that the result's matches take."""
        return self.measure_footprint()

    @cached_property
    def memory(self) -> int:
        """Return the bytes that the result may take."""
        return self.measure_memory()

    def take_over(self, other: Budget) -> None:
        """Replace the counts by those of another budget of the same run."""
        with self._lock:
            self.matches, self.bytes, self.steps = other.matches, other.bytes, other.steps

    def close(self) -> None:
        """End the run: threads still at work get :class:`BudgetExceeded` when they next report."""
        self.closed = True

    def spend(self, matches: int, events: int, steps: int, start_of: Callable[[int], int]) -> None:
        """Count matches found, the events that they bind, and steps made.

        Parameters
        ----------
        start_of
            Returns the event at which match i of these starts. For ``i == matches``, returns the start of the
            window that the search has come to.

        Raises
        ------
        BudgetExceeded
            A bound is exceeded, or the run has ended.
        """
        if self.closed:
            raise BudgetExceeded(start_of(matches), "the run has ended")
        with self._lock:
            before = self.matches
            self.matches += matches
            if matches or events:
                self.bytes += self.footprint.of(matches, events)
            self.steps += steps
            if self.max_matches is not None and self.matches > self.max_matches:
                beyond = max(0, self.max_matches - before)
                raise BudgetExceeded(start_of(beyond), f"more than max_matches={self.max_matches:,} matches")
            if self.bytes > SMALL_RESULT and self.bytes > self.memory:
                memory = f"{self.memory / 2**30:.1f} GiB"
                reason = f"the result of {self.matches:,} matches takes more than {memory}; {LESS_MEMORY}"
                raise BudgetExceeded(start_of(matches), reason)
            if self.max_steps is not None and self.steps > self.max_steps:
                raise BudgetExceeded(start_of(matches), f"more than max_steps={self.max_steps:,} steps")

    def give_back(self, matches: int, events: int) -> None:
        """Take back the bytes of matches that are dropped; they count as found all the same."""
        with self._lock:
            self.bytes -= self.footprint.of(matches, events)


@dataclass
class Spent:
    """The matches and steps of all runs over parts of the same events; their bounds are shared."""

    matches: int = 0
    steps: int = 0

    def budget(self, settings: Settings, measure_footprint: Callable[[], Footprint], measure_memory: Callable[[], int]) -> Budget:
        """Return the budget of the next run."""
        limits = settings.max_matches, settings.max_steps
        return Budget(*limits, measure_footprint, measure_memory, matches=self.matches, steps=self.steps)

    def add(self, budget: Budget) -> None:
        """Replace the counts by those of a run that has ended; its budget began with these."""
        self.matches, self.steps = budget.matches, budget.steps


def open_budget(
    settings: Settings, measure_footprint: Callable[[], Footprint], concurrent: int, spent: Spent
) -> AbstractContextManager[Budget]:  # fmt: skip
    """Return a context that yields the budget of a run; at its end, the budget is closed and its counts are added to `spent`.

    Raises
    ------
    MatchLimitExceeded
        The run took more memory than there is.
    """
    return _OpenBudget(spent.budget(settings, measure_footprint, lambda: memory_for_results(concurrent)), spent)


_MATCHING = ending_in(MatchLimitExceeded, "matching", LESS_MEMORY)


class _OpenBudget(AbstractContextManager[Budget]):
    """The context of :func:`open_budget`; over few events a generator would cost more."""

    __slots__ = ("budget", "spent")

    def __init__(self, budget: Budget, spent: Spent) -> None:
        self.budget, self.spent = budget, spent

    def __enter__(self) -> Budget:
        return self.budget

    def __exit__(self, kind: object, fault: BaseException | None, traceback: object) -> None:
        self.budget.close()
        self.spent.add(self.budget)
        _MATCHING.__exit__(kind, fault, traceback)


@dataclass
class Meter:
    """An account that also counts what one matcher took in one batch; shared by its threads."""

    budget: Account
    matches: int = 0
    events: int = 0
    steps: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def memory(self) -> int:
        """Return the bytes that the budget allows."""
        return self.budget.memory

    def spend(self, matches: int, events: int, steps: int, start_of: Callable[[int], int]) -> None:
        """Count as :meth:`Budget.spend`, here and in the budget."""
        with self._lock:
            self.matches += matches
            self.events += events
            self.steps += steps
        self.budget.spend(matches, events, steps, start_of)

    def give_back(self, matches: int, events: int) -> None:
        """Take back bytes as :meth:`Budget.give_back` does."""
        self.budget.give_back(matches, events)

    def take_back(self) -> None:
        """Take back from the budget all that was counted here: it is to be done again."""
        self.budget.spend(-self.matches, -self.events, -self.steps, lambda _: 0)


@record()
class Footprint:
    """The bytes that a whole result takes at its peak: per match, and per event that a match binds."""

    match: int
    event: int

    def of(self, matches: int, events: int) -> int:
        """Return the bytes of a result with so many matches, which bind so many events in all."""
        return self.match * matches + self.event * events

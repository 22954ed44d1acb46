"""Estimate what an algorithm costs in a batch, from fitted constants.

All costs are nanoseconds of one core. ``python -m benchmarks.planner.costs``
fits them to measurements; ``python -m benchmarks.planner.choices`` measures how
near the choices made by them come to the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

# To begin with a batch: by the automaton, by NFA^b, by a lazy chain, by joins.
WALK_BATCH, PASS_BATCH, CHAIN_BATCH, JOIN_BATCH = 180e3, 450e3, 140e3, 550e3
# To look at an event: to find windows and starts, and, for each variable, its next occurrence or its list of events.
WINDOW, OCCURRENCE = 2.5, 0.6
# For each start and variable, the chained condition.
CHAINED = 3.0
# A step of the automaton, one that passes over an event, and a match that it finds.
STEP, SKIP, WALKED = 55.0, 11.0, 25.0
# An event of NFA^b's pass, one offered to one run, a match that is read off the buffer, and an event of it.
PASSED, OFFER, PATH, READ = 52.0, 26.0, 200.0, 23.0
# If matches are only counted: the share of the cost of reading them off the buffer.
COUNTED = 0.25
# A pivot of a lazy chain, and of a lazy tree, and an event that either filters, or tries for a quantified variable.
PIVOT, TREE_PIVOT, FILTERED, ITERATED = 110.0, 200.0, 7.0, 40.0
# The extra cost of filtering an event, or walking past it, where a condition is a program; and of filtering an event or a joined
# row where negations are judged.
PROGRAM, JUDGED = 45.0, 50.0
# An event of a written match, by the automaton or a lazy chain, and by joins.
BOUND, JOINED = 6.0, 12.0
# An algorithm is tried if it can save this much, and this share of its least cost.
TRIAL, MARGIN = 900e3, 0.3


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected cost of a batch by an algorithm, its number of steps and of matches.

    `exact` is False if `cost` is only a lower bound, which was enough to rule the algorithm out; then nothing else is known.
    `order` says in which order variables are bound, if the algorithm chooses one. `at_most` is True if negations may rule out
    many of the steps and matches.
    """

    algorithm: str
    cost: float
    steps: float = 0.0
    matches: float = 0.0
    order: str = ""
    exact: bool = True
    at_most: bool = False

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate for `factor` times the events."""
        return replace(self, cost=self.cost * factor, steps=self.steps * factor, matches=self.matches * factor)


@dataclass(frozen=True, slots=True)
class Answer:
    """How a batch of `events` own events was answered for a branch.

    `expected` is the estimate of the algorithm that ran, `others` are those of
    the algorithms that did not. `steps` are those that ``max_steps`` bounds.
    `bound` is the number of events in written matches, `seconds` the time of
    one thread.
    """

    branch: int
    events: int
    expected: Estimate
    others: tuple[Estimate, ...]
    steps: int
    matches: int
    bound: int
    seconds: float


def windows_cost(events: int, variables: int, starts: int) -> float:
    """Return the cost of finding the windows of a batch, and of ruling out those that labels forbid."""
    return events * (WINDOW + OCCURRENCE * variables) + starts * CHAINED * variables


def buffers_cost(events: int, variables: int) -> float:
    """Return the cost of listing the events of each variable."""
    return events * OCCURRENCE * variables


def extrapolate_offers(halves: Sequence[float], sampled: int, window_size: float, events: int) -> float:
    """Return how often the `events` of a batch are offered to runs, from the offers in each half of the first `sampled` events.

    If the second half saw more, the number of runs grows for as long as a
    window lasts, `window_size` events, and then stays.
    """
    half = max(sampled / 2, 1.0)
    first, second = (offers / half for offers in halves)
    growth = max(second - first, 0.0) / half if second > 1.25 * first else 0.0
    level = (first + second) / 2 if not growth else first + growth * min(window_size, events) / 2
    return max(level, second) * events

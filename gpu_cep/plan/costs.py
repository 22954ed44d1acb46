"""What an algorithm costs in a batch: estimates, and the constants they are made of.

All costs are nanoseconds of one core, fitted to measurements by ``python
benchmarks/planner/costs.py``. How near the choices come that are made by them, ``python
benchmarks/planner/choices.py`` measures.
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
# The share of what reading matches off the buffer costs that is left where they are only counted.
COUNTED = 0.25
# A pivot of a lazy chain, and of a lazy tree, and an event that either filters, or tries for a quantified variable.
PIVOT, TREE_PIVOT, FILTERED, ITERATED = 110.0, 200.0, 7.0, 40.0
# What it takes more to filter an event, or to walk past one, where a condition is a program; to filter one, or a joined row, where
# negations are judged.
PROGRAM, JUDGED = 45.0, 50.0
# An event of a written match, by the automaton or a lazy chain, and by joins.
BOUND, JOINED = 6.0, 12.0
# What an algorithm must be able to save to be tried, beside this share of what it costs at least.
TRIAL, MARGIN = 900e3, 0.3


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a batch is expected to cost by an algorithm, how many steps it makes, and how many matches it finds.

    ``exact`` is False where `cost` is only what the algorithm costs at least, because that was enough to rule it out; then
    nothing else is known. `order` says in which order variables are bound, where the algorithm chooses one. ``at_most`` is True
    where there may be far fewer steps and matches, for nobody knows how many negations rule out.
    """

    algorithm: str
    cost: float
    steps: float = 0.0
    matches: float = 0.0
    order: str = ""
    exact: bool = True
    at_most: bool = False

    def scaled(self, factor: float) -> Estimate:
        """The same of so many times the events."""
        return replace(self, cost=self.cost * factor, steps=self.steps * factor, matches=self.matches * factor)


@dataclass(frozen=True, slots=True)
class Answer:
    """How a batch of so many own events was answered for a branch, what was expected of it, and what the other algorithms promised.

    `steps` are those that ``max_steps`` bounds, `bound` the events that written
    matches bind together, `seconds` those of one thread.
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
    """To find the windows of a batch, and to rule out those that labels forbid."""
    return events * (WINDOW + OCCURRENCE * variables) + starts * CHAINED * variables


def buffers_cost(events: int, variables: int) -> float:
    """To list the events of each variable."""
    return events * OCCURRENCE * variables


def grown_offers(halves: Sequence[float], sampled: int, reach: float, events: int) -> float:
    """How often the `events` of a batch are offered to runs, from how often those of each half of the first `sampled` ones were.

    Where the second half saw more, runs gather until the window of the first
    has passed, `reach` events after it began.
    """
    half = max(sampled / 2, 1.0)
    first, second = (offers / half for offers in halves)
    growth = max(second - first, 0.0) / half if second > 1.25 * first else 0.0
    level = (first + second) / 2 if not growth else first + growth * min(reach, events) / 2
    return max(level, second) * events

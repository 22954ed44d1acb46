"""Estimate what an algorithm costs in a batch.

All costs are nanoseconds of one core. ``python -m benchmarks.planner.costs`` fits the constants to
measurements. ``python -m benchmarks.planner.choices`` compares the choices with the best ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

# The fixed cost of a batch: by the automaton, by NFA^b, by a lazy chain, by joins.
WALK_BATCH, PASS_BATCH, CHAIN_BATCH, JOIN_BATCH = 180e3, 450e3, 140e3, 550e3
# Per event: finding its window and starts; per event and variable: finding the next occurrence, or listing its events.
WINDOW, OCCURRENCE = 2.5, 0.6
# Per start and variable: testing the chained condition.
CHAINED = 3.0
# The automaton: a step that binds an event, a step that skips one, and a match found.
STEP, SKIP, WALKED = 55.0, 11.0, 25.0
# NFA^b: an event of the pass, an event offered to one run, a match read off the buffer, and an event of such a match.
PASSED, OFFER, PATH, READ = 52.0, 26.0, 200.0, 23.0
# NFA^b: the cost of counting matches, as a share of that of reading them off the buffer.
COUNTED = 0.25
# Lazy chain and lazy tree: a pivot of the chain, one of the tree, an event filtered, an event tried for a quantified variable.
PIVOT, TREE_PIVOT, FILTERED, ITERATED = 110.0, 200.0, 7.0, 40.0
# The extra cost of filtering or skipping an event if a condition is a program.
# The extra cost of filtering an event or a joined row if negations are judged.
PROGRAM, JUDGED = 45.0, 50.0
# Writing an event of a match: by the automaton or a lazy chain, and by joins.
BOUND, JOINED = 6.0, 12.0
# An algorithm is tried only if it can save this many nanoseconds, and this share of the least cost.
TRIAL, MARGIN = 900e3, 0.3


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected cost of a batch by one algorithm.

    `cost`: nanoseconds.
    `steps`, `matches`: the expected numbers of both.
    `order`: the order in which variables are bound, if the algorithm chooses one.
    `exact`: False if `cost` is a lower bound that ruled the algorithm out; the rest is then not estimated.
    `at_most`: whether negations may rule out many of the steps and matches.
    """

    algorithm: str
    cost: float
    steps: float = 0.0
    matches: float = 0.0
    order: str = ""
    exact: bool = True
    at_most: bool = False

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate for `factor` times as many events."""
        return replace(self, cost=self.cost * factor, steps=self.steps * factor, matches=self.matches * factor)


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """How a batch was answered for one branch.

    `branch`: the branch's number.
    `events`: the number of the batch's own events.
    `expected`: the estimate of the algorithm that ran.
    `others`: the estimates of the algorithms that did not run.
    `steps`: the number of steps that count towards ``max_steps``.
    `matches`: the number of matches found.
    `bound`: the number of events in written matches.
    `seconds`: the time of one thread.
    """

    branch: int
    events: int
    expected: Estimate
    others: tuple[Estimate, ...]
    steps: int
    matches: int
    bound: int
    seconds: float


def extrapolate_offers(halves: Sequence[float], sampled: int, window_size: float, events: int) -> float:
    """Return how often the `events` of a batch are offered to runs.

    `halves` are the numbers of offers in either half of the first `sampled` events. If the second half
    saw more, the number of runs grows until a window, `window_size` events, has passed.
    """
    half = max(sampled / 2, 1.0)
    first, second = (offers / half for offers in halves)
    growth = max(second - first, 0.0) / half if second > 1.25 * first else 0.0
    level = (first + second) / 2 if not growth else first + growth * min(window_size, events) / 2
    return max(level, second) * events


def groups_text(groups: tuple[int, int]) -> str:
    """Return in words how many row groups were read, of how many."""
    return f"row groups of Parquet read: {groups[0]:,} of {groups[1]:,}"

"""Compute the states of a branch whose matches are decided by labels alone.

A state says how many events each variable has. It alone decides what may be bound next, whatever
the events are. A match is one path through the states, event after event. States are found breadth
first, from the one in which nothing is bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from gpu_cep.plan.event_plan import EventPlan, PlannedBranch

# The most states that are computed: users of them take memory that grows with their number squared.
MOST_STATES = 64

# The number of events of each variable, as far as it matters, and the mask of variables whose last event has the current time.
State = tuple[tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class Transition:
    """Binding an event to `variable` in the state `source` leads to the state `target`."""

    source: int
    variable: int
    target: int


@dataclass(frozen=True, slots=True)
class StateSpace:
    """The states of a branch, by number; state 0 binds nothing.

    `transitions`: each leads to the same state or to one of a higher number.
    `final`: which states are complete.
    `settled`: the state that each state becomes when the time moves on.
    """

    transitions: tuple[Transition, ...]
    final: tuple[bool, ...]
    settled: tuple[int, ...]


def branch_states(plan: EventPlan, branch: PlannedBranch, tied: bool) -> StateSpace | None:
    """Return the states of a branch, or None; `tied` says whether its events may tie.

    It is None if labels do not decide its matches, or if there are too many states.
    """
    if plan.query.strategy != "skip_till_any_match" or branch.conditions or branch.negations:
        return None
    variables = [plan.query.variables[v] for v in branch.positives]
    minimum, maximum = tuple(variable.minimum for variable in variables), tuple(variable.maximum for variable in variables)
    return state_space(branch.before, minimum, maximum, tied)


def decided_by_states(plan: EventPlan) -> bool:
    """Return whether all matches are wanted, and can be counted or compressed without enumeration.

    It must be so even if events tie.
    """
    tied = plan.query.ties == "strict"
    every = plan.settings.keeps_all and plan.finds_once
    return every and all(branch_states(plan, branch, tied) is not None for branch in plan.branches)


@lru_cache(maxsize=256)
def state_space(before: tuple[int, ...], minimum: tuple[int, ...], maximum: tuple[int | None, ...], tied: bool) -> StateSpace | None:
    """Return the states of a strict partial order with quantifiers; None if they are more than :data:`MOST_STATES`.

    Parameters
    ----------
    before
        For each variable the mask of all that precede it.
    minimum, maximum
        The numbers of events that each variable binds; a maximum of None is no bound.
    tied
        Whether events may have the same time, so that neither is before the other.
    """
    if len(before) >= MOST_STATES:
        return None
    order = _Order(before, minimum, maximum, tied)
    initial: State = ((0,) * len(before), 0)
    found: dict[State, list[tuple[int, State]]] = {initial: []}
    waiting = [initial]
    while waiting:
        state = waiting.pop(0)
        moves = [(v, after) for v in range(len(before)) if (after := order.bind(state, v)) is not None]
        found[state] = moves
        for reached in (*(after for _, after in moves), (state[0], 0)):
            if reached not in found:
                found[reached] = []
                waiting.append(reached)
        if len(found) > MOST_STATES:
            return None
    states = sorted(found, key=_height)
    number = {state: place for place, state in enumerate(states)}
    return StateSpace(
        transitions=tuple(Transition(number[state], v, number[after]) for state in states for v, after in found[state]),
        final=tuple(all(bound >= least for bound, least in zip(counts, minimum, strict=True)) for counts, _ in states),
        settled=tuple(number[counts, 0] for counts, _ in states),
    )


def _height(state: State) -> tuple[int, int, int]:
    """Return a key to sort states by: every transition to another state increases it."""
    counts, tied = state
    return sum(bound > 0 for bound in counts), sum(counts), tied.bit_count()


@dataclass(frozen=True, slots=True)
class _Order:
    """A strict partial order with quantifiers; the fields are the arguments of :func:`state_space`."""

    before: tuple[int, ...]
    minimum: tuple[int, ...]
    maximum: tuple[int | None, ...]
    tied: bool

    def bind(self, state: State, v: int) -> State | None:
        """Return the state after an event is bound to v; None if no event can be."""
        counts, tied = state
        unsatisfied = sum(1 << u for u, bound in enumerate(counts) if bound < self.minimum[u])
        bound = sum(1 << u for u, events in enumerate(counts) if events)
        most = self.maximum[v]
        if self.before[v] & (unsatisfied | tied) or self._behind(v) & bound or (most is not None and counts[v] >= most):
            return None
        number = min(counts[v] + 1, self.minimum[v] if most is None else most)
        # variables before v bind no more events, so their exact number matters no longer
        closed = [self.minimum[u] if self.before[v] >> u & 1 else events for u, events in enumerate(counts)]
        closed[v] = number
        return tuple(closed), tied | (1 << v if self.tied and self._behind(v) else 0)

    def _behind(self, v: int) -> int:
        """Return the mask of the variables that v precedes."""
        return sum(1 << w for w, mask in enumerate(self.before) if mask >> v & 1)

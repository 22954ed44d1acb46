"""Look ahead: tell whether all variables that are still unbound can follow in a run's window.

By labels alone this is the chained condition (thesis section 5.3), from the
run's state on. The bounds of jumps (:mod:`gpu_cep_kernels.automaton.jumps`)
tell more. In ``c.x > a.x + 1`` the event of a rules out events of c long
before c is to be bound. Bounds take time, so few searches use them: the first
one after many in a row without a match, and again each time their number has
doubled. A hopeless search is followed by others, as the run steps back from
it. So these all use bounds.
"""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.automaton.jumps import Jumps, jump, set_bounds
from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.tables import Conditions, EventPath, EventTable, PathState, PatternTable
from gpu_cep_kernels.rules.ties import first_behind
from gpu_cep_kernels.rules.walked import SearchingPath, WalkedEvents

# So many searches in a row without a match are no waste: looking ahead would take as long.
SHORT = 16


@rule
def begin_searches(patience: int, path: EventPath) -> None:
    """Count searches from here, a start or a match; the search of number `patience` looks ahead."""
    path.state[PathState.SEARCHES] = 0
    path.state[PathState.LOOK] = patience


@rule
def end_searches(path: EventPath) -> None:
    """Add the start's wasted searches to the total, now that it has no further choices."""
    path.state[PathState.WASTED] = wasted_searches(path)
    path.state[PathState.SEARCHES] = 0


@rule
def wasted_searches(path: EventPath) -> int:
    """Return the number of searches in long runs that led to no match, the current run included.

    A long run has more than SHORT searches; those beyond count.
    """
    return int(path.state[PathState.WASTED] + max(path.state[PathState.SEARCHES] - SHORT, 0))


@rule
def looks_ahead(path: EventPath) -> bool:
    """Return whether the search that was counted last looks ahead."""
    return bool(path.state[PathState.SEARCHES] >= path.state[PathState.LOOK])


@rule
def set_next_look(hopeful: bool, path: EventPath) -> None:
    """Set which search looks ahead next: the one of twice the current number if there is hope, else the very next."""
    path.state[PathState.LOOK] = path.state[PathState.SEARCHES] * 2 if hopeful else path.state[PathState.SEARCHES] + 1


@rule
def _earliest(v: int, position: int, after: Any, pattern: PatternTable, path: SearchingPath) -> int:
    """Return the first place behind `position` where v may bind.

    The variables before it are taken to bind their events in ``path.earliest``.
    """
    begin = position + 1
    for k in range(pattern.direct_first[v], pattern.direct_first[v + 1]):
        begin = max(begin, first_behind(after, path.earliest[pattern.direct[k]]))
    return begin


@rule
def can_complete(position: int, end: int, events: WalkedEvents, pattern: PatternTable, path: SearchingPath) -> bool:
    """Return whether the variables still unbound can follow in the window, judged by labels alone."""
    true = True
    for place in range(pattern.order.size):
        v = pattern.order[place]
        if path.bound[v] > 0:
            path.earliest[v] = path.event[path.last[v]]
        elif true:
            path.earliest[v] = events.occurrence[v, _earliest(v, position, events.after, pattern, path)]
            true = path.earliest[v] < end
    return true


# not one body with can_complete, told apart by a constant: that made runs that look at labels alone take up to twice as long
@rule
def can_complete_within_bounds(
    position: int, end: int, events: EventTable, pattern: PatternTable, conditions: Conditions, jumps: Jumps, path: EventPath
) -> bool:
    """Do as :func:`can_complete`, judged by labels and by what conditions demand of later events."""
    true = True
    for place in range(pattern.order.size):
        v = pattern.order[place]
        if path.bound[v] > 0:
            path.earliest[v] = path.event[path.last[v]]
        elif true:
            set_bounds(v, position, True, pattern, conditions, jumps, path)
            path.earliest[v] = jump(v, _earliest(v, position, events.after, pattern, path), end, events, conditions, jumps)
            true = path.earliest[v] < end
    return true

"""Grow and shrink a path of bound events by one, judge whether it is a match, and write it down.

Event ``path.event[d]`` at place d of the path is bound to variable
``path.bound_to[d]``. Each step updates what every variable binds, and which
variables that keeps from binding. Stepping back restores both.
"""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.conditions import final_conditions_hold
from gpu_cep_kernels.rules.cut import cut_search_off, cuts_searches, end_search, has_enough, may_be_taken
from gpu_cep_kernels.rules.negation import is_ruled_out
from gpu_cep_kernels.rules.running import accumulate
from gpu_cep_kernels.rules.tables import Criteria, EventPath, MatchTable, PathState, PatternTable
from gpu_cep_kernels.rules.ties import first_behind
from gpu_cep_kernels.rules.walked import JudgedConditions, KeptMatches, SearchingPath


@rule
def earliest_place(v: int, position: int, after: Any, pattern: PatternTable, path: SearchingPath) -> int:
    """Return the first event that v may bind by order: behind `position` and the events of the variables before v.

    The last event of each variable that precedes v immediately decides.
    """
    begin = position + 1
    if after.size > 0:
        for k in range(pattern.direct_first[v], pattern.direct_first[v + 1]):
            begin = max(begin, first_behind(after, path.event[path.last[pattern.direct[k]]]))
    return begin


@rule
def append(v: int, event: int, depth: int, conditions: JudgedConditions, path: SearchingPath) -> None:
    """Bind `event` to v at place `depth`, the end of the path, and update v's aggregates; leave ``path.blockers`` as it is."""
    path.event[depth] = event
    path.bound_to[depth] = v
    path.earlier[depth] = path.last[v]
    accumulate(v, path.last[v], depth, conditions.base + event, conditions.aggregates, conditions.bank, path.aggregates)
    path.last[v] = depth
    path.bound[v] += 1
    if path.bound[v] == 1:
        path.first[v] = depth


@rule
def bind(v: int, event: int, depth: int, pattern: PatternTable, conditions: JudgedConditions, path: SearchingPath) -> None:
    """Bind `event` to v at place `depth`, the end of the path; update v's aggregates and ``path.blockers``."""
    append(v, event, depth, conditions, path)
    bound = path.bound[v]
    _block_others(v, 1 if bound == 1 else 0, -1 if bound == pattern.minimum[v] else 0, pattern, path)


@rule
def unbind(depth: int, pattern: PatternTable, path: SearchingPath) -> None:
    """Remove the event at place `depth`, the last one of the path, from its variable's binding."""
    v = path.bound_to[depth]
    bound = path.bound[v]
    path.last[v] = path.earlier[depth]
    path.bound[v] = bound - 1
    _block_others(v, -1 if bound == 1 else 0, 1 if bound == pattern.minimum[v] else 0, pattern, path)


@rule
def _block_others(v: int, bound: int, unsatisfied: int, pattern: PatternTable, path: SearchingPath) -> None:
    """Update ``path.blockers``: v blocks those before it while it is bound, and those behind it
    while it has fewer events than its minimum.

    `bound` is 1 if v has just become bound, −1 if it is no longer bound, else 0.
    `unsatisfied` says the same of being below its minimum.
    """
    path.state[PathState.UNSATISFIED] += unsatisfied
    if bound != 0 or unsatisfied != 0:
        for u in range(pattern.order.size):
            path.blockers[u] += bound * pattern.precedes[u, v] + unsatisfied * pattern.precedes[v, u]


@rule
def is_match(depth: int, criteria: Criteria, path: EventPath) -> bool:
    """Return whether a complete path satisfies the conditions and negations that only the end of a match decides."""
    conditions = criteria.conditions
    true = conditions.table.final.size == 0 or final_conditions_hold(conditions, path)
    for n in range(criteria.negations.variable.size):
        first, last = path.event[0], path.event[depth - 1]
        true = true and not is_ruled_out(n, first, last, depth, True, criteria, path)
    return true


@rule
def write_match(w: int, matches: KeptMatches, path: SearchingPath) -> None:
    """Append the path as a match of candidate w."""
    m, place = path.state[PathState.MATCHES], path.state[PathState.EVENTS]
    matches.starts[m] = w
    for v in range(path.bound.size):
        matches.counts[m, v] = path.bound[v]
        place += path.bound[v]
        cursor = path.last[v]
        back = place
        while cursor >= 0:
            back -= 1
            matches.events[back] = path.event[cursor]
            cursor = path.earlier[cursor]
    path.state[PathState.MATCHES] = m + 1
    path.state[PathState.EVENTS] = place


@rule
def write_if_taken(w: int, depth: int, matches: MatchTable, path: EventPath) -> None:
    """Write the path as a match of candidate w unless a match found before rules it out; cut searches off by it."""
    last, begin = path.event[depth - 1], path.state[PathState.EVENTS]
    if may_be_taken(last, path):
        write_match(w, matches, path)
        if cuts_searches(path):
            cut_search_off(begin, last, matches.events, path)


@rule
def count_match(w: int, matches: MatchTable, path: EventPath) -> None:
    """Count the path as a match of candidate w; end the search if no further one is asked for."""
    matches.totals[w] += 1
    if has_enough(matches.totals[w], path):
        end_search(path)

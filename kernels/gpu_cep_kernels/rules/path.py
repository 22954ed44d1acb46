"""A path of bound events: how it grows and shrinks by one, whether it is a match, and how it is written down.

Event ``run.event[d]`` at place d of the path is bound to variable
``run.bound_to[d]``. What a variable binds, and which variables that keeps
from binding, is known after each step, and taken back with it.
"""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.conditions import final_conditions_hold
from gpu_cep_kernels.rules.negation import is_ruled_out
from gpu_cep_kernels.rules.running import accumulate
from gpu_cep_kernels.rules.tables import EVENTS, MATCHES, UNSATISFIED


@rule
def bind(v: int, event: int, depth: int, pattern: Any, conditions: Any, run: Any) -> None:
    """Bind `event` to v at place `depth`, the end of the path."""
    bound = run.bound[v] + 1
    run.event[depth] = event
    run.bound_to[depth] = v
    run.earlier[depth] = run.last[v]
    accumulate(v, run.last[v], depth, conditions.base + event, conditions.aggregates, conditions.bank, run.aggregates)
    run.last[v] = depth
    run.bound[v] = bound
    if bound == 1:
        run.first[v] = depth
    _block_others(v, 1 if bound == 1 else 0, -1 if bound == pattern.minimum[v] else 0, pattern, run)


@rule
def unbind(depth: int, pattern: Any, run: Any) -> None:
    """Take the event at place `depth` back from its variable."""
    v = run.bound_to[depth]
    bound = run.bound[v]
    run.last[v] = run.earlier[depth]
    run.bound[v] = bound - 1
    _block_others(v, -1 if bound == 1 else 0, 1 if bound == pattern.minimum[v] else 0, pattern, run)


@rule
def _block_others(v: int, bound: int, unsatisfied: int, pattern: Any, run: Any) -> None:
    """Account for v, which blocks those before it once it is bound, and those behind it until it binds its minimum.

    `bound` and `unsatisfied` say whether it has come to be so (1), has ceased to be so (-1), or neither (0).
    """
    run.state[UNSATISFIED] += unsatisfied
    if bound != 0 or unsatisfied != 0:
        for u in range(pattern.order.size):
            run.blockers[u] += bound * pattern.precedes[u, v] + unsatisfied * pattern.precedes[v, u]


@rule
def is_match(depth: int, pattern: Any, conditions: Any, negations: Any, run: Any) -> bool:
    """Whether a complete path satisfies what only the end of a match decides, negations included."""
    true = conditions.table.final.size == 0 or final_conditions_hold(conditions, run)
    for n in range(negations.variable.size):
        first, last = run.event[0], run.event[depth - 1]
        true = true and not is_ruled_out(n, first, last, depth, True, pattern, conditions, negations, run)
    return true


@rule
def write_match(w: int, matches: Any, run: Any) -> None:
    """Append the path as a match of candidate w."""
    m, place = run.state[MATCHES], run.state[EVENTS]
    matches.starts[m] = w
    for v in range(run.bound.size):
        matches.counts[m, v] = run.bound[v]
        place += run.bound[v]
        cursor = run.last[v]
        back = place
        while cursor >= 0:
            back -= 1
            matches.events[back] = run.event[cursor]
            cursor = run.earlier[cursor]
    run.state[MATCHES] = m + 1
    run.state[EVENTS] = place

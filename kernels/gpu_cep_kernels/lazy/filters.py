"""Filter events that may be bound to a variable.

Each filter keeps some of ``events[:size]`` at the front, in order, and returns how many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.conditions import condition_holds
from gpu_cep_kernels.rules.negation import is_ruled_out
from gpu_cep_kernels.rules.running import is_null
from gpu_cep_kernels.rules.scalars import EQ, GE, GT, LE, LT, NE, compare, mirror_comparison
from gpu_cep_kernels.rules.tables import BY_INTS, Conditions, Criteria, EventPath, PathState


@rule
def _select_where(comparison: int, events: Any, size: int, values: Any, value: Any, base: int) -> int:
    """Keep those of ``events[:size]`` for which ``values[event] φ value``; return how many."""
    kept = 0
    for k in range(size):
        event = events[k]
        events[kept] = event
        # no short-circuit: a branch on values would be mispredicted
        kept += compare(comparison, values[np.uint64(base + event)], value)
    return kept


@rule
def _select_compared(events: Any, size: int, comparison: int, values: Any, nulls: Any, column: int, base: int, value: Any) -> int:
    """Keep those of ``events[:size]`` for which ``column φ value`` and that is not NULL; return how many."""
    kept = size
    if nulls.size > 0:
        kept = 0
        for k in range(size):
            event = events[k]
            events[kept] = event
            kept += not is_null(nulls, column, base + event)
    own = values[column]
    # a loop for each comparison, so that none tests which one it is for every event
    if comparison == EQ:
        kept = _select_where(EQ, events, kept, own, value, base)
    elif comparison == NE:
        kept = _select_where(NE, events, kept, own, value, base)
    elif comparison == LT:
        kept = _select_where(LT, events, kept, own, value, base)
    elif comparison == LE:
        kept = _select_where(LE, events, kept, own, value, base)
    elif comparison == GT:
        kept = _select_where(GT, events, kept, own, value, base)
    else:
        kept = _select_where(GE, events, kept, own, value, base)
    return kept


@rule
def select_pairs(c: int, v: int, events: Any, size: int, conditions: Conditions, path: EventPath) -> int:
    """Keep those of ``events[:size]`` that satisfy condition c, a comparison of v with another variable; return how many."""
    table, bank, base = conditions.table, conditions.bank, conditions.base
    comparison = table.comparison[c]
    column, other_column = table.left_column[c], table.right_column[c]
    other = table.right_variable[c]
    if table.right_variable[c] == v:
        comparison = mirror_comparison(comparison)
        column, other_column = other_column, column
        other = table.left_variable[c]
    row = base + path.event[path.last[other]]
    if table.means[c] == BY_INTS:
        size = 0 if is_null(bank.int_nulls, other_column, row) else size
        kept = _select_compared(events, size, comparison, bank.ints, bank.int_nulls, column, base, bank.ints[other_column, row])
    else:
        size = 0 if is_null(bank.float_nulls, other_column, row) else size
        kept = _select_compared(events, size, comparison, bank.floats, bank.float_nulls, column, base, bank.floats[other_column, row])
    return kept


@rule
def select_holding(c: int, v: int, depth: int, events: Any, size: int, conditions: Conditions, path: EventPath) -> int:
    """Keep those of ``events[:size]`` that satisfy condition c, of any kind; return how many.

    After an error ``path.event[depth]`` is the event that caused it.
    """
    kept = 0
    for k in range(size):
        event = events[k]
        events[kept] = event
        if path.state[PathState.ERROR_CONDITION] == 0:
            path.event[depth] = event
            kept += condition_holds(c, v, event, conditions, path)
    return kept


@rule
def select_unbound(events: Any, size: int, depth: int, path: EventPath) -> int:
    """Keep those of ``events[:size]`` that are not bound above `depth`; return how many."""
    for d in range(depth):
        bound = path.event[d]
        if size > 0 and events[0] <= bound and bound <= events[size - 1]:
            kept = 0
            for k in range(size):
                event = events[k]
                events[kept] = event
                kept += event != bound
            size = kept
    return size


@rule
def select_allowed(n: int, v: int, depth: int, earliest: int, latest: int, events: Any, criteria: Criteria, path: EventPath) -> int:
    """Keep those of `events` that, bound to v at `depth`, negation n does not rule out; return how many.

    `earliest` and `latest` are the ends of what is bound above `depth`.
    """
    kept = 0
    for u in range(criteria.pattern.order.size):
        # each variable has one event, its first and its last
        path.first[u] = depth if u == v else path.last[u]
    for k in range(events.size):
        event = events[k]
        events[kept] = event
        if path.state[PathState.ERROR_CONDITION] == 0:
            path.event[depth] = event
            path.last[v] = depth
            first, last = min(earliest, event), max(latest, event)
            kept += not is_ruled_out(n, first, last, depth + 1, False, criteria, path)
    path.last[v] = -1
    return kept

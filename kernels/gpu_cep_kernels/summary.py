"""Necessary match conditions: summary statistics of sliding windows and the chained condition, O(variables) per start.

Tables shared by these kernels and the automaton, one entry per variable in
topological order of the pattern's partial order: ``before[v]`` is the label
mask of all variables that precede v, ``direct[v]`` of those that do so
immediately.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.jit import kernel, rule
from gpu_cep_kernels.rules import bit, following


@kernel
def prefix_counts(labels: Any, variables: int, counts: Any) -> None:
    """``counts[v, e]``: how many events before e carry bit v; [variable, event + 1]."""
    for v in range(variables):
        total = 0
        mask = bit(v)
        for e in range(labels.size):
            counts[v, e] = total
            total += (labels[e] & mask) != 0
        counts[v, labels.size] = total


@rule
def _counted_from(v: int, start: int, after: Any, direct: Any, occurrence: Any) -> int:
    """The first event of the window at `start` that follows an event of each variable just before v."""
    begin = start
    for u in range(direct.size):
        if direct[v] & bit(u):
            first = occurrence[u, start]
            begin = max(begin, following(after, first) if first < occurrence.shape[1] - 1 else occurrence.shape[1] - 1)
    return begin


@kernel
def summary_statistics(starts: Any, ends: Any, after: Any, direct: Any, occurrence: Any, counts: Any, statistics: Any) -> None:
    """The summary statistics of each window (thesis Def. 5.2): ``statistics[w, v]`` = cnt_v of the window that starts at event ``starts[w]``."""
    for w in range(starts.size):
        for v in range(direct.size):
            begin = _counted_from(v, starts[w], after, direct, occurrence)
            end = ends[starts[w]]
            statistics[w, v] = counts[v, end] - counts[v, begin] if begin < end else 0


@kernel
def select_starts(low: int, high: int, labels: Any, minimal: Any, starts: Any) -> int:
    """The events [low, high) that a match can start with (Condition 5.2): those that satisfy a variable which nothing precedes."""
    count = 0
    for e in range(low, high):
        starts[count] = e
        count += (labels[e] & minimal) != 0
    return count


@kernel
def select_candidates(
    starts: Any, ends: Any, after: Any, direct: Any, minimum: Any, fewest: int, occurrence: Any, counts: Any, selected: Any
) -> int:
    """The windows that satisfy the necessary match conditions (thesis Theorems 5.2 and 5.3): enough events, and enough counted for each variable."""
    kept = 0
    for w in range(starts.size):
        start = starts[w]
        end = ends[start]
        holds = end - start >= fewest
        v = 0
        while holds and v < direct.size:
            begin = _counted_from(v, start, after, direct, occurrence)
            holds = begin < end and counts[v, end] - counts[v, begin] >= minimum[v]
            v += 1
        selected[kept] = start
        kept += holds
    return kept


@kernel
def select_chained(
    starts: Any, ends: Any, after: Any, order: Any, direct: Any, occurrence: Any, earliest: Any, selected: Any
) -> int:
    """The windows in which the earliest possible end of each variable in turn still falls.

    ``earliest[w, v]`` (same place as in `selected`) is the first event that v
    could bind: the next occurrence of v after the earliest of all that
    directly precede it. `order` lists the variables topologically.
    """
    kept = 0
    for w in range(starts.size):
        start = starts[w]
        end = ends[start]
        holds = True
        place = 0
        while holds and place < order.size:
            v = order[place]
            begin = start
            for u in range(direct.size):
                if direct[v] & bit(u):
                    begin = max(begin, following(after, earliest[kept, u]))
            found = occurrence[v, begin]
            earliest[kept, v] = found
            holds = found < end
            place += 1
        selected[kept] = start
        kept += holds
    return kept


def topological_order(before: Any) -> Any:
    """The variables ordered so that each comes after all that precede it (their number grows along any chain)."""
    return np.argsort([int(mask).bit_count() for mask in before], kind="stable")

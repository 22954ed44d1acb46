"""Necessary match conditions: summary statistics of sliding windows and the chained condition, O(variables) per start."""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.jit import kernel, rule
from gpu_cep_kernels.rules import UNBOUNDED, bit, following
from gpu_cep_kernels.windows import reaches


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


@kernel
def labels_overlap(labels: Any) -> bool:
    """Whether any event satisfies the properties of two variables: they are not mutually exclusive (thesis Def. 4.4)."""
    shared = bit(0) ^ bit(0)
    for e in range(labels.size):
        shared |= labels[e] & (labels[e] - bit(0))
    return shared != 0


@kernel
def select_starts(low: int, high: int, labels: Any, minimal: Any, starts: Any) -> int:
    """The events [low, high) that a match can start with (Condition 5.2): those that satisfy a variable which nothing precedes."""
    count = 0
    for e in range(low, high):
        starts[count] = e
        count += (labels[e] & minimal) != 0
    return count


@rule
def _counted_from(v: int, start: int, after: Any, pattern: Any, occurrence: Any) -> int:
    """The first event of the window at `start` that follows an event of each variable just before v."""
    begin = start
    for k in range(pattern.direct_first[v], pattern.direct_first[v + 1]):
        begin = max(begin, following(after, occurrence[pattern.direct[k], start]))
    return begin


@rule
def _statistic(v: int, start: int, end: int, after: Any, pattern: Any, occurrence: Any, counts: Any) -> int:
    """cnt_v of the window [start, end) (thesis Def. 5.2)."""
    begin = _counted_from(v, start, after, pattern, occurrence)
    return counts[v, end] - counts[v, begin] if begin < end else 0


@kernel
def summary_statistics(starts: Any, ends: Any, after: Any, pattern: Any, occurrence: Any, counts: Any, statistics: Any) -> None:
    """The summary statistics of each window (thesis Def. 5.2): ``statistics[w, v]`` = cnt_v of the window [starts[w], ends[w])."""
    for w in range(starts.size):
        for v in range(pattern.before.size):
            statistics[w, v] = _statistic(v, starts[w], ends[w], after, pattern, occurrence, counts)


@kernel
def select_candidates(starts: Any, ends: Any, after: Any, pattern: Any, fewest: int, occurrence: Any, counts: Any, selected: Any) -> int:
    """The windows that satisfy the necessary match conditions (thesis Theorems 5.2 and 5.3).

    They hold at least `fewest` events and count at least its minimum for each variable.
    """
    kept = 0
    for w in range(starts.size):
        holds = ends[w] - starts[w] >= fewest
        v = 0
        while holds and v < pattern.before.size:
            holds = _statistic(v, starts[w], ends[w], after, pattern, occurrence, counts) >= pattern.minimum[v]
            v += 1
        selected[kept] = starts[w]
        kept += holds
    return kept


@rule
def _still_taken(found: int, v: int, after: Any, pattern: Any, occurrence: Any) -> bool:
    """Whether `found` ties with an event before it that a quantified variable just before v would bind, so that v cannot be bound there."""
    taken = False
    first = found
    while first > 0 and after[first - 1] > found:
        first -= 1
    if first < found:
        for k in range(pattern.direct_first[v], pattern.direct_first[v + 1]):
            u = pattern.direct[k]
            taken = taken or (pattern.maximum[u] == UNBOUNDED and occurrence[u, first] < found)
    return taken


@kernel
def select_chained(
    starts: Any,
    clock: Any,
    stream_end: Any,
    length: Any,
    after: Any,
    pattern: Any,
    exact: bool,
    occurrence: Any,
    earliest: Any,
    selected: Any,
) -> int:
    """The windows in which the earliest possible event of each variable in turn still falls.

    ``earliest[v, w]`` (w as in `selected`) is the next occurrence of v behind
    the earliest of all variables that directly precede it; the last row of
    `earliest` is scratch. With `exact` it
    also passes over events that tie with a bound one: where each event fits
    one available variable at most and no condition relates bindings, it then
    is the event that skip-till-next-match binds first, and every window
    selected holds one match.
    """
    variables = pattern.order.size
    tied = exact and after.size > 0
    latest = earliest[variables]
    for w in range(starts.size):
        latest[w] = starts[w]
    for place in range(variables):
        v = pattern.order[place]
        found = earliest[v]
        for w in range(starts.size):
            found[w] = starts[w]
        for k in range(pattern.direct_first[v], pattern.direct_first[v + 1]):
            preceding = earliest[pattern.direct[k]]
            for w in range(starts.size):
                found[w] = max(found[w], following(after, preceding[w]))
        for w in range(starts.size):
            event = occurrence[v, found[w]]
            while tied and event < stream_end[starts[w]] and _still_taken(event, v, after, pattern, occurrence):
                event = occurrence[v, event + 1]
            found[w] = event
            latest[w] = max(latest[w], event)
    kept = 0
    for w in range(starts.size):
        selected[kept] = w
        kept += reaches(starts[w], latest[w], clock, stream_end, length)
    for v in range(variables):
        found = earliest[v]
        for k in range(kept):
            found[k] = found[selected[k]]
    for k in range(kept):
        selected[k] = starts[selected[k]]
    return kept

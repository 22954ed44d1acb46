"""Judge the necessary match conditions of windows: summary statistics and the chained condition, O(variables) per start."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.phase_one.kept_rows import keep_rows
from gpu_cep_kernels.phase_one.windows import WindowLimits, is_in_window
from gpu_cep_kernels.rules.scalars import UNBOUNDED, bit
from gpu_cep_kernels.rules.tables import PatternTable
from gpu_cep_kernels.rules.ties import first_behind


class NextEvents(NamedTuple):
    """Look up events that follow event e of a batch.

    - after[e]: the first event that e is before; empty where that is always the next one.
    - occurrence[v, e]: the first event from e on with the label bit of variable v.
    """

    after: Any
    occurrence: Any


@sequential(writes=("counts",))
def prefix_counts(labels: Any, variables: int, counts: Any) -> None:
    """``counts[v, e]``: how many events before e carry bit v; [variable, event + 1]."""
    for v in range(variables):
        total = 0
        mask = bit(v)
        for e in range(labels.size):
            counts[v, e] = total
            total += (labels[e] & mask) != 0
        counts[v, labels.size] = total


@sequential(writes=())
def labels_overlap(labels: Any) -> bool:
    """Return whether two variables share an event: they are not mutually exclusive (thesis Def. 4.4).

    That is so if some event satisfies the properties of both.
    """
    shared = bit(0) ^ bit(0)
    for e in range(labels.size):
        shared |= labels[e] & (labels[e] - bit(0))
    return shared != 0


@sequential(writes=("starts",))
def select_starts(marks: Any, starts: Any) -> int:
    """Write the events whose mark is not 0 to `starts`; return how many.

    `starts` needs spare slots as :func:`keep_rows` says.
    """
    return keep_rows(0, marks, False, starts)


@rule
def _first_counted(v: int, start: int, next_events: NextEvents, pattern: PatternTable) -> int:
    """Return the first event of a window that is behind an event of each variable just before v; the window begins at `start`."""
    after, occurrence = next_events
    begin = start
    for k in range(pattern.direct_first[v], pattern.direct_first[v + 1]):
        begin = max(begin, first_behind(after, occurrence[pattern.direct[k], start]))
    return begin


@rule
def _statistic(v: int, start: int, end: int, next_events: NextEvents, pattern: PatternTable, counts: Any) -> int:
    """Return cnt_v of the window [start, end) (thesis Def. 5.2)."""
    begin = _first_counted(v, start, next_events, pattern)
    return counts[v, end] - counts[v, begin] if begin < end else 0


@kernel(writes=("holds",))
def judge_windows(
    low: int, high: int, starts: Any, ends: Any, next_events: NextEvents, pattern: PatternTable, fewest: int, counts: Any, holds: Any
) -> None:
    """``holds[w]``: whether window w satisfies the necessary match conditions (thesis Theorems 5.2 and 5.3).

    It holds at least `fewest` events and counts at least its minimum for each variable.
    """
    for w in range(low, high):
        true = ends[w] - starts[w] >= fewest
        v = 0
        while true and v < pattern.order.size:
            true = _statistic(v, starts[w], ends[w], next_events, pattern, counts) >= pattern.minimum[v]
            v += 1
        holds[w] = true


@rule
def _still_taken(found: int, v: int, next_events: NextEvents, pattern: PatternTable) -> bool:
    """Return whether v cannot bind `found` since a quantified variable just before v would bind a tied event.

    That event comes before `found` in the stream.
    """
    after, occurrence = next_events
    taken = False
    first = found
    while first > 0 and after[first - 1] > found:
        first -= 1
    if first < found:
        for k in range(pattern.direct_first[v], pattern.direct_first[v + 1]):
            u = pattern.direct[k]
            taken = taken or (pattern.maximum[u] == UNBOUNDED and occurrence[u, first] < found)
    return taken


@kernel(writes=("earliest", "holds"))
def chain_windows(
    low: int,
    high: int,
    starts: Any,
    limits: WindowLimits,
    next_events: NextEvents,
    pattern: PatternTable,
    exact: bool,
    earliest: Any,
    holds: Any,
) -> None:
    """``holds[w]``: whether the earliest possible event of each variable in turn still falls into window w.

    ``earliest[v, w]`` is v's next occurrence behind the earliest events of all that
    directly precede it. The last row of `earliest` is scratch.

    With `exact` it also passes over events that tie with a bound one. Let each event
    fit one available variable at most, and no condition relate bindings. Then it is
    the event that skip-till-next-match binds first. Every window that holds has one
    match.
    """
    after, occurrence = next_events
    variables = pattern.order.size
    tied = exact and after.size > 0
    latest = earliest[variables]
    for w in range(low, high):
        latest[w] = starts[w]
    for place in range(variables):
        v = pattern.order[place]
        found = earliest[v]
        for w in range(low, high):
            found[w] = starts[w]
        for k in range(pattern.direct_first[v], pattern.direct_first[v + 1]):
            preceding = earliest[pattern.direct[k]]
            for w in range(low, high):
                found[w] = max(found[w], first_behind(after, preceding[w]))
        for w in range(low, high):
            event = occurrence[v, found[w]]
            while tied and event < limits.stream_end[starts[w]] and _still_taken(event, v, next_events, pattern):
                event = occurrence[v, event + 1]
            found[w] = event
            latest[w] = max(latest[w], event)
    for w in range(low, high):
        holds[w] = is_in_window(starts[w], latest[w], limits)


@sequential(writes=("earliest", "kept"))
def keep_windows(holds: Any, starts: Any, earliest: Any, kept: Any) -> int:
    """Write to `kept` the starts of the windows that hold; move their columns to the front of `earliest`; return how many.

    `kept` needs one slot more than it may receive.
    """
    count = 0
    for w in range(holds.size):
        kept[count] = w
        count += holds[w]
    for v in range(earliest.shape[0]):
        found = earliest[v]
        for k in range(count):
            found[k] = found[kept[k]]
    for k in range(count):
        kept[k] = starts[kept[k]]
    return count

"""Which matches ``after_match`` can never take, given one that was found, and so which runs need not go on (SASE+ paper, section 4.2).

Of a stream, matches are taken in the order in which they complete: by last
event, then first event, then bindings. skip_past_last drops those that begin
before the last one taken has ended, or with its last event.

A match m is never taken if another one, n, completes before it and begins with
its first event or later. For if n is taken, m begins before n has ended. If n
is dropped, it begins no later than the end of some match t that was taken
before it; t ends no later than n does, and m begins no later than n, and so
before t has ended, too. Under skip_to_next the same holds where n begins with
the very same event. A selection from only some of all matches takes the same
ones as long as it is given all that are not ruled out; so each search may rule
out what its own matches let it, whatever is found elsewhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.compile.jit import rule, subroutine
from gpu_cep_kernels.rules.scalars import UNBOUNDED

Ints = npt.NDArray[np.int64]

# Which matches are asked for: all, those that do not overlap, or one of each first event.
KEEP_ALL, KEEP_DISJOINT, KEEP_EARLIEST = range(3)

# Places in the state of a cut: what is kept; the first and the last event of the match that cuts runs off; whether the current start is
# its own.
KEPT, FIRST, LAST, OWN = range(4)


class Cut(NamedTuple):
    """The match by which a search is cut off: ``counts[v]`` events for variable v, and all of them in `events`, variable after variable."""

    state: Ints
    counts: Ints
    events: Ints


def new_cut(kept: int, variables: int, depth: int) -> Cut:
    """A cut before any match of up to `depth` events is found."""
    return Cut(np.array([kept, -1, UNBOUNDED, 0]), np.zeros(variables, np.int64), np.zeros(depth, np.int64))


@rule
def is_ruled_out_by(first: int, last: int, other_first: int, other_last: int) -> bool:
    """Whether no match that begins at `first` and binds `last` is taken, given another one, from its first to its last event."""
    return last > other_last and first <= other_first


@rule
def begin_cut(start: int, cut: Any) -> None:
    """Let matches begin at `start`: what was found so far rules some of them out if it begins there or later."""
    state = cut.state
    state[OWN] = 0
    if start > state[FIRST] or state[KEPT] != KEEP_DISJOINT:
        state[FIRST] = start
        state[LAST] = UNBOUNDED


@rule
def is_cut_off(event: int, run: Any) -> bool:
    """Whether no match is taken that binds `event` behind the path."""
    return is_ruled_out_by(run.event[0], event, run.cut.state[FIRST], run.cut.state[LAST])


@rule
def searched_until(end: int, run: Any) -> int:
    """The place before `end` from which on no event leads the path to a match that is taken; `end` if there is none."""
    last = run.cut.state[LAST]
    if last < end:
        end = last if run.cut.state[OWN] != 0 and _is_behind(run) else last + 1
    return end


@rule
def cuts(run: Any) -> bool:
    """Whether matches cut searches off."""
    return run.cut.state[KEPT] != KEEP_ALL


@rule
def may_be_taken(last: int, run: Any) -> bool:
    """Whether the path, a match that ends at event `last`, is not ruled out."""
    bound = run.cut.state[LAST]
    return last < bound or (last == bound and not (run.cut.state[OWN] != 0 and _is_behind(run)))


@rule
def cut_off_by(begin: int, last: int, events: Any, run: Any) -> None:
    """Cut the search off by the path, a match that may be taken, which ends at `last`; its events are written from ``events[begin]`` on."""
    cut = run.cut
    cut.state[FIRST] = run.event[0]
    cut.state[LAST] = last
    cut.state[OWN] = 1
    place = 0
    for v in range(run.bound.size):
        cut.counts[v] = run.bound[v]
        for _ in range(run.bound[v]):
            cut.events[place] = events[begin + place]
            place += 1


@subroutine
def _is_behind(run: Any) -> bool:
    """Whether all matches that the path may become stand behind the one of its start that cuts it off, by bindings."""
    order, place, v = 0, 0, 0
    while order == 0 and v < run.bound.size:
        order = _compared(v, place, run)
        place += run.cut.counts[v]
        v += 1
    return order > 0


@rule
def _compared(v: int, begin: int, run: Any) -> int:
    """Below zero, zero or above: how v's events on the path compare with those of the match that cuts it off, from ``events[begin]`` on.

    Where one of the lists begins with the other one, the longer one is greater.
    """
    cut, number = run.cut, run.bound[v]
    order = number - cut.counts[v]
    place = run.last[v]
    for back in range(number):
        k = number - 1 - back
        if k < cut.counts[v] and run.event[place] != cut.events[begin + k]:
            order = run.event[place] - cut.events[begin + k]
        place = run.earlier[place]
    return int(order)

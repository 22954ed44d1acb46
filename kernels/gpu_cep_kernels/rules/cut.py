"""Rule out matches that ``after_match`` can never take once another one is found (SASE+ paper, section 4.2).

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
    """Return a cut before any match of up to `depth` events is found."""
    return Cut(np.array([kept, -1, UNBOUNDED, 0]), np.zeros(variables, np.int64), np.zeros(depth, np.int64))


@rule
def is_ruled_out_by(first: int, last: int, other_first: int, other_last: int) -> bool:
    """Whether no match that begins at `first` and binds `last` is taken, given another one, from its first to its last event."""
    return last > other_last and first <= other_first


@rule
def begin_cut(start: int, cut: Any) -> None:
    """Begin the search at `start`; keep the match that was found last if it begins at `start` or later, since it rules out others."""
    state = cut.state
    state[OWN] = 0
    if start > state[FIRST] or state[KEPT] != KEEP_DISJOINT:
        state[FIRST] = start
        state[LAST] = UNBOUNDED


@rule
def is_cut_off(event: int, path: Any) -> bool:
    """Whether no match is taken that binds `event` behind the path."""
    return is_ruled_out_by(path.event[0], event, path.cut.state[FIRST], path.cut.state[LAST])


@rule
def search_end(end: int, path: Any) -> int:
    """Return the place before `end` from which on no event leads the path to a match that is taken; `end` if there is none."""
    last = path.cut.state[LAST]
    if last < end:
        end = last if path.cut.state[OWN] != 0 and _is_behind(path) else last + 1
    return end


@rule
def cuts_searches(path: Any) -> bool:
    """Whether a match that is found ends the search for others: not where all matches are asked for."""
    return path.cut.state[KEPT] != KEEP_ALL


@rule
def may_be_taken(last: int, path: Any) -> bool:
    """Whether the path, a match that ends at event `last`, is not ruled out."""
    bound = path.cut.state[LAST]
    return last < bound or (last == bound and not (path.cut.state[OWN] != 0 and _is_behind(path)))


@rule
def cut_search_off(begin: int, last: int, events: Any, path: Any) -> None:
    """Cut the search off by the path, a match that may be taken, which ends at `last`; its events are written from ``events[begin]`` on."""
    cut = path.cut
    cut.state[FIRST] = path.event[0]
    cut.state[LAST] = last
    cut.state[OWN] = 1
    place = 0
    for v in range(path.bound.size):
        cut.counts[v] = path.bound[v]
        for _ in range(path.bound[v]):
            cut.events[place] = events[begin + place]
            place += 1


@subroutine
def _is_behind(path: Any) -> bool:
    """Whether all matches that the path may become stand behind the one of its start that cuts it off, by bindings."""
    order, place, v = 0, 0, 0
    while order == 0 and v < path.bound.size:
        order = _compare_bindings(v, place, path)
        place += path.cut.counts[v]
        v += 1
    return order > 0


@rule
def _compare_bindings(v: int, begin: int, path: Any) -> int:
    """Below zero, zero or above: how v's events on the path compare with those of the match that cuts it off, from ``events[begin]`` on.

    Where one of the lists begins with the other one, the longer one is greater.
    """
    cut, number = path.cut, path.bound[v]
    order = number - cut.counts[v]
    place = path.last[v]
    for back in range(number):
        k = number - 1 - back
        if k < cut.counts[v] and path.event[place] != cut.events[begin + k]:
            order = path.event[place] - cut.events[begin + k]
        place = path.earlier[place]
    return int(order)

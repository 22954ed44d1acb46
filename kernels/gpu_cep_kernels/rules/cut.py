"""Rule out matches that ``after_match`` can never take (SASE+ paper, section 4.2).

The matches of a stream are taken in the order in which they complete: by last
event, then first event, then bindings. skip_past_last drops a match that
begins at the last event of the last one taken, or earlier.

Let match n complete before match m, and begin with m's first event or later.
Then m is never taken. There are two cases:

- n is taken. Then m begins before n has ended.
- n is dropped. Then it begins at the last event of some match t that was taken
  before it, or earlier. t ends no later than n, and m begins no later than n.
  So m is dropped, too.

Under skip_to_next the same holds where n begins with the very same event as m.

A search may rule out what its own matches let it, whatever others find. For
the selection takes the same matches as long as it gets all that are not ruled
out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.scalars import UNBOUNDED

Ints = npt.NDArray[np.int64]

# Which matches are asked for: all, those that do not overlap, or one of each first event.
KEEP_ALL, KEEP_DISJOINT, KEEP_EARLIEST = range(3)


class _CutState(NamedTuple):
    """Name the numbers in the state of a cut."""

    KEPT: int = 0  # which matches are asked for
    FIRST: int = 1  # the first event of the match that cuts runs off,
    LAST: int = 2  # and its last event
    OWN: int = 3  # whether that match begins at the current start


CutState = _CutState()


class Cut(NamedTuple):
    """Hold the match that cuts a search off: the last one found that may be taken.

    - state: numbers that `CutState` names.
    - counts[v]: how many events it binds to variable v.
    - events: its events, variable after variable.
    """

    state: Ints
    counts: Ints
    events: Ints


def new_cut(kept: int, variables: int, depth: int) -> Cut:
    """Return a cut with room for a match of up to `depth` events; it cuts nothing off yet."""
    return Cut(np.array([kept, -1, UNBOUNDED, 0]), np.zeros(variables, np.int64), np.zeros(depth, np.int64))


@rule
def is_ruled_out_by(first: int, last: int, other_first: int, other_last: int) -> bool:
    """Whether another match rules out all matches that begin at event `first` and bind event `last`."""
    return last > other_last and first <= other_first


@rule
def begin_cut(start: int, cut: Any) -> None:
    """Begin the search at `start`.

    Keep the match found last if it begins at `start` or later: it rules out
    matches of this start, too.
    """
    state = cut.state
    state[CutState.OWN] = 0
    if start > state[CutState.FIRST] or state[CutState.KEPT] != KEEP_DISJOINT:
        state[CutState.FIRST] = start
        state[CutState.LAST] = UNBOUNDED


@rule
def is_cut_off(event: int, path: Any) -> bool:
    """Whether no match is taken that binds `event` after the events of the path."""
    return is_ruled_out_by(path.event[0], event, path.cut.state[CutState.FIRST], path.cut.state[CutState.LAST])


@rule
def search_end(end: int, path: Any) -> int:
    """Return the event from which on no event leads the path to a match that is taken, at most `end`."""
    last = path.cut.state[CutState.LAST]
    if last < end:
        end = last if path.cut.state[CutState.OWN] != 0 and _is_behind(path) else last + 1
    return end


@rule
def cuts_searches(path: Any) -> bool:
    """Whether a match that is found may end the search for others: not if all matches are asked for."""
    return path.cut.state[CutState.KEPT] != KEEP_ALL


@rule
def may_be_taken(last: int, path: Any) -> bool:
    """Whether the path, a match that ends at event `last`, is not ruled out by the match that cuts off."""
    bound = path.cut.state[CutState.LAST]
    return last < bound or (last == bound and not (path.cut.state[CutState.OWN] != 0 and _is_behind(path)))


@rule
def cut_search_off(begin: int, last: int, events: Any, path: Any) -> None:
    """Let the path, a match that ends at event `last`, cut the search off from now on.

    Its events are those from ``events[begin]`` on.
    """
    cut = path.cut
    cut.state[CutState.FIRST] = path.event[0]
    cut.state[CutState.LAST] = last
    cut.state[CutState.OWN] = 1
    place = 0
    for v in range(path.bound.size):
        cut.counts[v] = path.bound[v]
        for _ in range(path.bound[v]):
            cut.events[place] = events[begin + place]
            place += 1


@rule
def _is_behind(path: Any) -> bool:
    """Whether every match that the path may become comes after the one that cuts it off, by bindings.

    Both begin at the same start.
    """
    order, place, v = 0, 0, 0
    while order == 0 and v < path.bound.size:
        order = _compare_bindings(v, place, path)
        place += path.cut.counts[v]
        v += 1
    return order > 0


@rule
def _compare_bindings(v: int, begin: int, path: Any) -> int:
    """Compare v's events on the path with those of the match that cuts it off.

    Return a number below zero, zero or above. Where one list begins with the other
    one, the longer one is greater. The match's events of v begin at ``events[begin]``.
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

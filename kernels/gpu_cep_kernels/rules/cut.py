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
If the first k matches of each first event are asked for, it holds where k such
matches complete before m. So a cut holds the k first ones that were found: the
one of them that completes last cuts the search off.

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

# Which matches are asked for: all, those that do not overlap, or the first ones of each first event.
KEEP_ALL, KEEP_DISJOINT, KEEP_EARLIEST = range(3)


class _CutState(NamedTuple):
    """Name the numbers in the state of a cut."""

    KEPT: int = 0  # which matches are asked for
    FIRST: int = 1  # the first event of the match that cuts runs off,
    LAST: int = 2  # and its last event
    OWN: int = 3  # whether that match begins at the current start
    HELD: int = 4  # how many matches are held


CutState = _CutState()


class Cut(NamedTuple):
    """Hold the first matches found of those that may be taken, as many as are asked for; the last one of them cuts a search off.

    Once that many are held, further matches take their places.

    - state: numbers that `CutState` names.
    - heap: the numbers of the matches held; each comes after those at twice its place, plus 1 and plus 2. So the first one cuts off.
    - last[m]: the last event of match m.
    - counts[m, v]: how many events it binds to variable v.
    - events[m]: its events, variable after variable.
    """

    state: Ints
    heap: Ints
    last: Ints
    counts: Ints
    events: Ints


def new_cut(kept: int, limit: int, variables: int, depth: int) -> Cut:
    """Return a cut with room for `limit` matches of up to `depth` events; it cuts nothing off yet."""
    return Cut(
        state=np.array([kept, -1, UNBOUNDED, 0, 0]),
        heap=np.zeros(limit, np.int64),
        last=np.zeros(limit, np.int64),
        counts=np.zeros((limit, variables), np.int64),
        events=np.zeros((limit, depth), np.int64),
    )


@rule
def is_ruled_out_by(first: int, last: int, other_first: int, other_last: int) -> bool:
    """Return whether another match rules out all matches that begin at event `first` and bind event `last`."""
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
        state[CutState.HELD] = 0


@rule
def is_cut_off(event: int, path: Any) -> bool:
    """Return whether no match is taken that binds `event` after the events of the path."""
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
    """Return whether a match that is found may end the search for others: not if all matches are asked for."""
    return path.cut.state[CutState.KEPT] != KEEP_ALL


@rule
def may_be_taken(last: int, path: Any) -> bool:
    """Return whether the path, a match that ends at event `last`, is not ruled out by the match that cuts off."""
    bound = path.cut.state[CutState.LAST]
    return last < bound or (last == bound and not (path.cut.state[CutState.OWN] != 0 and _is_behind(path)))


@rule
def cut_search_off(begin: int, last: int, events: Any, path: Any) -> None:
    """Hold the path, a match that ends at event `last`; cut the search off from now on if as many are held as are asked for.

    Its events are those from ``events[begin]`` on.
    """
    cut = path.cut
    limit, held = cut.heap.size, cut.state[CutState.HELD]
    m = held if held < limit else cut.heap[0]
    _write(m, begin, last, events, path)
    if held < limit:
        cut.state[CutState.HELD] = held + 1
        _raise(m, held, cut)
    else:
        _lower(m, cut)
    if cut.state[CutState.HELD] == limit:
        cut.state[CutState.FIRST] = path.event[0]
        cut.state[CutState.LAST] = cut.last[cut.heap[0]]
        cut.state[CutState.OWN] = 1


@rule
def end_search(path: Any) -> None:
    """Cut the search of the current start off at once: no further match of it is asked for."""
    state = path.cut.state
    state[CutState.FIRST] = path.event[0]
    state[CutState.LAST] = path.event[0] - 1
    state[CutState.OWN] = 0


@rule
def has_enough(found: int, path: Any) -> bool:
    """Return whether so many matches of one first event are all that are asked for."""
    return path.cut.state[CutState.KEPT] == KEEP_EARLIEST and found >= path.cut.heap.size


@rule
def _write(m: int, begin: int, last: int, events: Any, path: Any) -> None:
    """Write the path to the cut as match m; its events are those from ``events[begin]`` on."""
    cut = path.cut
    cut.last[m] = last
    place = 0
    for v in range(path.bound.size):
        cut.counts[m, v] = path.bound[v]
        for _ in range(path.bound[v]):
            cut.events[m, place] = events[begin + place]
            place += 1


@rule
def _raise(m: int, place: int, cut: Any) -> None:
    """Put match m in the heap at a free place, its end; it goes up past those that come before it."""
    above = (place - 1) >> 1
    while place > 0 and _compare_held(m, cut.heap[above], cut) > 0:
        cut.heap[place] = cut.heap[above]
        place, above = above, (above - 1) >> 1
    cut.heap[place] = m


@rule
def _lower(m: int, cut: Any) -> None:
    """Replace the root of the heap by match m, and sift m down below matches that come after it."""
    place, below, size = 0, 1, cut.heap.size
    while below < size:
        if below + 1 < size and _compare_held(cut.heap[below + 1], cut.heap[below], cut) > 0:
            below += 1
        if _compare_held(cut.heap[below], m, cut) > 0:
            cut.heap[place] = cut.heap[below]
            place, below = below, 2 * below + 1
        else:
            below = size
    cut.heap[place] = m


@rule
def _compare_held(m: int, n: int, cut: Any) -> int:
    """Compare two matches held, of one first event, by last event and bindings: return a number below zero, zero or above."""
    order, v, left, right = cut.last[m] - cut.last[n], 0, 0, 0
    while order == 0 and v < cut.counts.shape[1]:
        shorter, k = min(cut.counts[m, v], cut.counts[n, v]), 0
        while order == 0 and k < shorter:
            order = cut.events[m, left + k] - cut.events[n, right + k]
            k += 1
        order = order if order != 0 else cut.counts[m, v] - cut.counts[n, v]
        left += cut.counts[m, v]
        right += cut.counts[n, v]
        v += 1
    return int(order)


@rule
def _is_behind(path: Any) -> bool:
    """Return whether every match that the path may become comes after the one that cuts it off, by bindings.

    Both begin at the same start.
    """
    order, place, v, m = 0, 0, 0, path.cut.heap[0]
    while order == 0 and v < path.bound.size:
        order = _compare_bindings(v, m, place, path)
        place += path.cut.counts[m, v]
        v += 1
    return order > 0


@rule
def _compare_bindings(v: int, m: int, begin: int, path: Any) -> int:
    """Compare v's events on the path with those of match m, which is held.

    Return a number below zero, zero or above. Where one list begins with the other
    one, the longer one is greater. The match's events of v begin at ``events[m, begin]``.
    """
    cut, number = path.cut, path.bound[v]
    order = number - cut.counts[m, v]
    place = path.last[v]
    for back in range(number):
        k = number - 1 - back
        if k < cut.counts[m, v] and path.event[place] != cut.events[m, begin + k]:
            order = path.event[place] - cut.events[m, begin + k]
        place = path.earlier[place]
    return int(order)

"""Read the matches of contiguous sequences off label words, without an automaton.

The variables follow one another, and each event of a match follows the one
before it at once. Labels say of each event which variables it may *enter*, as
their first event right behind the event of the variable before, and which ones
it may *repeat*. Where no event can do both, one variable's run of events is over
before the next variable begins. Then at most one match begins at each event. Its
end is found by one step for each variable, however long the runs are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.rules.copies import copy_rows
from gpu_cep_kernels.rules.scalars import UNBOUNDED, within


class Sequence(NamedTuple):
    """Hold the variables of a contiguous sequence, in their order, and what events may do.

    - enters[e]: the label word of event e, with the bits of the variables that it may enter.
    - mask[v]: the bit of variable v, in the type of label words.
    - row[v]: the row of `until` for variable v; −1 if it binds one event.
    - until[k, e]: the first event from e on that does not repeat the variable of row k.
    - minimum[v], maximum[v]: how many events v binds; the maximum may be UNBOUNDED.
    """

    enters: npt.NDArray[np.generic]
    mask: npt.NDArray[np.generic]
    row: npt.NDArray[np.int64]
    until: npt.NDArray[np.int32]
    minimum: npt.NDArray[np.int64]
    maximum: npt.NDArray[np.int64]


@sequential(writes=("until",))
def find_repeats(repeats: Any, mask: Any, until: Any) -> None:
    """``until[e]``: the first event from e on whose word lacks the bit `mask`; two entries more hold the number of events."""
    size = repeats.size
    until[size] = until[size + 1] = size
    found = size
    for back in range(size):
        e = size - 1 - back
        found = found if repeats[e] & mask else e
        until[e] = found


@rule
def _end_of_window(start: int, low: int, high: int, clock: Any, length: Any) -> int:
    """Return the end of the events [low, high) that are in the window of `start`; event `low` is."""
    if within(clock[start], clock[high - 1], length):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if within(clock[start], clock[middle], length):
            low = middle
        else:
            high = middle
    return high


@rule
def _end_of_binding(v: int, start: int, place: int, clock: Any, length: Any, sequence: Sequence) -> int:
    """Return the event behind those that v binds if `place` is the first; at most `place` if v cannot bind them.

    The match starts at event `start`.
    """
    size, end = sequence.enters.size, place
    if place < size and sequence.enters[place] & sequence.mask[v] and within(clock[start], clock[place], length):
        end = place + 1
        row, most = sequence.row[v], sequence.maximum[v]
        if row >= 0:
            end = int(sequence.until[row, end])
            if most != UNBOUNDED:
                end = min(end, place + most)
            # what comes behind the window ends the match, and it is whole if no variable follows
            if v == sequence.mask.size - 1:
                end = _end_of_window(start, place, end, clock, length)
            if end - place < sequence.minimum[v]:
                end = place
    return end


@sequential(writes=("starts",))
def select_entering(own: int, enters: Any, masks: Any, starts: Any) -> int:
    """Write the events below `own` at which a match can start; return how many.

    The first variables, all but the last of which bind one event, have the bits
    `masks`: the event, the next one and so on must enter them. `starts` has room for
    one more.
    """
    count = 0
    for e in range(min(own, enters.size - masks.size + 1)):
        fits = True
        for k in range(masks.size):
            fits &= (enters[e + k] & masks[k]) != 0
        starts[count] = e
        count += fits
    return count


@kernel(writes=("last",))
def find_last_events(low: int, high: int, starts: Any, clock: Any, length: Any, sequence: Sequence, last: Any) -> None:
    """``last[w]``: the last event of the match that starts at event ``starts[w]``; −1 if none does."""
    variables = sequence.mask.size
    for w in range(low, high):
        start = starts[w]
        v, place = 0, start
        end = _end_of_binding(0, start, place, clock, length, sequence)
        while end > place and v + 1 < variables:
            v += 1
            place = end
            end = _end_of_binding(v, start, place, clock, length, sequence)
        last[w] = end - 1 if end > place else -1


@kernel(writes=("counts",))
def count_bound(low: int, high: int, starts: Any, clock: Any, length: Any, sequence: Sequence, counts: Any) -> None:
    """``counts[w, v]``: how many events variable v binds in the match that starts at event ``starts[w]``."""
    for w in range(low, high):
        place = starts[w]
        for v in range(sequence.mask.size):
            end = _end_of_binding(v, starts[w], place, clock, length, sequence)
            counts[w, v] = end - place
            place = end


class Ranges(NamedTuple):
    """Hold matches as ranges of events; m is a match.

    - first[m], last[m]: its first and its last event.
    - counts[m, v]: how many events it binds to variable v.
    """

    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int32]


@kernel(writes=("gathered",))
def gather_ranges(low: int, high: int, order: Any, given: Ranges, gathered: Ranges) -> None:
    """Gather matches in a new order: match m of the result is match ``order[m]`` of the given ones."""
    for m in range(low, high):
        old = order[m]
        gathered.first[m], gathered.last[m] = given.first[old], given.last[old]
        for v in range(given.counts.shape[1]):
            gathered.counts[m, v] = given.counts[old, v]


@kernel(writes=("events",))
def list_events(low: int, high: int, base: int, starts: Any, offsets: Any, events: Any) -> None:
    """Write the events of each match w, plus `base`: those from ``starts[w]`` on, at ``offsets[w]`` and behind."""
    for w in range(low, high):
        first, begin = base + starts[w], offsets[w]
        for k in range(offsets[w + 1] - begin):
            events[begin + k] = first + k


@kernel(writes=("lists",))
def list_rows(
    low: int, high: int, variables: Any, first: Any, counts: Any, rows: Any, places: Any, begins: Any, lists: Any
) -> None:  # fmt: skip
    """Write ``rows[e]`` of the events e that each match binds to some ascending `variables`, the lists of one after those of another.

    What match m binds to ``variables[k]`` goes to ``lists[begins[k] + places[k, m]:]``. The next match's place says where that
    ends.
    """
    for m in range(low, high):
        event, v = first[m], 0
        for k in range(variables.size):
            while v < variables[k]:
                event += counts[m, v]
                v += 1
            copy_rows(rows, event, begins[k] + places[k, m], begins[k] + places[k, m + 1], begins[k] + places[k, high], lists)


@kernel(writes=("out",))
def pick_rows(low: int, high: int, variables: Any, last: Any, first: Any, counts: Any, rows: Any, out: Any) -> None:
    """``out[k, m]``: ``rows[e]`` of the first event e that match m binds to variable ``variables[k]``.

    It is the last one where ``last[k]`` is true. No variable is less than the one before.
    """
    for m in range(low, high):
        event, v = first[m], 0
        for k in range(variables.size):
            while v < variables[k]:
                event += counts[m, v]
                v += 1
            behind = counts[m, v] - 1 if last[k] else 0
            out[k, m] = rows[event + behind]


@sequential(writes=("starts", "last"))
def keep_matches(starts: Any, last: Any) -> int:
    """Keep the starts with a match, ``last[w]`` not −1, in their order at the front of both arrays; return how many."""
    count = 0
    for w in range(last.size):
        start, end = starts[w], last[w]
        starts[count], last[count] = start, end
        count += end >= 0
    return count

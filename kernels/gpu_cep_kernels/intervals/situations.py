"""Situations by the borders between runs of events (``002_…`` Definition 7): what each event's label opens and closes.

Events are taken in the order of time of their streams, which may lie one
after the other or interleaved: what was last seen of each stream is kept. A
border is an event at which a name's condition begins or ceases to hold. The
events may be cut into slices that know nothing of each other: the first event
of each stream in a slice is a border in any case, and what it opens and
closes is settled by what the slices before say. Where a run is broken by a
gap, too, the event behind the gap closes all that the one before it had, and
opens all that it has.

Where streams lie one after the other, an event and the one before it say all:
then each event can be judged on its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.rules.scalars import within
from gpu_cep_kernels.rules.tables import Ints, Places

# The label of an event is a word of 16 bits; this is that of no event, which closes what nobody knows.
UNKNOWN = np.uint16(1 << 15)
# Behind all events.
NEVER = np.iinfo(np.int32).max

Labels = npt.NDArray[np.uint16]


class LastSeen(NamedTuple):
    """The label of each stream's last event, and its position, which is known where the label has a bit."""

    label: Labels
    position: Places


class Borders(NamedTuple):
    """Of border b the event and its time, its stream, the event before it there, and the names that it opens and closes.

    The event before is known where a name is closed.
    """

    position: Places
    time: Any
    stream: Places
    before: Places
    opened: Labels
    closed: Labels


class Crossings(NamedTuple):
    """Of borders as they are found: the event, the event before it in its stream, and the names that it opens and closes."""

    position: Places
    before: Places
    opened: Labels
    closed: Labels


class Gaps(NamedTuple):
    """A run is broken where more than `length` passes on the `clock` between two events of a stream; an empty clock: nowhere."""

    clock: Any
    length: Any


@rule
def _crossing(label: np.uint16, before: np.uint16, is_broken: bool) -> tuple[np.uint16, np.uint16]:
    """Return the names that an event opens and those that it closes, behind one with label `before`."""
    if is_broken:
        return label, before
    return label & ~before, before & ~label


@rule
def _is_broken(event: int, last: int, before: np.uint16, gaps: Gaps) -> bool:
    """Whether a gap breaks the run since the stream's last event, which had the label `before`."""
    known = before != 0 and (before & UNKNOWN) == 0
    return known and not within(gaps.clock[last], gaps.clock[event], gaps.length)


@rule
def _note(event: int, before: int, opened: np.uint16, closed: np.uint16, crossings: Crossings, found: int) -> int:
    """Write a border; return how many there are then."""
    crossings.position[found] = event
    crossings.before[found] = before
    crossings.opened[found] = opened
    crossings.closed[found] = closed
    return found + 1


@sequential(writes=("crossings", "seen"))
def find_borders(begin: int, end: int, labels: Any, streams: Any, seen: LastSeen, crossings: Crossings, found: int) -> int:
    """Write the borders among the events [begin, end) from `found` on; `labels` begins at event `begin`.

    `streams` is empty where all events are one stream. Return how many
    borders there are then.
    """
    own = streams[begin:end]
    for e in range(end - begin):
        # unsigned, so that as an index it needs no test for its sign
        stream = np.uint32(own[e]) if own.size > 0 else np.uint32(0)
        label, before = np.uint16(labels[e]), seen.label[stream]
        if label != before:
            found = _note(begin + e, seen.position[stream], label & ~before, before & ~label, crossings, found)
            seen.label[stream] = label
        # noted of every event: to ask for the label's bits costs more
        seen.position[stream] = begin + e
    return found


@sequential(writes=("crossings", "seen"))
def find_borders_and_gaps(
    begin: int, end: int, labels: Any, streams: Any, gaps: Gaps, seen: LastSeen, crossings: Crossings, found: int
) -> int:  # fmt: skip
    """As :func:`find_borders`, where gaps break runs; apart, for it takes longer."""
    own = streams[begin:end]
    for e in range(end - begin):
        stream = np.uint32(own[e]) if own.size > 0 else np.uint32(0)
        label, before = np.uint16(labels[e]), seen.label[stream]
        if (label | before) != 0:
            is_broken = _is_broken(begin + e, seen.position[stream], before, gaps)
            if label != before or is_broken:
                opened, closed = _crossing(label, before, is_broken)
                found = _note(begin + e, seen.position[stream], opened, closed, crossings, found)
                seen.label[stream] = label
            seen.position[stream] = begin + e
    return found


@rule
def _crossing_of_neighbours(event: int, labels: Any, begins: Any, gaps: Gaps) -> tuple[np.uint16, np.uint16]:
    """Return what an event opens and closes, behind the one before it unless it begins a stream."""
    label = np.uint16(labels[event])
    before = np.uint16(0) if begins[event] else np.uint16(labels[event - 1])
    is_broken = gaps.clock.size > 0 and _is_broken(event, event - 1, before, gaps)
    return _crossing(label, before, is_broken)


@kernel(writes=("marks",))
def mark_borders(low: int, high: int, labels: Any, begins: Any, gaps: Gaps, marks: Any) -> None:
    """``marks[e]``: whether event e is a border, where streams lie one after the other, as ``begins[e]`` says."""
    for e in range(low, high):
        opened, closed = _crossing_of_neighbours(e, labels, begins, gaps)
        marks[e] = (opened | closed) != 0


@kernel(writes=("opened", "closed"))
def cross_borders(
    low: int, high: int, events: Any, labels: Any, begins: Any, gaps: Gaps, opened: Labels, closed: Labels
) -> None:  # fmt: skip
    """Write what the borders at some events open and close, where streams lie one after the other."""
    for b in range(low, high):
        own_opened, own_closed = _crossing_of_neighbours(events[b], labels, begins, gaps)
        opened[b] = own_opened
        closed[b] = own_closed


@sequential(writes=("borders",))
def settle_borders(borders: Borders, gaps: Gaps, seen: LastSeen) -> None:
    """Settle what the first event of each stream in a slice opens and closes, by what was `seen` in the slices before."""
    for b in range(borders.position.size):
        if (borders.closed[b] & UNKNOWN) != 0:
            stream, label = borders.stream[b], borders.opened[b]
            before = seen.label[stream] & ~UNKNOWN
            is_broken = gaps.clock.size > 0 and _is_broken(borders.position[b], seen.position[stream], before, gaps)
            opened, closed = _crossing(label, before, is_broken)
            borders.before[b] = seen.position[stream]
            borders.opened[b] = opened
            borders.closed[b] = closed


@sequential(writes=("counts",))
def count_runs(opened: Labels, counts: Ints) -> None:
    """``counts[v]``: how many borders open name v."""
    for b in range(opened.size):
        for v in range(counts.size):
            counts[v] += opened[b] >> v & 1


@sequential(writes=("openings", "closings", "opening", "closing"))
def pair_borders(order: Ints, opened: Labels, closed: Labels, openings: Ints, closings: Ints, opening: Ints, closing: Ints) -> None:
    """Write the borders that open and close each run, in `order`, in which each name opens and closes by turns.

    Those of name v go to `opening` from ``openings[v]`` on, and to `closing`
    from ``closings[v]`` on; both move on.
    """
    for k in range(order.size):
        b = order[k]
        for v in range(openings.size):
            if (opened[b] >> v & 1) != 0:
                opening[openings[v]] = b
                openings[v] += 1
            if (closed[b] >> v & 1) != 0:
                closing[closings[v]] = b
                closings[v] += 1


@kernel(writes=("found",))
def first_reaching(low: int, high: int, first: Any, ends: Any, clock: Any, length: Any, found: Any) -> None:
    """``found[i]``: the first event from ``first[i]`` on, before ``ends[i]``, that is `length` or more later; ``ends[i]`` if none is."""
    for i in range(low, high):
        start, stop = first[i], ends[i]
        begin = clock[start]
        while start < stop:
            middle = (start + stop) // 2
            if clock[middle] == begin or clock[middle] - begin < length:
                start = middle + 1
            else:
                stop = middle
        found[i] = start


class Wanted(NamedTuple):
    """Runs of events to collect, stream after stream (those of stream s from ``offsets[s]`` on), in order and apart.

    Run i has the events of its stream from ``first[i]`` to ``last[i]``.
    """

    offsets: Ints
    first: Places
    last: Places


class Awaited(NamedTuple):
    """The run that each stream comes to next, or is in, and the event from which on it is (NEVER: none is left)."""

    run: Ints
    due: Places


@sequential(writes=("awaited", "runs", "positions"))
def collect(begins: Ints, ends: Ints, streams: Any, wanted: Wanted, awaited: Awaited, runs: Places, positions: Places) -> int:
    """Write the run and the position of each event of [begins[k], ends[k]) that is in some run; return how many."""
    found = 0
    for k in range(begins.size):
        for e in range(begins[k], ends[k]):
            stream = streams[e]
            if e >= awaited.due[stream]:
                i = awaited.run[stream]
                runs[found] = i
                positions[found] = e
                found += 1
                if e == wanted.last[i]:
                    awaited.run[stream] = i + 1
                    awaited.due[stream] = wanted.first[i + 1] if i + 1 < wanted.offsets[stream + 1] else NEVER
    return found


def new_last_seen(streams: int) -> LastSeen:
    """Return the state in which no event of any stream has been seen."""
    return LastSeen(np.full(streams, UNKNOWN, np.uint16), np.full(streams, -1, np.int32))


def make_borders(crossings: Crossings, found: int, streams: Any, times: Any) -> Borders:
    """Return the first `found` borders, with their streams (`streams` is empty where all events are one) and times."""
    position = crossings.position[:found]
    own = streams[position] if len(streams) else np.zeros(found, np.int32)
    return Borders(position, times[position], own, crossings.before[:found], crossings.opened[:found], crossings.closed[:found])


def new_crossings(size: int) -> Crossings:
    """Return room for so many borders."""
    return Crossings(np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.uint16), np.empty(size, np.uint16))

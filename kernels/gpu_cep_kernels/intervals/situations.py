"""Derive situations from the borders between runs of events (TPStream, Definition 7).

A border is an event at which some name's condition begins or ceases to hold:
its label *opens* or *closes* the name. Events are taken in the order of time of
their streams. Streams may lie one after the other or interleaved, since what was
last seen of each stream is kept.

Events may be cut into slices that know nothing of each other. Then the first
event of each stream in a slice is always a border. What it opens and closes is
settled later, by what the slices before have seen.

A gap breaks a run, too. The event behind a gap closes all names of the event
before it, and opens all of its own.

Where streams lie one after the other, an event and the one before it tell all.
Then each event can be judged on its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.rules.scalars import within
from gpu_cep_kernels.rules.tables import Ints, Places

# Labels are words of 16 bits; this one stands for no event: the names that the next event closes are not known yet.
UNKNOWN = np.uint16(1 << 15)
# A position behind all events.
NEVER = np.iinfo(np.int32).max

Labels = npt.NDArray[np.uint16]


class LastSeen(NamedTuple):
    """Hold what was last seen of each stream s.

    - label[s]: the label of its last event; UNKNOWN before the first.
    - position[s]: the position of that event, right where the label has a bit.
    """

    label: Labels
    position: Places


class SituationBorders(NamedTuple):
    """List borders; b is one.

    - position[b], time[b], stream[b]: its event, the event's time and stream.
    - before[b]: the event before it in its stream, right where a name is closed.
    - opened[b], closed[b]: the names that it opens and closes, as bits.
    """

    position: Places
    time: Any
    stream: Places
    before: Places
    opened: Labels
    closed: Labels


class Crossings(NamedTuple):
    """Receive the borders that a kernel finds; b is one.

    - position[b]: its event.
    - before[b]: the event before it in its stream.
    - opened[b], closed[b]: the names that it opens and closes, as bits.
    """

    position: Places
    before: Places
    opened: Labels
    closed: Labels


class Gaps(NamedTuple):
    """Say when a gap breaks a run: when more than `length` passes between two events of a stream.

    - clock: each event's time; empty if nothing breaks runs.
    - length: the longest time without a break.
    """

    clock: Any
    length: Any


@rule
def _crossing(label: np.uint16, before: np.uint16, is_broken: bool) -> tuple[np.uint16, np.uint16]:
    """Return the masks of names that an event opens and closes, if the event before it had label `before`."""
    if is_broken:
        return label, before
    return label & ~before, before & ~label


@rule
def _is_broken(event: int, last: int, before: np.uint16, gaps: Gaps) -> bool:
    """Return whether a gap breaks the run since the stream's last event, which had the label `before`."""
    known = before != 0 and (before & UNKNOWN) == 0
    return known and not within(gaps.clock[last], gaps.clock[event], gaps.length)


@rule
def _note(event: int, before: int, opened: np.uint16, closed: np.uint16, crossings: Crossings, found: int) -> int:
    """Append a border at place `found`; return how many there are then."""
    crossings.position[found] = event
    crossings.before[found] = before
    crossings.opened[found] = opened
    crossings.closed[found] = closed
    return found + 1


@sequential(writes=("crossings", "seen"))
def find_borders(begin: int, end: int, labels: Any, streams: Any, seen: LastSeen, crossings: Crossings, found: int) -> int:
    """Write the borders among the events [begin, end) from place `found` on; return how many there are then.

    `labels` begins at event `begin`. `streams` is empty where all events are one stream.
    """
    own = streams[begin:end]
    for e in range(end - begin):
        # unsigned, so that as an index it needs no test for its sign
        stream = np.uint32(own[e]) if own.size > 0 else np.uint32(0)
        label, before = np.uint16(labels[e]), seen.label[stream]
        if label != before:
            found = _note(begin + e, seen.position[stream], label & ~before, before & ~label, crossings, found)
            seen.label[stream] = label
        # written for every event, since a test of the label's bits costs more
        seen.position[stream] = begin + e
    return found


@sequential(writes=("crossings", "seen"))
def find_borders_and_gaps(
    begin: int, end: int, labels: Any, streams: Any, gaps: Gaps, seen: LastSeen, crossings: Crossings, found: int
) -> int:  # fmt: skip
    """Do as :func:`find_borders`, where gaps break runs; a kernel of its own, since it takes longer."""
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
    """Return the names that an event opens and closes, by the label of the one before it in its stream.

    ``begins[e]`` says whether event e begins a stream.
    """
    label = np.uint16(labels[event])
    before = np.uint16(0) if begins[event] else np.uint16(labels[event - 1])
    is_broken = gaps.clock.size > 0 and _is_broken(event, event - 1, before, gaps)
    return _crossing(label, before, is_broken)


@kernel(writes=("marks",))
def mark_borders(low: int, high: int, labels: Any, begins: Any, gaps: Gaps, marks: Any) -> None:
    """``marks[e]``: whether event e is a border, where streams lie one after the other; ``begins[e]`` begins one."""
    # without gaps, labels that differ are all there is to see, many at a time
    judged = high if gaps.clock.size > 0 else min(low + 1, high)
    for e in range(low, judged):
        opened, closed = _crossing_of_neighbours(e, labels, begins, gaps)
        marks[e] = (opened | closed) != 0
    if judged < high:
        own, earlier, first, found = labels[judged:high], labels[judged - 1 : high - 1], begins[judged:high], marks[judged:high]
        for e in range(own.size):
            found[e] = own[e] != earlier[e] * (not first[e])


@kernel(writes=("opened", "closed"))
def cross_borders(
    low: int, high: int, events: Any, labels: Any, begins: Any, gaps: Gaps, opened: Labels, closed: Labels
) -> None:  # fmt: skip
    """Write the names that each border opens and closes, where streams lie one after the other.

    The borders are the given `events`.
    """
    for b in range(low, high):
        own_opened, own_closed = _crossing_of_neighbours(events[b], labels, begins, gaps)
        opened[b] = own_opened
        closed[b] = own_closed


@sequential(writes=("borders",))
def settle_borders(borders: SituationBorders, gaps: Gaps, seen: LastSeen) -> None:
    """Complete the first border of each stream in a slice by the last event `seen` in earlier slices.

    Set the names that it opens and closes, and the event before it.
    """
    for b in range(borders.position.size):
        if (borders.closed[b] & UNKNOWN) != 0:
            stream, label = borders.stream[b], borders.opened[b]
            before = seen.label[stream] & ~UNKNOWN
            is_broken = gaps.clock.size > 0 and _is_broken(borders.position[b], seen.position[stream], before, gaps)
            opened, closed = _crossing(label, before, is_broken)
            borders.before[b] = seen.position[stream]
            borders.opened[b] = opened
            borders.closed[b] = closed


@sequential(writes=("openings", "closings"))
def count_crossings(order: Ints, opened: Labels, closed: Labels, openings: Ints, closings: Ints) -> None:
    """``openings[v]``, ``closings[v]``: raised by how many of the borders in `order` open and close name v."""
    for k in range(order.size):
        for v in range(openings.size):
            openings[v] += opened[order[k]] >> v & 1
            closings[v] += closed[order[k]] >> v & 1


@sequential(writes=("openings", "closings", "opening", "closing"))
def pair_borders(order: Ints, opened: Labels, closed: Labels, openings: Ints, closings: Ints, opening: Ints, closing: Ints) -> None:
    """Write for each run the border that opens it and the one that closes it.

    In `order` each name is opened and closed by turns. The borders that open name v
    go to `opening` from ``openings[v]`` on. Those that close it go to `closing` from
    ``closings[v]`` on. Both places are advanced.
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
    """``found[i]``: the first event from ``first[i]`` on that is `length` or more later than it.

    If there is none before ``ends[i]``, it is ``ends[i]``.
    """
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


@sequential(writes=("positions",))
def select_between(begin: int, end: int, streams: Any, first: Places, last: Places, positions: Places) -> int:
    """Write the events [begin, end) that lie between two events of their stream; return how many.

    ``first[s]`` and ``last[s]`` are these events of stream s, and count. `positions`
    has room for one more.
    """
    count = 0
    for e in range(begin, end):
        stream = streams[e]
        positions[count] = e
        count += (first[stream] <= e) & (e <= last[stream])
    return count


def new_last_seen(streams: int) -> LastSeen:
    """Return the state in which no event of any stream has been seen."""
    return LastSeen(np.full(streams, UNKNOWN, np.uint16), np.full(streams, -1, np.int32))


def make_borders(crossings: Crossings, found: int, streams: Any, times: Any) -> SituationBorders:
    """Return the first `found` borders with their times and streams; `streams` is empty where all events are one stream."""
    position = crossings.position[:found]
    own = streams[position] if len(streams) else np.zeros(found, np.int32)
    return SituationBorders(position, times[position], own, crossings.before[:found], crossings.opened[:found], crossings.closed[:found])


def new_crossings(size: int, new: Callable[[int, Any], Any] = np.empty) -> Crossings:
    """Return room for so many borders; `new` makes an array of a length and a type."""
    return Crossings(new(size, np.int32), new(size, np.int32), new(size, np.uint16), new(size, np.uint16))

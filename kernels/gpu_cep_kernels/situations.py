"""Situations by the borders between runs of events (``002_…`` Definition 7): what each event's label opens and closes.

Events are taken in the order of time of their streams, which may lie one
after the other or interleaved: what was last seen of each stream is kept. A
border is an event at which a name's condition begins or ceases to hold. The
events may be cut into slices that know nothing of each other: the first event
of each stream in a slice is a border in any case, and what it opens and
closes is settled by what the slices before say.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.jit import kernel, rule, sequential
from gpu_cep_kernels.tables import Ints, Places

# What a pass over the events may find beside borders.
DISORDERED, TIED = 1, 2


class LastSeen(NamedTuple):
    """The label, the time and the position of each stream's last event (position −1: there was none)."""

    label: Any
    time: Any
    position: Places


class Borders(NamedTuple):
    """Of border b the event, its stream, the event before it there (−1: none seen), and the names that it opens and closes."""

    position: Places
    stream: Places
    before: Places
    opened: Any
    closed: Any


@rule
def _judged(stream: int, label: Any, time: Any, seen: Any) -> tuple[Any, Any, int]:
    """What an event opens and closes, and whether it is out of order or ties with the one before it."""
    before, last = seen.label[stream], seen.time[stream]
    fault = 0
    if seen.position[stream] >= 0:
        fault = DISORDERED * (time < last) + TIED * (time == last)
    return label & ~before, before & ~label, fault


@sequential
def find_borders(
    begin: int, end: int, labels: Any, streams: Any, times: Any, seen: LastSeen, borders: Borders, found: int
) -> tuple[int, int]:  # fmt: skip
    """The borders among the events [begin, end), whose labels are given from `begin` on; writes them from `found` on.

    `streams` is empty where all events are one stream. Returns how many
    borders there are then, and the faults that were met.
    """
    faults = 0
    for e in range(begin, end):
        stream = streams[e] if streams.size > 0 else 0
        label, time = labels[e - begin], times[e]
        opened, closed, fault = _judged(stream, label, time, seen)
        faults |= fault
        before = seen.position[stream]
        if (opened | closed) != 0 or before < 0:
            borders.position[found] = e
            borders.stream[found] = stream
            borders.before[found] = before
            borders.opened[found] = opened
            borders.closed[found] = closed
            found += 1
        seen.label[stream] = label
        seen.time[stream] = time
        seen.position[stream] = e
    return found, faults


@sequential
def settle_borders(borders: Borders, times: Any, seen: LastSeen) -> int:
    """Settle what the first event of each stream in a slice opens and closes, by what was `seen` in the slices before; returns faults."""
    faults = 0
    for b in range(borders.position.size):
        stream = borders.stream[b]
        if borders.before[b] < 0 and seen.position[stream] >= 0:
            opened, closed, fault = _judged(stream, borders.opened[b], times[borders.position[b]], seen)
            borders.before[b] = seen.position[stream]
            borders.opened[b] = opened
            borders.closed[b] = closed
            faults |= fault
    return faults


@kernel
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


@sequential
def count_collected(begins: Ints, ends: Ints, streams: Any, wanted: Wanted, reached: Ints, counts: Ints) -> None:
    """``counts[i]``: how many of the events [begins[k], ends[k]) are in run i; ``reached[s]`` is the run that stream s has come to."""
    for k in range(begins.size):
        for e in range(begins[k], ends[k]):
            stream = streams[e]
            i = reached[stream]
            if i < wanted.offsets[stream + 1] and e >= wanted.first[i]:
                counts[i] += 1
                reached[stream] = i + (e == wanted.last[i])


@sequential
def collect(begins: Ints, ends: Ints, streams: Any, wanted: Wanted, reached: Ints, places: Ints, out: Places) -> None:
    """Those that are in run i go to ``out[places[i]:]``, and ``places[i]`` moves on; else as :func:`count_collected`."""
    for k in range(begins.size):
        for e in range(begins[k], ends[k]):
            stream = streams[e]
            i = reached[stream]
            if i < wanted.offsets[stream + 1] and e >= wanted.first[i]:
                out[places[i]] = e
                places[i] += 1
                reached[stream] = i + (e == wanted.last[i])


def unseen(streams: int, label: type[Any], time: np.dtype[Any]) -> LastSeen:
    """Of no stream anything is known."""
    return LastSeen(np.zeros(streams, label), np.zeros(streams, time), np.full(streams, -1, np.int32))


def room_for_borders(size: int, label: type[Any]) -> Borders:
    """Room for so many borders."""
    position, stream, before = (np.empty(size, np.int32) for _ in range(3))
    return Borders(position, stream, before, np.empty(size, label), np.empty(size, label))

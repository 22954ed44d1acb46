"""Look on a card for faults in the order of events, and gather events at places."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.phase_one.ordering import earlier

# What the order of events may be at fault in: streams or times fall, neighbours tie, a label has two bits.
STREAMS_FALL, TIMES_FALL, TIED, OVERLAP = range(4)
# Events in whose order a thread looks for faults.
QUAD = 4
# Words of a packed event with a label that fits into the second one, behind the bits of its row and of the code of its stream.
FITTING, ROW_BITS, CODE_BITS = 2, 32, 16


class PlacedEvents(NamedTuple):
    """Hold ordered events: the codes of their streams (empty: there is one), times, input rows, and labels [word, event]."""

    streams: Any
    times: Any
    rows: Any
    labels: Any


@rule
def event_before(event: int) -> int:
    """Return the event before one; the first event stands for its own."""
    return event - (event != 0)


@rule
def changes(first: int, count: int, values: Any) -> Any:
    """Return the bits of those of `count` events from `first` on, one or more, whose value is not that of the event before."""
    bits, before = np.uint64(0), values[event_before(first)]
    for k in range(count):
        value = values[first + k]
        bits |= np.uint64(value != before) << np.uint64(k)
        before = value
    return bits


@rule
def begin_bits(first: int, count: int, streams: Any) -> Any:
    """Return the bits of those of `count` events from `first` on that begin a stream."""
    bits = np.uint64(first == 0 and count > 0)
    if streams.size > 0 and count > 0:
        bits |= changes(first, count, streams)
    return bits


@rule
def _overlaps(first: int, count: int, labels: Any) -> bool:
    """Return whether the label of one of `count` events from `first` on has more than one bit."""
    twice = False
    for w in range(labels.shape[0]):
        own = labels[w]
        for k in range(count):
            word = own[first + k]
            twice |= (word & (word - labels.dtype.type(1))) != 0
        for before in range(w):
            for k in range(count):
                twice |= own[first + k] != 0 and labels[before, first + k] != 0
    return twice


@rule
def _streams_fall(first: int, count: int, streams: Any) -> bool:
    """Return whether one of `count` events from `first` on is of a lesser stream than the one before it."""
    falls = False
    for k in range(count):
        e = first + k
        falls |= bool(streams[e] < streams[event_before(e)])
    return falls


@rule
def _same_stream(first: int, count: int, streams: Any) -> Any:
    """Return the bits of those of `count` events from `first` on that are of the stream of the one before."""
    return begin_bits(first, count, streams) ^ ((np.uint64(1) << np.uint64(count)) - np.uint64(1))


@rule
def _times_fall(first: int, same: Any, count: int, times: Any, ranks: Any) -> bool:
    """Return whether one of `count` events from `first` on with its bit in `same` is earlier than the one before it."""
    falls = False
    for k in range(count):
        e = first + k
        # times are loaded whether or not they are compared: a load that waits for another one takes twice as long
        falls |= ((same >> np.uint64(k)) & np.uint64(1) != 0) & earlier(e, event_before(e), times, ranks)
    return falls


@rule
def _tie(first: int, same: Any, count: int, times: Any) -> bool:
    """Return whether one of `count` events from `first` on with its bit in `same` is of the time of the one before it."""
    tied = False
    for k in range(count):
        e = first + k
        tied |= ((same >> np.uint64(k)) & np.uint64(1) != 0) & (times[e] == times[event_before(e)])
    return tied


@rule
def _set(faults: Any, kind: int) -> None:
    """Set a fault that is not set: threads need not agree on who does it, and many stores to one place take turns."""
    if faults[kind] == 0:
        faults[kind] = 1


@rule
def _find_faults(first: int, count: int, events: PlacedEvents, ranks: Any, faults: Any) -> None:
    """Set the faults of `count` events from `first` on."""
    if _overlaps(first, count, events.labels):
        _set(faults, OVERLAP)
    if events.streams.size > 0 and _streams_fall(first, count, events.streams):
        _set(faults, STREAMS_FALL)
    same = _same_stream(first, count, events.streams)
    if _times_fall(first, same, count, events.times, ranks):
        _set(faults, TIMES_FALL)
    if _tie(first, same, count, events.times):
        _set(faults, TIED)


@kernel(writes=("faults",))
def find_faults(low: int, high: int, events: PlacedEvents, ranks: Any, faults: Any) -> None:
    """Set ``faults[kind]`` (uint8) to 1 for each kind of fault of the events of some quads and their order; others are left as they are.

    Times are compared within streams, and ranks (which may be empty) among equal times.
    """
    size = events.times.size
    for q in range(low, high):
        first = q * QUAD
        if first + QUAD <= size:
            _find_faults(first, QUAD, events, ranks, faults)
        else:
            for e in range(first, size):
                _find_faults(e, 1, events, ranks, faults)


@kernel(writes=("picked",))
def gather_events(low: int, high: int, places: Any, events: PlacedEvents, picked: PlacedEvents) -> None:
    """Write all columns of the events at some places; without `streams` there are none to write."""
    for k in range(low, high):
        e = places[k]
        if events.streams.size > 0:
            picked.streams[k] = events.streams[e]
        picked.times[k] = events.times[e]
        picked.rows[k] = events.rows[e]
        for w in range(events.labels.shape[0]):
            picked.labels[w, k] = events.labels[w, e]


@rule
def _rest_of(event: int, events: PlacedEvents, labels_fit: bool) -> Any:
    """Return the row of an event and, above it, the code of its stream and, if that fits, its label, as a uint64."""
    rest = np.uint64(events.rows[event])
    if events.streams.size > 0:
        rest |= np.uint64(events.streams[event]) << np.uint64(ROW_BITS)
    return rest | (np.uint64(events.labels[0, event]) << np.uint64(ROW_BITS + CODE_BITS)) if labels_fit else rest


@kernel(writes=("packed",))
def pack_events(low: int, high: int, events: PlacedEvents, packed: Any) -> None:
    """Write the columns of each event side by side, ``packed[e]``: its time, what :func:`_rest_of` returns, and labels that do not fit.

    Times are uint64, whatever they stand for.
    """
    labels_fit = packed.shape[1] == FITTING
    for e in range(low, high):
        packed[e, 0], packed[e, 1] = events.times[e], _rest_of(e, events, labels_fit)
        if not labels_fit:
            for w in range(events.labels.shape[0]):
                packed[e, FITTING + w] = events.labels[w, e]


@kernel(writes=("picked",))
def gather_packed(low: int, high: int, places: Any, packed: Any, picked: PlacedEvents) -> None:
    """Write all columns of the events at some places, each of which :func:`pack_events` has written to one piece of memory."""
    labels_fit = packed.shape[1] == FITTING
    for k in range(low, high):
        e = places[k]
        # both are loaded before one is stored: for all the compiler knows, what is stored may change what is loaded
        time, rest = packed[e, 0], packed[e, 1]
        picked.times[k], picked.rows[k] = time, rest & np.uint64((1 << ROW_BITS) - 1)
        if picked.streams.size > 0:
            code = rest >> np.uint64(ROW_BITS)
            picked.streams[k] = code & np.uint64((1 << CODE_BITS) - 1) if labels_fit else code
        if labels_fit:
            picked.labels[0, k] = rest >> np.uint64(ROW_BITS + CODE_BITS)
        else:
            for w in range(picked.labels.shape[0]):
                picked.labels[w, k] = packed[e, FITTING + w]

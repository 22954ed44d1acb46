"""Find on a card what a batch's windows need, by tiles: where streams end, what comes next, and where windows start."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.phase_one.ordering import earlier
from gpu_cep_kernels.phase_one.tiles import GROUP, TILE, end_of, end_of_group, has_bits
from gpu_cep_kernels.rules.scalars import LABEL_BITS

# What the order of events may be at fault in: streams or times fall, neighbours tie, a label has two bits.
STREAMS_FALL, TIMES_FALL, TIED, OVERLAP = range(4)
# The rows of a table of tiles, counted from its end: of the first event that ends an earlier stream or a tie, of the numbers of streams
# and of starts. The rows before are of the first event with each variable's bit.
ENDS, LATER, STREAMS, STARTS = range(-4, 0)
# No event of a tile, or of the tiles behind it.
NOWHERE = int(np.iinfo(np.int32).max)


class PlacedEvents(NamedTuple):
    """Hold ordered events: the codes of their streams (empty: there is one), times, input rows, and labels [word, event]."""

    streams: Any
    times: Any
    rows: Any
    labels: Any


class BatchColumns(NamedTuple):
    """Hold what windows depend on of a batch's events.

    - streams[e]: the code of the stream of event e; empty if there is one stream.
    - times[e]: its time; empty if no event ties with its neighbour.
    - labels[word, e]: its label.
    - wanted[word]: the variables whose events can start a match.
    - owned: the events from this one on start no match.
    """

    streams: Any
    times: Any
    labels: Any
    wanted: Any
    owned: int


class WindowColumns(NamedTuple):
    """Hold what is found for a batch: the arrays of windows, the starts, and each stream's first event and first start.

    `after` may be empty, and so may be `begins` and `first_starts`.
    """

    stream_end: Any
    after: Any
    occurrence: Any
    starts: Any
    begins: Any
    first_starts: Any


@rule
def _begins_stream(event: int, streams: Any) -> bool:
    """Whether the stream of an event is another one than that of the event before it in the batch."""
    return event == 0 or (streams.size > 0 and streams[event] != streams[event - 1])


@rule
def _ends_tie(event: int, batch: BatchColumns) -> bool:
    """Whether an event is of a later time than the one before it, or of another stream."""
    return _begins_stream(event, batch.streams) or batch.times[event] != batch.times[event - 1]


@rule
def _has_two_bits(event: int, labels: Any) -> bool:
    """Whether an event's label has more than one bit."""
    words = 0
    twice = False
    for w in range(labels.shape[0]):
        word = labels[w, event]
        words += word != 0
        twice |= (word & (word - labels.dtype.type(1))) != 0
    return twice or words > 1


@rule
def _has_variable(event: int, variable: int, labels: Any) -> bool:
    """Whether an event's label has the bit of a variable."""
    word = labels.dtype.type
    return (labels[variable // LABEL_BITS, event] >> word(variable % LABEL_BITS)) & word(1) != 0


@rule
def _starts(event: int, batch: BatchColumns) -> bool:
    """Whether an event can start a match."""
    return event < batch.owned and has_bits(batch.labels, event, batch.wanted)


@rule
def _set(faults: Any, kind: int) -> None:
    """Set a fault that is not set: threads need not agree on who does it, and many stores to one place take turns."""
    if faults[kind] == 0:
        faults[kind] = 1


@kernel(writes=("faults",))
def find_faults(low: int, high: int, events: PlacedEvents, ranks: Any, faults: Any) -> None:
    """Set ``faults[kind]`` (uint8) to 1 for each kind of fault of events and their order; others are left as they are.

    Times are compared within streams, and ranks (which may be empty) among equal times.
    """
    streams, times, _, labels = events
    for e in range(low, high):
        if _has_two_bits(e, labels):
            _set(faults, OVERLAP)
        if e > 0 and streams.size > 0 and streams[e] < streams[e - 1]:
            _set(faults, STREAMS_FALL)
        if not _begins_stream(e, streams):
            if earlier(e, e - 1, times, ranks):
                _set(faults, TIMES_FALL)
            if times[e] == times[e - 1]:
                _set(faults, TIED)


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


@kernel(writes=("table",))
def find_in_tiles(low: int, high: int, batch: BatchColumns, table: Any) -> None:
    """Write each tile's column of `table`: the first event with each variable's bit, and the other rows."""
    size, variables = batch.labels.shape[1], table.shape[0] + ENDS
    for t in range(low, high):
        begin, end = t * TILE, end_of(t, size)
        for v in range(variables):
            e = begin
            while e < end and not _has_variable(e, v, batch.labels):
                e += 1
            table[v, t] = e if e < end else NOWHERE
        ends, later, streams, starts = NOWHERE, NOWHERE, 0, 0
        for e in range(begin, end):
            if _begins_stream(e, batch.streams):
                streams += 1
                ends = min(ends, e)
            if batch.times.size > 0 and _ends_tie(e, batch):
                later = min(later, e)
            starts += _starts(e, batch)
        table[variables, t], table[variables + 1, t] = ends, later
        table[variables + 2, t], table[variables + 3, t] = streams, starts


@kernel(writes=("table", "groups"))
def fold_tables(low: int, high: int, table: Any, groups: Any) -> None:
    """``groups[:, g]``: the column of group g. Index ``row * len(groups[0]) + g`` is a row of it.

    In `table` firsts become those of the later tiles of the group, and numbers those of the earlier ones.
    """
    firsts = table.shape[0] + STREAMS
    for k in range(low, high):
        row, g = k // groups.shape[1], k % groups.shape[1]
        begin, end = g * GROUP, end_of_group(g, table.shape[1])
        if row < firsts:
            first = NOWHERE
            for back in range(end - begin):
                t = end - 1 - back
                own = table[row, t]
                table[row, t] = first
                first = min(first, own)
            groups[row, g] = first
        else:
            number = 0
            for t in range(begin, end):
                own = table[row, t]
                table[row, t] = number
                number += own
            groups[row, g] = number


@rule
def _first_behind(row: int, tile: int, size: int, table: Any, carried: Any) -> int:
    """Return the first event of a row that lies behind a tile, or `size`."""
    return min(min(table[row, tile], carried[row, tile // GROUP]), size)


@rule
def _number_before(row: int, tile: int, table: Any, carried: Any) -> int:
    """Return how many events of a row lie before a tile."""
    return table[row, tile] + carried[row, tile // GROUP]


@rule
def _next_with(event: int, end: int, variable: int, labels: Any) -> int:
    """Return the first event from `event` on with the bit of a variable; `end` if there is none before it."""
    e = event
    while e < end and not _has_variable(e, variable, labels):
        e += 1
    return e


@rule
def _next_stream(event: int, end: int, streams: Any) -> int:
    """Return the first event from `event` on that begins a stream; `end` if there is none before it."""
    e = event
    while e < end and not _begins_stream(e, streams):
        e += 1
    return e


@rule
def _next_time(event: int, end: int, batch: BatchColumns) -> int:
    """Return the first event from `event` on of another time or stream than that before it; `end` if there is none before it."""
    e = event
    while e < end and not _ends_tie(e, batch):
        e += 1
    return e


@rule
def _fill_starts(event: int, tile: int, batch: BatchColumns, table: Any, carried: Any, found: WindowColumns) -> None:
    """Write an event that starts windows, and the stream that begins with it."""
    variables = found.occurrence.shape[0]
    begins, starts = found.begins.size > 0 and _begins_stream(event, batch.streams), _starts(event, batch)
    if not (begins or starts):
        return
    start = _number_before(variables + 3, tile, table, carried)
    for e in range(tile * TILE, event):
        start += _starts(e, batch)
    if starts:
        found.starts[start] = event
    if begins:
        stream = _number_before(variables + 2, tile, table, carried)
        for e in range(tile * TILE, event):
            stream += _begins_stream(e, batch.streams)
        found.begins[stream] = event
        found.first_starts[stream] = start


@kernel(writes=("found",))
def fill_windows(low: int, high: int, batch: BatchColumns, table: Any, carried: Any, found: WindowColumns) -> None:
    """Write what is found for each event.

    `table` and `carried` are the tables of tiles and of groups. Each has in its columns the firsts behind the tile or group,
    and the numbers before it.
    """
    size, variables = batch.labels.shape[1], found.occurrence.shape[0]
    for e in range(low, high):
        tile = e // TILE
        end = end_of(tile, size)
        for v in range(variables):
            own = _next_with(e, end, v, batch.labels)
            found.occurrence[v, e] = own if own < end else _first_behind(v, tile, size, table, carried)
        stream = _next_stream(e + 1, end, batch.streams)
        found.stream_end[e] = stream if stream < end else _first_behind(variables, tile, size, table, carried)
        if found.after.size > 0:
            later = _next_time(e + 1, end, batch)
            found.after[e] = later if later < end else _first_behind(variables + 1, tile, size, table, carried)
        if e == size - 1:
            for v in range(variables):
                found.occurrence[v, size] = found.occurrence[v, size + 1] = size
            if found.after.size > 0:
                found.after[size] = size
        _fill_starts(e, tile, batch, table, carried, found)

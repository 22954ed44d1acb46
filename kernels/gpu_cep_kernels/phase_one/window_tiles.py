"""Find on a card what a batch's windows need, by tiles: where streams end, what comes next, and where windows start."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.compile.operations import count_ones
from gpu_cep_kernels.phase_one.pack_bits import BYTE, byte_of, label_block, label_width, labels_of, nonzero_bytes, repeated, transposed
from gpu_cep_kernels.phase_one.placed_events import begin_bits, changes
from gpu_cep_kernels.phase_one.tiles import (
    GROUP,
    NOWHERE,
    PACK,
    TILE,
    bits_before,
    count_words,
    end_of_group,
    first_place,
    group_of,
    has_bit,
    place_of,
    tile_of,
)
from gpu_cep_kernels.rules.scalars import LABEL_BITS

# The rows of bits behind those of the variables, counted from the end: the events that begin a stream, that are later than those
# before, and that start windows.
BEGIN, LATER, START = range(-3, 0)
# The rows of a table of tiles, counted from its end: of the first event that ends an earlier stream or a tie, of the numbers of streams
# and of starts. The rows before are of the first event with each variable's bit.
ENDS, TIE_ENDS, STREAMS, STARTS = range(-4, 0)


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
def _later_bits(first: int, count: int, times: Any) -> Any:
    """Return the bits of those of `count` events from `first` on that are of another time than the one before."""
    return changes(first, count, times) if count > 0 and times.size > 0 else np.uint64(0)


@rule
def _owned_bits(first: int, owned: int) -> Any:
    """Return the bits of the events of a pack from `first` on that come before event `owned`."""
    count = np.uint64(min(max(owned - first, 0), PACK))
    return (np.uint64(1) << count) - np.uint64(1)


@rule
def _write_variables(pack: int, block: Any, variable: int, packs: Any) -> None:
    """Write the bits of a pack for the variables from one on, at most eight; `block` has their bytes."""
    end = min(variable + BYTE, packs.shape[0] + BEGIN)
    while variable < end:
        packs[variable, pack] = byte_of(block, 0)
        block = block >> np.uint64(BYTE)
        variable += 1


@rule
def _write_bits(pack: int, first: int, count: int, batch: BatchColumns, packs: Any) -> None:
    """Write the bits of a pack that has `count` events, from `first` on."""
    rows, width = packs.shape[0], label_width(batch.labels)
    begins, starts = begin_bits(first, count, batch.streams), np.uint64(0)
    later = begins | _later_bits(first, count, batch.times)
    w = 0
    # no range: on a card its iterator takes registers
    while w < batch.labels.shape[0]:
        # labels are loaded once: what is stored may change what is loaded, for all the compiler knows
        labels, wanted = labels_of(first, count, batch.labels[w]), batch.wanted[w]
        for place in range(0, width, BYTE):
            variable = w * LABEL_BITS + place
            if variable < rows + BEGIN:
                block = label_block(place, labels)
                starts |= nonzero_bytes(block & repeated(byte_of(wanted, place)))
                _write_variables(pack, transposed(block), variable, packs)
        w += 1
    packs[rows + BEGIN, pack], packs[rows + LATER, pack] = begins, later
    packs[rows + START, pack] = starts & _owned_bits(first, batch.owned)


@kernel(writes=("packs",))
def mark_packs(low: int, high: int, batch: BatchColumns, packs: Any) -> None:
    """Write the bits of each pack: ``packs[row, p]``, uint8, has bit k where the row holds for event ``p * PACK + k``."""
    size = batch.labels.shape[1]
    for p in range(low, high):
        first = p * PACK
        # a number that the compiler knows: all of the pack are loaded before any is judged
        if first + PACK <= size:
            _write_bits(p, first, PACK, batch, packs)
        else:
            _write_bits(p, first, max(size - first, 0), batch, packs)


@rule
def _entry(word: Any, number: int) -> Any:
    """Return the entry of a tile's word, and of an event or a number that is an int32."""
    return np.uint64(word) | (np.uint64(number) << np.uint64(32))


@rule
def _word_of(entry: Any) -> Any:
    """Return the word of an entry."""
    return np.uint32(entry)


@rule
def _number_of(entry: Any) -> Any:
    """Return the event or the number of an entry."""
    return np.int32(entry >> np.uint64(32))


@rule
def _first_later(row: int, tile: int, bits: Any) -> int:
    """Return the first event with its bit set in the later tiles of a tile's group, or NOWHERE."""
    end = end_of_group(tile // GROUP, bits.shape[1])
    t = tile + 1
    while t < end and bits[row, t] == 0:
        t += 1
    return t * TILE + first_place(bits[row, t]) if t < end else NOWHERE


@rule
def _fold_firsts(row: int, tile: int, bits: Any, table: Any, groups: Any) -> None:
    """Write a row's entry of a tile and, of the first tile of a group, the first event of the group."""
    own, first = bits[row, tile], _first_later(row, tile, bits)
    table[row, tile] = _entry(own, first)
    if tile % GROUP == 0:
        groups[row, tile // GROUP] = tile * TILE + first_place(own) if own != 0 else first


@rule
def _fold_numbers(row: int, source: int, tile: int, bits: Any, table: Any, groups: Any) -> None:
    """Write a row's entry of a tile, of the row `source` of bits, and, of the last tile of a group, the number of events in it."""
    own, number = bits[source, tile], count_words(bits[source], tile // GROUP * GROUP, tile)
    table[row, tile] = _entry(own, number)
    if tile == end_of_group(tile // GROUP, bits.shape[1]) - 1:
        groups[row, tile // GROUP] = number + count_ones(own)


@kernel(writes=("table", "groups"))
def fold_bits(low: int, high: int, bits: Any, table: Any, groups: Any) -> None:
    """Write each tile's column of `table`, and each group's column of `groups`.

    ``bits[row, t]``, uint32, are the packs of tile t. ``table[row, t]``, uint64, becomes these bits, and above them the first
    event in the later tiles of the group, or the number of events in the earlier ones. ``groups[row, g]`` is the first event of
    the group, or the number of events in it.
    """
    rows, marked = table.shape[0], bits.shape[0]
    for t in range(low, high):
        for row in range(rows + STREAMS):
            _fold_firsts(row, t, bits, table, groups)
        _fold_numbers(rows + STREAMS, marked + BEGIN, t, bits, table, groups)
        _fold_numbers(rows + STARTS, marked + START, t, bits, table, groups)


@rule
def _first_from(event: int, skipped: int, entry: Any, later: Any) -> Any:
    """Return the first event of a row from ``event + skipped`` on, where `skipped` is 0 or 1; `entry` is that of its tile.

    `later` is the first event of the row in the groups behind, or the number of events if there is none.
    """
    behind = np.uint32(np.uint32(_word_of(entry) >> np.uint32(place_of(event))) >> np.uint32(skipped))
    # both are computed, so that no load waits behind a branch
    own, other = np.int32(event + skipped + first_place(behind)), min(_number_of(entry), later)
    return own if behind != 0 else other


@rule
def _four_entries(tile: int, entries: Any) -> Any:
    """Return the entries of a tile and of the next three; behind the last tile they are its own."""
    last = entries.size - 1
    return entries[tile], entries[min(tile + 1, last)], entries[min(tile + 2, last)], entries[min(tile + 3, last)]


@rule
def _write_firsts(event: int, skipped: int, size: int, entries: Any, carried: Any, firsts: Any) -> None:
    """Write the first events of a row from ``event + skipped`` on, and so for the events at its place in the next three tiles."""
    later = min(carried[group_of(event)], np.int32(size))
    second, third, last = event + TILE, event + 2 * TILE, event + 3 * TILE
    # all is loaded before one is stored: for all that the compiler knows, what is stored may change what is loaded
    own, next_one, next_two, next_three = _four_entries(tile_of(event), entries)
    firsts[event] = _first_from(event, skipped, own, later)
    if second < size:
        firsts[second] = _first_from(second, skipped, next_one, later)
    if third < size:
        firsts[third] = _first_from(third, skipped, next_two, later)
    if last < size:
        firsts[last] = _first_from(last, skipped, next_three, later)


@rule
def _number_before(event: int, entry: Any, carried: int) -> int:
    """Return how many events of a row come before one.

    `entry` is that of its tile, and `carried` their number in the groups before its own.
    """
    return _number_of(entry) + carried + bits_before(_word_of(entry), place_of(event))


@rule
def _write_start(event: int, starts: Any, streams: Any, before: int, streams_before: int, found: WindowColumns) -> None:
    """Write an event that starts windows, and the stream that begins with it."""
    begins, wanted = has_bit(_word_of(streams), place_of(event)), has_bit(_word_of(starts), place_of(event))
    if begins or wanted:
        start = _number_before(event, starts, before)
        if wanted:
            found.starts[start] = event
        if begins:
            stream = _number_before(event, streams, streams_before)
            found.begins[stream] = event
            found.first_starts[stream] = start


@rule
def _fill_starts(event: int, table: Any, carried: Any, found: WindowColumns) -> None:
    """Write what starts and begins at an event, and at its place in the next three tiles."""
    rows, tile, group = table.shape[0], tile_of(event), group_of(event)
    before, streams_before = carried[rows + STARTS, group], carried[rows + STREAMS, group]
    own, next_one, next_two, next_three = _four_entries(tile, table[rows + STARTS])
    streams, stream_one, stream_two, stream_three = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    if found.begins.size > 0:
        streams, stream_one, stream_two, stream_three = _four_entries(tile, table[rows + STREAMS])
    _write_start(event, own, streams, before, streams_before, found)
    # a tile has no bit behind the last event
    tiles = table.shape[1]
    if tile + 1 < tiles:
        _write_start(event + TILE, next_one, stream_one, before, streams_before, found)
    if tile + 2 < tiles:
        _write_start(event + 2 * TILE, next_two, stream_two, before, streams_before, found)
    if tile + 3 < tiles:
        _write_start(event + 3 * TILE, next_three, stream_three, before, streams_before, found)


@rule
def _row_and_event(index: int, quads: Any) -> Any:
    """Return the row and the first event of an index; threads side by side are of one row."""
    # 32 bits are divided in a quarter of the time that 64 take
    quad = np.uint32(index // TILE)
    return np.int64(quad // quads), 4 * TILE * np.int64(quad % quads) + place_of(index)


@rule
def _fill_row(row: int, event: int, size: int, table: Any, carried: Any, found: WindowColumns) -> None:
    """Write what a row finds for an event, and for those at its place in the next three tiles.

    The row STREAMS stands for itself and for the one behind it, STARTS.
    """
    variables = found.occurrence.shape[0]
    if row < variables:
        _write_firsts(event, 0, size, table[row], carried[row], found.occurrence[row])
    elif row == table.shape[0] + ENDS:
        _write_firsts(event, 1, size, table[row], carried[row], found.stream_end)
    elif row == table.shape[0] + TIE_ENDS:
        if found.after.size > 0:
            _write_firsts(event, 1, size, table[row], carried[row], found.after)
    else:
        _fill_starts(event, table, carried, found)


@rule
def _fill_ends(size: int, found: WindowColumns) -> None:
    """Write what stands behind the last event."""
    for v in range(found.occurrence.shape[0]):
        found.occurrence[v, size] = found.occurrence[v, size + 1] = size
    if found.after.size > 0:
        found.after[size] = size


@kernel(writes=("found",))
def fill_windows(low: int, high: int, table: Any, carried: Any, found: WindowColumns) -> None:
    """Write what is found for each event.

    An index is a row, but the last, and a place in four tiles, one behind the other.

    ``table[row, t]`` is what :func:`fold_bits` writes. ``carried[row, g]`` is the first event in the groups behind group g, or
    the number of events in those before it.
    """
    size, quads = found.stream_end.size, np.uint32((table.shape[1] + 3) // 4)
    for i in range(low, high):
        row, event = _row_and_event(i, quads)
        if event < size:
            _fill_row(row, event, size, table, carried, found)
        if i == 0:
            _fill_ends(size, found)

"""Label a chunk's events on a card, and keep those that have a label.

Events are judged and written each by a thread of its own: neighbours read and write side by side.
In between, packs of them write a bit for each that is kept, and tiles find the range of the keys.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.compile.operations import count_ones
from gpu_cep_kernels.phase_one.pack_bits import BYTE, label_width, nonzero_bytes, nonzero_lanes
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
from gpu_cep_kernels.rules.scalars import EQ, GE, GT, LE, LT, NE, compare

# The rows of spans: the least and the greatest key of the kept events, and whether some key is less than one before it.
SPANNED = LEAST, GREATEST, FALLS = tuple(range(3))
# Events whose keys a thread loads before it compares any.
_AT_ONCE = 4
# The bits of a tile's events that come behind its first four.
_FURTHER = 0xFFFFFFF0
_FIRST, _LAST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)


class LabelTests(NamedTuple):
    """Hold the properties that the first pass judges, for one word of labels; no `codes` or no `comparisons` judge nothing.

    - word: the number of the word.
    - every: the word with the bits of all its variables.
    - codes[e], table[code]: the code of event e, and the bits that stay.
    - column[e], present[e]: the value of event e, and whether it is not NULL (empty: none is).
    - comparisons[t], constants[t], others[t]: the property t of the column, and the bits that stay where it fails.
    """

    word: int
    every: Any
    codes: Any
    table: Any
    column: Any
    present: Any
    comparisons: Any
    constants: Any
    others: Any


class TilePlaces(NamedTuple):
    """Say which events are kept, and where what is kept of each tile begins.

    - bits[t]: the word of tile t, a uint32: which of its events are kept.
    - inner[t]: how many events are kept of the earlier tiles of the group of tile t.
    - carried[g]: how many are kept of the groups before group g.
    """

    bits: Any
    inner: Any
    carried: Any


class KeptColumns(NamedTuple):
    """Hold the kept events side by side: input rows, labels [word, event], times, and keys (empty if there are none)."""

    rows: Any
    labels: Any
    times: Any
    keys: Any


class LaneSpan(NamedTuple):
    """Hold the least and the greatest of some keys, and whether one is greater than that of the next kept event: 1, else 0."""

    least: Any
    greatest: Any
    falls: Any


@rule
def _every_label(count: int, width: int, label: Any) -> Any:
    """Return a label `count` times, side by side."""
    labels = np.uint64(0)
    for k in range(count):
        labels |= np.uint64(label) << np.uint64(k * width)
    return labels


@rule
def _coded(first: int, count: int, width: int, tests: LabelTests) -> Any:
    """Return the bits that the table leaves to the codes of `count` events from `first` on, side by side."""
    labels = np.uint64(0)
    for k in range(count):
        labels |= np.uint64(tests.table[tests.codes[first + k]]) << np.uint64(k * width)
    return labels


@rule
def _present(first: int, count: int, width: int, tests: LabelTests) -> Any:
    """Return the bits that stay of `count` events from `first` on: at a NULL those of no comparison."""
    full = tests.others.dtype.type(~tests.others.dtype.type(0))
    at_null = full
    t = 0
    while t < tests.others.size:
        at_null &= tests.others[t]
        t += 1
    labels = np.uint64(0)
    for k in range(count):
        labels |= np.uint64(full if tests.present[first + k] != 0 else at_null) << np.uint64(k * width)
    return labels


@rule
def _where(comparison: int, first: int, count: int, width: int, test: int, tests: LabelTests) -> Any:
    """Return the bits that stay of `count` events from `first` on: where the comparison fails, those of `others`."""
    full = tests.others.dtype.type(~tests.others.dtype.type(0))
    constant, other = tests.constants[test], tests.others[test]
    labels = np.uint64(0)
    for k in range(count):
        labels |= np.uint64(full if compare(comparison, tests.column[first + k], constant) else other) << np.uint64(k * width)
    return labels


@rule
def _compared(first: int, count: int, width: int, test: int, tests: LabelTests) -> Any:
    """Do as :func:`_where`, with the comparison of a test; each has a loop, so that none asks which one it is for every event."""
    comparison = tests.comparisons[test]
    if comparison == EQ:
        return _where(EQ, first, count, width, test, tests)
    if comparison == NE:
        return _where(NE, first, count, width, test, tests)
    if comparison == LT:
        return _where(LT, first, count, width, test, tests)
    if comparison == LE:
        return _where(LE, first, count, width, test, tests)
    if comparison == GT:
        return _where(GT, first, count, width, test, tests)
    return _where(GE, first, count, width, test, tests)


@rule
def _judge(first: int, count: int, width: int, tests: LabelTests) -> Any:
    """Return the labels of `count` events from `first` on, side by side in a uint64."""
    labels = _every_label(count, width, tests.every)
    if tests.codes.size > 0:
        labels &= _coded(first, count, width, tests)
    if tests.present.size > 0:
        labels &= _present(first, count, width, tests)
    t = 0
    # no range: on a card its iterator takes a third as many instructions as judging codes
    while t < tests.comparisons.size:
        labels &= _compared(first, count, width, t, tests)
        t += 1
    return labels


@rule
def _judge_pack(index: int, size: int, tests: LabelTests, packed: Any) -> Any:
    """Return the labels of as many of `size` events as fit in a word of `packed`, from the first of pack `index` on."""
    width = label_width(tests.table)
    count = label_width(packed) // width
    first = index * count
    # a number that the compiler knows: all values are loaded before any is judged
    if first + count <= size:
        return _judge(first, count, width, tests)
    labels = np.uint64(0)
    for e in range(first, size):
        labels |= _judge(e, 1, width, tests) << np.uint64((e - first) * width)
    return labels


@kernel(writes=("packed",))
def judge_events(low: int, high: int, size: int, tests: LabelTests, packed: Any) -> None:
    """Write a word of the labels of `size` events: ``packed[word, i]`` holds as many labels side by side as fit in it."""
    own = packed[tests.word]
    for i in range(low, high):
        own[i] = _judge_pack(i, size, tests, packed)


@kernel(writes=("packed",))
def judge_further(low: int, high: int, size: int, tests: LabelTests, packed: Any) -> None:
    """Do as :func:`judge_events`, for labels that are there: bits are only cleared."""
    own = packed[tests.word]
    for i in range(low, high):
        own[i] &= packed.dtype.type(_judge_pack(i, size, tests, packed))


@rule
def _labelled_in(pack: int, width: int, own: Any) -> Any:
    """Return the bits of the events of a pack that have a label of `width` bits in the word `own`.

    Its labels lie side by side in words of 64 bits.
    """
    if width == BYTE:
        return nonzero_bytes(own[pack])
    per_word, bits = 64 // width, np.uint64(0)
    for place in range(0, PACK, per_word):
        index = (pack * PACK + place) // per_word
        # the last events may end before their pack does
        bits |= nonzero_lanes(own[index] if index < own.size else np.uint64(0), width) << np.uint64(place)
    return bits


@rule
def _labelled_bits(pack: int, width: int, packed: Any) -> Any:
    """Return the bits of the events of a pack that have a label of `width` bits in some word."""
    bits, w = _labelled_in(pack, width, packed[0]), 1
    # no range: on a card its iterator takes more instructions than one word
    while w < packed.shape[0]:
        bits |= _labelled_in(pack, width, packed[w])
        w += 1
    return bits


@kernel(writes=("packs",))
def mark_kept(low: int, high: int, keeps_all: bool, labels: Any, packed: Any, packs: Any) -> None:
    """Write the bits of each pack: ``packs[p]``, uint8, has bit k if event ``p * PACK + k`` of `labels`, [word, event], is kept.

    `packed` are the same labels side by side in words of 64 bits, [word, place]; what fills the last ones is arbitrary.
    """
    size, width = labels.shape[1], label_width(labels)
    for p in range(low, high):
        count = np.uint64(min(max(size - p * PACK, 0), PACK))
        events = (np.uint64(1) << count) - np.uint64(1)
        packs[p] = events if keeps_all or count == 0 else events & _labelled_bits(p, width, packed)


@rule
def _first_kept(tile: int, end: int, bits: Any) -> int:
    """Return the first event that is kept of the tiles [tile, end), or NOWHERE."""
    while tile < end and bits[tile] == 0:
        tile += 1
    return tile * TILE + first_place(bits[tile]) if tile < end else NOWHERE


@rule
def _kept_behind(first: int, end: int, word: Any, bits: Any) -> int:
    """Return the first event that is kept behind four of a tile, from `first` on, and before tile `end`, or NOWHERE.

    `word` is that of their tile.
    """
    tile, rest = tile_of(first), np.uint32(word & (np.uint32(_FURTHER) << np.uint32(place_of(first))))
    return tile * TILE + first_place(rest) if rest != 0 else _first_kept(tile + 1, end, bits)


@rule
def _span_four(first: int, end: int, bits: Any, keys: Any, span: LaneSpan) -> LaneSpan:
    """Return a span with those of four events from `first` on that are kept; the tiles of their group end before tile `end`."""
    word = bits[tile_of(first)]
    own = np.uint32(word >> np.uint32(place_of(first))) & ~np.uint32(_FURTHER)
    if own == 0:
        return span
    # one that is not kept stands for the one before it, so that no load waits behind a branch
    one = first + first_place(own)
    two = first + 1 if own & np.uint32(2) else one
    three = first + 2 if own & np.uint32(4) else two
    four = first + 3 if own & np.uint32(8) else three
    behind = _kept_behind(first, end, word, bits)
    key, second, third, fourth, after = (
        np.int64(keys[one]), np.int64(keys[two]), np.int64(keys[three]), np.int64(keys[four]),
        np.int64(keys[behind if behind != NOWHERE else four]),
    )  # fmt: skip
    falls = (second < key) | (third < second) | (fourth < third) | (after < fourth)
    least, greatest = min(min(key, second), min(third, fourth)), max(max(key, second), max(third, fourth))
    return LaneSpan(min(span.least, least), max(span.greatest, greatest), span.falls | np.int64(falls))


@kernel(writes=("spans",))
def span_lanes(low: int, high: int, bits: Any, keys: Any, spans: Any) -> None:
    """Write each lane's column of `spans`, from the keys of its kept events; ``bits[t]``, uint32, says which are kept.

    Lane ``g * TILE + k`` has every 32nd four events of group g, from the k-th four on, so that threads side by side read
    keys side by side. A key falls if that of the next kept event of the group is less.
    """
    for i in range(low, high):
        group = tile_of(i)
        end = end_of_group(group, bits.size)
        span = LaneSpan(np.int64(_LAST), np.int64(_FIRST), np.int64(0))
        first = group * GROUP * TILE + _AT_ONCE * place_of(i)
        while first < end * TILE:
            span = _span_four(first, end, bits, keys, span)
            first += _AT_ONCE * TILE
        spans[LEAST, i], spans[GREATEST, i], spans[FALLS, i] = span.least, span.greatest, span.falls


@rule
def _fold_spans(group: int, spans: Any, groups: Any) -> None:
    """Write the span of a group, of all its lanes, behind the row of numbers."""
    least, greatest, falls, i = _LAST, _FIRST, 0, group * TILE
    while i < group * TILE + TILE:
        least, greatest = min(least, spans[LEAST, i]), max(greatest, spans[GREATEST, i])
        falls |= spans[FALLS, i]
        i += 1
    groups[1 + LEAST, group], groups[1 + GREATEST, group], groups[1 + FALLS, group] = least, greatest, falls


@kernel(writes=("inner", "groups"))
def fold_kept(low: int, high: int, bits: Any, spans: Any, inner: Any, groups: Any) -> None:
    """``inner[t]``: how many events are kept of the earlier tiles of the group; ``groups[:, g]``: how many of group g, and their span.

    `groups` has no more rows than that of numbers if there are no `spans`.
    """
    for t in range(low, high):
        g = t // GROUP
        begin, end = g * GROUP, end_of_group(g, bits.size)
        count = count_words(bits, begin, t)
        inner[t] = count
        if t == end - 1:
            groups[0, g] = count + count_ones(bits[t])
            if spans.size > 0:
                _fold_spans(g, spans, groups)


@kernel(writes=("kept",))
def compact_events(low: int, high: int, first: int, labels: Any, times: Any, keys: Any, places: TilePlaces, kept: KeptColumns) -> None:
    """Write the columns of the events that are kept; the chunk's first row is number `first`."""
    for e in range(low, high):
        tile = tile_of(e)
        word, own = places.bits[tile], place_of(e)
        if has_bit(word, own):
            # all are loaded before one is stored: for all that the compiler knows, what is stored may change what is loaded
            time, label = times[e], labels[0, e]
            place = places.carried[group_of(e)] + places.inner[tile] + bits_before(word, own)
            if keys.size > 0:
                kept.keys[place] = keys[e]
            kept.times[place], kept.labels[0, place] = time, label
            kept.rows[place] = first + e
            for w in range(1, labels.shape[0]):
                kept.labels[w, place] = labels[w, e]


@kernel(writes=("codes",))
def shift_keys(low: int, high: int, keys: Any, least: int, codes: Any) -> None:
    """``codes[e] = keys[e] - least``, in a narrower type."""
    for e in range(low, high):
        codes[e] = np.int64(keys[e]) - least

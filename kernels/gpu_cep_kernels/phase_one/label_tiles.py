"""Label a chunk's events on a card, and keep those that have a label.

Events are judged and written each by a thread of its own: neighbours read and write side by side.
In between, packs of them write a bit for each that is kept, and tiles find the range of the keys.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.compile.operations import count_ones
from gpu_cep_kernels.phase_one.pack_bits import label_width
from gpu_cep_kernels.phase_one.tiles import (
    GROUP,
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
    for t in range(tests.others.size):
        at_null &= tests.others[t]
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
    """As :func:`_where`, with the comparison of a test; each has a loop, so that none asks which one it is for every event."""
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
    for t in range(tests.comparisons.size):
        labels &= _compared(first, count, width, t, tests)
    return labels


@rule
def _kept_bits(first: int, count: int, keeps_all: bool, labels: Any) -> Any:
    """Return the bits of those of `count` events from `first` on that are kept: they have a label, or all are kept."""
    bits = np.uint64(0)
    for k in range(count):
        bits |= np.uint64(keeps_all) << np.uint64(k)
    for w in range(labels.shape[0]):
        own = labels[w]
        for k in range(count):
            bits |= np.uint64(own[first + k] != 0) << np.uint64(k)
    return bits


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
    """As :func:`judge_events`, for labels that are there: bits are only cleared."""
    own = packed[tests.word]
    for i in range(low, high):
        own[i] &= packed.dtype.type(_judge_pack(i, size, tests, packed))


@kernel(writes=("packs",))
def mark_kept(low: int, high: int, keeps_all: bool, labels: Any, packs: Any) -> None:
    """Write the bits of each pack: ``packs[p]``, uint8, has bit k if event ``p * PACK + k`` of `labels`, [word, event], is kept."""
    size = labels.shape[1]
    for p in range(low, high):
        first = p * PACK
        # a number that the compiler knows: all labels of the pack are loaded before any is judged
        if first + PACK <= size:
            packs[p] = _kept_bits(first, PACK, keeps_all, labels)
        else:
            packs[p] = _kept_bits(first, max(size - first, 0), keeps_all, labels)


@kernel(writes=("spans",))
def span_tiles(low: int, high: int, bits: Any, keys: Any, spans: Any) -> None:
    """Write each tile's column of `spans`, from the keys of its kept events; ``bits[t]``, uint32, says which are kept."""
    for t in range(low, high):
        least, greatest, falls, left = np.int64(_LAST), np.int64(_FIRST), False, bits[t]
        while left != 0:
            key = np.int64(keys[t * TILE + first_place(left)])
            falls = falls or bool(key < greatest)
            least, greatest = min(least, key), max(greatest, key)
            left = np.uint32(left & (left - np.uint32(1)))
        spans[LEAST, t], spans[GREATEST, t], spans[FALLS, t] = least, greatest, falls


@rule
def _fold_spans(group: int, begin: int, end: int, spans: Any, groups: Any) -> None:
    """Write the span of a group behind the row of numbers."""
    least, greatest, falls, t = _LAST, _FIRST, 0, begin
    while t < end:
        # of a tile of which nothing is kept the least key is greater than any
        falls |= spans[FALLS, t] | (spans[LEAST, t] < greatest)
        least, greatest = min(least, spans[LEAST, t]), max(greatest, spans[GREATEST, t])
        t += 1
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
                _fold_spans(g, begin, end, spans, groups)


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

"""Label a chunk's events on a card, and keep those that have a label.

Events are judged and written each by a thread of its own: neighbours read and write side by side.
In between, tiles count the events that are kept, and find the range of their keys.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.phase_one.tiles import GROUP, TILE, end_of, end_of_group
from gpu_cep_kernels.rules.scalars import compare

# The rows of a summary: kept events, their least and greatest key, and whether some key is less than one before it.
SUMMARISED = COUNT, LEAST, GREATEST, FALLS = tuple(range(4))
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
    """Say where what is kept of each tile begins.

    - inner[t]: how many events are kept of the earlier tiles of the group of tile t.
    - carried[g]: how many are kept of the groups before group g.
    """

    inner: Any
    carried: Any


class KeptColumns(NamedTuple):
    """Hold the kept events side by side: input rows, labels [word, event], times, and keys (empty if there are none)."""

    rows: Any
    labels: Any
    times: Any
    keys: Any


@rule
def _judge(event: int, tests: LabelTests) -> Any:
    """Return the label word of an event."""
    _, every, codes, table, column, present, comparisons, constants, others = tests
    word = every
    if codes.size > 0:
        word &= table[codes[event]]
    if comparisons.size > 0:
        known = present.size == 0 or present[event] != 0
        for t in range(comparisons.size):
            if not (known and compare(comparisons[t], column[event], constants[t])):
                word &= others[t]
    return word


@rule
def _is_kept(event: int, keeps_all: bool, labels: Any) -> bool:
    """Whether an event is kept: its label has a bit, or all are kept."""
    found = keeps_all
    for w in range(labels.shape[0]):
        found |= labels[w, event] != 0
    return found


@rule
def _summarise(tile: int, keeps_all: bool, labels: Any, keys: Any, summary: Any) -> None:
    """Write a tile's column of `summary`; without `keys` it has one row."""
    count, least, greatest, falls = 0, np.int64(_LAST), np.int64(_FIRST), False
    for e in range(tile * TILE, end_of(tile, labels.shape[1])):
        if _is_kept(e, keeps_all, labels):
            count += 1
            if keys.size > 0:
                key = np.int64(keys[e])
                falls = falls or bool(key < greatest)
                least, greatest = min(least, key), max(greatest, key)
    summary[COUNT, tile] = count
    if keys.size > 0:
        summary[LEAST, tile], summary[GREATEST, tile], summary[FALLS, tile] = least, greatest, falls


@kernel(writes=("labels",))
def judge_events(low: int, high: int, tests: LabelTests, labels: Any) -> None:
    """Write a word of the labels [word, event] of each event."""
    own = labels[tests.word]
    for e in range(low, high):
        own[e] = _judge(e, tests)


@kernel(writes=("summary",))
def summarise_tiles(low: int, high: int, keeps_all: bool, keys: Any, labels: Any, summary: Any) -> None:
    """Summarise each tile of `labels`, [word, event]. `summary` is [4, tile], or [1, tile] if `keys` are empty."""
    for t in range(low, high):
        _summarise(t, keeps_all, labels, keys, summary)


@kernel(writes=("summary", "groups"))
def fold_summaries(low: int, high: int, summary: Any, groups: Any) -> None:
    """``groups[:, g]``: the summary of group g; its tiles' counts become how many are kept of those before them."""
    for g in range(low, high):
        count, least, greatest, falls = 0, _LAST, _FIRST, 0
        for t in range(g * GROUP, end_of_group(g, summary.shape[1])):
            kept = summary[COUNT, t]
            summary[COUNT, t] = count
            count += kept
            if kept > 0 and summary.shape[0] > 1:
                falls |= summary[FALLS, t] | (summary[LEAST, t] < greatest)
                least, greatest = min(least, summary[LEAST, t]), max(greatest, summary[GREATEST, t])
        groups[COUNT, g] = count
        if summary.shape[0] > 1:
            groups[LEAST, g], groups[GREATEST, g], groups[FALLS, g] = least, greatest, falls


@kernel(writes=("kept",))
def compact_events(
    low: int, high: int, first: int, keeps_all: bool, labels: Any, times: Any, keys: Any, places: TilePlaces, kept: KeptColumns
) -> None:
    """Write the columns of the events that are kept; the chunk's first row is number `first`."""
    for e in range(low, high):
        if _is_kept(e, keeps_all, labels):
            tile = e // TILE
            place = places.carried[tile // GROUP] + places.inner[tile]
            for before in range(tile * TILE, e):
                place += _is_kept(before, keeps_all, labels)
            kept.rows[place] = first + e
            kept.times[place] = times[e]
            for w in range(labels.shape[0]):
                kept.labels[w, place] = labels[w, e]
            if keys.size > 0:
                kept.keys[place] = keys[e]


@kernel(writes=("codes",))
def shift_keys(low: int, high: int, keys: Any, least: int, codes: Any) -> None:
    """``codes[e] = keys[e] - least``, in a narrower type."""
    for e in range(low, high):
        codes[e] = np.int64(keys[e]) - least

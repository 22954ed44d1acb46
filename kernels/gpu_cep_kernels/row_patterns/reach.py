"""Find, from the last row of each partition back, from which states a match can end.

So a matcher never takes a move that comes to nothing, and a row at which no match begins costs one look.
A piece that ends inside of its partition is taken as if no match went on behind it. Then it is mended: from its last row
back, until a row is as it was.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.row_patterns.tables import NEVER, PartitionPieces, RowAutomatonTable
from gpu_cep_kernels.rules.scalars import lowest_bit


@rule
def _lookup(word: Any, table: Any) -> Any:
    """Return the union of the table's words for each byte of a word."""
    found = table[0, word & 255]
    for k in range(1, table.shape[0]):
        found |= table[k, (word >> np.uint64(8 * k)) & np.uint64(255)]
    return found


@kernel(writes=("reach",))
def mark_reach(
    low: int, high: int, pieces: PartitionPieces, labels: Any, fits: Any, before: Any, accepts: Any, ends: Any, behind: Any, reach: Any
) -> None:  # fmt: skip
    """``reach[r, 0]``: the states that can map row r of a piece in [low, high) and lead to the end of a match.

    ``fits[k, b]`` are the states of the variables in byte k of a label, ``before[k, b]`` those before the states in byte k of a word.
    A match may end in the states `accepts`, and in the last row of a partition in the states `ends`.
    ``behind[p]``: the states that can map the row behind piece p in its partition; empty: no match goes on there.
    """
    for p in range(low, high):
        begin, end = pieces.offsets[p], pieces.offsets[p + 1]
        words, given = reach[begin:end, 0], labels[begin:end]
        may = ends if end == pieces.ends[p] else accepts
        if behind.size > 0:
            may |= _lookup(np.uint64(behind[p]), before)
        if fits.shape[0] == 1 and before.shape[0] == 1:
            for r in range(end - begin - 1, -1, -1):
                word = fits[0, given[r]] & may
                words[r] = word
                may = accepts | before[0, word]
        else:
            for r in range(end - begin - 1, -1, -1):
                word = _lookup(np.uint64(given[r]), fits) & may
                words[r] = word
                may = accepts | _lookup(np.uint64(word), before)


@kernel(writes=("crossed",))
def cross_reach(
    low: int, high: int, pieces: PartitionPieces, labels: Any, fits: Any, before: Any, accepts: Any, reach: Any, crossed: Any
) -> None:  # fmt: skip
    """``crossed[p, q]``: the states that can map the first row of piece p if q is the one that can map the row behind the piece.

    `reach` is what :func:`mark_reach` found as if no match went on there. An index of [low, high) is a piece with a state.
    """
    states = crossed.shape[1]
    for i in range(low, high):
        p, q = i // states, i % states
        begin, end = pieces.offsets[p], pieces.offsets[p + 1]
        found = reach[begin, 0]
        if end < pieces.ends[p]:
            may, r = accepts | _lookup(np.uint64(1) << np.uint64(q), before), end - 1
            while r >= begin:
                found = _lookup(np.uint64(labels[r]), fits) & may
                may = accepts | _lookup(np.uint64(found), before)
                same = found == reach[r, 0]
                found = reach[begin, 0] if same else found
                r = -1 if same else r - 1
        crossed[p, q] = found


@sequential(writes=("behind",))
def carry_reach(pieces: PartitionPieces, reached: Any, crossed: Any, behind: Any) -> None:
    """``behind[p]``: the states that can map the row behind piece p; 0 where its partition ends.

    ``reached[p]`` are those of the piece's first row if none can; with each of them come those of `crossed` (:func:`cross_reach`).
    """
    for p in range(pieces.begins.size - 1, 0, -1):
        if pieces.offsets[p] > pieces.begins[p]:
            word, later = np.uint64(reached[p]), np.uint64(behind[p])
            while later != 0:
                word |= np.uint64(crossed[p, lowest_bit(later)])
                later &= later - np.uint64(1)
            behind[p - 1] = word


@sequential(writes=("reach",))
def mend_reach(pieces: PartitionPieces, labels: Any, fits: Any, before: Any, accepts: Any, reach: Any) -> int:
    """Mend what :func:`mark_reach` found in pieces that end inside of their partitions; return for how many rows."""
    looked = 0
    for p in range(pieces.begins.size - 1, -1, -1):
        r = pieces.offsets[p + 1] - 1 if pieces.offsets[p + 1] < pieces.ends[p] else -1
        while r >= pieces.offsets[p]:
            looked += 1
            word = _lookup(np.uint64(labels[r]), fits) & (accepts | _lookup(np.uint64(reach[r + 1, 0]), before))
            same = word == reach[r, 0]
            reach[r, 0] = word
            r = -1 if same else r - 1
    return looked


@rule
def _find_wide_words(r: int, follows: bool, labels: Any, fits: Any, before: Any, ends: Any, reach: Any, words: Any) -> None:
    """Set `words` to those of row r, in which a match may end in the states `ends`; with `follows` it may go on behind it."""
    width = ends.size
    label = np.uint64(labels[r])
    for w in range(width):
        words[w] = ends[w]
    # no state fits a row without a label, whatever follows
    if follows and label != 0:
        for w in range(width):
            later = reach[r + 1, w]
            while later != 0:
                q = 64 * w + lowest_bit(later)
                for x in range(width):
                    words[x] |= before[q, x]
                later &= later - np.uint64(1)
    for w in range(width):
        fitting, left = np.uint64(0), label
        while left != 0:
            fitting |= fits[lowest_bit(left), w]
            left &= left - np.uint64(1)
        words[w] &= fitting


@kernel(writes=("reach",))
def mark_wide_reach(
    low: int, high: int, pieces: PartitionPieces, labels: Any, fits: Any, before: Any, accepts: Any, ends: Any, reach: Any
) -> None:  # fmt: skip
    """Do as :func:`mark_reach`, with several words for each row.

    ``fits[v]`` are the words of the states of variable v, ``before[q]`` those of the states before state q.
    """
    for p in range(low, high):
        end = pieces.offsets[p + 1]
        for r in range(end - 1, pieces.offsets[p] - 1, -1):
            last = ends if r == pieces.ends[p] - 1 else accepts
            _find_wide_words(r, r < end - 1, labels, fits, before, last, reach, reach[r])


@sequential(writes=("reach",), scratch=("words",))
def mend_wide_reach(pieces: PartitionPieces, labels: Any, fits: Any, before: Any, accepts: Any, reach: Any, words: Any) -> int:
    """Mend what :func:`mark_wide_reach` found, as :func:`mend_reach`."""
    looked = 0
    for p in range(pieces.begins.size - 1, -1, -1):
        r = pieces.offsets[p + 1] - 1 if pieces.offsets[p + 1] < pieces.ends[p] else -1
        while r >= pieces.offsets[p]:
            looked += 1
            _find_wide_words(r, True, labels, fits, before, accepts, reach, words)
            same = True
            for w in range(words.size):
                same = same and words[w] == reach[r, w]
                reach[r, w] = words[w]
            r = -1 if same else r - 1
    return looked


@rule
def _find_earliest_ends_of_row(
    r: int, last: bool, follows: bool, opened: bool, labels: Any, automaton: RowAutomatonTable, later: Any, earliest: Any
) -> bool:  # fmt: skip
    """Set the earliest ends of row r, which may be the last one of its partition; return whether they change.

    ``later[q]`` is the earliest end if state q maps the row behind it. Without `follows` no match goes on there; if it is
    `opened`, rows that are not known yet may do so, with any variable.
    """
    changed = False
    for q in range(automaton.ends.size):
        found = NEVER
        if (np.uint64(labels[r]) >> np.uint64(automaton.variable[q])) & np.uint64(1):
            if last:
                found = r if automaton.ends[q] else NEVER
            else:
                for k in range(automaton.move_first[q], automaton.move_first[q + 1]):
                    move = automaton.moves[k]
                    if move < 0:
                        found = r
                    elif follows:
                        found = min(found, later[move])
                    elif opened:
                        found = min(found, r + 1)
        changed = changed or earliest[r, q] != found
        earliest[r, q] = found
    return changed


@kernel(writes=("earliest",))
def find_earliest_ends(
    low: int, high: int, pieces: PartitionPieces, labels: Any, automaton: RowAutomatonTable, opened: bool, behind: Any, earliest: Any
) -> None:  # fmt: skip
    """``earliest[r, q]``: the first row at which a match can end, if state q maps row r; NEVER if there is none.

    If partitions are `opened`, rows that are not known yet may come behind them. ``behind[p, q]`` is the same of the row
    behind piece p in its partition; empty: no match goes on there.
    """
    for p in range(low, high):
        r = pieces.offsets[p + 1] - 1
        last, carried = r == pieces.ends[p] - 1 and not opened, behind.size > 0
        _find_earliest_ends_of_row(r, last, carried, opened, labels, automaton, behind[p] if carried else earliest[r], earliest)
        for before in range(r - 1, pieces.offsets[p] - 1, -1):
            _find_earliest_ends_of_row(before, False, True, opened, labels, automaton, earliest[before + 1], earliest)


@sequential(writes=("earliest",))
def mend_earliest_ends(pieces: PartitionPieces, labels: Any, automaton: RowAutomatonTable, earliest: Any) -> int:
    """Mend what :func:`find_earliest_ends` found, as :func:`mend_reach`."""
    looked = 0
    for p in range(pieces.begins.size - 1, -1, -1):
        r = pieces.offsets[p + 1] - 1 if pieces.offsets[p + 1] < pieces.ends[p] else -1
        while r >= pieces.offsets[p]:
            looked += 1
            changed = _find_earliest_ends_of_row(r, False, True, False, labels, automaton, earliest[r + 1], earliest)
            r = r - 1 if changed else -1
    return looked


@sequential(writes=("behind",))
def carry_earliest_ends(pieces: PartitionPieces, firsts: Any, crossed: Any, behind: Any) -> None:
    """``behind[p, q]``: the earliest end of a match in which state q maps the row behind piece p; given as NEVER.

    ``firsts[p, q]`` is that of the piece's first row if no match goes on behind it. `crossed` (:func:`cross_reach`) says which
    states of that row come with each one of the row behind the piece.
    """
    states = firsts.shape[1]
    for p in range(pieces.begins.size - 1, 0, -1):
        if pieces.offsets[p] > pieces.begins[p]:
            for q in range(states):
                behind[p - 1, q] = firsts[p, q]
            for q in range(states):
                end = behind[p, q]
                word = np.uint64(crossed[p, q]) if end < NEVER else np.uint64(0)
                while word != 0:
                    first = lowest_bit(word)
                    behind[p - 1, first] = min(behind[p - 1, first], end)
                    word &= word - np.uint64(1)


@rule
def _in_window(r: int, other: int, times: Any, missing: Any, length: Any) -> bool:
    """Return whether a row, r or a later one, has a time at most `length` after that of row r."""
    known = missing.size == 0 or not (missing[r] or missing[other])
    return known and times[other] - times[r] <= length


@kernel(writes=("limits",))
def limit_by_times(
    low: int, high: int, pieces: PartitionPieces, labels: Any, starting: Any, times: Any, missing: Any, length: Any, limits: Any
) -> None:  # fmt: skip
    """``limits[r]``: the last row whose time is at most `length` after that of row r, or the row before r.

    That stands for no window: row r has no time, or none of the bits `starting` in its label, so that no match with rows begins there.
    Times are uint64 or float64. They ascend but for rows that are `missing`, which stand first or last; `missing` may be empty.
    """
    for p in range(low, high):
        end = pieces.ends[p]
        last, sought = pieces.offsets[p], False
        for r in range(pieces.offsets[p], pieces.offsets[p + 1]):
            limits[r] = r - 1
            if labels[r] & starting:
                last, step = max(last, r), 1
                # the first window is sought by steps that double, as it may hold many pieces
                while not sought and last + step <= end and _in_window(r, last + step - 1, times, missing, length):
                    last += step
                    step *= 2
                while step > 1:
                    step //= 2
                    if last + step <= end and _in_window(r, last + step - 1, times, missing, length):
                        last += step
                sought = True
                while last < end and _in_window(r, last, times, missing, length):
                    last += 1
                limits[r] = last - 1


@kernel(writes=("limits",))
def limit_by_rows(low: int, high: int, pieces: PartitionPieces, rows: int, limits: Any) -> None:
    """``limits[r]``: the last one of `rows` rows that begin with row r, in its partition."""
    for p in range(low, high):
        for r in range(pieces.offsets[p], pieces.offsets[p + 1]):
            limits[r] = min(r + rows, pieces.ends[p]) - 1

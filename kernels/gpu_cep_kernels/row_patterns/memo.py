"""Remember from where a search found no match, so that it does not look there again.

What conditions can still read of the rows mapped so far is compared as a whole: the values of columns, whichever rows
have them, and whichever row the match began with. So a dead end that is known is one, and one that was forgotten is only
searched again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.row_patterns.conditions import Here, Mapped, MatchConditionTable, at_distance
from gpu_cep_kernels.rules.running import is_null
from gpu_cep_kernels.rules.scalars import mix_hash
from gpu_cep_kernels.rules.tables import ColumnBank, Flags, Ints

_PROBES = 4


class _MemoColumn(NamedTuple):
    """Name the first columns of a key. The first one is not compared."""

    BEGAN: int = 0  # 1 more than the row with which the match began; 0 where nothing is kept
    STATE: int = 1
    ROW: int = 2
    START: int = 3  # where windows make the end depend on it; else −1
    READ: int = 4  # from here on: what conditions can still read


MemoColumn = _MemoColumn()


class Memo(NamedTuple):
    """Hold dead ends: the state and row mapped last, and what conditions read then.

    - keys[slot, MemoColumn]: a dead end.
    - asked: the key of what is mapped now.
    - farthest[0]: the last row of a dead end that was kept.
    - lost[0]: how many dead ends were forgotten that may still be met; above `most_lost` the search pauses.
    - place_first[k]: the first number of what place k can still read, with the end; three numbers for each total follow.
    - column_first[k], column, is_float: the columns of the bank that place k reads.
    - useful[q]: whether a condition behind state q reads the match.
    - bound[q]: whether what they read is seldom the same for matches that begin with other rows.
    - reads_place[q, k], reads_total[q, t]: whether conditions behind state q read place k or total t.
    - counts[t]: whether they read of how many values total t is.
    """

    keys: Ints
    asked: Ints
    farthest: Ints
    lost: Ints
    most_lost: int
    place_first: Ints
    column_first: Ints
    column: Ints
    is_float: Flags
    useful: Flags
    bound: Flags
    reads_place: Flags
    reads_total: Flags
    counts: Flags


@rule
def _row_of(k: int, i: int, here: Here, table: MatchConditionTable, mapped: Mapped) -> int:
    """Return the row to which place k leads once its set has `i` more rows, without its distance; −1 if there is none yet."""
    j, found = table.place_set[k], -1
    count = mapped.counts[j] if j >= 0 else here.row - here.start + 1
    at = table.offset[k] if table.from_first[k] else count - 1 - table.offset[k] + i
    if 0 <= at < count:
        found = mapped.rows[j, at] if j >= 0 else here.start + at
    return found


@rule
def _variable_of(row: int, here: Here, table: MatchConditionTable, bank: ColumnBank) -> int:
    """Return what stands for the variable of a row; −1 if it is not mapped."""
    return bank.ints[table.classifier, row] if here.start <= row <= here.row else -1


@rule
def _value_of(k: int, i: int, row: int, bank: ColumnBank, memo: Memo) -> np.int64:
    """Return the i-th number that says what place k reads in a row: the bits of each column, then whether it is NULL."""
    at = memo.column_first[k] + (i >> 1)
    column, real = memo.column[at], memo.is_float[at]
    missing = row < 0 or is_null(bank.float_nulls if real else bank.int_nulls, column, row)
    bits = np.int64(missing)
    if i & 1 == 0:
        bits = np.int64(0)
        if not missing:
            bits = np.float64(bank.floats[column, row]).view(np.int64) if real else bank.ints[column, row]
    return bits


@rule
def _number_read(k: int, i: int, here: Here, table: MatchConditionTable, bank: ColumnBank, mapped: Mapped, memo: Memo) -> np.int64:
    """Return the i-th number that says what place k can still read.

    First come the values of the rows to which it leads, then how many rows of the set there are, as far as that matters.
    Where it reads CLASSIFIER(), the rows themselves stand for values, and the variables of rows follow: of these, and of
    the last ones, which rows to come lead back to.
    """
    j, first, offset, distance, inside = table.place_set[k], table.from_first[k], table.offset[k], table.distance[k], table.inside[k]
    ahead = 1 if first else offset + 1
    # what any row leads to is decided by the row and by how many there are
    rows = ahead if first or j >= 0 else 0
    counts = 1 if first or j < 0 else 0
    each = 1 if inside else 2 * (memo.column_first[k + 1] - memo.column_first[k])
    behind = i - rows * each
    found = np.int64(-1)
    if behind < 0:
        led = _row_of(k, i // each, here, table, mapped)
        found = np.int64(led) if inside else _value_of(k, i % each, at_distance(led, distance, here), bank, memo)
    elif behind < counts:
        found = np.int64(min(mapped.counts[j] if j >= 0 else here.row - here.start + 1, offset + 1))
    elif behind < counts + ahead:
        led = _row_of(k, behind - counts, here, table, mapped)
        found = np.int64(_variable_of(led + distance, here, table, bank) if led >= 0 else -1)
    else:
        found = np.int64(_variable_of(here.row + 1 + distance + behind - counts - ahead, here, table, bank))
    return found


@rule
def _ask(q: int, here: Here, windows: bool, table: MatchConditionTable, bank: ColumnBank, mapped: Mapped, memo: Memo) -> np.int64:
    """Write the key of what is mapped now, and return its first slot."""
    asked, first = memo.asked, memo.place_first
    asked[MemoColumn.BEGAN] = here.start + 1
    asked[MemoColumn.STATE] = q
    asked[MemoColumn.ROW] = here.row
    asked[MemoColumn.START] = here.start if windows else -1
    for k in range(table.place_set.size):
        for i in range(first[k + 1] - first[k]):
            read = _number_read(k, i, here, table, bank, mapped, memo) if memo.reads_place[q, k] else np.int64(0)
            asked[MemoColumn.READ + first[k] + i] = read
    column = MemoColumn.READ + first[table.place_set.size]
    for t in range(table.step.size):
        i, reads = mapped.covered[t], memo.reads_total[q, t]
        count = mapped.totals.counts[t, i]
        asked[column] = (count if memo.counts[t] else min(count, 1)) if reads else 0
        asked[column + 1] = mapped.totals.ints[t, i] if reads else 0
        asked[column + 2] = np.float64(mapped.totals.floats[t, i]).view(np.int64) if reads else 0
        column += 3
    return _slot_of(memo)


@rule
def _slot_of(memo: Memo) -> np.int64:
    """Return the first slot of the key that is asked for."""
    mixed = np.uint64(0)
    for c in range(MemoColumn.STATE, memo.asked.size):
        mixed = mix_hash(mixed, memo.asked[c])
    return np.int64(mixed & np.uint64(memo.keys.shape[0] - 1))


@rule
def _agrees(at: np.int64, memo: Memo) -> bool:
    """Return whether a slot holds the key that is asked for."""
    c = MemoColumn.STATE
    while c < memo.asked.size and memo.keys[at, c] == memo.asked[c]:
        c += 1
    return c == memo.asked.size and memo.keys[at, MemoColumn.BEGAN] != 0


@rule
def knows_dead_end(
    q: int, here: Here, windows: bool, table: MatchConditionTable, bank: ColumnBank, mapped: Mapped, memo: Memo
) -> bool:  # fmt: skip
    """Return whether no match was found from state q at the current row, with what is mapped now; with `windows`, and with this start."""
    known = False
    # most rows are met for the first time
    if memo.useful[q] and here.row <= memo.farthest[0]:
        slot = _ask(q, here, windows, table, bank, mapped, memo)
        for probe in range(_PROBES):
            at = (slot + probe) & (memo.keys.shape[0] - 1)
            known = known or _agrees(at, memo)
    return known


@rule
def _is_spare(at: np.int64, start: int, memo: Memo) -> bool:
    """Return whether a slot is empty, or what it holds is not met again, or seldom."""
    began = memo.keys[at, MemoColumn.BEGAN]
    # a search does not go back behind the row with which a match begins
    return (
        began == 0 or memo.keys[at, MemoColumn.ROW] < start or (began != start + 1 and memo.bound[memo.keys[at, MemoColumn.STATE]])
    )  # fmt: skip


@rule
def _keep(slot: np.int64, start: int, memo: Memo) -> None:
    """Keep the key that is asked for near its first slot; if there is no room, forget another dead end."""
    at = slot
    for probe in range(_PROBES - 1, -1, -1):
        near = (slot + probe) & (memo.keys.shape[0] - 1)
        at = near if _is_spare(near, start, memo) else at
    memo.lost[0] += 0 if _is_spare(at, start, memo) else 1
    memo.farthest[0] = max(memo.farthest[0], memo.asked[MemoColumn.ROW])
    for c in range(memo.asked.size):
        memo.keys[at, c] = memo.asked[c]


@rule
def learn_dead_end(
    q: int, here: Here, windows: bool, table: MatchConditionTable, bank: ColumnBank, mapped: Mapped, memo: Memo
) -> None:  # fmt: skip
    """Keep that no match was found from state q at the current row; if there is no room, forget another dead end."""
    if memo.useful[q]:
        _keep(_ask(q, here, windows, table, bank, mapped, memo), here.start, memo)


@sequential(writes=("memo",))
def keep_dead_ends(keys: Ints, start: int, memo: Memo) -> None:
    """Keep the dead ends of `keys` that may still be met in a match from row `start` on."""
    for slot in range(keys.shape[0]):
        if keys[slot, MemoColumn.BEGAN] != 0 and keys[slot, MemoColumn.ROW] >= start:
            for c in range(memo.asked.size):
                memo.asked[c] = keys[slot, c]
            _keep(_slot_of(memo), start, memo)

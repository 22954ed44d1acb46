"""Remember from where a search found no match, so that it does not look there again.

What conditions can still read of the rows mapped so far is compared as a whole, whichever row the match began with. So a
dead end that is known is one, and one that was forgotten is only searched again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.row_patterns.conditions import Mapped, MatchConditionTable
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
    - lost[0]: how many dead ends were forgotten that may still be met.
    - place_first[k]: the first number of what place k can still read, with the end; three numbers for each total follow.
    - useful[q]: whether a condition behind state q reads the match.
    - bound[q]: whether what they read is seldom the same for matches that begin with other rows.
    - reads_place[q, k], reads_total[q, t]: whether conditions behind state q read place k or total t.
    """

    keys: Ints
    asked: Ints
    lost: Ints
    place_first: Ints
    useful: Flags
    bound: Flags
    reads_place: Flags
    reads_total: Flags


@rule
def _row_of(k: int, i: int, start: int, row: int, table: MatchConditionTable, mapped: Mapped) -> int:
    """Return the row to which place k leads once its set has `i` more rows, without its distance; −1 if there is none yet."""
    j, found = table.place_set[k], -1
    count = mapped.counts[j] if j >= 0 else row - start + 1
    at = table.offset[k] if table.from_first[k] else count - 1 - table.offset[k] + i
    if 0 <= at < count:
        found = mapped.rows[j, at] if j >= 0 else start + at
    return found


@rule
def _variable_of(row: int, start: int, last: int, table: MatchConditionTable, bank: ColumnBank) -> int:
    """Return what stands for the variable of a row; −1 if it is not mapped."""
    return bank.ints[table.classifier, row] if start <= row <= last else -1


@rule
def _number_read(k: int, i: int, start: int, row: int, table: MatchConditionTable, bank: ColumnBank, mapped: Mapped) -> int:
    """Return the i-th number that says what place k can still read.

    First come the rows to which it leads, then how many rows of the set there are, as far as that matters.
    Where it reads CLASSIFIER(), the variables of rows follow: of these, and of the last ones, which rows to come lead back to.
    """
    j, first, offset, distance = table.place_set[k], table.from_first[k], table.offset[k], table.distance[k]
    ahead = 1 if first else offset + 1
    # what any row leads to is decided by the row and by how many there are
    rows = ahead if first or j >= 0 else 0
    counts = 1 if first or j < 0 else 0
    found = -1
    if i < rows:
        found = _row_of(k, i, start, row, table, mapped)
    elif i < rows + counts:
        found = min(mapped.counts[j] if j >= 0 else row - start + 1, offset + 1)
    elif i < rows + counts + ahead:
        led = _row_of(k, i - rows - counts, start, row, table, mapped)
        found = _variable_of(led + distance, start, row, table, bank) if led >= 0 else -1
    else:
        found = _variable_of(row + 1 + distance + i - rows - counts - ahead, start, row, table, bank)
    return found


@rule
def _ask(
    q: int, start: int, row: int, windows: bool, table: MatchConditionTable, bank: ColumnBank, mapped: Mapped, memo: Memo
) -> np.int64:  # fmt: skip
    """Write the key of what is mapped now, and return its first slot."""
    asked, first = memo.asked, memo.place_first
    asked[MemoColumn.BEGAN] = start + 1
    asked[MemoColumn.STATE] = q
    asked[MemoColumn.ROW] = row
    asked[MemoColumn.START] = start if windows else -1
    for k in range(table.place_set.size):
        for i in range(first[k + 1] - first[k]):
            read = _number_read(k, i, start, row, table, bank, mapped) if memo.reads_place[q, k] else 0
            asked[MemoColumn.READ + first[k] + i] = read
    column = MemoColumn.READ + first[table.place_set.size]
    for t in range(table.step.size):
        i, reads = mapped.covered[t], memo.reads_total[q, t]
        asked[column] = mapped.totals.counts[t, i] if reads else 0
        asked[column + 1] = mapped.totals.ints[t, i] if reads else 0
        asked[column + 2] = np.float64(mapped.totals.floats[t, i]).view(np.int64) if reads else 0
        column += 3
    mixed = np.uint64(0)
    for c in range(MemoColumn.STATE, asked.size):
        mixed = mix_hash(mixed, asked[c])
    return np.int64(mixed & np.uint64(memo.keys.shape[0] - 1))


@rule
def _agrees(at: np.int64, memo: Memo) -> bool:
    """Whether a slot holds the key that is asked for."""
    c = MemoColumn.STATE
    while c < memo.asked.size and memo.keys[at, c] == memo.asked[c]:
        c += 1
    return c == memo.asked.size and memo.keys[at, MemoColumn.BEGAN] != 0


@rule
def knows_dead_end(
    q: int, start: int, row: int, windows: bool, table: MatchConditionTable, bank: ColumnBank, mapped: Mapped, memo: Memo
) -> bool:  # fmt: skip
    """Whether no match was found from state q at `row`, with what is mapped now; with `windows`, and with this start."""
    known = False
    if memo.useful[q]:
        slot = _ask(q, start, row, windows, table, bank, mapped, memo)
        for probe in range(_PROBES):
            at = (slot + probe) & (memo.keys.shape[0] - 1)
            known = known or _agrees(at, memo)
    return known


@rule
def _is_spare(at: np.int64, start: int, memo: Memo) -> bool:
    """Whether a slot is empty, or what it holds is seldom met again."""
    began = memo.keys[at, MemoColumn.BEGAN]
    return began == 0 or (began != start + 1 and memo.bound[memo.keys[at, MemoColumn.STATE]])


@rule
def learn_dead_end(
    q: int, start: int, row: int, windows: bool, table: MatchConditionTable, bank: ColumnBank, mapped: Mapped, memo: Memo
) -> None:  # fmt: skip
    """Keep that no match was found from state q at `row`; if there is no room, forget another dead end."""
    if memo.useful[q]:
        slot = _ask(q, start, row, windows, table, bank, mapped, memo)
        at = slot
        for probe in range(_PROBES - 1, -1, -1):
            near = (slot + probe) & (memo.keys.shape[0] - 1)
            at = near if _is_spare(near, start, memo) else at
        memo.lost[0] += 0 if _is_spare(at, start, memo) else 1
        for c in range(memo.asked.size):
            memo.keys[at, c] = memo.asked[c]

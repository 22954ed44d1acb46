"""Remember from where a search found no match, so that it does not look there again.

What conditions can still read of the rows mapped so far is compared as a whole. So a dead end that is
known is one, and one that was forgotten is only searched again. The memory is of a fixed size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.row_patterns.conditions import Mapped, MatchConditionTable
from gpu_cep_kernels.rules.scalars import mix_hash
from gpu_cep_kernels.rules.tables import Flags, Floats, Ints

_PROBES = 4


class Memo(NamedTuple):
    """Hold dead ends: the row at which the match begins, the state and row mapped last, and what conditions read then.

    - keys[slot, 0]: the start and 1 more; 0 where nothing is kept. Then come state, row, and what is read.
    - reals[slot]: the values of totals of floats.
    - useful[q]: whether a condition behind state q reads the match, and the memory holds all that it reads.
    - reads_place[q, k], reads_total[q, t]: whether conditions behind state q read place k or total t.
    """

    keys: Ints
    reals: Floats
    useful: Flags
    reads_place: Flags
    reads_total: Flags


@rule
def _slot_of(q: int, start: int, row: int, slots: int) -> np.int64:
    """Return the first slot of a dead end."""
    mixed = mix_hash(mix_hash(mix_hash(np.uint64(0), q), start), row)
    return np.int64(mixed & np.uint64(slots - 1))


@rule
def _row_read(k: int, back: int, table: MatchConditionTable, mapped: Mapped) -> int:
    """Return the row of the set of place k that it leads to now (`back` 0), or will after so many more rows; −1 if there is none."""
    j, found = table.place_set[k], -1
    count = mapped.counts[j]
    i = table.offset[k] if table.from_first[k] else count - 1 - table.offset[k] + back
    if 0 <= i < count:
        found = mapped.rows[j, i]
    return found


@rule
def _width(k: int, table: MatchConditionTable) -> int:
    """Return how many numbers say what place k can still read: none for any row, which the start and the row decide."""
    width = 0
    if table.place_set[k] >= 0:
        width = 2 if table.from_first[k] else table.offset[k] + 1
    return width


@rule
def _number_read(k: int, i: int, table: MatchConditionTable, mapped: Mapped) -> int:
    """Return the i-th number that says what place k can still read."""
    found = 0
    if not table.from_first[k]:
        found = _row_read(k, i, table, mapped)
    elif i == 0:
        found = _row_read(k, 0, table, mapped)
    else:
        found = min(mapped.counts[table.place_set[k]], table.offset[k] + 1)
    return found


@rule
def _agrees(slot: int, q: int, start: int, row: int, table: MatchConditionTable, mapped: Mapped, memo: Memo) -> bool:
    """Whether a slot holds what is mapped now."""
    keys = memo.keys
    same = keys[slot, 0] == start + 1 and keys[slot, 1] == q and keys[slot, 2] == row
    column = 3
    for k in range(table.place_set.size):
        for i in range(_width(k, table)):
            if same and memo.reads_place[q, k]:
                same = keys[slot, column] == _number_read(k, i, table, mapped)
            column += 1
    for t in range(table.step.size):
        if same and memo.reads_total[q, t]:
            i = mapped.covered[t]
            real, kept = mapped.totals.floats[t, i], memo.reals[slot, t]
            same = keys[slot, column] == mapped.totals.counts[t, i] and keys[slot, column + 1] == mapped.totals.ints[t, i]
            # zeros of either sign may lead elsewhere, and NaN equals nothing: such ends are searched again
            same = same and real == kept and (real != 0.0 or 1.0 / real == 1.0 / kept)
        column += 2
    return same


@rule
def knows_dead_end(q: int, start: int, row: int, table: MatchConditionTable, mapped: Mapped, memo: Memo) -> bool:
    """Whether no match was found from state q at `row`, with what is mapped now."""
    known = False
    if memo.useful[q]:
        slot = _slot_of(q, start, row, memo.keys.shape[0])
        for probe in range(_PROBES):
            at = (slot + probe) & (memo.keys.shape[0] - 1)
            if not known and memo.keys[at, 0] == start + 1:
                known = _agrees(at, q, start, row, table, mapped, memo)
    return known


@rule
def learn_dead_end(q: int, start: int, row: int, table: MatchConditionTable, mapped: Mapped, memo: Memo) -> None:
    """Keep that no match was found from state q at `row`; if there is no room, forget another dead end."""
    if memo.useful[q]:
        keys = memo.keys
        slot = _slot_of(q, start, row, keys.shape[0])
        at = slot
        for probe in range(_PROBES - 1, -1, -1):
            near = (slot + probe) & (keys.shape[0] - 1)
            at = near if keys[near, 0] != start + 1 else at
        keys[at, 0], keys[at, 1], keys[at, 2] = start + 1, q, row
        column = 3
        for k in range(table.place_set.size):
            for i in range(_width(k, table)):
                keys[at, column] = _number_read(k, i, table, mapped)
                column += 1
        for t in range(table.step.size):
            i = mapped.covered[t]
            keys[at, column], keys[at, column + 1] = mapped.totals.counts[t, i], mapped.totals.ints[t, i]
            memo.reals[at, t] = mapped.totals.floats[t, i]
            column += 2



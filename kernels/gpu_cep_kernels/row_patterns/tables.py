"""Define the tables of row patterns. In indexes q is a state, r a row, p a partition or a piece of one, m a match.

Rows are ordered; partition p has the rows from ``offsets[p]`` to before ``offsets[p + 1]``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.tables import Flags, Ints, Places, Variables

ACCEPT, NOWHERE = -1, -2
"""The move that ends a match, and none at all."""

UNMATCHED = -1
"""The length of the match that begins at a row where none does."""

UNENDED = -2
"""The length of a match of which it is not known yet where it ends."""

NEVER = 2**31 - 1
"""The row at which nothing is accepted."""


class SkipTo(IntEnum):
    """Name where the search goes on behind a match with rows."""

    PAST_LAST_ROW = 0
    NEXT_ROW = 1
    FIRST = 2
    LAST = 3


class PartitionPieces(NamedTuple):
    """Hold partitions, of which long ones are cut so that threads can share them.

    - offsets[p]: the first row of piece p, with the end; no piece is empty.
    - begins[p], ends[p]: the first row of the partition to which it belongs, and the row behind its last one.

    Where whole partitions are left out, the piece behind the last one of a partition begins later than that ends.
    """

    offsets: Ints
    begins: Ints
    ends: Ints


class RowAutomatonTable(NamedTuple):
    """Hold an automaton whose moves are in order of preference.

    - variable[q]: the variable to which the state maps a row.
    - moves, move_first: of each state the states of the next row, or ACCEPT; then the list for the
      first row of a partition, then that for others.
    - ends[q]: whether a match may end there, if its row is the last one of the partition.
    - target[q]: whether the state maps rows to the variable that AFTER MATCH SKIP names.
    - choices[source, word]: the preferred move of a list to a row with such a word of Reach, or NOWHERE; empty for wide words.
    """

    variable: Variables
    move_first: Ints
    moves: Places
    ends: Flags
    target: Flags
    choices: Places


class Reach(NamedTuple):
    """Say from which states a match can end, if they map row r.

    - words[r]: the bit of state q is bit ``q % 64`` of word ``q // 64``; narrow words have few states.
    - earliest[r, q]: the first row at which a match can end; empty without a window.
    - limits[r]: the last row of a match that begins in row r; empty without a window.
    """

    words: Any
    earliest: Places
    limits: Ints


@rule
def leads_on(q: int, row: int, limit: int, reach: Reach) -> bool:
    """Return whether a match can end in a row up to `limit`, if state q maps `row`."""
    return reach.earliest[row, q] <= limit if reach.earliest.size > 0 else (np.int64(reach.words[row, q >> 6]) >> np.int64(q & 63)) & 1 != 0


@rule
def next_state(source: int, row: int, limit: int, automaton: RowAutomatonTable, reach: Reach) -> int:
    """Return the preferred state that maps `row` behind `source`, or ACCEPT, or NOWHERE."""
    found = NOWHERE
    k, end = automaton.move_first[source], automaton.move_first[source + 1]
    if automaton.choices.size > 0 and reach.earliest.size == 0:
        found = automaton.choices[source, reach.words[row, 0]]
        k = end
    while k < end:
        q = automaton.moves[k]
        if q < 0:
            found = ACCEPT
            k = end
        elif leads_on(q, row, limit, reach):
            found = q
            k = end
        k += 1
    return found


@rule
def first_source(row: int, begin: int, automaton: RowAutomatonTable) -> int:
    """Return the list of moves to the first row of a match."""
    states = automaton.ends.size
    return states if row == begin else states + 1


@rule
def limit_of(row: int, end: int, reach: Reach) -> int:
    """Return the last row of a match that begins in a row of a partition before `end`."""
    return reach.limits[row] if reach.limits.size > 0 else end - 1

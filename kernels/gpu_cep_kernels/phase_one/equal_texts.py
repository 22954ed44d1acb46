"""Find the first row with the text of each row, by hashes in parts whose tables stay in a cache.

A part has the rows whose hashes begin with the same bits. Rows of one hash count as equal, and the last kernel here compares their texts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.phase_one.text import word_of
from gpu_cep_kernels.rules.tables import Places, Words

# What an entry of a table has for a row as long as it is free.
NO_ROW = -1
# Rows of which the texts are looked up at the same time.
_TOGETHER = 64


class HashedRows(NamedTuple):
    """Hold rows and their hashes, or the same of a table with open addressing, whose size is a power of two.

    - hashes[k]: the hash of ``rows[k]``.
    - rows[k]: a row; in a table NO_ROW if entry k is free.
    """

    hashes: Words
    rows: Places


@sequential(writes=("counts",))
def count_parts(hashes: Words, shift: Any, counts: Any) -> None:
    """``counts[p]``: raised by the number of hashes of part p, which is what `shift` leaves of a hash."""
    for e in range(hashes.size):
        counts[hashes[e] >> shift] += 1


@sequential(writes=("places", "parted"))
def place_in_parts(hashes: Words, first: int, shift: Any, places: Any, parted: HashedRows) -> None:
    """Put the rows from `first` on, which have these hashes, in the order of their parts.

    The next row of part p goes to ``places[p]``, which advances.
    """
    for e in range(hashes.size):
        part = hashes[e] >> shift
        place = places[part]
        places[part] = place + 1
        parted.hashes[place] = hashes[e]
        parted.rows[place] = first + e


@sequential(writes=("firsts",), scratch=("table",))
def find_firsts(hashes: Words, rows: Places, shift: Any, table: HashedRows, firsts: Places) -> None:
    """``firsts[r]``: the first of a part's ascending `rows` with the hash of row r.

    The table has more entries than rows. `shift` leaves the bits of a hash that are those of its part and, below them, of its entry.
    """
    last = np.uint64(table.rows.size - 1)
    for entry in range(table.rows.size):
        table.rows[entry] = NO_ROW
    for k in range(hashes.size):
        own, row = hashes[k], rows[k]
        entry = (own >> shift) & last
        while table.rows[entry] != NO_ROW and table.hashes[entry] != own:
            entry = (entry + np.uint64(1)) & last
        if table.rows[entry] == NO_ROW:
            table.hashes[entry], table.rows[entry] = own, row
        firsts[row] = table.rows[entry]


@rule
def _differ(text: Any, start: int, other: Any, other_start: int, length: int) -> bool:
    """Return whether two texts of one length differ."""
    for place in range(0, length, 8):
        count = min(length - place, 8)
        if word_of(text, start + place, count) != word_of(other, other_start + place, count):
            return True
    return False


@sequential(writes=())
def count_differing(offsets: Any, text: Any, codes: Places, value_offsets: Any, values: Any) -> int:
    """Return 0 if each row has the text of the value that its code stands for; rows and values are those of Arrow's buffers.

    Lengths and first bytes of some rows are compared before all their bytes: these reads wait for memory together.
    """
    differing, begin = 0, 0
    while begin < codes.size and differing == 0:
        end = min(begin + _TOGETHER, codes.size)
        for e in range(begin, end):
            start, value = offsets[e], value_offsets[codes[e]]
            length = offsets[e + 1] - start
            differing += value_offsets[codes[e] + 1] - value != length or (length > 0 and text[start] != values[value])
        if differing == 0:
            for e in range(begin, end):
                start = offsets[e]
                differing += _differ(text, start, values, value_offsets[codes[e]], offsets[e + 1] - start)
        begin = end
    return differing

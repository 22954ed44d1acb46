"""List the rows whose mark is not 0. A word has a bit for each of 64 rows, and only rows whose bit is set are visited."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.scalars import count_bits, lowest_bit

# Rows of a word.
_WORD = 64
# So many rows are written at a time, without a test between them; as many less one may be written behind the last.
_AT_ONCE = 4
SPARE = _AT_ONCE - 1


@rule
def _word_of(marks: Any) -> Any:
    """Return a uint64 whose bit k says whether mark k of 64 is not 0; the loop is vectorised."""
    word = np.uint64(0)
    for k in range(_WORD):
        word |= np.uint64(marks[k] != 0) << np.uint64(k)
    return word


@rule
def keep_rows(low: int, marks: Any, keeps_all: bool, rows: Any) -> int:
    """Write to `rows` the rows from `low` on whose mark is not 0, or all if `keeps_all`; return how many.

    `rows` needs ``SPARE`` slots more than it may receive.
    """
    count, words = 0, 0 if keeps_all else marks.size // _WORD
    for w in range(words):
        begin = w * _WORD
        word = _word_of(marks[begin : begin + _WORD])
        place, end = count, count + count_bits(word)
        while place < end:
            for k in range(_AT_ONCE):
                rows[place + k] = low + begin + lowest_bit(word)
                word &= word - np.uint64(1)
            place += _AT_ONCE
        count = end
    # what is left is written row by row, and only a row that is kept moves the end
    for e in range(words * _WORD, marks.size):
        rows[count] = low + e
        count += keeps_all or marks[e] != 0
    return count

"""Find, from the last row of each partition back, from which states a match can end.

So a matcher never takes a move that comes to nothing, and a row at which no match begins costs one look.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.row_patterns.tables import NEVER, RowAutomatonTable


@rule
def _lookup(word: Any, table: Any) -> Any:
    """Return the union of the table's words for each byte of a word."""
    found = table[0, word & 255]
    for k in range(1, table.shape[0]):
        found |= table[k, (word >> np.uint64(8 * k)) & np.uint64(255)]
    return found


@kernel(writes=("reach",))
def mark_reach(
    low: int, high: int, offsets: Any, labels: Any, fits: Any, before: Any, accepts: Any, ends: Any, reach: Any
) -> None:  # fmt: skip
    """``reach[r, 0]``: the states that can map row r of partition p in [low, high) and lead to the end of a match.

    ``fits[k, b]`` are the states of the variables in byte k of a label, ``before[k, b]`` those before the states in byte k of a word.
    A match may end in the states `accepts`, and in the last row of a partition in the states `ends`.
    """
    for p in range(low, high):
        begin, end = offsets[p], offsets[p + 1]
        words, given = reach[begin:end, 0], labels[begin:end]
        may = ends
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


@kernel(writes=("reach",))
def mark_wide_reach(
    low: int, high: int, offsets: Any, labels: Any, fits: Any, before: Any, accepts: Any, ends: Any, reach: Any
) -> None:  # fmt: skip
    """As :func:`mark_reach`, with several words for each row.

    ``fits[v]`` are the words of the states of variable v, ``before[q]`` those of the states before state q.
    """
    width = accepts.size
    for p in range(low, high):
        begin, end = offsets[p], offsets[p + 1]
        for r in range(end - 1, begin - 1, -1):
            for w in range(width):
                reach[r, w] = ends[w] if r == end - 1 else accepts[w]
            if r < end - 1:
                for w in range(width):
                    later = reach[r + 1, w]
                    q = 64 * w
                    while later != 0:
                        if later & np.uint64(1):
                            for x in range(width):
                                reach[r, x] |= before[q, x]
                        later >>= np.uint64(1)
                        q += 1
            for w in range(width):
                fitting = np.uint64(0)
                for v in range(fits.shape[0]):
                    if (np.uint64(labels[r]) >> np.uint64(v)) & np.uint64(1):
                        fitting |= fits[v, w]
                reach[r, w] &= fitting


@kernel(writes=("earliest",))
def find_earliest_ends(low: int, high: int, offsets: Any, labels: Any, automaton: RowAutomatonTable, earliest: Any) -> None:
    """``earliest[r, q]``: the first row at which a match can end, if state q maps row r; NEVER if there is none."""
    for p in range(low, high):
        end = offsets[p + 1]
        for r in range(end - 1, offsets[p] - 1, -1):
            for q in range(automaton.ends.size):
                found = NEVER
                if (np.uint64(labels[r]) >> np.uint64(automaton.variable[q])) & np.uint64(1):
                    if r == end - 1:
                        found = r if automaton.ends[q] else NEVER
                    else:
                        for k in range(automaton.move_first[q], automaton.move_first[q + 1]):
                            move = automaton.moves[k]
                            found = min(found, r if move < 0 else earliest[r + 1, move])
                earliest[r, q] = found


@kernel(writes=("limits",))
def limit_by_times(low: int, high: int, offsets: Any, times: Any, missing: Any, length: Any, limits: Any) -> None:
    """``limits[r]``: the last row whose time is at most `length` after that of row r, or the row before r without a time.

    Times are uint64 or float64. They ascend but for rows that are `missing`, which stand first or last; `missing` may be empty.
    """
    for p in range(low, high):
        end = offsets[p + 1]
        last = offsets[p]
        for r in range(offsets[p], end):
            last = max(last, r)
            while last < end and (missing.size == 0 or not (missing[r] or missing[last])) and times[last] - times[r] <= length:
                last += 1
            limits[r] = last - 1


@kernel(writes=("limits",))
def limit_by_rows(low: int, high: int, offsets: Any, rows: int, limits: Any) -> None:
    """``limits[r]``: the last one of `rows` rows that begin with row r, in its partition."""
    for p in range(low, high):
        end = offsets[p + 1]
        for r in range(offsets[p], end):
            limits[r] = min(r + rows, end) - 1

"""Judge conditions between events that follow one another: clear the label bits that they deny.

A condition judges each event with some right before it. Where it fails, only
the bits of `others` stay in the event's word. Labels here are one word per event.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.rules.interpreter import holds, run_program
from gpu_cep_kernels.rules.scalars import EQ, GE, GT, LE, LT, NE, compare
from gpu_cep_kernels.rules.tables import BY_FLOATS, AggregateValues, ColumnBank, ProgramTable, Registers

# Events that are judged by one condition after the other, so that what these read stays in the cache.
_BLOCK = 1 << 11


class NeighbourComparisons(NamedTuple):
    """Hold conditions that compare two columns.

    - means[c]: whether condition c compares integers or floats (BY_INTS, BY_FLOATS).
    - comparison[c]: how.
    - columns[c, s], back[c, s]: the column on its left (0) or right side, and how many rows before an event's it is read.
    - repeated[c]: whether it judges the further events of a variable, not the first.
    - others[c]: the bits of all other variables, as uint64.
    """

    means: Any
    comparison: Any
    columns: Any
    back: Any
    repeated: Any
    others: Any


class NeighbourProgram(NamedTuple):
    """Hold the program of one condition.

    - programs: a table with this program alone; it reads no aggregates.
    - result: the register that holds its truth.
    - back[r]: how many rows before an event's stands what role r reads.
    """

    programs: ProgramTable
    result: int
    back: Any


@rule
def _mask_where(comparison: int, left: Any, right: Any, others: Any, words: Any) -> None:
    """Judge one comparison of two columns; each word is written, so that the loop is vectorised."""
    for e in range(words.size):
        words[e] = words[e] if compare(comparison, left[e], right[e]) else words[e] & others


@rule
def _mask_compared(comparison: int, left: Any, right: Any, others: Any, words: Any) -> None:
    """Judge a comparison of two columns by a loop of its own, so that none tests which one it is for every event."""
    if comparison == EQ:
        _mask_where(EQ, left, right, others, words)
    elif comparison == NE:
        _mask_where(NE, left, right, others, words)
    elif comparison == LT:
        _mask_where(LT, left, right, others, words)
    elif comparison == LE:
        _mask_where(LE, left, right, others, words)
    elif comparison == GT:
        _mask_where(GT, left, right, others, words)
    else:
        _mask_where(GE, left, right, others, words)


@rule
def _mask_nulls(nulls: Any, columns: Any, others: Any, words: Any) -> None:
    """Deny what reads NULL: a word with a bit of `columns` in its word of `nulls`."""
    for e in range(words.size):
        words[e] = words[e] & others if nulls[e] & columns else words[e]


@kernel(writes=("labels",))
def mask_by_columns(low: int, high: int, left: Any, right: Any, comparison: int, others: Any, labels: Any) -> None:
    """Judge ``left[e] φ right[e]`` for each event e."""
    _mask_compared(comparison, left[low:high], right[low:high], others, labels[low:high])


@kernel(writes=("labels",))
def mask_by_nulls(low: int, high: int, nulls: Any, columns: Any, others: Any, labels: Any) -> None:
    """Deny what reads NULL: an event with a bit of `columns` in its word of `nulls`."""
    _mask_nulls(nulls[low:high], columns, others, labels[low:high])


@rule
def _judge_comparison(c: int, begin: int, end: int, base: int, conditions: NeighbourComparisons, bank: ColumnBank, words: Any) -> None:
    """Judge condition c for the events [begin, end); nothing stands so far before the others as it reads."""
    left, right, others = conditions.columns[c, 0], conditions.columns[c, 1], words.dtype.type(conditions.others[c])
    left_begin, right_begin = base + begin - conditions.back[c, 0], base + begin - conditions.back[c, 1]
    left_end, right_end = left_begin + end - begin, right_begin + end - begin
    judged = words[begin:end]
    is_float = conditions.means[c] == BY_FLOATS
    if is_float:
        lefts, rights = bank.floats[left, left_begin:left_end], bank.floats[right, right_begin:right_end]
        _mask_compared(conditions.comparison[c], lefts, rights, others, judged)
    else:
        int_lefts, int_rights = bank.ints[left, left_begin:left_end], bank.ints[right, right_begin:right_end]
        _mask_compared(conditions.comparison[c], int_lefts, int_rights, others, judged)
    nulls = bank.float_nulls if is_float else bank.int_nulls
    if nulls.size > 0:
        _mask_nulls(nulls[left_begin:left_end], np.uint64(1) << np.uint64(left), others, judged)
        _mask_nulls(nulls[right_begin:right_end], np.uint64(1) << np.uint64(right), others, judged)


@kernel(writes=("enters", "repeats"))
def mask_by_neighbours(
    low: int, high: int, conditions: NeighbourComparisons, bank: ColumnBank, base: int, enters: Any, repeats: Any
) -> None:  # fmt: skip
    """Judge all conditions for each event e, which stands in row ``base + e`` of the bank."""
    for begin in range(low, high, _BLOCK):
        end = min(begin + _BLOCK, high)
        for c in range(conditions.comparison.size):
            first = max(begin, max(conditions.back[c, 0], conditions.back[c, 1]) - base)
            if first < end:
                _judge_comparison(c, first, end, base, conditions, bank, repeats if conditions.repeated[c] else enters)


@kernel(writes=("labels", "failed"), scratch=("registers",))
def mask_by_program(
    low: int, high: int, slot: int, condition: NeighbourProgram, bank: ColumnBank, base: int, registers: Registers, others: Any,
    labels: Any, failed: Any,
) -> None:  # fmt: skip
    """Judge a condition by its program for each event e, which stands in row ``base + e`` of the bank.

    Events that only have bits of `others` are not judged. ``failed[e]`` is set where
    the program failed.
    """
    programs, result, back = condition
    # aggregates are not read, and only have the right types
    none = AggregateValues(registers.ints, registers.ints, registers.floats)
    rows = registers.rows[:, slot]
    own = Registers(rows, rows, registers.ints[:, slot], registers.floats[:, slot], registers.nulls[:, slot])
    for e in range(low, high):
        if labels[e] & ~others:
            for role in range(back.size):
                rows[role] = base + e - back[role]
            error = run_program(0, programs.code.shape[0], programs, bank, rows, none, own)
            if error != 0:
                failed[e] = True
            if not holds(result, own):
                labels[e] = labels[e] & others

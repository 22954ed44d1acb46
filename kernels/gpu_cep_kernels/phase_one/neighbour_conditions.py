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
def _mask_where(comparison: int, begin: int, end: int, left: Any, lag: int, right: Any, other_lag: int, others: Any, words: Any) -> None:
    """Judge one comparison of two columns for the events [begin, end); each word is written, so that the loop is vectorised.

    What is compared for event e stands in row ``e - lag`` of the left column, and in row ``e - other_lag`` of the right one.
    """
    for e in range(begin, end):
        words[e] = words[e] if compare(comparison, left[e - lag], right[e - other_lag]) else words[e] & others


@rule
def _mask_compared(comparison: int, begin: int, end: int, left: Any, lag: int, right: Any, other_lag: int, others: Any, words: Any) -> None:
    """Do as :func:`_mask_where`; each comparison has a loop of its own, so that none tests which one it is for every event."""
    if comparison == EQ:
        _mask_where(EQ, begin, end, left, lag, right, other_lag, others, words)
    elif comparison == NE:
        _mask_where(NE, begin, end, left, lag, right, other_lag, others, words)
    elif comparison == LT:
        _mask_where(LT, begin, end, left, lag, right, other_lag, others, words)
    elif comparison == LE:
        _mask_where(LE, begin, end, left, lag, right, other_lag, others, words)
    elif comparison == GT:
        _mask_where(GT, begin, end, left, lag, right, other_lag, others, words)
    else:
        _mask_where(GE, begin, end, left, lag, right, other_lag, others, words)


@rule
def _mask_nulls(begin: int, end: int, nulls: Any, lag: int, columns: Any, others: Any, words: Any) -> None:
    """Deny what reads NULL: an event e in [begin, end) with a bit of `columns` in ``nulls[e - lag]``."""
    for e in range(begin, end):
        words[e] = words[e] & others if nulls[e - lag] & columns else words[e]


@kernel(writes=("labels",))
def mask_by_columns(low: int, high: int, left: Any, right: Any, comparison: int, others: Any, labels: Any) -> None:
    """Judge ``left[e] φ right[e]`` for each event e."""
    _mask_compared(comparison, low, high, left, 0, right, 0, others, labels)


@kernel(writes=("labels",))
def mask_by_nulls(low: int, high: int, nulls: Any, columns: Any, others: Any, labels: Any) -> None:
    """Deny what reads NULL: an event with a bit of `columns` in its word of `nulls`."""
    _mask_nulls(low, high, nulls, 0, columns, others, labels)


@rule
def _judge_comparison(c: int, begin: int, end: int, base: int, conditions: NeighbourComparisons, bank: ColumnBank, words: Any) -> None:
    """Judge condition c for the events [begin, end); nothing stands so far before the others as it reads."""
    left, right, others = conditions.columns[c, 0], conditions.columns[c, 1], words.dtype.type(conditions.others[c])
    lag, other_lag = conditions.back[c, 0] - base, conditions.back[c, 1] - base
    is_float = conditions.means[c] == BY_FLOATS
    if is_float:
        _mask_compared(conditions.comparison[c], begin, end, bank.floats[left], lag, bank.floats[right], other_lag, others, words)
    else:
        _mask_compared(conditions.comparison[c], begin, end, bank.ints[left], lag, bank.ints[right], other_lag, others, words)
    nulls = bank.float_nulls if is_float else bank.int_nulls
    if nulls.size > 0:
        _mask_nulls(begin, end, nulls, lag, np.uint64(1) << np.uint64(left), others, words)
        _mask_nulls(begin, end, nulls, other_lag, np.uint64(1) << np.uint64(right), others, words)


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

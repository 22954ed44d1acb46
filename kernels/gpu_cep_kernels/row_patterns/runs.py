"""Go on along a run: rows one behind the other that one state maps, whose condition reads little that changes.

Each side of the condition has one value in the whole run, or is a column of the current row, or the one total that
covers these rows. So a row is judged from local values. A run ends before a row that does not fit, or of which that is
not certain: what comes then is left to the walk.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.row_patterns.conditions import Arguments, Here, Mapped, MatchConditionTable, next_total, rows_of_side
from gpu_cep_kernels.row_patterns.operands import Operand, OperandTable, float_side, int_side
from gpu_cep_kernels.row_patterns.tables import Reach, leads_on
from gpu_cep_kernels.rules.running import is_null
from gpu_cep_kernels.rules.scalars import compare
from gpu_cep_kernels.rules.tables import BY_INTS, ColumnBank, Ints

NO_TOTAL, NO_RUN = -1, -2
"""The total of a run that changes none, and of a variable whose rows are no runs."""


class Side(IntEnum):
    """Name what a side of a condition is in a run."""

    FIXED = 0
    CURRENT = 1  # a column of the current row
    RUNNING = 2  # the total of the run


class RunTable(NamedTuple):
    """Hold how the rows of variable v are run along.

    - total[v]: the one total that they change, NO_TOTAL, or NO_RUN.
    - left[v], right[v]: what the sides of the condition are (Side).
    """

    total: Ints
    left: Ints
    right: Ints


@rule
def _int_at(
    side: int, o: int, fixed: int, row: int, count: int, whole: int, operands: OperandTable, bank: ColumnBank
) -> tuple[int, bool]:  # fmt: skip
    """Return a side of int64 at a row, with the total up to there, and whether it is NULL."""
    value, null = fixed, False
    if side == Side.CURRENT:
        value, null = bank.ints[operands.number[o], row], is_null(bank.int_nulls, operands.number[o], row)
    elif side == Side.RUNNING:
        value, null = (whole, count == 0) if operands.kind[o] == Operand.TOTAL else (count, False)
    return value, null


@rule
def _float_at(
    side: int, o: int, fixed: float, row: int, count: int, real: float, operands: OperandTable, bank: ColumnBank
) -> tuple[float, bool]:  # fmt: skip
    """Do as :func:`_int_at`, for float64."""
    value, null = fixed, False
    if side == Side.CURRENT:
        value, null = bank.floats[operands.number[o], row], is_null(bank.float_nulls, operands.number[o], row)
    elif side == Side.RUNNING:
        value, null = real if operands.kind[o] == Operand.TOTAL else real / np.float64(count), count == 0
    return value, null


@rule
def end_of_run(
    q: int, v: int, here: Here, limit: int, reach: Reach, table: MatchConditionTable, runs: RunTable, bank: ColumnBank,
    arguments: Arguments, mapped: Mapped,
) -> int:  # fmt: skip
    """Return the row before which a run ends that goes on behind the current row, which state q maps to variable v."""
    t, row, means, comparison, left, right = runs.total[v], here.row + 1, 0, 0, 0, 0
    c, judged = table.condition_first[v], table.condition_first[v + 1] > table.condition_first[v]
    left_side, right_side, operands = runs.left[v], runs.right[v], table.operands
    left_whole, right_whole, left_real, right_real = 0, 0, 0.0, 0.0
    count, whole, real, step, a, i = 0, 0, 0.0, 0, 0, 0
    going = True
    if t >= 0:
        step, a, i = table.step[t], table.argument[t, v], mapped.covered[t]
        count, whole, real = mapped.totals.counts[t, i], mapped.totals.ints[t, i], mapped.totals.floats[t, i]
    if judged:
        means, comparison, left, right = table.means[c], table.comparison[c], table.left[c], table.right[c]
        left_rows, right_rows = rows_of_side(left, here, table, mapped), rows_of_side(right, here, table, mapped)
        if means == BY_INTS:
            left_whole, left_null, left_failed = int_side(left, left_rows, operands, bank, mapped.totals, mapped.covered)
            right_whole, right_null, right_failed = int_side(right, right_rows, operands, bank, mapped.totals, mapped.covered)
        else:
            left_real, left_null, left_failed = float_side(left, left_rows, operands, bank, mapped.totals, mapped.covered)
            right_real, right_null, right_failed = float_side(right, right_rows, operands, bank, mapped.totals, mapped.covered)
        # the current row fits, so that its condition reads neither
        going = not (left_null or right_null or left_failed or right_failed)
    while going:
        next_count, next_whole, next_real = count, whole, real
        going = row < here.end and leads_on(q, row, limit, reach)
        if going and t >= 0:
            next_count, next_whole, next_real = next_total(step, a, row, count, whole, real, arguments)
            going = next_count >= 0
        if going and judged:
            if means == BY_INTS:
                one, one_null = _int_at(left_side, left, left_whole, row, next_count, next_whole, operands, bank)
                other, other_null = _int_at(right_side, right, right_whole, row, next_count, next_whole, operands, bank)
                going = compare(comparison, one, other) and not (one_null or other_null)
            else:
                low, one_null = _float_at(left_side, left, left_real, row, next_count, next_real, operands, bank)
                high, other_null = _float_at(right_side, right, right_real, row, next_count, next_real, operands, bank)
                going = compare(comparison, low, high) and not (one_null or other_null)
        if going:
            count, whole, real = next_count, next_whole, next_real
            row += 1
    if t >= 0:
        # a walk takes nothing back, so that the values before are not needed
        mapped.totals.counts[t, i], mapped.totals.ints[t, i], mapped.totals.floats[t, i] = count, whole, real
    return row

"""Read what a condition compares: a column at a place, a constant, a total of the match so far, or what two of them make."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.interpreter import float_result, int_result
from gpu_cep_kernels.rules.running import is_null
from gpu_cep_kernels.rules.tables import AggregateValues, ColumnBank, Floats, Ints


class Operand(IntEnum):
    """Name what an operand is."""

    COLUMN = 0
    CONSTANT = 1
    TOTAL = 2
    COUNT = 3  # of how many values a total is
    MEAN_OF_INTS = 4  # a total over the count of another one
    MEAN_OF_FLOATS = 5
    COLUMN_OF_INTS = 6  # read as float64


ALONE = -1
"""The operation of an operand that is compared as it stands."""


class OperandTable(NamedTuple):
    """Hold operands; o is one.

    - kind[o]: what it is (Operand).
    - number[o]: a column of the bank, or a total.
    - other[o]: the place at which the column is read, or the total whose count divides a mean.
    - whole[o], real[o]: a constant.
    - operation[o]: what the operand and the next one make, which is compared (Op); ALONE if the operand itself is.
    """

    kind: Ints
    number: Ints
    other: Ints
    whole: Ints
    real: Floats
    operation: Ints


@rule
def _int_operand(
    o: int, row: int, operands: OperandTable, bank: ColumnBank, totals: AggregateValues, covered: Any
) -> tuple[int, bool, bool]:
    """Return an operand of int64, whether it is NULL, and whether it cannot be computed; a column is read in `row`, −1 for none.

    ``covered[t]`` is the place of the current value of total t.
    """
    kind, n = operands.kind[o], operands.number[o]
    value, null, failed = operands.whole[o], False, False
    if kind == Operand.COLUMN:
        null = row < 0 or is_null(bank.int_nulls, n, row)
        if row >= 0:
            value = bank.ints[n, row]
    elif kind != Operand.CONSTANT:
        count = totals.counts[n, covered[n]]
        value = count
        if kind == Operand.TOTAL:
            value, null, failed = totals.ints[n, covered[n]], count == 0, count < 0
    return value, null, failed


@rule
def _float_operand(
    o: int, row: int, operands: OperandTable, bank: ColumnBank, totals: AggregateValues, covered: Any
) -> tuple[float, bool, bool]:
    """Do as :func:`_int_operand`, for float64."""
    kind, n = operands.kind[o], operands.number[o]
    value, null, failed = operands.real[o], False, False
    if kind == Operand.COLUMN:
        null = row < 0 or is_null(bank.float_nulls, n, row)
        if row >= 0:
            value = bank.floats[n, row]
    elif kind == Operand.COLUMN_OF_INTS:
        null = row < 0 or is_null(bank.int_nulls, n, row)
        if row >= 0:
            value = np.float64(bank.ints[n, row])
    elif kind != Operand.CONSTANT:
        i = covered[n]
        count = totals.counts[n, i]
        value, null, failed = totals.floats[n, i], count == 0, count < 0
        if kind == Operand.MEAN_OF_INTS:
            value = np.float64(totals.ints[n, i])
        if kind != Operand.TOTAL:
            other = operands.other[o]
            divisor = totals.counts[other, covered[other]]
            value = value / np.float64(divisor)
            null = null or divisor == 0
    return value, null, failed


@rule
def int_side(
    o: int, rows: tuple[int, int], operands: OperandTable, bank: ColumnBank, totals: AggregateValues, covered: Any
) -> tuple[int, bool, bool]:
    """Return a side of a comparison of int64 as :func:`_int_operand`: operand o, or what it and the next one make."""
    value, null, failed = _int_operand(o, rows[0], operands, bank, totals, covered)
    if operands.operation[o] != ALONE:
        other, other_null, other_failed = _int_operand(o + 1, rows[1], operands, bank, totals, covered)
        value, undefined, wrapped = int_result(operands.operation[o], value, other)
        failed = failed or other_failed or (wrapped and not (null or other_null))
        null = null or other_null or undefined
    return value, null, failed


@rule
def float_side(
    o: int, rows: tuple[int, int], operands: OperandTable, bank: ColumnBank, totals: AggregateValues, covered: Any
) -> tuple[float, bool, bool]:
    """Do as :func:`int_side`, for float64."""
    value, null, failed = _float_operand(o, rows[0], operands, bank, totals, covered)
    if operands.operation[o] != ALONE:
        other, other_null, other_failed = _float_operand(o + 1, rows[1], operands, bank, totals, covered)
        value, undefined = float_result(operands.operation[o], value, other)
        failed = failed or other_failed
        null = null or other_null or undefined
    return value, null, failed

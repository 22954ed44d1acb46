"""Interpret expression programs: one generic body for properties, relationships and RETURN items.

A program is a table of instructions ``(opcode, target, first, second)``. They
work on three files of registers: int64, float64 and a NULL flag for each.
Values are loaded from a bank of columns, at the row of a *role*: the event,
its predecessor in the binding, another variable's event, or a match.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.compile.operations import call_scalar, exact_product, exact_remainder
from gpu_cep_kernels.rules.running import is_null
from gpu_cep_kernels.rules.scalars import MINIMUM_INT, add_ints, compare, multiply_ints, subtract_ints
from gpu_cep_kernels.rules.tables import AggregateValues, ColumnBank, ProgramResults, ProgramTable, Registers


class Op(IntEnum):
    """Name what an instruction does; operations of one kind have consecutive numbers."""

    LOAD_INT = 0  # target ← ints[first, rows[second]]
    LOAD_FLOAT = 1
    CONST_INT = 2  # target ← int_constants[first]
    CONST_FLOAT = 3
    NULL = 4
    ADD_INT = 5
    SUB_INT = 6
    MUL_INT = 7
    MOD_INT = 8
    NEG_INT = 9
    ABS_INT = 10
    SIGN_INT = 11
    LEAST_INT = 12
    GREATEST_INT = 13
    COALESCE_INT = 14
    NULLIF_INT = 15
    ADD_FLOAT = 16
    SUB_FLOAT = 17
    MUL_FLOAT = 18
    DIV_FLOAT = 19
    MOD_FLOAT = 20
    NEG_FLOAT = 21
    ABS_FLOAT = 22
    SIGN_FLOAT = 23
    LEAST_FLOAT = 24
    GREATEST_FLOAT = 25
    COALESCE_FLOAT = 26
    NULLIF_FLOAT = 27
    FLOOR_FLOAT = 28
    CEIL_FLOAT = 29
    ROUND_FLOAT = 30
    SQRT_FLOAT = 31
    EQ_INT = 32
    NE_INT = 33
    LT_INT = 34
    LE_INT = 35
    GT_INT = 36
    GE_INT = 37
    EQ_FLOAT = 38
    NE_FLOAT = 39
    LT_FLOAT = 40
    LE_FLOAT = 41
    GT_FLOAT = 42
    GE_FLOAT = 43
    AND = 44
    OR = 45
    NOT = 46
    IS_NULL_INT = 47
    IS_NULL_FLOAT = 48
    FLOAT_OF_INT = 49
    LOOKUP = 50  # target ← table[second + register first]: 0, 1, or 2 for NULL
    LOAD_COUNT = 51  # target ← how many events aggregate first counts at places[second]
    LOAD_AGGREGATE_INT = 52  # target ← the value of aggregate first at places[second]
    LOAD_AGGREGATE_FLOAT = 53
    LOAD_VECTOR = 54  # register target ← where the vector of column first stands at rows[second]
    DOT = 55  # target ← the inner product of the vectors of registers first and second
    CALL = 56  # target ← the function at address int_constants[second] of the registers from first on
    SKIP = 57  # pass over the next `second` instructions
    SKIP_UNLESS = 58  # the same, unless register first is TRUE


CODE = {op.name.lower(): op.value for op in Op}


@rule
def _remainder_int(left: int, right: int) -> int:
    """Return the remainder with the sign of the dividend; `right` is not 0."""
    if right == -1:
        return 0
    remainder = left % right
    if remainder != 0 and (remainder < 0) != (left < 0):
        remainder -= right
    return remainder


@rule
def _truncate(value: float) -> float:
    """Return `value` without its fraction, its sign kept; from 2**52 on no float has a fraction."""
    return math.copysign(np.float64(np.int64(value)), value) if abs(value) < 2.0**52 else value


@rule
def _round_half_away(value: float) -> float:
    """Round half away from zero, as SQL does."""
    whole = _truncate(value)
    return whole + math.copysign(1.0, value) if abs(value - whole) >= 0.5 else whole


@rule
def _smaller(left: Any, right: Any) -> Any:
    """Return the lesser of two; NaN is the greatest of all, as in Spark."""
    return left if left <= right or right != right else right


@rule
def _larger(left: Any, right: Any) -> Any:
    """Return the greater of two; NaN is the greatest of all, as in Spark."""
    return left if left >= right or left != left else right


@rule
def int_result(code: int, left: int, right: int) -> tuple[int, bool, bool]:
    """Return the result of an int64 operation on one or two operands that are not NULL: (value, is NULL, overflowed)."""
    value, null, wrapped = left, False, False
    if code == Op.ADD_INT:
        value, wrapped = add_ints(left, right)
    elif code == Op.SUB_INT:
        value, wrapped = subtract_ints(left, right)
    elif code == Op.MUL_INT:
        value, wrapped = multiply_ints(left, right)
    elif code == Op.MOD_INT:
        null = right == 0
        value = _remainder_int(left, right) if right != 0 else 0
    elif code == Op.NEG_INT:
        value, wrapped = -left, left == MINIMUM_INT
    elif code == Op.ABS_INT:
        value, wrapped = abs(left), left == MINIMUM_INT
    elif code == Op.SIGN_INT:
        value = int(left > 0) - int(left < 0)
    return value, null, wrapped


@rule
def float_result(code: int, left: float, right: float) -> tuple[float, bool]:
    """Return the result of a float64 operation on one or two operands that are not NULL: (value, is NULL)."""
    value, null = left, False
    if code == Op.ADD_FLOAT:
        value = left + right
    elif code == Op.SUB_FLOAT:
        value = left - right
    elif code == Op.MUL_FLOAT:
        value = exact_product(left, right)
    elif code == Op.DIV_FLOAT:
        null = right == 0.0
        value = left / right if right != 0.0 else 0.0
    elif code == Op.MOD_FLOAT:
        null = right == 0.0
        value = exact_remainder(left, right) if right != 0.0 else 0.0
    elif code == Op.NEG_FLOAT:
        value = -left
    elif code == Op.ABS_FLOAT:
        value = abs(left)
    elif code == Op.SIGN_FLOAT:
        value = 1.0 if left > 0.0 else -1.0 if left < 0.0 else left
    elif code == Op.FLOOR_FLOAT:
        value = _truncate(left)
        value = value - 1.0 if value > left else value
    elif code == Op.CEIL_FLOAT:
        value = _truncate(left)
        value = value + 1.0 if value < left else value
    elif code == Op.ROUND_FLOAT:
        value = _round_half_away(left)
    elif code == Op.SQRT_FLOAT:
        value = math.sqrt(left) if left >= 0.0 else np.nan
    return value, null


@rule
def _combine_ints(code: int, low: int, high: int, left: Any, right: Any, out: Any, failed: Any) -> None:
    for e in range(low, high):
        out[e], _, wrapped = int_result(code, left[e], right[e])
        failed[e] |= wrapped


@kernel(writes=("out", "failed"))
def combine_ints(low: int, high: int, code: int, left: Any, right: Any, out: Any, failed: Any) -> None:
    """``out[e]``: the sum, difference or product of two int64, whatever is NULL; ``failed[e]`` is set where it overflows."""
    # a loop for each operation, so that none tests which one it is for every event
    if code == Op.ADD_INT:
        _combine_ints(Op.ADD_INT, low, high, left, right, out, failed)
    elif code == Op.SUB_INT:
        _combine_ints(Op.SUB_INT, low, high, left, right, out, failed)
    else:
        _combine_ints(Op.MUL_INT, low, high, left, right, out, failed)


@rule
def _combine_floats(code: int, low: int, high: int, left: Any, right: Any, out: Any) -> None:
    for e in range(low, high):
        out[e], _ = float_result(code, left[e], right[e])


@kernel(writes=("out",))
def combine_floats(low: int, high: int, code: int, left: Any, right: Any, out: Any) -> None:
    """``out[e]``: the sum, difference or product of two float64, whatever is NULL."""
    if code == Op.ADD_FLOAT:
        _combine_floats(Op.ADD_FLOAT, low, high, left, right, out)
    elif code == Op.SUB_FLOAT:
        _combine_floats(Op.SUB_FLOAT, low, high, left, right, out)
    else:
        _combine_floats(Op.MUL_FLOAT, low, high, left, right, out)


@rule
def _choose_value(code: int, base: int, left: Any, right: Any, left_null: bool, right_null: bool) -> tuple[Any, bool]:
    """Return (value, is NULL) of least, greatest, coalesce or nullif: the opcodes from `base` on.

    All but nullif pass over NULLs.
    """
    value, null = left, left_null
    if code == base + 3:
        null = left_null or (not right_null and left == right)
    elif left_null:
        value, null = right, right_null
    elif code == base and not right_null:
        value = _smaller(left, right)
    elif code == base + 1 and not right_null:
        value = _larger(left, right)
    return value, null


@rule
def _connect_truths(code: int, left: int, right: int, left_null: bool, right_null: bool) -> tuple[int, bool]:
    """Return (truth, is NULL) of the three-valued AND or OR of two truths."""
    decisive = 0 if code == Op.AND else 1
    decided = (not left_null and left == decisive) or (not right_null and right == decisive)
    value = decisive if decided else 1 - decisive
    return value, not decided and (left_null or right_null)


@rule
def _inner_product(vectors: Any, left: int, right: int) -> float:
    """Return the inner product of two vectors of the bank, summed in the order of positions.

    `left` and `right` say where they stand: column times the number of rows, plus row.
    """
    rows = vectors.shape[1]
    left_column, right_column = left // rows, right // rows
    total = 0.0
    for k in range(vectors.shape[2]):
        total += exact_product(vectors[left_column, left - left_column * rows, k], vectors[right_column, right - right_column * rows, k])
    return total


@rule
def run_program(
    first: int, last: int, programs: ProgramTable, bank: ColumnBank, stand_ins: Any, values: AggregateValues, registers: Registers
) -> int:
    """Run the instructions [first, last) of `programs`; return 0, or 1 if an integer overflowed, plus 2 if a function raised.

    The rows and places in `registers` say what each role reads: a row of the
    bank, and a place of the path for the aggregates' `values`. An aggregate k
    without a value gives ``stand_ins[k]`` if it is an integer.
    """
    rows, places = registers.rows, registers.places
    ints, floats, nulls = registers.ints, registers.floats, registers.nulls
    error = 0
    k = first
    while k < last:
        op, target, a, b = programs.code[k, 0], programs.code[k, 1], programs.code[k, 2], programs.code[k, 3]
        if op == Op.LOAD_INT:
            row = rows[b]
            ints[target] = bank.ints[a, row]
            nulls[target] = is_null(bank.int_nulls, a, row)
        elif op == Op.LOAD_FLOAT:
            row = rows[b]
            floats[target] = bank.floats[a, row]
            nulls[target] = is_null(bank.float_nulls, a, row)
        elif op == Op.CONST_INT:
            ints[target] = programs.int_constants[a]
            nulls[target] = False
        elif op == Op.CONST_FLOAT:
            floats[target] = programs.float_constants[a]
            nulls[target] = False
        elif op == Op.NULL:
            ints[target] = 0
            floats[target] = 0.0
            nulls[target] = True
        elif op <= Op.SIGN_INT:
            value, null, wrapped = int_result(op, ints[a], ints[b])
            missing = nulls[a] or nulls[b]
            ints[target] = value
            nulls[target] = missing or null
            error |= wrapped and not missing
        elif op <= Op.NULLIF_INT:
            chosen, null = _choose_value(op, Op.LEAST_INT, ints[a], ints[b], nulls[a], nulls[b])
            ints[target] = chosen
            nulls[target] = null
        elif op <= Op.SIGN_FLOAT or Op.FLOOR_FLOAT <= op <= Op.SQRT_FLOAT:
            result, null = float_result(op, floats[a], floats[b])
            floats[target] = result
            nulls[target] = nulls[a] or nulls[b] or null
        elif op <= Op.NULLIF_FLOAT:
            picked, null = _choose_value(op, Op.LEAST_FLOAT, floats[a], floats[b], nulls[a], nulls[b])
            floats[target] = picked
            nulls[target] = null
        elif op <= Op.GE_INT:
            ints[target] = compare(op - Op.EQ_INT, ints[a], ints[b])
            nulls[target] = nulls[a] or nulls[b]
        elif op <= Op.GE_FLOAT:
            ints[target] = compare(op - Op.EQ_FLOAT, floats[a], floats[b])
            nulls[target] = nulls[a] or nulls[b]
        elif op <= Op.OR:
            truth, null = _connect_truths(op, ints[a], ints[b], nulls[a], nulls[b])
            ints[target] = truth
            nulls[target] = null
        elif op == Op.NOT:
            ints[target] = 1 - ints[a]
            nulls[target] = nulls[a]
        elif op <= Op.IS_NULL_FLOAT:
            ints[target] = nulls[a]
            nulls[target] = False
        elif op == Op.FLOAT_OF_INT:
            floats[target] = np.float64(ints[a])
            nulls[target] = nulls[a]
        elif op == Op.LOOKUP:
            found = programs.lookups[b + ints[a]]
            ints[target] = found == 1
            nulls[target] = found == 2
        elif op == Op.LOAD_COUNT:
            ints[target] = values.counts[a, places[b]]
            nulls[target] = False
        elif op == Op.LOAD_VECTOR:
            ints[target] = a * bank.vectors.shape[1] + rows[b]
            nulls[target] = False
        elif op == Op.DOT:
            floats[target] = _inner_product(bank.vectors, ints[a], ints[b])
            nulls[target] = False
        elif op == Op.CALL:
            error |= call_scalar(programs.int_constants[b], ints, floats, nulls, a, target)
        elif op >= Op.SKIP:
            if op == Op.SKIP or nulls[a] or ints[a] == 0:
                k += b
        else:
            count = values.counts[a, places[b]]
            nulls[target] = count == 0
            if op == Op.LOAD_AGGREGATE_FLOAT:
                floats[target] = values.floats[a, places[b]]
            else:
                ints[target] = values.ints[a, places[b]] if count != 0 else stand_ins[a]
                error |= count < 0
        k += 1
    return error


@kernel(writes=("results",), scratch=("registers",))
def evaluate_rows(
    low: int, high: int, slot: int, result: int, programs: ProgramTable, bank: ColumnBank, registers: Registers, results: ProgramResults
) -> None:
    """Run a program of one role, the only one of `programs`, for each row of the bank; write its value from register `result`.

    `registers` is scratch: arrays [role, slot] and [register, slot]. The program
    reads no aggregates: their arguments are there for their types alone.
    """
    none = AggregateValues(registers.ints, registers.ints, registers.floats)
    rows = registers.rows[:, slot]
    own = Registers(rows, rows, registers.ints[:, slot], registers.floats[:, slot], registers.nulls[:, slot])
    for r in range(low, high):
        rows[0] = r
        error = run_program(0, programs.code.shape[0], programs, bank, rows, none, own)
        results.failed[r] = error != 0
        results.ints[r] = own.ints[result]
        results.floats[r] = own.floats[result]
        results.nulls[r] = own.nulls[result]


@rule
def holds(result: int, registers: Registers) -> bool:
    """Return whether a condition's result is TRUE; NULL is not."""
    return registers.ints[result] != 0 and not registers.nulls[result]

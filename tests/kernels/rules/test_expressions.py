"""The interpreter, one operation at a time, against Python's numbers."""

from __future__ import annotations

import math
import operator
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.rules.interpreter import CODE, evaluate_rows
from gpu_cep_kernels.rules.tables import ColumnBank
from tests.kernel_cases.tables import program_registers, program_results, program_table

LEAST, GREATEST = -(2**63), 2**63 - 1
EDGES = [LEAST, LEAST + 1, -(2**62), 2**62, GREATEST - 1, GREATEST]
FLOAT_EDGES = [math.nan, math.inf, -math.inf, -0.0, 0.0, 0.5, -0.5, 2.5, -2.5, 2.0**52 - 0.5, 5e-324, 1.7e308]
INTEGERS = st.one_of(st.integers(-3, 3), st.sampled_from(EDGES), st.integers(LEAST, GREATEST))
FLOATS = st.one_of(st.sampled_from(FLOAT_EDGES), st.floats())
TRUTHS = st.integers(0, 1)


class Overflow(Exception):
    """An int64 result does not fit."""


def fitting(value):
    if not LEAST <= value <= GREATEST:
        raise Overflow
    return value


def truncated_remainder(left, right):
    return int(math.copysign(1, left)) * (abs(left) % abs(right)) if right else None


def float_remainder(left, right):
    if right == 0:
        return None
    return math.nan if math.isinf(left) else math.fmod(left, right)


def half_away_from_zero(value):
    whole = math.trunc(value)
    return whole + math.copysign(1, value) if abs(value - whole) >= 0.5 else whole


def whole(function):
    """`function` to a whole number, in floats: what has no fraction stays, zeros keep the sign."""

    def apply(value, _):
        if not math.isfinite(value):
            return value
        result = float(function(value))
        return result if result else math.copysign(result, value)

    return apply


def ordinal(value):
    """A place in the order in which NaN is the greatest."""
    return value != value, value


def arithmetic(function):
    """`function` in floats, with IEEE 754's results where Python raises."""

    def apply(left, right):
        with np.errstate(all="ignore"):
            return float(function(np.float64(left), np.float64(right)))

    return apply


INT_OPERATIONS = {
    "add": lambda a, b: fitting(a + b),
    "sub": lambda a, b: fitting(a - b),
    "mul": lambda a, b: fitting(a * b),
    "mod": truncated_remainder,
    "neg": lambda a, b: fitting(-a),
    "abs": lambda a, b: fitting(abs(a)),
    "sign": lambda a, b: (a > 0) - (a < 0),
}
FLOAT_OPERATIONS = {
    "add": arithmetic(operator.add),
    "sub": arithmetic(operator.sub),
    "mul": arithmetic(operator.mul),
    "div": lambda a, b: None if b == 0 else arithmetic(operator.truediv)(a, b),
    "mod": float_remainder,
    "neg": lambda a, b: -a,
    "abs": lambda a, b: abs(a),
    "sign": lambda a, b: a if a != a or a == 0 else math.copysign(1, a),
    "floor": whole(math.floor),
    "ceil": whole(math.ceil),
    "round": whole(half_away_from_zero),
    "sqrt": lambda a, b: math.nan if a < 0 else math.sqrt(a),
}
COMPARISONS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
CHOICES = {
    "least": lambda a, b: a if b is None else b if a is None else min(a, b, key=ordinal),
    "greatest": lambda a, b: a if b is None else b if a is None else max(a, b, key=ordinal),
    "coalesce": lambda a, b: b if a is None else a,
    "nullif": lambda a, b: None if a is not None and a == b else a,
}
LOGIC = {
    "and": lambda a, b: 0 if 0 in (a, b) else None if None in (a, b) else 1,
    "or": lambda a, b: 1 if 1 in (a, b) else None if None in (a, b) else 0,
    "not": lambda a, b: None if a is None else 1 - a,
}


def strict(function):
    return lambda a, b: None if a is None or b is None else function(a, b)


def compared(function):
    return strict(lambda a, b: int(function(a, b)))


# operation → (its meaning, its operands' values, whether its result is a float)
OPERATIONS = (
    {f"{name}_int": (strict(f), INTEGERS, False) for name, f in INT_OPERATIONS.items()}
    | {f"{name}_float": (strict(f), FLOATS, True) for name, f in FLOAT_OPERATIONS.items()}
    | {f"{name}_int": (compared(f), INTEGERS, False) for name, f in COMPARISONS.items()}
    | {f"{name}_float": (compared(f), FLOATS, False) for name, f in COMPARISONS.items()}
    | {f"{name}_int": (f, INTEGERS, False) for name, f in CHOICES.items()}
    | {f"{name}_float": (f, FLOATS, True) for name, f in CHOICES.items()}
    | {name: (f, TRUTHS, False) for name, f in LOGIC.items()}
    | {
        "is_null_int": (lambda a, b: int(a is None), INTEGERS, False),
        "is_null_float": (lambda a, b: int(a is None), FLOATS, False),
        "float_of_int": (strict(lambda a, b: float(a)), INTEGERS, True),
        "load_int": (lambda a, b: a, INTEGERS, False),
        "load_float": (lambda a, b: a, FLOATS, True),
    }
)
ONE_OPERAND = {"neg", "abs", "sign", "floor", "ceil", "round", "sqrt", "not", "float_of_int"}


def null_words(rows):
    """Bit c of word r: column c is NULL in row r; no words where nothing is."""
    words = np.array([sum(1 << c for c, value in enumerate(row) if value is None) for row in rows], np.uint64)
    return words if words.any() else np.empty(0, np.uint64)


def run(code, result, rows, floats, int_constants=(), float_constants=(), tables=()):
    """The interpreter over rows of two columns; (value or None of each row, first overflow)."""
    filled = np.array([[0 if value is None else value for value in row] for row in rows], np.float64 if floats else np.int64).reshape(-1, 2)
    none, words = np.empty((2, 0)), null_words(rows)
    no_words = np.empty(0, np.uint64)
    bank = ColumnBank(
        ints=none.astype(np.int64) if floats else np.ascontiguousarray(filled.T),
        floats=np.ascontiguousarray(filled.T) if floats else none,
        int_nulls=no_words if floats else words,
        float_nulls=words if floats else no_words,
        vectors=np.empty((0, 0, 0)),
    )
    programs = program_table(code, int_constants, float_constants)._replace(lookups=np.array(tables, np.uint8))
    results = program_results(len(rows))
    slot = 1
    evaluate_rows(0, len(rows), slot, result, programs, bank, program_registers(programs, 2), results)
    return results.ints, results.floats, results.nulls, int(results.failed.argmax()) if results.failed.any() else -1


def bits(value):
    """A float as its bytes, so that NaN is itself and -0.0 is not 0.0."""
    return struct.pack("d", math.nan if value != value else value)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(name):
    meaning, operands, floating = OPERATIONS[name]
    floats = operands is FLOATS
    load = "load_float" if floats else "load_int"
    second = 0 if name.rpartition("_")[0] in ONE_OPERAND or name in ONE_OPERAND else 1
    code = [(load, 0, 0, 0)] if name == load else [(load, 0, 0, 0), (load, 1, 1, 0), (name, 2, 0, second)]

    @given(st.lists(st.tuples(*[st.one_of(operands, operands, st.none())] * 2), max_size=20))
    def check(rows):
        int_values, float_values, nulls, failed = run(code, len(code) - 1, rows, floats)
        overflows = []
        for r, row in enumerate(rows):
            try:
                expected = meaning(row[0], row[second])
            except Overflow:
                overflows.append(r)
                continue
            assert nulls[r] == (expected is None)
            if expected is not None and floating:
                assert bits(float_values[r]) == bits(expected), (row, float_values[r], expected)
            elif expected is not None:
                assert int_values[r] == expected, row
        assert failed == (overflows[0] if overflows else -1)

    check()


def test_every_operation_is_tested():
    aggregates = {"load_count", "load_aggregate_int", "load_aggregate_float"}
    elsewhere = aggregates | {"const_int", "const_float", "null", "lookup", "load_vector", "dot", "call", "skip", "skip_unless"}
    assert set(OPERATIONS) | elsewhere == set(CODE)


def test_constants_and_null():
    rows = [(1, 2), (3, 4)]
    code = [("const_int", 0, 1, 0), ("const_float", 1, 0, 0), ("null", 2, 0, 0), ("load_int", 3, 0, 0), ("add_int", 4, 0, 3)]
    assert run(code, 4, rows, False, [7, 8], [0.5])[0].tolist() == [9, 11]
    assert run(code[:3], 1, rows, False, [7, 8], [0.5])[1].tolist() == [0.5, 0.5]
    assert run(code[:3], 2, rows, False, [7, 8], [0.5])[2].all()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=10))
def test_lookup_reads_true_false_and_null_from_its_table(rows):
    tables = [9, 9, 0, 1, 2]  # this predicate's table begins at 2
    int_values, _, nulls, failed = run([("load_int", 0, 0, 0), ("lookup", 1, 0, 2)], 1, rows, False, tables=tables)
    truths = [None if null else value for value, null in zip(int_values.tolist(), nulls, strict=True)]
    assert truths == [(0, 1, None)[code] for code, _ in rows]
    assert failed == -1


@given(st.lists(st.tuples(st.one_of(st.none(), st.integers(-1, 1)), INTEGERS), max_size=10))
def test_what_is_skipped_is_not_computed(rows):
    """CASE WHEN first < 1 THEN second + second ELSE second END, which overflows only where the condition is TRUE."""
    branch = [("load_int", 2, 1, 0), ("add_int", 3, 2, 2), ("coalesce_int", 0, 3, 3), ("skip", 0, 0, 2)]
    otherwise = [("load_int", 4, 1, 0), ("coalesce_int", 0, 4, 4)]
    condition = [("load_int", 1, 0, 0), ("const_int", 2, 0, 0), ("lt_int", 1, 1, 2)]
    code = [("null", 0, 0, 0), *condition, ("skip_unless", 1, 1, len(branch)), *branch, *otherwise]
    int_values, _, nulls, failed = run(code, 0, rows, False, int_constants=[1])
    wanted = [value + value if first is not None and first < 1 else value for first, value in rows]
    wrong = [r for r, value in enumerate(wanted) if not LEAST <= value <= GREATEST]
    assert failed == (wrong[0] if wrong else -1)
    assert not nulls.any()
    assert [value for r, value in enumerate(int_values.tolist()) if r not in wrong] == [v for r, v in enumerate(wanted) if r not in wrong]


def test_an_overflow_of_a_null_operand_is_none():
    code = [("load_int", 0, 0, 0), ("load_int", 1, 1, 0), ("add_int", 2, 0, 1), ("neg_int", 3, 2, 2)]
    _, _, nulls, failed = run(code, 3, [(GREATEST, None), (GREATEST, 1)], False)
    assert nulls.tolist()[0]
    assert failed == 1

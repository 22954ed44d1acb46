"""Find conditions that compare columns, constants, aggregates, or what two of them make: they are judged without the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gpu_cep.plan.programs import Instruction, Program
from gpu_cep_kernels.row_patterns.operands import ALONE, Operand, OperandTable
from gpu_cep_kernels.rules.interpreter import CODE
from gpu_cep_kernels.rules.scalars import COMPARISONS
from gpu_cep_kernels.rules.tables import BY_FLOATS, BY_INTS, BY_PROGRAM

_ARITHMETIC = frozenset("add_int sub_int mul_int mod_int add_float sub_float mul_float div_float mod_float".split())


class _Operand(NamedTuple):
    """A row of :class:`OperandTable`, and how many instructions compute it."""

    kind: Operand
    number: int = 0
    other: int = 0
    whole: int = 0
    real: float = 0.0
    operation: int = ALONE
    instructions: int = 1


class ComparedOperands(NamedTuple):
    """How a condition is judged, how its sides are compared, and their first operands; the columns that they are, if both are columns."""

    means: int
    comparison: int
    left: int
    right: int
    left_column: int = -1
    right_column: int = -1


@dataclass
class Operands:
    """The operands of conditions so far."""

    found: list[_Operand] = field(default_factory=list)

    def compared(self, program: Program) -> ComparedOperands:
        """Return how the condition with a program is judged; its operands are kept."""
        name, target, left, right = program.code[-1]
        comparison, _, suffix = name.partition("_")
        means = {"int": BY_INTS, "float": BY_FLOATS}.get(suffix)
        if comparison not in COMPARISONS or means is None or target != program.result:
            return ComparedOperands(BY_PROGRAM, 0, 0, 0)
        one, other = _side(left, program), _side(right, program)
        # what is computed besides could fail
        if not one or not other or sum(each.instructions for each in (*one, *other)) + 1 != len(program.code):
            return ComparedOperands(BY_PROGRAM, 0, 0, 0)
        first = len(self.found)
        self.found += [*one, *other]
        plain = [each.kind for each in (*one, *other)] == [Operand.COLUMN] * 2
        columns = (one[0].number, other[0].number) if plain else (-1, -1)
        return ComparedOperands(means, COMPARISONS[comparison], first, first + len(one), *columns)

    def table(self) -> OperandTable:
        """Return the operands as arrays."""
        columns = list(zip(*self.found, strict=True)) or [()] * len(_Operand._fields)
        kind, number, other, whole = (np.array(column, np.int64) for column in columns[:4])
        return OperandTable(kind, number, other, whole, np.array(columns[4], np.float64), np.array(columns[5], np.int64))


def _side(register: int, program: Program) -> tuple[_Operand, ...]:
    """Return the operand in a register, or the two of the operation that computes it; empty if the register holds anything else."""
    alone = _operand(register, program)
    if alone is not None:
        return (alone,)
    name, _, first, second = _setting(register, program.code)
    one, other = _operand(first, program), _operand(second, program)
    if name not in _ARITHMETIC or one is None or other is None:
        return ()
    return one._replace(operation=CODE[name], instructions=one.instructions + 1), other


def _operand(register: int, program: Program) -> _Operand | None:
    """Return what a register holds; None if that is no operand."""
    name, _, first, second = _setting(register, program.code)
    match name:
        case "load_int" | "load_float":
            return _Operand(Operand.COLUMN, first, second)
        case "const_int":
            return _Operand(Operand.CONSTANT, whole=program.int_constants[first])
        case "const_float":
            return _Operand(Operand.CONSTANT, real=program.float_constants[first])
        case "load_count":
            return _Operand(Operand.COUNT, first)
        case "load_aggregate_int" | "load_aggregate_float":
            return _Operand(Operand.TOTAL, first)
        case "float_of_int":
            return _as_float(first, program)
        case "div_float":
            return _mean(first, second, program.code)
    return None


def _as_float(register: int, program: Program) -> _Operand | None:
    """Return the operand that a register of int64 is as float64; None if it is none."""
    name, _, first, second = _setting(register, program.code)
    if name == "load_int":
        return _Operand(Operand.COLUMN_OF_INTS, first, second, instructions=2)
    return _Operand(Operand.CONSTANT, real=float(program.int_constants[first]), instructions=2) if name == "const_int" else None


def _mean(total: int, count: int, code: Sequence[Instruction]) -> _Operand | None:
    """Return the mean that a register over another one is; None if it is none."""
    over, _, counted, _ = _setting(count, code)
    counts, _, divisor, _ = _setting(counted, code)
    if over != "float_of_int" or counts != "load_count":
        return None
    name, _, number, _ = _setting(total, code)
    if name == "load_aggregate_float":
        return _Operand(Operand.MEAN_OF_FLOATS, number, divisor, instructions=4)
    summed, _, inner, _ = _setting(number, code)
    if name == "float_of_int" and summed == "load_aggregate_int":
        return _Operand(Operand.MEAN_OF_INTS, inner, divisor, instructions=5)
    return None


def _setting(register: int, code: Sequence[Instruction]) -> Instruction:
    """Return the instruction that sets a register; one of no kind if several or none do."""
    found = [each for each in code if each[1] == register and not each[0].startswith("skip")]
    return found[0] if len(found) == 1 else ("", register, 0, 0)

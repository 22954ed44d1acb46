"""Find conditions that compare two columns, constants or aggregates, which a search judges without the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gpu_cep.plan.programs import Instruction, Program
from gpu_cep_kernels.row_patterns.operands import Operand, OperandTable
from gpu_cep_kernels.rules.scalars import COMPARISONS
from gpu_cep_kernels.rules.tables import BY_FLOATS, BY_INTS, BY_PROGRAM


class _Operand(NamedTuple):
    """A row of :class:`OperandTable`, and how many instructions compute it."""

    kind: Operand
    number: int
    other: int
    whole: int
    real: float
    instructions: int


class Compared(NamedTuple):
    """How a condition is judged, how its operands are compared, and which they are; the columns that they are, if both are columns."""

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

    def compared(self, program: Program) -> Compared:
        """Return how the condition with a program is judged; its operands are kept."""
        name, target, left, right = program.code[-1]
        comparison, _, suffix = name.partition("_")
        means = {"int": BY_INTS, "float": BY_FLOATS}.get(suffix)
        one, other = _operand(left, program), _operand(right, program)
        whole = target == program.result and one is not None and other is not None
        if comparison not in COMPARISONS or means is None or not whole:
            return Compared(BY_PROGRAM, 0, 0, 0)
        assert one is not None
        assert other is not None
        # what is computed besides could fail
        if one.instructions + other.instructions + 1 != len(program.code):
            return Compared(BY_PROGRAM, 0, 0, 0)
        self.found += [one, other]
        columns = (one.number, other.number) if one.kind == other.kind == Operand.COLUMN else (-1, -1)
        return Compared(means, COMPARISONS[comparison], len(self.found) - 2, len(self.found) - 1, *columns)

    def table(self) -> OperandTable:
        """Return the operands as arrays."""
        columns = list(zip(*self.found, strict=True)) or [()] * len(_Operand._fields)
        kind, number, other, whole = (np.array(column, np.int64) for column in columns[:4])
        return OperandTable(kind, number, other, whole, np.array(columns[4], np.float64))


def _operand(register: int, program: Program) -> _Operand | None:
    """Return what a register holds; None if that is no operand."""
    name, _, first, second = _setting(register, program.code)
    match name:
        case "load_int" | "load_float":
            return _Operand(Operand.COLUMN, first, second, 0, 0.0, 1)
        case "const_int":
            return _Operand(Operand.CONSTANT, 0, 0, program.int_constants[first], 0.0, 1)
        case "const_float":
            return _Operand(Operand.CONSTANT, 0, 0, 0, program.float_constants[first], 1)
        case "load_count":
            return _Operand(Operand.COUNT, first, 0, 0, 0.0, 1)
        case "load_aggregate_int" | "load_aggregate_float":
            return _Operand(Operand.TOTAL, first, 0, 0, 0.0, 1)
        case "div_float":
            return _mean(first, second, program.code)
    return None


def _mean(total: int, count: int, code: Sequence[Instruction]) -> _Operand | None:
    """Return the mean that a register over another one is; None if it is none."""
    over, _, counted, _ = _setting(count, code)
    counts, _, divisor, _ = _setting(counted, code)
    if over != "float_of_int" or counts != "load_count":
        return None
    name, _, number, _ = _setting(total, code)
    if name == "load_aggregate_float":
        return _Operand(Operand.MEAN_OF_FLOATS, number, divisor, 0, 0.0, 4)
    summed, _, inner, _ = _setting(number, code)
    if name == "float_of_int" and summed == "load_aggregate_int":
        return _Operand(Operand.MEAN_OF_INTS, inner, divisor, 0, 0.0, 5)
    return None


def _setting(register: int, code: Sequence[Instruction]) -> Instruction:
    """Return the instruction that sets a register; one of no kind if several or none do."""
    found = [each for each in code if each[1] == register and not each[0].startswith("skip")]
    return found[0] if len(found) == 1 else ("", register, 0, 0)

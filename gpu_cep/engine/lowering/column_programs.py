"""Run simple programs by whole columns: a comparison of sums, differences and products.

Other programs are interpreted event by event, which takes many times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.input.buffers import new_values
from gpu_cep.plan.programs import Instruction, Program
from gpu_cep_kernels.device.interface import HOST, Array, Backend
from gpu_cep_kernels.device.primitives import any_set
from gpu_cep_kernels.phase_one.neighbour_conditions import mask_by_columns, mask_by_nulls
from gpu_cep_kernels.rules.interpreter import CODE, combine_floats, combine_ints
from gpu_cep_kernels.rules.scalars import COMPARISONS
from gpu_cep_kernels.rules.tables import ColumnBank

Column = Any
# A column, and where it is NULL (None: nowhere).
Nullable = tuple[Column, npt.NDArray[np.bool_] | None]
# Where the rows that a role reads begin and end in the bank.
Span = tuple[int, int]

_LOADS = ("load_int", "load_float")
_CONSTANTS = ("const_int", "const_float")
_INT_SUMS, _FLOAT_SUMS = ({f"{operation}_{kind}" for operation in ("add", "sub", "mul")} for kind in ("int", "float"))
# What a program of whole columns does before it compares.
_STEPS = {*_LOADS, *_CONSTANTS, *_INT_SUMS, *_FLOAT_SUMS, "float_of_int"}
_FLOATS = ("add_float", "sub_float", "mul_float", "div_float")
_COMPARES = {f"{comparison}_{kind}" for comparison in COMPARISONS for kind in ("int", "float")}
# A derived column is made by operations on floats, which mark no failure.
_NEVER_FAILS = np.empty(0, np.bool_)


def is_column_program(program: Program) -> bool:
    """Return whether a program compares sums, differences and products of columns and constants, and does nothing else."""
    *steps, (last, target, _, _) = program.code
    return all(name in _STEPS for name, *_ in steps) and last in _COMPARES and target == program.result


def is_float_program(program: Program) -> bool:
    """Return whether a program makes a float of columns and constants by arithmetic on floats, which cannot fail."""
    return program.is_float and all(name in {*_LOADS, *_CONSTANTS, *_FLOATS, "float_of_int"} for name, *_ in program.code)


def derive_column(program: Program, ints: Sequence[Nullable], floats: Sequence[Nullable], size: int) -> Nullable:
    """Return the result of an :func:`is_float_program` for `size` events, and where it is NULL.

    Columns come with the places where they are NULL (None: nowhere), and so does the result.
    """
    registers: dict[int, Column] = {}
    nulls: npt.NDArray[np.bool_] | None = None
    for step in program.code:
        name, target, first, second = step
        if name in _LOADS:
            registers[target], own = (ints if name == "load_int" else floats)[first]
            if own is not None:
                nulls = own if nulls is None else nulls | own
        elif name == "div_float":
            undefined = registers[second] == 0.0
            with np.errstate(all="ignore"):
                registers[target] = np.divide(registers[first], registers[second], out=np.zeros(size), where=~undefined)
            nulls = undefined if nulls is None else nulls | undefined
        else:
            registers[target] = _combine(step, program, registers, size, _NEVER_FAILS)
    return registers[program.result], nulls


def may_be_null(program: Program, ints: Sequence[Nullable], floats: Sequence[Nullable]) -> bool:
    """Return whether :func:`derive_column` says where its result is NULL, which the number of events does not bear on."""
    loads = {"load_int": ints, "load_float": floats}
    return any(name == "div_float" or (name in loads and loads[name][first][1] is not None) for name, _, first, _ in program.code)


def _combine(
    step: Instruction, program: Program, registers: Mapping[int, Column], size: int, failed: Column, place: Backend = HOST
) -> Column:  # fmt: skip
    """Return the result of one step of a program on whole columns at `place`; sums of integers mark where they `failed`."""
    name, _, first, second = step
    if name == "const_int":
        return place.xp.full(size, program.int_constants[first], np.int64)
    if name == "const_float":
        return place.xp.full(size, program.float_constants[first], np.float64)
    if name == "float_of_int":
        return registers[first].astype(np.float64)
    left, right = registers[first], registers[second]
    kind = np.int64 if name.endswith("int") else np.float64
    result = new_values(size, kind) if place is HOST else place.xp.empty(size, kind)
    if kind is np.int64:
        place.launch(combine_ints, size, CODE[name], left, right, result, failed)
    else:
        place.launch(combine_floats, size, CODE[name], left, right, result)
    return result


def mask_by_column_program(
    program: Program, bank: ColumnBank, places: Sequence[Span], others: Any, labels: Array, place: Backend
) -> bool:  # fmt: skip
    """Keep the bits `others` alone in those `labels` at which a program of :func:`is_column_program` does not hold.

    ``places[role]`` are the rows that a role reads, one for each label; the bank lies at `place`. The
    program does not hold where a value that it reads is NULL. Return False if an integer overflows for
    some event, be it NULL or not, with nothing done.
    """
    size, failed = int(labels.size), _NEVER_FAILS
    registers: dict[int, Column] = {}
    read: list[tuple[Column, int]] = []
    *steps, (compares, _, left, right) = program.code
    for step in steps:
        name, target, first, second = step
        if name in _LOADS:
            columns, nulls = (bank.ints, bank.int_nulls) if name == "load_int" else (bank.floats, bank.float_nulls)
            begin, end = places[second]
            registers[target] = columns[first, begin:end]
            if nulls.size:
                read.append((nulls[begin:end], first))
        else:
            if name in _INT_SUMS and not failed.size:
                failed = place.xp.zeros(size, np.bool_)
            registers[target] = _combine(step, program, registers, size, failed, place)
    if any_set(failed):
        return False
    place.launch(mask_by_columns, size, registers[left], registers[right], COMPARISONS[compares.partition("_")[0]], others, labels)
    for nulls, column in read:
        place.launch(mask_by_nulls, size, nulls, np.uint64(1 << column), others, labels)
    return True

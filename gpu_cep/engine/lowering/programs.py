"""Planned programs → the arrays that the interpreter reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.bound import Bound
from gpu_cep.engine.lowering.text_predicates import truth_table
from gpu_cep.engine.lowering.user_functions import address_of
from gpu_cep.plan.event_plan import BankLayout
from gpu_cep.plan.programs import Program, string_predicate_column
from gpu_cep_kernels.rules.interpreter import CODE, evaluate_rows
from gpu_cep_kernels.rules.tables import ColumnBank, ProgramResults, ProgramTable, Registers

if TYPE_CHECKING:
    from gpu_cep.engine.input.event_columns import EventColumns

Array = npt.NDArray[Any]
Tabulate = Callable[[Bound], npt.NDArray[np.uint8]]


def tabulator(columns: EventColumns) -> Tabulate:
    """The truth table of a text predicate over the dictionary of its column in `columns`."""

    def tabulate(predicate: Bound) -> npt.NDArray[np.uint8]:
        column = string_predicate_column(predicate)
        assert column is not None
        return truth_table(predicate, columns.text_values(column))

    return tabulate


def assemble(programs: Sequence[Program], tabulate: Tabulate) -> tuple[ProgramTable, list[tuple[int, int]]]:
    """All programs in one table, and where the instructions of each stand in it."""
    code: list[tuple[int, int, int, int]] = []
    ints: list[int] = []
    floats: list[float] = []
    lookups: list[npt.NDArray[np.uint8]] = []
    spans = []
    filled = 0
    for program in programs:
        addresses = [address_of(call) for call in program.calls]
        offsets = []
        for predicate in program.lookups:
            lookups.append(tabulate(predicate))
            offsets.append(filled)
            filled += len(lookups[-1])
        base = {"const_int": len(ints), "const_float": len(floats)}
        first = len(code)
        for operation, target, left, right in program.code:
            right = offsets[right] if operation == "lookup" else right
            right += len(ints) + len(program.int_constants) if operation == "call" else 0
            code.append((CODE[operation], target, left + base.get(operation, 0), right))
        spans.append((first, len(code)))
        ints += (*program.int_constants, *addresses)
        floats += program.float_constants
    table = ProgramTable(
        code=np.array(code, np.int64).reshape(-1, 4),
        int_constants=np.array(ints, np.int64),
        float_constants=np.array(floats, np.float64),
        lookups=np.concatenate(lookups) if lookups else np.empty(0, np.uint8),
        registers=max((program.registers for program in programs), default=1),
    )
    return table, spans


def failure(program: Program) -> str:
    """What went wrong where a program failed."""
    names = ", ".join(dict.fromkeys(f"{call.function.name}()" for call in program.calls))
    return f"an exception of {names}, or integer overflow," if names else "integer overflow"


def null_words(masks: Sequence[npt.NDArray[np.bool_] | None], length: int) -> npt.NDArray[np.uint64]:
    """A word per row with bit c set where ``masks[c]`` is True; empty if there is no mask."""
    if all(mask is None for mask in masks):
        return np.empty(0, np.uint64)
    words = np.zeros(length, np.uint64)
    for column, mask in enumerate(masks):
        if mask is not None:
            words |= mask.astype(np.uint64) << np.uint64(column)
    return words


def stacked(arrays: Sequence[Array], length: int, dtype: npt.DTypeLike) -> Array:
    """Columns as one matrix [column, row]; a single one is not copied."""
    if len(arrays) == 1 and arrays[0].dtype == dtype:
        return arrays[0].reshape(1, -1)
    matrix: Array = np.empty((len(arrays), length), dtype)
    for row, array in zip(matrix, arrays, strict=True):
        row[:] = array
    return matrix


def load_bank(columns: EventColumns, layout: BankLayout, rows: Array) -> ColumnBank:
    """The columns of `layout` at the given rows of the input."""
    ints = [columns.pick(column, rows) for column in layout.ints]
    floats = [columns.pick(column, rows) for column in layout.floats]
    return ColumnBank(
        ints=stacked([values for values, _ in ints], len(rows), np.int64),
        floats=stacked([values for values, _ in floats], len(rows), np.float64),
        int_nulls=null_words([nulls for _, nulls in ints], len(rows)),
        float_nulls=null_words([nulls for _, nulls in floats], len(rows)),
        vectors=columns.vectors(layout.vectors, rows),
    )


def evaluate(program: Program, table: ProgramTable, bank: ColumnBank) -> tuple[Array, npt.NDArray[np.bool_], int]:
    """A program of one role over all rows of `bank`: values, where they are NULL, and the first row at which it failed (−1: none).

    `table` holds that program alone.
    """
    length = bank.ints.shape[1]
    results = program_results(np, length)
    evaluate_rows(0, length, 0, program.result, table, bank, program_registers(np, table, 1), results)
    values = results.floats if program.is_float else results.ints
    return values, results.nulls, int(results.failed.argmax()) if results.failed.any() else -1


def program_registers(xp: Any, table: ProgramTable, slots: int, roles: int = 1) -> Registers:
    """What so many programs of so many roles need that are at work at the same time; arrays of the module `xp`."""
    ints, floats, nulls = (xp.empty((table.registers, slots), kind) for kind in (np.int64, np.float64, np.bool_))
    rows = xp.empty((roles, slots), np.int64)
    return Registers(rows, rows, ints, floats, nulls)


def program_results(xp: Any, length: int) -> ProgramResults:
    """Room for the results of a program in so many rows."""
    return ProgramResults(*(xp.empty(length, kind) for kind in (np.int64, np.float64, np.bool_, np.bool_)))

"""Write programs of the plan as the arrays that the interpreter reads, and run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.bound_expressions import Bound
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.lowering.column_programs import derive_column, may_be_null
from gpu_cep.engine.lowering.text_predicates import truth_table
from gpu_cep.engine.lowering.user_functions import address_of
from gpu_cep.plan.event_plan import BankLayout
from gpu_cep.plan.programs import Program, string_predicate_column
from gpu_cep_kernels.compile.launch import blocks, slices, spread
from gpu_cep_kernels.device.interface import HostArray
from gpu_cep_kernels.rules.interpreter import CODE, evaluate_rows
from gpu_cep_kernels.rules.tables import ColumnBank, ProgramResults, ProgramTable, Registers

if TYPE_CHECKING:
    from gpu_cep.engine.input.event_columns import EventColumns

Tabulate = Callable[[Bound], npt.NDArray[np.uint8]]


def tabulator(columns: EventColumns | None) -> Tabulate:
    """Return a function that computes the truth table of a text predicate over its column's dictionary.

    `columns` may be None if no program has a text predicate.
    """

    def tabulate(predicate: Bound) -> npt.NDArray[np.uint8]:
        column = string_predicate_column(predicate)
        assert column is not None, "a text predicate reads a column"
        assert columns is not None, "tables without columns are of plans without text"
        return truth_table(predicate, columns.texts.values(column))

    return tabulate


def assemble(programs: Sequence[Program], tabulate: Tabulate) -> tuple[ProgramTable, list[tuple[int, int]]]:
    """Return all programs as one table, and the begin and end of each one's instructions in it."""
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


WIDER = "64 bits hold whole numbers, decimals and times; 0e0 + a.x is a float, and before an aggregate cast the column to DOUBLE"
"""What to do about an integer overflow, for messages."""
WIDER_SUM = "64 bits hold whole numbers, decimals and lengths of time; cast the column to DOUBLE"
"""What to do about an overflow of a sum in RETURN."""
WIDER_IN_ROWS = "64 bits hold whole numbers, decimals and times; 0e0 + A.x is a float, also inside an aggregate"
"""What to do about an integer overflow in a row pattern."""


def failure(*programs: Program) -> str:
    """Return the cause of the failure of one of some programs, for messages."""
    names = ", ".join(dict.fromkeys(f"{call.function.name}()" for program in programs for call in program.calls))
    return f"an exception of {names}, or integer overflow," if names else "integer overflow"


def null_words(xp: Any, masks: Sequence[Any], length: int) -> Any:
    """Return a uint64 for each row with bit c set where ``masks[c]`` is True; empty without masks.

    A mask that is None is True nowhere.
    """
    if not masks or all(mask is None for mask in masks):
        return xp.empty(0, xp.uint64)
    words = xp.zeros(length, xp.uint64)
    for column, mask in enumerate(masks):
        if mask is not None:
            words |= mask.astype(xp.uint64) << xp.uint64(column)
    return words


def stack_columns(xp: Any, arrays: Sequence[Any], length: int, dtype: npt.DTypeLike) -> Any:
    """Return columns as one matrix [column, row]; a single one is not copied."""
    if len(arrays) == 1 and arrays[0].dtype == dtype:
        return arrays[0].reshape(1, -1)
    matrix = new_values((len(arrays), length), dtype) if xp is np else xp.empty((len(arrays), length), dtype)
    for column, array in enumerate(arrays):
        matrix[column] = array
    return matrix


# Values of a column, and where they are NULL (None: nowhere).
Column = tuple[Any, Any]

# Rows for which columns are derived at a time, so that these stay in the cache.
_DERIVED_AT_ONCE = 1 << 15


def make_bank(xp: Any, ints: Sequence[Column], floats: Sequence[Column], length: int, vectors: Any = None) -> ColumnBank:
    """Return columns as the bank that the interpreter reads; arrays are of the module `xp`.

    `vectors` is None if there are no columns of lists.
    """
    return ColumnBank(
        ints=stack_columns(xp, [values for values, _ in ints], length, np.int64),
        floats=stack_columns(xp, [values for values, _ in floats], length, np.float64),
        int_nulls=null_words(xp, [nulls for _, nulls in ints], length),
        float_nulls=null_words(xp, [nulls for _, nulls in floats], length),
        vectors=xp.empty((0, 0, 0), xp.float64) if vectors is None else vectors,
    )


def load_bank(columns: EventColumns, layout: BankLayout, rows: HostArray, threads: int = 1) -> ColumnBank:
    """Return the bank of the columns of `layout` at some rows of the input; `threads` gather and compute them."""
    ints = [columns.pick(column, rows, threads) for column in layout.ints]
    floats = [columns.pick(column, rows, threads) for column in layout.floats]
    return bank_of(layout, ints, floats, columns, rows, threads)


def bank_of(
    layout: BankLayout, ints: Sequence[Column], floats: Sequence[Column], columns: EventColumns, rows: HostArray, threads: int = 1
) -> ColumnBank:  # fmt: skip
    """Return the bank of the columns of `layout` at some rows, given the plain ones there; `threads` compute derived ones."""
    vectors = columns.vectors(layout.vectors, rows) if layout.vectors else None
    bank = make_bank(np, ints, () if layout.derived else floats, len(rows), vectors)
    if not layout.derived:
        return bank
    matrix, masks = _with_derived(layout.derived, ints, floats, len(rows), threads)
    return bank._replace(floats=matrix, float_nulls=null_words(np, masks, len(rows)))


def _with_derived(
    programs: Sequence[Program], ints: Sequence[Column], floats: Sequence[Column], length: int, threads: int
) -> tuple[HostArray, list[HostArray | None]]:  # fmt: skip
    """Return columns of floats and, behind them, what is derived from all columns, [column, row], and where each is NULL."""
    matrix = new_values((len(floats) + len(programs), length), np.float64)
    masks = [np.empty(length, np.bool_) if may_be_null(program, ints, floats) else None for program in programs]

    def derive(span: tuple[int, int]) -> None:
        for low, high in blocks(*span, _DERIVED_AT_ONCE):
            own_ints, own_floats = _cut(ints, low, high), _cut(floats, low, high)
            for row, (values, _) in zip(matrix, own_floats, strict=False):
                row[low:high] = values
            for row, mask, program in zip(matrix[len(floats) :], masks, programs, strict=True):
                row[low:high], nulls = derive_column(program, own_ints, own_floats, high - low)
                if mask is not None:
                    mask[low:high] = nulls

    spread(derive, slices(length, threads), threads)
    return matrix, [*(nulls for _, nulls in floats), *masks]


def _cut(columns: Sequence[Column], low: int, high: int) -> list[Column]:
    """Return the rows [low, high) of columns."""
    return [(values[low:high], None if nulls is None else nulls[low:high]) for values, nulls in columns]


def evaluate_program(program: Program, table: ProgramTable, bank: ColumnBank) -> ProgramResults:
    """Return the results of a program for all rows of `bank`.

    The program has one role, and `table` holds it alone.
    """
    length = bank.ints.shape[1]
    results = program_results(np, length)
    evaluate_rows(0, length, 0, program.result, table, bank, program_registers(np, table, 1), results)
    return results


def evaluate(program: Program, table: ProgramTable, bank: ColumnBank) -> tuple[HostArray, npt.NDArray[np.bool_], int]:
    """Return a program's values for all rows of `bank`, where they are NULL, and the first failed row.

    That row is −1 if none failed. The program has one role, and `table` holds it alone.
    """
    results = evaluate_program(program, table, bank)
    values = results.floats if program.is_float else results.ints
    return values, results.nulls, int(results.failed.argmax()) if results.failed.any() else -1


def program_registers(xp: Any, table: ProgramTable, slots: int, roles: int = 1) -> Registers:
    """Return registers for `slots` programs that run at the same time, each with so many `roles`."""
    ints, floats, nulls = (xp.empty((table.registers, slots), kind) for kind in (np.int64, np.float64, np.bool_))
    rows = xp.empty((roles, slots), np.int64)
    return Registers(rows, rows, ints, floats, nulls)


def program_results(xp: Any, length: int) -> ProgramResults:
    """Return arrays for the results of a program in `length` rows."""
    return ProgramResults(*(xp.empty(length, kind) for kind in (np.int64, np.float64, np.bool_, np.bool_)))

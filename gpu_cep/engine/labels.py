"""Phase 1, first stage: label every event with the variables whose properties it satisfies, and drop those that satisfy none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.columns import EventColumns
from gpu_cep.engine.programs import assemble, evaluate, load_bank, tabulator
from gpu_cep.engine.text import TRUE, Values, constant_codes, truth_table
from gpu_cep.errors import EventError
from gpu_cep.plan.plan import CodeProperty, ComparisonProperty, Plan, ProgramProperty, Property
from gpu_cep_kernels.launch import blocks, slices, spread
from gpu_cep_kernels.masks import compact, mask_by_code, mask_by_comparison, mask_by_truth
from gpu_cep_kernels.rules import COMPARISONS

# Events per block: labels, codes and a column or two stay in the second-level cache.
BLOCK = 1 << 15

Words = npt.NDArray[np.uint64]
# Clears the label bits that a property denies the events [low, high).
Step = Callable[[int, int, Words], None]


@dataclass(frozen=True, slots=True)
class LabelledEvents:
    """The events that are kept, slice after slice: their row numbers (ascending) and labels."""

    rows: list[npt.NDArray[np.int64]]
    labels: list[Words]


def label_events(plan: Plan, columns: EventColumns, threads: int) -> LabelledEvents:
    """Evaluate all properties in one pass over the columns, block by block.

    With the ``filter`` step events without any label are dropped (thesis
    Theorem 5.1); with ``partition`` those whose derived key is NULL or NaN,
    as it equals no other.
    """
    steps = [step for planned in plan.properties for step in _steps(planned, columns)]
    steps += [_key_step(column, columns) for column in plan.derived]
    everyone = np.uint64((1 << len(plan.query.variables)) - 1)
    keeps_all = "filter" not in plan.steps

    def label(span: tuple[int, int]) -> tuple[npt.NDArray[np.int64], Words]:
        low, high = span
        rows, labels = np.empty(high - low + 1, np.int64), np.empty(high - low + 1, np.uint64)
        scratch = np.empty(BLOCK, np.uint64)
        count = 0
        for start, end in blocks(low, high, BLOCK):
            block = labels[start - low : end - low] if keeps_all else scratch[: end - start]
            block[:] = everyone
            for step in steps:
                step(start, end, block)
            if not keeps_all:
                count += compact(start, block, rows[count:], labels[count:])
        if keeps_all:
            return np.arange(low, high), labels[:-1]
        return rows[:count], labels[:count]

    labelled = spread(label, slices(len(columns), threads) or [(0, 0)], threads)
    return LabelledEvents([rows for rows, _ in labelled], [labels for _, labels in labelled])


def _steps(planned: Property, columns: EventColumns) -> list[Step]:
    match planned:
        case CodeProperty():
            return [_code_step(planned, columns)]
        case ComparisonProperty():
            return _comparison_steps(planned, columns)
        case ProgramProperty():
            return [_program_step(planned, columns)]
    raise TypeError(f"no step for {type(planned).__name__}")


def _code_step(planned: CodeProperty, columns: EventColumns) -> Step:
    codes = constant_codes(columns.arrow(planned.column), [predicate for predicate, _ in planned.predicates])
    if codes is None:
        text = columns.text(planned.column)
        table = _label_table(planned, text.values)
        return lambda low, high, labels: mask_by_code(low, high, text.codes, table, labels)
    of_block, values = codes
    table = _label_table(planned, values)
    return lambda low, high, labels: mask_by_code(0, high - low, of_block(low, high), table, labels)


def _label_table(planned: CodeProperty, values: Values) -> Words:
    """The label word of each value, and of NULL last."""
    table = np.full(len(values) + 1, np.uint64(2**64 - 1))
    for predicate, bits in planned.predicates:
        table[truth_table(predicate, values) != TRUE] &= ~np.uint64(bits)
    return table


def _comparison_steps(planned: ComparisonProperty, columns: EventColumns) -> list[Step]:
    values = columns.values(planned.column)
    comparison, bits = COMPARISONS[planned.comparison], np.uint64(planned.bits)
    constant = np.float64(planned.constant) if values.dtype.kind == "f" else np.int64(planned.constant)
    steps: list[Step] = [lambda low, high, labels: mask_by_comparison(low, high, values, comparison, constant, bits, labels)]
    return steps + _null_steps(planned.column, columns, bits)


def _null_steps(column: int, columns: EventColumns, bits: np.uint64) -> list[Step]:
    nulls = columns.null_mask(column)
    if nulls is None:
        return []
    present = (~nulls).view(np.uint8)
    return [lambda low, high, labels: mask_by_truth(low, high, present, bits, labels)]


def _key_step(column: int, columns: EventColumns) -> Step:
    comparable = columns.comparable_mask(column).view(np.uint8)
    everyone = np.uint64(2**64 - 1)
    return lambda low, high, labels: mask_by_truth(low, high, comparable, everyone, labels)


def _program_step(planned: ProgramProperty, columns: EventColumns) -> Step:
    table, _ = assemble([planned.program], tabulator(columns))
    bits = np.uint64(planned.bits)

    def step(low: int, high: int, labels: Words) -> None:
        wanted = np.flatnonzero(labels & bits)
        bank = load_bank(columns, planned.layout, wanted + low)
        truth, nulls, failed = evaluate(planned.program, table, bank)
        if failed >= 0:
            raise EventError(f"integer overflow in {planned.text} at input row {low + int(wanted[failed])}")
        labels[wanted[(truth == 0) | nulls]] &= ~bits

    return step


def kept(labelled: LabelledEvents) -> int:
    """How many events are kept."""
    return sum(len(rows) for rows in labelled.rows)


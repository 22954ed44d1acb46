"""Label the ordered rows: a bit for each variable whose conditions on the row, and on rows at fixed distances, hold there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.column_programs import compute_columns, is_column_program
from gpu_cep.engine.lowering.programs import Column, assemble, failure, make_bank, program_registers, tabulator
from gpu_cep.engine.phase_one.label_events import BLOCK, make_labeller
from gpu_cep.engine.phase_one.order_events import stream_slices
from gpu_cep.engine.row_patterns.columns import ordered_bank
from gpu_cep.engine.row_patterns.ordering import OrderedRows
from gpu_cep.errors import EventError
from gpu_cep.plan.row_patterns.row_plan import NeighbourCondition, RowPlan
from gpu_cep_kernels.compile.launch import blocks, slices, spread
from gpu_cep_kernels.phase_one.neighbour_conditions import NeighbourProgram, mask_by_columns, mask_by_nulls
from gpu_cep_kernels.row_patterns.labels import mask_borders, mask_by_rows_beside
from gpu_cep_kernels.row_patterns.tables import Pieces
from gpu_cep_kernels.rules.tables import ColumnBank

Labels = npt.NDArray[Any]


def label_rows(plan: RowPlan, columns: EventColumns, ordered: OrderedRows, pieces: Pieces, threads: int) -> Labels:
    """Return the label of each ordered row.

    Raises
    ------
    EventError
        A condition cannot be computed for some row.
    """
    labels = ordered.take(_own_labels(plan, columns, threads))
    if plan.neighbours:
        beside = _RowsBeside(plan, columns, ordered, pieces)
        for condition in plan.neighbours:
            _judge(condition, beside, labels, threads)
    return labels


def _own_labels(plan: RowPlan, columns: EventColumns, threads: int) -> Labels:
    """Return the labels of the table's rows by the conditions on one row."""
    labeller = make_labeller(plan.labels, columns)
    labels = labeller.room(len(columns))

    def fill(span: tuple[int, int]) -> None:
        for low, high in blocks(*span, BLOCK):
            labeller.fill(low, high, labels[:, low:high])

    spread(fill, slices(len(columns), threads), threads)
    own: Labels = labels[0]
    return own


@dataclass(frozen=True)
class _RowsBeside:
    """The columns that conditions on rows at fixed distances read, in the two forms in which they are read."""

    plan: RowPlan
    columns: EventColumns
    ordered: OrderedRows
    pieces: Pieces

    @cached_property
    def by_columns(self) -> ColumnBank:
        """Return the columns as they are."""
        layout = self.plan.layout
        ints, floats = ([self._column(column) for column in wanted] for wanted in (layout.ints, layout.floats))
        return make_bank(np, ints, floats, len(self.ordered))

    @cached_property
    def by_row(self) -> ColumnBank:
        """Return the columns with a row of NULLs behind them."""
        return ordered_bank(self.plan, self.columns, self.ordered, self.plan.layout)

    def _column(self, column: int) -> Column:
        if column >= self.plan.columns.classifier:
            # whether there is a row is asked row by row
            return np.zeros(len(self.ordered), np.int64), None
        nulls = self.columns.null_mask(column)
        return self.ordered.take(self.columns.values(column)), None if nulls is None else self.ordered.take(nulls)


def _judge(condition: NeighbourCondition, beside: _RowsBeside, labels: Labels, threads: int) -> None:
    """Clear the bit of a condition's variable where the condition does not hold."""
    columns, ordered = beside.columns, beside.ordered
    others = labels.dtype.type(np.iinfo(labels.dtype).max ^ (1 << condition.variable))
    if is_column_program(condition.program) and _judge_columns(condition, beside, labels, others, threads):
        return
    table, _ = assemble([condition.program], tabulator(columns))
    parts = stream_slices(beside.pieces.offsets, threads)
    registers = program_registers(np, table, len(parts), max(1, len(condition.distances)))
    program = NeighbourProgram(table, condition.program.result, -np.array(condition.distances, np.int64))
    failed, bank = np.zeros(len(labels), np.bool_), beside.by_row

    def judge(slot: int) -> None:
        mask_by_rows_beside(*parts[slot], slot, program, beside.pieces, bank, registers, others, labels, failed)

    spread(judge, range(len(parts)), threads)
    if failed.any():
        row = columns.number_of(ordered.number(int(failed.argmax())))
        raise EventError(f"{failure(condition.program)} in DEFINE … AS {condition.text} at input row {row}")


def _judge_columns(condition: NeighbourCondition, beside: _RowsBeside, labels: Labels, others: Any, threads: int) -> bool:
    """Judge a condition by whole columns; return False if an integer overflows somewhere, and all is to be judged otherwise."""
    length, bank, ordered = len(labels), beside.by_columns, beside.ordered
    # rows that read beyond the table are denied below, as those that read beyond their partition
    first, last = max(0, -min(condition.distances)), length - max(0, *condition.distances)
    if last <= first:
        return False

    def judge(span: tuple[int, int]) -> bool:
        return all(_judge_block(condition, bank, low, high, labels, others) for low, high in blocks(*span, BLOCK))

    if not all(spread(judge, [(first + low, first + high) for low, high in slices(last - first, threads)], threads)):
        return False
    for distance in condition.distances:
        if distance:
            mask_borders(0, len(ordered.offsets) - 1, ordered.offsets, -distance, others, labels)
    return True


def _judge_block(condition: NeighbourCondition, bank: ColumnBank, low: int, high: int, labels: Labels, others: Any) -> bool:
    """Judge the rows [low, high) by whole columns; return False if an integer overflows."""
    found = compute_columns(condition.program, bank, [(low + distance, high + distance) for distance in condition.distances], high - low)
    if found is None:
        return False
    words = labels[low:high]
    mask_by_columns(0, high - low, found.left, found.right, found.comparison, others, words)
    for nulls, column, (begin, end) in found.read:
        if nulls.size:
            mask_by_nulls(0, high - low, nulls[begin:end], np.uint64(1 << column), others, words)
    return True

"""Label the ordered rows: a bit for each variable whose conditions on the row, and on rows at fixed distances, hold there."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep.engine.lowering.column_programs import is_column_program
from gpu_cep.engine.lowering.programs import assemble, program_registers, tabulator
from gpu_cep.engine.phase_one.label_events import BLOCK, make_labeller
from gpu_cep.engine.phase_one.order_events import stream_slices
from gpu_cep.engine.row_patterns.device_labels import label_rows_on_device, runs_on_device
from gpu_cep.engine.row_patterns.neighbour_columns import Labels, NeighbourColumns, clear_where_false, others_than, rows_inside
from gpu_cep.engine.row_patterns.run import RowRun
from gpu_cep.plan.row_patterns.row_plan import NeighbourCondition
from gpu_cep_kernels.compile.launch import blocks, slices, spread
from gpu_cep_kernels.phase_one.neighbour_conditions import NeighbourProgram
from gpu_cep_kernels.row_patterns.labels import mask_borders, mask_by_rows_beside
from gpu_cep_kernels.row_patterns.tables import PartitionPieces


def label_rows(run: RowRun, pieces: PartitionPieces) -> Labels:
    """Return the label of each ordered row; a card judges what it can where the plan asks for one.

    Raises
    ------
    EventError
        A condition cannot be computed for some row.
    EngineUnavailable
        The plan asks for a card, which cannot be used.
    """
    neighbours, left = NeighbourColumns(run, pieces), run.plan.neighbours
    if run.plan.labels.settings.engine == "gpu":
        labels = label_rows_on_device(neighbours)
        left = tuple(condition for condition in left if not runs_on_device(condition))
    else:
        labels = run.ordered.take(_own_labels(run))
    for condition in left:
        _judge(condition, neighbours, labels)
    return labels


def _own_labels(run: RowRun) -> Labels:
    """Return the labels of the table's rows by the conditions on one row."""
    labeller, count = make_labeller(run.plan.labels, run.columns), len(run.columns)
    labels = labeller.room(count)

    def fill(span: tuple[int, int]) -> None:
        for low, high in blocks(*span, BLOCK):
            labeller.fill(low, high, labels[:, low:high])

    spread(fill, slices(count, run.threads), run.threads)
    own: Labels = labels[0]
    return own


def _judge(condition: NeighbourCondition, neighbours: NeighbourColumns, labels: Labels) -> None:
    """Clear the bit of a condition's variable where the condition does not hold."""
    others = others_than(condition, labels)
    if is_column_program(condition.program) and _judge_columns(condition, neighbours, labels, others):
        return
    table, _ = assemble([condition.program], tabulator(neighbours.run.columns))
    threads = neighbours.run.threads
    parts = stream_slices(neighbours.pieces.offsets, threads)
    registers = program_registers(np, table, len(parts), max(1, len(condition.distances)))
    program = NeighbourProgram(table, condition.program.result, -np.array(condition.distances, np.int64))
    failed, bank = np.zeros(len(labels), np.bool_), neighbours.by_row

    def judge(slot: int) -> None:
        mask_by_rows_beside(*parts[slot], slot, program, neighbours.pieces, bank, registers, others, labels, failed)

    spread(judge, range(len(parts)), threads)
    if failed.any():
        raise neighbours.overflow(condition, int(failed.argmax()))


def _judge_columns(condition: NeighbourCondition, neighbours: NeighbourColumns, labels: Labels, others: Any) -> bool:
    """Judge a condition by whole columns; return False if an integer overflows somewhere, and all is to be judged otherwise."""
    bank, offsets, threads = neighbours.by_columns, neighbours.run.ordered.offsets, neighbours.run.threads
    # rows that read beyond the table are denied below, as those that read beyond their partition
    first, last = rows_inside(condition, len(labels))
    if last <= first:
        return False

    def judge(span: tuple[int, int]) -> bool:
        return all(clear_where_false(condition, bank, low, labels[low:high], others) for low, high in blocks(*span, BLOCK))

    if not all(spread(judge, [(first + low, first + high) for low, high in slices(last - first, threads)], threads)):
        return False
    for distance in condition.distances:
        if distance:
            mask_borders(0, len(offsets) - 1, offsets, -distance, others, labels)
    return True

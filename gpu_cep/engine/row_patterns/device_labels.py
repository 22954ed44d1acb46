"""Label the ordered rows on a card, piece by piece: by the conditions on one row, then by those on rows at fixed distances.

The scalar rules and the kernels are those of the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.lowering.column_programs import is_column_program
from gpu_cep.engine.lowering.programs import assemble, program_registers, tabulator
from gpu_cep.engine.phase_one.chosen_engine import telling_why
from gpu_cep.engine.phase_one.device.card_memory import SMALLEST_BATCH, DeviceMemory, TooLittleMemory, memory_of
from gpu_cep.engine.phase_one.device.chunks import Chunk, Sources
from gpu_cep.engine.phase_one.device.columns import DeviceColumns
from gpu_cep.engine.phase_one.device.in_pieces import in_smaller_pieces
from gpu_cep.engine.phase_one.device.label_engine import plan_labelling
from gpu_cep.engine.phase_one.engine_choice import require_device
from gpu_cep.engine.row_patterns.neighbour_columns import Labels, NeighbourColumns, clear_where_false, others_than, rows_inside
from gpu_cep.engine.row_patterns.pieces import pieces_between
from gpu_cep.plan.row_patterns.row_plan import NeighbourCondition
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.device.packing import to_device
from gpu_cep_kernels.device.primitives import any_set
from gpu_cep_kernels.phase_one.neighbour_conditions import NeighbourProgram
from gpu_cep_kernels.row_patterns.labels import mask_borders, mask_by_rows_beside
from gpu_cep_kernels.row_patterns.tables import PartitionPieces
from gpu_cep_kernels.rules.tables import ColumnBank

# Rows that a thread judges one after the other by a program.
_ROWS_OF_A_THREAD = 16
# Bytes per row beside columns and registers: NULLs, flags, and the pieces; columns that a condition computes at a time.
_ROW, _COMPUTED = 2 * 8 + 2 + 3 * 8, 4


def runs_on_device(condition: NeighbourCondition) -> bool:
    """Return whether a card can judge a condition: it calls no function of the CPU."""
    return not condition.program.calls


def label_rows_on_device(neighbours: NeighbourColumns) -> Labels:
    """Return the label of each ordered row by all conditions that a card can judge.

    Raises
    ------
    EventError
        A condition cannot be computed for some row.
    EngineUnavailable
        The card cannot be used, its memory does not suffice, or CUDA failed.
    """
    with telling_why():
        device = require_device()
        memory = memory_of(device, neighbours.run.plan.labels)
        return in_smaller_pieces(device, memory, lambda memory: _label_rows(neighbours, device, memory))


def _label_rows(neighbours: NeighbourColumns, device: Device, memory: DeviceMemory) -> Labels:
    """Return the labels on the host, found in pieces that `memory` holds."""
    found: Labels = device.download(labels_on_card(neighbours, device, memory))
    return found


def labels_on_card(neighbours: NeighbourColumns, device: Device, memory: DeviceMemory) -> Array:
    """Return the label of each ordered row by all conditions that a card can judge, on the card.

    Raises
    ------
    TooLittleMemory
        `memory` does not hold the smallest pieces.
    """
    own = _own_labels(neighbours, device, memory)
    conditions = [condition for condition in neighbours.run.plan.neighbours if runs_on_device(condition)]
    if conditions and own.size:
        given = _GivenLabels(neighbours, device, _rows_at_a_time(neighbours, conditions, memory), own)
        for condition in conditions:
            given.judge(condition)
    return own


def _own_labels(neighbours: NeighbourColumns, device: Device, memory: DeviceMemory) -> Array:
    """Return the labels of the ordered rows by the conditions on one row, on the card."""
    run = neighbours.run
    plan, columns, ordered = run.plan.labels, DeviceColumns(run.columns, device), run.ordered.rows is None
    labelling, sources = plan_labelling(plan, columns), Sources(columns)
    # the host puts in order what comes by the rows of the table
    found = (device.xp if ordered else np).empty(len(run.columns), labelling.steps.words[0].kind)
    for low, high in blocks(0, len(run.columns), memory.chunk_rows(labelling.takes)):
        labels = labelling.steps.room(device.xp, high - low)
        labelling.steps.fill(Chunk(sources, low, high), labels)
        filled = labels[0, : high - low]
        found[low:high] = filled if ordered else device.download(filled)
    return found if ordered else device.upload(run.ordered.take(found))


def _rows_at_a_time(neighbours: NeighbourColumns, conditions: list[NeighbourCondition], memory: DeviceMemory) -> int:
    """Return for how many rows conditions are judged at a time.

    Raises
    ------
    TooLittleMemory
        They are fewer than a batch of the smallest size.
    """
    layout, length = neighbours.run.plan.layout, len(neighbours.run.ordered)
    columns = len(layout.ints) + len(layout.floats) + _COMPUTED
    registers = max(each.program.registers for each in conditions)
    rows = memory.lifted_events(length, _ROW + 8 * columns + 17 * registers)
    if rows < min(SMALLEST_BATCH, length):
        raise TooLittleMemory(f"of {memory.bytes:,} bytes too few are left beside the labels of {length:,} rows")
    return rows


@dataclass(frozen=True, slots=True)
class _GivenLabels:
    """The labels of all rows, on the card; conditions are judged for so many `rows` at a time."""

    neighbours: NeighbourColumns
    device: Device
    rows: int
    labels: Array

    def judge(self, condition: NeighbourCondition) -> None:
        """Clear the bit of a condition's variable where the condition does not hold."""
        others, offsets = others_than(condition, self.labels), self.neighbours.run.ordered.offsets
        by_columns = is_column_program(condition.program)
        for low, high in blocks(0, int(self.labels.size), self.rows):
            if not by_columns or not self._judge_columns(condition, low, high, others):
                self._judge_rows(condition, low, high, others)
        if by_columns:
            held = self.device.upload(offsets)
            for distance in condition.distances:
                if distance:
                    self.device.launch(mask_borders, len(offsets) - 1, held, -distance, others, self.labels)

    def _judge_columns(self, condition: NeighbourCondition, low: int, high: int, others: Any) -> bool:
        """Judge the rows [low, high) by whole columns, but for those that read beyond the table; return False if an integer overflows."""
        first, last = rows_inside(condition, int(self.labels.size))
        low, high = max(low, first), min(high, last)
        if low >= high:
            return True
        begin, end = low + min(0, *condition.distances), high + max(0, *condition.distances)
        bank = self._part(self.neighbours.by_columns, begin, end)
        return clear_where_false(condition, bank, low - begin, self.labels[low:high], others, self.device)

    def _judge_rows(self, condition: NeighbourCondition, low: int, high: int, others: Any) -> None:
        """Judge the rows [low, high) by the condition's program."""
        device, length = self.device, int(self.labels.size)
        begin, end = max(0, low + min(0, *condition.distances)), min(length, high + max(0, *condition.distances))
        pieces = _pieces_of_threads(self.neighbours.run.ordered.offsets, low, high, begin)
        size = len(pieces.begins)
        table, _ = assemble([condition.program], tabulator(self.neighbours.run.columns))
        program = NeighbourProgram(table, condition.program.result, -np.array(condition.distances, np.int64))
        registers = program_registers(device.xp, table, device.slots(size), max(1, len(condition.distances)))
        bank = self._part(self.neighbours.by_row, begin, end, null_row=True)
        failed, labels = device.xp.zeros(end - begin, np.bool_), self.labels[begin:end]
        held, known = to_device(device, program), to_device(device, pieces)
        device.launch(mask_by_rows_beside, size, held, known, bank, registers, others, labels, failed)
        if any_set(failed):
            raise self.neighbours.overflow(condition, begin + int(device.download(failed).argmax()))

    def _part(self, bank: ColumnBank, begin: int, end: int, *, null_row: bool = False) -> ColumnBank:
        """Return the rows [begin, end) of a bank on the card, with its last row behind them if that is the `null_row`."""

        def part(values: Any) -> Any:
            if not values.size:
                return values
            cut = values[..., begin:end]
            return np.ascontiguousarray(np.concatenate([cut, values[..., -1:]], axis=-1) if null_row else cut)

        ints, floats, int_nulls, float_nulls = map(part, (bank.ints, bank.floats, bank.int_nulls, bank.float_nulls))
        held: ColumnBank = to_device(self.device, ColumnBank(ints, floats, int_nulls, float_nulls, bank.vectors))
        return held


def _pieces_of_threads(offsets: Indices, low: int, high: int, begin: int) -> PartitionPieces:
    """Return the rows [low, high) in pieces of a few rows of one partition each; rows are counted from row `begin` on."""
    inside = offsets[(offsets > low) & (offsets < high)]
    cuts = np.union1d(np.append(np.arange(low, high, _ROWS_OF_A_THREAD), high), inside)
    return pieces_between(cuts - begin, offsets - begin)

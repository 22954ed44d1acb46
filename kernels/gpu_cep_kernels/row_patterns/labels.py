"""Judge conditions on rows at fixed distances for all rows: clear the label bits that they deny."""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.compile.jit import kernel
from gpu_cep_kernels.phase_one.neighbour_conditions import NeighbourProgram
from gpu_cep_kernels.row_patterns.tables import PartitionPieces
from gpu_cep_kernels.rules.interpreter import holds, run_program
from gpu_cep_kernels.rules.tables import AggregateValues, ColumnBank, Registers


@kernel(writes=("labels", "failed"), scratch=("registers",))
def mask_by_rows_beside(
    low: int, high: int, slot: int, condition: NeighbourProgram, pieces: PartitionPieces, bank: ColumnBank, registers: Registers,
    others: Any, labels: Any, failed: Any,
) -> None:  # fmt: skip
    """Judge a condition by its program for each row of the pieces [low, high) that has more bits than those of `others`.

    A role reads the row that is ``back[role]`` rows before; the last row of the bank, which is all NULL, if that
    is in no partition or in another one. ``failed[r]`` is set where the program failed.
    """
    programs, result, back = condition
    none = AggregateValues(registers.ints, registers.ints, registers.floats)
    rows = registers.rows[:, slot]
    own = Registers(rows, rows, registers.ints[:, slot], registers.floats[:, slot], registers.nulls[:, slot])
    nowhere = labels.size
    for p in range(low, high):
        begin, end = pieces.begins[p], pieces.ends[p]
        for r in range(pieces.offsets[p], pieces.offsets[p + 1]):
            if labels[r] & ~others:
                for role in range(back.size):
                    read = r - back[role]
                    rows[role] = read if begin <= read < end else nowhere
                error = run_program(0, programs.code.shape[0], programs, bank, rows, none, own)
                if error != 0:
                    failed[r] = True
                if not holds(result, own):
                    labels[r] = labels[r] & others


@kernel(writes=("labels",))
def mask_borders(low: int, high: int, offsets: Any, back: int, others: Any, labels: Any) -> None:
    """Deny what reads no row of the partition: the first `back` rows of each partition, or the last ones if it is negative."""
    for p in range(low, high):
        begin, end = offsets[p], offsets[p + 1]
        first = begin if back > 0 else max(begin, end + back)
        last = min(end, begin + back) if back > 0 else end
        for r in range(first, last):
            labels[r] = labels[r] & others

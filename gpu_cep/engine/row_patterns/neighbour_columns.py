"""Read what conditions on rows at fixed distances read, and judge them by whole columns; the same on the host and on a card."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.lowering.column_programs import mask_by_column_program
from gpu_cep.engine.lowering.programs import WIDER_IN_ROWS, Column, failure, make_bank
from gpu_cep.engine.row_patterns.columns import ordered_bank
from gpu_cep.engine.row_patterns.run import RowRun
from gpu_cep.errors import EventError
from gpu_cep.plan.row_patterns.row_plan import NeighbourCondition
from gpu_cep_kernels.device.interface import HOST, Array, Backend
from gpu_cep_kernels.row_patterns.tables import PartitionPieces
from gpu_cep_kernels.rules.tables import ColumnBank

Labels = npt.NDArray[Any]


@dataclass(frozen=True)
class NeighbourColumns:
    """The columns that conditions on rows at fixed distances read, in the two forms in which they are read."""

    run: RowRun
    pieces: PartitionPieces

    @cached_property
    def by_columns(self) -> ColumnBank:
        """Return the columns as they are."""
        layout = self.run.plan.layout
        ints, floats = ([self._column(column) for column in wanted] for wanted in (layout.ints, layout.floats))
        return make_bank(np, ints, floats, len(self.run.ordered))

    @cached_property
    def by_row(self) -> ColumnBank:
        """Return the columns with a row of NULLs behind them."""
        return ordered_bank(self.run, self.run.plan.layout)

    def _column(self, column: int) -> Column:
        columns, ordered = self.run.columns, self.run.ordered
        if column >= self.run.plan.columns.classifier:
            # whether there is a row is asked row by row
            return np.zeros(len(ordered), np.int64), None
        nulls = columns.null_mask(column)
        return ordered.take(columns.values(column)), None if nulls is None else ordered.take(nulls)

    def overflow(self, condition: NeighbourCondition, ordered: int) -> EventError:
        """Return the error of a condition that cannot be computed at an ordered row."""
        place = f"DEFINE … AS {condition.text} at input row {self.run.input_row(ordered)}"
        return EventError(f"{failure(condition.program)} in {place}; {WIDER_IN_ROWS}")


def others_than(condition: NeighbourCondition, labels: Array) -> Any:
    """Return the label bits of all variables but a condition's."""
    return labels.dtype.type(np.iinfo(labels.dtype).max ^ (1 << condition.variable))


def rows_inside(condition: NeighbourCondition, length: int) -> tuple[int, int]:
    """Return the first row of so many at which a condition reads rows of the table alone, and the one behind the last."""
    return max(0, -min(condition.distances)), length - max(0, *condition.distances)


def clear_where_false(
    condition: NeighbourCondition, bank: ColumnBank, low: int, labels: Array, others: Any, place: Backend = HOST
) -> bool:  # fmt: skip
    """Clear the bit of a condition's variable in `labels`, those of the rows from `low` of the bank on, where it does not hold.

    Return False if an integer overflows, with nothing done.
    """
    size = int(labels.size)
    places = [(low + far, low + far + size) for far in condition.distances]
    return mask_by_column_program(condition.program, bank, places, others, labels, place)

"""Hold a row pattern and the rows of a table in order, of which its matches are asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.row_patterns.automaton_tables import automaton_table
from gpu_cep.engine.row_patterns.ordering import OrderedRows
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep_kernels.row_patterns.tables import RowAutomatonTable


@dataclass(frozen=True)
class RowRun:
    """A plan, the columns of a table, its rows in order, and how many threads share the work on them."""

    plan: RowPlan
    columns: EventColumns
    ordered: OrderedRows
    threads: int

    @cached_property
    def automaton(self) -> RowAutomatonTable:
        """Return the automaton of the pattern as kernels read it."""
        return automaton_table(self.plan)

    def input_row(self, ordered: int) -> int:
        """Return the number in the input of an ordered row, for errors."""
        return self.columns.number_of(self.ordered.number(ordered))

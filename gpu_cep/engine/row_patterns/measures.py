"""Compute the measures of a row pattern for all rows of the result, column by column."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.analysis.bound_expressions import Aggregation, Field
from gpu_cep.analysis.types import Kind
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.arrow_arrays import arrow_array
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.output.returns import return_array
from gpu_cep.engine.row_patterns.columns import classifier_codes
from gpu_cep.engine.row_patterns.ordering import OrderedRows
from gpu_cep.engine.row_patterns.places import PlaceFinder
from gpu_cep.engine.row_patterns.totals import Totals, find_totals, total_values
from gpu_cep.plan.programs import Leaf
from gpu_cep.plan.row_patterns.places import Total, kept_total
from gpu_cep.plan.row_patterns.row_plan import PlannedMeasure


@dataclass
class MeasureSource:
    """The values that measures read, one for each row of the result; what several read is found once."""

    columns: EventColumns
    ordered: OrderedRows
    finder: PlaceFinder
    _rows: dict[int, Indices] = field(default_factory=dict)
    _totals: dict[Total, Totals] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.finder.shown)

    def whole(self, v: int, names: tuple[str, ...]) -> pa.Array:
        """Refuse: no measure is a whole row."""
        raise TypeError("a measure is a value")

    def attribute(self, v: int, column: int) -> pa.Array:
        """Refuse: no measure is a list."""
        raise TypeError("a measure is a value")

    def leaf(self, leaf: Leaf) -> pa.Array:
        """Return the value of a field or an aggregate at each row of the result."""
        if isinstance(leaf, Aggregation):
            values, nulls = self._total(leaf.variable)
            if leaf.type.kind is Kind.STRING:
                assert leaf.column is not None, "text is of a column"
                return self.columns.texts.values(leaf.column).take(pa.array(values, mask=nulls))
            return arrow_array(values.astype(np.float64 if leaf.type.kind is Kind.FLOAT else np.int64, copy=False), nulls, leaf.type)
        assert isinstance(leaf, Field), "measures read fields and aggregates"
        pseudo = self.finder.plan.columns
        rows = self._row(leaf.variable)
        if leaf.column == pseudo.present:
            return pa.array(np.ones(len(rows), np.int64), mask=rows < 0)
        if leaf.column == pseudo.match_number:
            unmatched = self.finder.shown.unmatched
            return pa.array(self.finder.shown.of_match(self.finder.shown.matches.partitions.numbers), mask=unmatched)
        if leaf.column == pseudo.classifier:
            names = pa.array(self.finder.plan.bound.variables[: self.finder.plan.variables], pa.string())
            return names.take(pa.array(self._variables(rows), mask=rows < 0))
        if rows.min(initial=0) >= 0:
            return self.columns.take(leaf.column, pa.array(self.ordered.numbers(rows)))
        numbers = self.ordered.numbers(np.maximum(rows, 0)) if len(self.columns) else rows
        return self.columns.take(leaf.column, pa.array(numbers, mask=rows < 0))

    def codes(self, leaf: Leaf, column: int) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return a text leaf's value at each row of the result as a code of the column's dictionary, and where it is NULL."""
        none = len(self.columns.texts.values(column))
        if isinstance(leaf, Aggregation):
            values, nulls = self._total(leaf.variable)
            return np.where(nulls, none, values), nulls
        rows = self._row(leaf.variable)
        if column == self.finder.plan.columns.classifier:
            codes = classifier_codes(self.finder.plan, self.columns)[self._variables(rows)]
        else:
            codes, _ = self.columns.pick(column, self.ordered.numbers(np.maximum(rows, 0))) if len(self.columns) else (rows, None)
        codes = np.where(rows < 0, none, codes)
        return codes, codes == none

    def _row(self, place: int) -> Indices:
        if place not in self._rows:
            self._rows[place] = self.finder.rows(self.finder.plan.places[place])
        return self._rows[place]

    def _total(self, number: int) -> tuple[Array, npt.NDArray[np.bool_]]:
        totals = self.finder.plan.totals
        kept = kept_total(totals[number], totals)
        if kept not in self._totals:
            self._totals[kept] = find_totals(kept, self.finder, self.columns, self.ordered)
        return total_values(totals[number], self._totals[kept])

    def _variables(self, rows: Indices) -> npt.NDArray[np.int32]:
        """Return the variables of ordered rows of the matches; any variable for a row below 0."""
        shown, matches = self.finder.shown, self.finder.shown.matches
        variables = np.array(self.finder.plan.automaton.variable, np.int32)
        if not shown.last and rows is matches.rows:
            return variables[matches.states]
        found = np.zeros(len(rows), np.int32)
        there = rows >= 0
        places = rows + shown.of_match(matches.places[:-1] - matches.firsts)
        found[there] = variables[matches.states[places[there]]]
        return found


def measure_array(name: str, measure: PlannedMeasure, source: MeasureSource, kind: pa.DataType | None = None) -> pa.Array:
    """Return a measure at each row of the result, in the type `kind` if it is given; NULL where the row belongs to no match.

    Raises
    ------
    EventError
        An integer overflowed, or the caller's function raised an exception.
    """
    found = return_array(f"measure {name!r}", measure.expression, measure.program, source, ())
    found = found.dictionary_decode() if pa.types.is_dictionary(found.type) else found
    found = found if kind in (None, found.type) else found.cast(kind)
    unmatched = source.finder.shown.unmatched
    return found if unmatched is None else pc.if_else(pa.array(unmatched), pa.scalar(None, found.type), found)

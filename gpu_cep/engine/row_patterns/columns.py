"""Hold the columns that a row pattern reads, those that it computes included."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.computed_columns import ComputedExpression
from gpu_cep.analysis.types import Kind
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.output.returns import return_array
from gpu_cep.engine.phase_one.computed_columns import expression_values
from gpu_cep.engine.row_patterns.run import RowRun
from gpu_cep.plan.dictionaries import compared_ahead
from gpu_cep.plan.event_plan import BankLayout
from gpu_cep.plan.programs import Leaf
from gpu_cep.plan.returns import plan_return
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep_kernels.rules.tables import ColumnBank


def row_columns(plan: RowPlan, table: pa.Table, threads: int | None, numbers: npt.NDArray[np.int64] | None = None) -> EventColumns:
    """Return the columns of the rows in `table`, by number; `numbers` are those of the rows in the input, if that has others.

    At most `threads` threads encode a column of text (None: all that the process may use).

    Raises
    ------
    EventError
        An integer overflowed in an expression over one row, or the caller's function raised an exception.
    """
    columns = EventColumns(table, plan.labels.query, plan.labels.dictionaries, numbers, threads=threads)
    names = pa.array(plan.bound.variables[: plan.variables], pa.string())
    # the spellings are its dictionary; which row has which is said later, match by match
    columns.put(plan.columns.classifier, pa.DictionaryArray.from_arrays(pa.nulls(len(table), pa.int8()), names))
    # texts that are computed may share dictionaries with those that they are computed from, which need others of their own
    ahead = EventColumns(table, plan.labels.query, compared_ahead(plan.bound.computed), numbers, shared=columns, threads=threads)
    for number, computed in enumerate(plan.bound.computed, len(plan.bound.schema.attributes)):
        if isinstance(computed, ComputedExpression):
            values = _computed(computed, ahead)
            ahead.put(number, values)
            columns.put(number, values)
    return columns


def _computed(computed: ComputedExpression, columns: EventColumns) -> pa.Array:
    """Return the values of an expression over one row for all rows; raise as :func:`row_columns`."""
    if computed.type.kind is not Kind.STRING:
        return expression_values(computed, columns)
    return return_array(computed.text, computed.expression, plan_return(computed.expression), _EachRow(columns), ())


class _EachRow(NamedTuple):
    """The values of columns that an expression reads, one for each row of the table."""

    columns: EventColumns

    def __len__(self) -> int:
        return len(self.columns)

    def whole(self, v: int, names: tuple[str, ...]) -> pa.Array:
        """Refuse: no text is a whole row."""
        raise TypeError("an expression is a value")

    def attribute(self, v: int, column: int) -> pa.Array:
        """Refuse: no text is a list."""
        raise TypeError("an expression is a value")

    def leaf(self, leaf: Leaf) -> pa.Array:
        """Return a column's values."""
        assert leaf.column is not None, "an expression over one row reads columns"
        return self.columns.arrow(leaf.column)

    def codes(self, leaf: Leaf, column: int) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return a text column's codes, and where they are NULL."""
        codes = self.columns.values(column)
        return codes, codes == len(self.columns.texts.values(column))


def classifier_codes(plan: RowPlan, columns: EventColumns) -> Array:
    """Return the code of each variable's spelling in the dictionary of CLASSIFIER()."""
    places = columns.texts.shared_places(plan.columns.classifier)
    return np.arange(plan.variables) if places is None else places[: plan.variables]


def ordered_bank(run: RowRun, layout: BankLayout, *, null_row: bool = True) -> ColumnBank:
    """Return the columns of `layout` as the bank that is read: one row for each ordered row.

    With `null_row` a row of NULLs stands behind them, which programs read where a place leads nowhere.
    """
    return ColumnBank(
        ints=_matrix(run, layout.ints, np.int64, null_row=null_row),
        floats=_matrix(run, layout.floats, np.float64, null_row=null_row),
        int_nulls=_null_words(run, layout.ints, null_row=null_row),
        float_nulls=_null_words(run, layout.floats, null_row=null_row),
        vectors=np.empty((0, 0, 0), np.float64),
    )


def _matrix(run: RowRun, wanted: tuple[int, ...], kind: npt.DTypeLike, *, null_row: bool) -> Array:
    """Return some columns of the ordered rows as the rows of one array."""
    plan, columns, ordered, length = run.plan, run.columns, run.ordered, len(run.ordered)
    if len(wanted) == 1 and wanted[0] < plan.columns.classifier and not null_row:
        return ordered.take(columns.values(wanted[0])).astype(kind, copy=False).reshape(1, length)
    matrix = np.zeros((len(wanted), length + null_row), kind)
    for place, column in enumerate(wanted):
        if column == plan.columns.classifier:
            matrix[place] = len(columns.texts.values(column))
        elif column == plan.columns.present:
            matrix[place] = 1
        else:
            matrix[place, :length] = ordered.take(columns.values(column))
            # a text predicate looks up the code of NULL as well
            matrix[place, length:] = len(columns.texts.values(column)) if columns.type(column).kind is Kind.STRING else 0
    return matrix


def _null_words(run: RowRun, wanted: tuple[int, ...], *, null_row: bool) -> Array:
    """Return the words that mark NULLs; none if there are none."""
    masks = [run.columns.null_mask(column) if column < run.plan.columns.classifier else None for column in wanted]
    if not wanted or (not null_row and all(mask is None for mask in masks)):
        return np.empty(0, np.uint64)
    length = len(run.ordered)
    words = np.zeros(length + null_row, np.uint64)
    for place, mask in enumerate(masks):
        if mask is not None:
            words[:length] |= run.ordered.take(mask).astype(np.uint64) << np.uint64(place)
    words[length:] = np.iinfo(np.uint64).max
    return words

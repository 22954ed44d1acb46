"""Compute the values of RETURN's items, one for each match."""

from __future__ import annotations

from abc import ABC, abstractmethod
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.analysis.bound import BoundQuery
from gpu_cep.analysis.bound_expressions import Aggregation, Binding, Bound, Constant, Endpoint, Field, Operation
from gpu_cep.analysis.types import FLOAT, DataType, Kind
from gpu_cep.engine.events.matches import MOST_PLACES, BoundRows, Flags, Indices, Rows
from gpu_cep.engine.input.arrow_arrays import arrow_array, arrow_type, list_array, masked_array
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array, is_opaque, machine_values
from gpu_cep.engine.input.vectors import centre_lists, stack_lists
from gpu_cep.engine.lowering.column_programs import derive_column, is_float_program
from gpu_cep.engine.lowering.programs import WIDER, WIDER_SUM, assemble, evaluate, failure, make_bank, tabulator
from gpu_cep.engine.output.sorted_values import count_distinct, medians, sort_values
from gpu_cep.errors import EventError
from gpu_cep.plan.event_plan import ReturnProgram
from gpu_cep.plan.programs import Leaf
from gpu_cep_kernels.matches.aggregates import count_present, extreme_places, sum_floats, sum_ints

_LOWER = (1 << 32) - 1  # the lower 32 bits of an integer


class ReturnSource(Protocol):
    """The events that matches bind, variable by variable, from which RETURN's items are computed."""

    @property
    def columns(self) -> EventColumns: ...

    def __len__(self) -> int:
        """Return the number of matches."""

    def whole(self, v: int, names: tuple[str, ...]) -> pa.Array:
        """Return the events bound to v in each match, with the named columns."""

    def attribute(self, v: int, column: int) -> pa.Array:
        """Return a column's values at all events bound to v, as one list for each match."""

    def leaf(self, leaf: Leaf) -> pa.Array:
        """Return the value of a field, an aggregate or an endpoint in each match."""

    def codes(self, leaf: Leaf, column: int) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return a text leaf's value in each match as a code of the column's dictionary, and where it is NULL."""


class BoundEvents(ABC):
    """The events that matches bind, variable by variable, as numbers of input rows."""

    columns: EventColumns

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of matches."""

    @abstractmethod
    def binding(self, v: int) -> BoundRows:
        """Return the input rows bound to v, match after match, and where each match's begin (with the end)."""

    def numbers_bound(self, v: int) -> npt.NDArray[np.integer[Any]]:
        """Return how many events v binds in each match."""
        return np.diff(self.binding(v)[1])

    def absent(self, v: int) -> npt.NDArray[np.bool_] | None:
        """Return bool [match]: whether v binds nothing there; None if it always binds an event."""
        return None

    def event_row(self, v: int, index: int = 0) -> pa.Array:
        """Return the input row of v's first (`index` 0) or last (−1) event; NULL where v is absent."""
        rows, offsets = self.binding(v)
        missing = self.absent(v)
        if missing is None and len(rows) == len(self):
            return masked_array(rows)
        if missing is None:
            return masked_array(rows[offsets[:-1] if index == 0 else offsets[1:] - 1])
        chosen = np.zeros(len(missing), rows.dtype)
        chosen[~missing] = rows[(offsets[:-1] if index == 0 else offsets[1:] - 1)[~missing]]
        return masked_array(chosen, missing)

    def value(self, v: int, column: int, index: int = 0) -> pa.Array:
        """Return a column's value at v's first (`index` 0) or last (−1) event; NULL where v is absent."""
        return self.take(column, self.event_row(v, index))

    def take(self, column: int, rows: Indices | pa.Array) -> pa.Array:
        """Return a column's values at input rows; NULL for a NULL row."""
        return self.columns.take(column, rows if isinstance(rows, pa.Array) else masked_array(rows))

    def lists(self, v: int, values: pa.Array) -> pa.Array:
        """Return values of all events bound to v as one list for each match, NULL where v is absent."""
        return self._listed(v, self.binding(v)[1], values)

    def _listed(self, v: int, offsets: npt.NDArray[np.integer[Any]], values: pa.Array) -> pa.Array:
        """Return values as :meth:`lists` does, given where those of each match begin."""
        if offsets[-1] > MOST_PLACES:
            raise EventError(too_many_rows(int(offsets[-1])))
        return list_array(offsets.astype(np.int32, copy=False), values, self.absent(v))

    def indices(self, v: int) -> pa.Array:
        """Return the input rows bound to v as one list for each match."""
        rows, offsets = self.binding(v)
        return self._listed(v, offsets, masked_array(rows))

    def whole(self, v: int, names: tuple[str, ...]) -> pa.Array:
        """Return the events bound to v in each match, with the named columns; NULL where v is absent.

        They are a struct, or a list of structs if v is quantified.
        """
        if self.columns.query.variables[v].quantified:
            bound = [self.event_values(v, self.columns.query.schema.index(name))[0] for name in names]
            return self.lists(v, self._join(bound, names, len(self.binding(v)[0]), None))
        values = [self.value(v, self.columns.query.schema.index(name)) for name in names]
        return self._join(values, names, len(self), self.absent(v))

    def attribute(self, v: int, column: int) -> pa.Array:
        """Return a column's values at all events bound to v, as one list for each match."""
        return self.lists(v, self.event_values(v, column)[0])

    def event_values(self, v: int, column: int) -> tuple[pa.Array, Rows]:
        """Return a column's values at all events bound to v, match after match, and where each match's begin (with the end)."""
        rows, offsets = self.binding(v)
        return self.take(column, rows), offsets

    def leaf(self, leaf: Leaf) -> pa.Array:
        """Return the value of a field or an aggregate in each match."""
        match leaf:
            case Field(variable=v, column=column):
                return self.value(v, column)
            case Aggregation(function="first" | "last" as function, variable=v, column=int() as column):
                return self.value(v, column, 0 if function == "first" else -1)
            case Aggregation(function=function, variable=v, column=column):
                if column is None:
                    return pa.array(self.numbers_bound(v).astype(np.int64, copy=False))
                return _AGGREGATES[function](self.columns, column, *self.event_values(v, column), leaf.type)
        raise TypeError(f"no value for {type(leaf).__name__} inside an expression")

    def codes(self, leaf: Leaf, column: int) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return a text leaf's value in each match as a code of the column's dictionary, and where it is NULL."""
        values = self.columns.texts.values(column)
        if isinstance(leaf, Field):
            missing = self.absent(leaf.variable)
            codes, _ = self.columns.pick(column, pc.fill_null(self.event_row(leaf.variable), 0).to_numpy())
            codes = codes if missing is None else np.where(missing, len(values), codes)
        else:
            found = _decode_dictionary(self.leaf(leaf)).cast(values.type)
            codes = pc.fill_null(pc.index_in(found, values), len(values)).to_numpy()
        return codes, codes == len(values)

    def structs(self, rows: pa.Array, names: tuple[str, ...]) -> pa.Array:
        """Return the events at input rows as structs of the named columns."""
        values = [self.take(self.columns.query.schema.index(name), rows) for name in names]
        return self._join(values, names, len(rows), None)

    def _join(self, values: list[pa.Array], names: tuple[str, ...], length: int, missing: npt.NDArray[np.bool_] | None) -> pa.Array:
        """Return the values of the named columns as so many structs; NULL where they are `missing`."""
        if not names:
            validity = None if missing is None else pa.array(~missing).buffers()[1]
            return pa.Array.from_buffers(pa.struct([]), length, [validity])
        fields = [pa.field(name, self.columns.schema.field(name).type) for name in names]
        return pa.StructArray.from_arrays(values, fields=fields, mask=None if missing is None else pa.array(missing))


def too_many_rows(number: int) -> str:
    """Return the message for a list column of so many values."""
    return f"the matches bind {number:,} events to one variable; a list column holds at most {np.iinfo(np.int32).max:,}"


def read_leaves(expression: Bound, planned: ReturnProgram | None) -> tuple[Bound, ...]:
    """Return what is read of the events for an item of RETURN."""
    return (expression,) if planned is None else (*planned.ints, *planned.floats, *planned.vectors, *planned.texts)


def return_array(called: str, expression: Bound, planned: ReturnProgram | None, events: ReturnSource, carried: tuple[str, ...]) -> pa.Array:
    """Return the values of one RETURN item as they are given out.

    Errors name it as `called`; `carried` are the columns of a whole event.

    Raises
    ------
    EventError
        An integer overflowed, a decimal has more digits than its type, or the caller's function raised an exception.
    """
    found = item_values(called, expression, planned, events, carried)
    is_computed = isinstance(expression, Operation) or (isinstance(expression, Aggregation) and expression.function == "sum")
    if is_computed and pa.types.is_decimal(found.type):
        _refuse_long_decimals(called, found)
    return found


def _refuse_long_decimals(called: str, computed: pa.Array) -> None:
    """Raise EventError for a decimal with more digits than its type holds, which Arrow would pass on."""
    kind, values = computed.type, machine_values(computed, "RETURN")
    limit = 10**kind.precision
    too_long = ((values >= limit) | (values <= -limit)) & computed.is_valid().to_numpy(zero_copy_only=False)
    if too_long.any():
        shown = Decimal(int(values[too_long.argmax()])).scaleb(-kind.scale)
        raise EventError(f"{called} is {shown}, which has more digits than {kind} holds; add 0e0 to it for a float")


def item_values(called: str, expression: Bound, planned: ReturnProgram | None, events: ReturnSource, carried: tuple[str, ...]) -> pa.Array:
    """Return the values of one RETURN item, as :func:`return_array`; decimals may have more digits than their type."""
    match expression:
        case Binding(variable=v, column=None):
            return events.whole(v, carried)
        case Binding(variable=v, column=int() as column):
            return events.attribute(v, column)
        case Field() | Aggregation() | Endpoint():
            return events.leaf(expression)
        case Constant() | Operation() if planned is not None:
            return _compute_item(called, planned, expression.type, events)
        case Constant(value=value):
            return pa.array([value] * len(events), pa.string())
    raise TypeError(f"no RETURN value for {type(expression).__name__}")


def return_type(expression: Bound, query: BoundQuery, schema: pa.Schema, carried: tuple[str, ...]) -> pa.DataType:
    """Return the Arrow type of a RETURN item over events of `schema`."""
    match expression:
        case Binding(variable=v, column=None):
            return whole_type(query, v, schema, carried)
        case Binding(column=int() as column):
            return pa.list_(_column_type(column, expression.type, schema))
        case Field(column=column) | Aggregation(function="first" | "last" | "min" | "max", column=int() as column):
            return _column_type(column, expression.type, schema)
        case Endpoint():
            return schema.field(query.timestamp).type
    return arrow_type(expression.type)


def whole_type(query: BoundQuery, v: int, schema: pa.Schema, carried: tuple[str, ...]) -> pa.DataType:
    """Return the Arrow type of the events bound to v."""
    event = pa.struct([schema.field(name) for name in carried])
    return pa.list_(event) if query.variables[v].quantified else event


def _column_type(column: int, data_type: DataType, schema: pa.Schema) -> pa.DataType:
    return schema.field(column).type if column < len(schema) else arrow_type(data_type)


def _extreme_of(sign: int) -> Any:
    """Return the function of an aggregate: min if the sign is 1, max if it is −1."""

    def pick(columns: EventColumns, column: int, values: pa.Array, offsets: Rows, result: DataType) -> pa.Array:
        found = np.empty(len(offsets) - 1, np.int64)
        extreme_places(0, len(found), offsets, *_comparable(columns, column, values), sign, found)
        return values.take(pa.array(found, mask=found < 0))

    return pick


def _count(columns: EventColumns, column: int, values: pa.Array, offsets: Rows, result: DataType) -> pa.Array:
    return pa.array(_count_present(_nulls(values), offsets))


def _sum(columns: EventColumns, column: int, values: pa.Array, offsets: Rows, result: DataType) -> pa.Array:
    sums, present, overflowed = _sum_values(columns, column, values, offsets)
    if overflowed.any():
        raise EventError(f"integer overflow in the sum of {columns.name(column)!r} over a binding; {WIDER_SUM}")
    return arrow_array(sums, present == 0, result)


def _avg(columns: EventColumns, column: int, values: pa.Array, offsets: Rows, result: DataType) -> pa.Array:
    sums, present, overflowed = _sum_values(columns, column, values, offsets)
    if overflowed.any():
        sums = np.where(overflowed, _wide_sums(*_comparable(columns, column, values), offsets), sums)
    return arrow_array(sums / np.maximum(present, 1) / _unit(columns, column), present == 0, FLOAT)


def _median(columns: EventColumns, column: int, values: pa.Array, offsets: Rows, result: DataType) -> pa.Array:
    ordered = sort_values(*_comparable(columns, column, values), offsets)
    return arrow_array(medians(ordered) / _unit(columns, column), np.diff(ordered.offsets) == 0, FLOAT)


def _count_distinct(columns: EventColumns, column: int, values: pa.Array, offsets: Rows, result: DataType) -> pa.Array:
    return pa.array(count_distinct(sort_values(*_comparable(columns, column, values), offsets)))


# Each takes the columns, the number of one, its values at the bound events, where those of each match begin, and the result's type.
_AGGREGATES = {
    "min": _extreme_of(1),
    "max": _extreme_of(-1),
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "median": _median,
    "count_distinct": _count_distinct,
}


def _unit(columns: EventColumns, column: int) -> float:
    """Return the machine value of 1 in a column."""
    source = columns.type(column)
    return 10.0**source.scale if source.kind is Kind.DECIMAL else 1.0


def _nulls(values: pa.Array) -> npt.NDArray[np.bool_]:
    nulls: npt.NDArray[np.bool_] = values.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _comparable(columns: EventColumns, column: int, values: pa.Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return machine values of a column's values, ranks for text, and where they are NULL."""
    if columns.type(column).kind is not Kind.STRING:
        return machine_values(values, columns.name(column)), _nulls(values)
    return pc.rank(_decode_dictionary(values), tiebreaker="dense").to_numpy().astype(np.int64), _nulls(values)


def _count_present(nulls: npt.NDArray[np.bool_], offsets: Rows) -> Indices:
    """Return the number of values in each match that are not NULL."""
    counts = np.empty(len(offsets) - 1, np.int64)
    count_present(0, len(counts), offsets, nulls, counts)
    return counts


class _Sums(NamedTuple):
    """The sum of the values in each match, the number of those that are not NULL, and whether 64 bits do not hold the sum."""

    sums: Array
    present: Indices
    overflowed: Flags


def _sum_values(columns: EventColumns, column: int, given: pa.Array, offsets: Rows) -> _Sums:
    """Return the sums of the given values of a column; integers are summed as such."""
    values, nulls = _comparable(columns, column, given)
    present, length = _count_present(nulls, offsets), len(offsets) - 1
    if values.dtype.kind == "f":
        sums = np.empty(length, np.float64)
        sum_floats(0, length, offsets, values.astype(np.float64, copy=False), nulls, sums)
        return _Sums(sums, present, np.zeros(length, np.bool_))
    totals, overflowed = _sum_integers(values.astype(np.int64, copy=False), nulls, offsets)
    return _Sums(totals, present, overflowed)


def _wide_sums(values: Array, nulls: npt.NDArray[np.bool_], offsets: Rows) -> npt.NDArray[np.float64]:
    """Return the sums of integers in each match as floats, also where 64 bits do not hold a sum.

    The upper and the lower 32 bits are summed apart, which no binding makes overflow, so that a sum is rounded once.
    """
    upper, lower = (_sum_integers(half, nulls, offsets)[0] for half in (values.astype(np.int64) >> 32, values.astype(np.int64) & _LOWER))
    return (upper + (lower >> 32)) * 2.0**32 + (lower & _LOWER)


def _sum_integers(values: Indices, nulls: npt.NDArray[np.bool_], offsets: Rows) -> tuple[Indices, Flags]:
    """Return the sums of integers in each match, and where they overflow."""
    totals, overflowed = np.empty(len(offsets) - 1, np.int64), np.empty(len(offsets) - 1, np.bool_)
    sum_ints(0, len(totals), offsets, values, nulls, totals, overflowed)
    return totals, overflowed


def _compute_item(called: str, planned: ReturnProgram, result: DataType, events: ReturnSource) -> pa.Array:
    """Return the values of an item that is computed by a program.

    The program's leaves become columns of a bank with one row for each match.
    """
    ints = [_leaf_machine_values(leaf, events) for leaf in planned.ints]
    floats = [_leaf_machine_values(leaf, events) for leaf in planned.floats]
    length = len(events)
    if is_float_program(planned.program):
        doubles = [(values.astype(np.float64, copy=False), nulls) for values, nulls in floats]
        values, missing = derive_column(planned.program, ints, doubles, length)
        return arrow_array(values, np.zeros(length, np.bool_) if missing is None else missing, result)
    vectors = stack_lists([centre_lists(events.leaf(leaf)) for leaf in planned.vectors], length)
    bank = make_bank(np, ints, floats, length, vectors)
    table, _ = assemble([planned.program], tabulator(events.columns))
    values, nulls, failed = evaluate(planned.program, table, bank)
    if failed >= 0:
        raise EventError(f"{failure(planned.program)} in {called}; {WIDER}")
    if planned.texts:
        return pc.choose(pa.array(values, mask=nulls), *(_text(text, events) for text in planned.texts))
    return arrow_array(values, nulls, result)


def _text(expression: Constant | Leaf, events: ReturnSource) -> pa.Array | pa.Scalar:
    text = pa.scalar(expression.value) if isinstance(expression, Constant) else _decode_dictionary(events.leaf(expression))
    return text.cast(pa.string())


def _leaf_machine_values(leaf: Leaf, events: ReturnSource) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return a leaf's machine values in each match, codes in place of text, and where they are NULL."""
    if leaf.type.kind is Kind.STRING and leaf.column is not None:
        return events.codes(leaf, leaf.column)
    array = events.leaf(leaf)
    if is_opaque(leaf.type):
        return np.zeros(len(array), np.int64), _nulls(array)
    # a row pattern has columns beyond those of its events, such as the number of the match
    named = leaf.column is not None and leaf.column < len(events.columns.schema)
    return machine_values(array, events.columns.schema.names[leaf.column] if named else str(leaf.type)), _nulls(array)


def _decode_dictionary(array: pa.Array) -> pa.Array:
    """Return the values of an array that may be dictionary-encoded."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array

"""RETURN: the values of its items, one per match."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.analysis.bound import Aggregation, Binding, Bound, BoundQuery, Constant, Endpoint, Field, Operation
from gpu_cep.analysis.types import FLOAT, INTEGER, DataType, Kind
from gpu_cep.engine.events.matches import Indices, Matches
from gpu_cep.engine.input.arrow_arrays import arrow_array, arrow_type
from gpu_cep.engine.input.event_columns import Array, EventColumns, machine_values
from gpu_cep.engine.input.vectors import centred, stacked_lists
from gpu_cep.engine.lowering.programs import assemble, evaluate, failure, make_bank, tabulator
from gpu_cep.errors import EventError
from gpu_cep.plan.event_plan import ReturnProgram
from gpu_cep.plan.programs import Leaf
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.matches.aggregates import count_present, extreme_places, sum_floats, sum_ints
from gpu_cep_kernels.phase_one.ordering import gather


class Returnable(Protocol):
    """What RETURN is computed from: the events that the matches bind, variable by variable."""

    @property
    def columns(self) -> EventColumns: ...

    def __len__(self) -> int:
        """The number of matches."""

    def whole(self, v: int, names: tuple[str, ...]) -> pa.Array:
        """The events bound to v, with the named columns."""

    def attribute(self, v: int, column: int) -> pa.Array:
        """A column's values at all events bound to v as one list for each match."""

    def leaf(self, leaf: Leaf) -> pa.Array:
        """The value of a field, an aggregate or an endpoint in each match."""

    def codes(self, leaf: Leaf, column: int) -> tuple[Array, npt.NDArray[np.bool_]]:
        """A text leaf as codes of its column's dictionary, and where it is NULL."""


class BoundEvents(ABC):
    """Bindings as input row numbers, variable by variable."""

    columns: EventColumns

    @abstractmethod
    def __len__(self) -> int:
        """The number of matches."""

    @abstractmethod
    def binding(self, v: int) -> tuple[Indices, Indices]:
        """Input rows bound to v, match after match, and where each match's begin (with the end)."""

    def absent(self, v: int) -> npt.NDArray[np.bool_] | None:
        """In which matches v binds nothing; None if in none."""
        return None

    def one(self, v: int, index: int = 0) -> pa.Array:
        """The input row of one event of v in each match, NULL where v is absent: the first (`index` 0) or the last (−1)."""
        rows, places = self.binding(v)
        missing = self.absent(v)
        if missing is None and len(rows) == len(self):
            return pa.array(rows)
        if missing is None:
            return pa.array(rows[places[:-1] if index == 0 else places[1:] - 1])
        chosen = np.zeros(len(missing), rows.dtype)
        chosen[~missing] = rows[(places[:-1] if index == 0 else places[1:] - 1)[~missing]]
        return pa.array(chosen, mask=missing)

    def take(self, column: int, rows: Indices | pa.Array) -> pa.Array:
        """A column's values at input rows; NULL for a NULL row."""
        return self.columns.take(column, rows if isinstance(rows, pa.Array) else pa.array(rows))

    def lists(self, v: int, values: pa.Array) -> pa.Array:
        """The values of all events bound to v as one list for each match, NULL where v is absent."""
        _, places = self.binding(v)
        if places[-1] > np.iinfo(np.int32).max:
            most = np.iinfo(np.int32).max
            raise EventError(f"the matches bind {places[-1]:,} events to one variable; a list column holds at most {most:,}")
        missing = self.absent(v)
        mask = None if missing is None else pa.array(missing)
        return pa.ListArray.from_arrays(pa.array(places.astype(np.int32)), values, mask=mask)

    def indices(self, v: int) -> pa.Array:
        """The input rows bound to v as one list for each match."""
        return self.lists(v, pa.array(self.binding(v)[0]))

    def whole(self, v: int, names: tuple[str, ...]) -> pa.Array:
        """The events bound to v, with the named columns: a struct, or a list of structs if v is quantified; NULL where v is absent."""
        if self.columns.query.variables[v].quantified:
            return self.lists(v, self.structs(pa.array(self.binding(v)[0]), names, None))
        return self.structs(self.one(v), names, self.absent(v))

    def attribute(self, v: int, column: int) -> pa.Array:
        """A column's values at all events bound to v as one list for each match."""
        return self.lists(v, self.take(column, self.binding(v)[0]))

    def leaf(self, leaf: Leaf) -> pa.Array:
        """The value of a field or an aggregate in each match."""
        match leaf:
            case Field(variable=v, column=column):
                return self.take(column, self.one(v))
            case Aggregation(function="first" | "last" as function, variable=v, column=int() as column):
                return self.take(column, self.one(v, 0 if function == "first" else -1))
            case Aggregation(function=function, variable=v, column=column):
                rows, places = self.binding(v)
                if column is None:
                    return pa.array(np.diff(places))
                return _AGGREGATES[function](self, column, rows, places, leaf.type)
        raise TypeError(f"no value for {type(leaf).__name__} inside an expression")

    def codes(self, leaf: Leaf, column: int) -> tuple[Array, npt.NDArray[np.bool_]]:
        """A text leaf as codes of its column's dictionary, and where it is NULL."""
        values = self.columns.text_values(column)
        if isinstance(leaf, Field):
            missing = self.absent(leaf.variable)
            codes, _ = self.columns.pick(column, pc.fill_null(self.one(leaf.variable), 0).to_numpy())
            codes = codes if missing is None else np.where(missing, len(values), codes)
        else:
            found = _plain(self.leaf(leaf)).cast(values.type)
            codes = pc.fill_null(pc.index_in(found, values), len(values)).to_numpy()
        return codes, codes == len(values)

    def structs(self, rows: pa.Array, names: tuple[str, ...], missing: npt.NDArray[np.bool_] | None) -> pa.Array:
        """Whole events, with the named columns, as structs; NULL where they are `missing`."""
        table = self.columns.table
        picked = [self.take(self.columns.query.schema.index(name), rows) for name in names]
        if not names:
            validity = None if missing is None else pa.array(~missing).buffers()[1]
            return pa.Array.from_buffers(pa.struct([]), len(rows), [validity])
        fields = [pa.field(name, table.schema.field(name).type) for name in names]
        return pa.StructArray.from_arrays(picked, fields=fields, mask=None if missing is None else pa.array(missing))


@dataclass
class MatchedEvents(BoundEvents):
    """The events of matches, split by variable once (or twice, where two threads ask at a time); `rows` are those of ordered events."""

    columns: EventColumns
    rows: Indices
    matches: Matches
    threads: int = 1
    _bindings: dict[int, tuple[Indices, Indices]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.matches)

    def binding(self, v: int) -> tuple[Indices, Indices]:
        if v not in self._bindings:
            events, places = self.matches.binding(v)
            rows = np.empty(len(events), np.int64)
            spread(lambda span: gather(*span, events, self.rows, rows), slices(len(rows), self.threads), self.threads)
            self._bindings[v] = (rows, places)
        return self._bindings[v]

    def absent(self, v: int) -> npt.NDArray[np.bool_] | None:
        if self.matches.single:
            return None
        missing = self.matches.counts[:, v] == 0
        return missing if missing.any() else None


def return_array(expression: Bound, planned: ReturnProgram | None, events: Returnable, carried: tuple[str, ...]) -> pa.Array:
    """The values of one RETURN item; `carried` are the columns of a whole event."""
    match expression:
        case Binding(variable=v, column=None):
            return events.whole(v, carried)
        case Binding(variable=v, column=int() as column):
            return events.attribute(v, column)
        case Field() | Aggregation() | Endpoint():
            return events.leaf(expression)
        case Constant() | Operation() if planned is not None:
            return _computed(planned, expression.type, events)
        case Constant(value=value):
            return pa.array([value] * len(events), pa.string())
    raise TypeError(f"no RETURN value for {type(expression).__name__}")


def return_type(expression: Bound, query: BoundQuery, schema: pa.Schema, carried: tuple[str, ...]) -> pa.DataType:
    """The Arrow type of a RETURN item over events of `schema`."""
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
    """The Arrow type of the events bound to v."""
    event = pa.struct([schema.field(name) for name in carried])
    return pa.list_(event) if query.variables[v].quantified else event


def _column_type(column: int, data_type: DataType, schema: pa.Schema) -> pa.DataType:
    return schema.field(column).type if column < len(schema) else arrow_type(data_type)


def _extreme(sign: int) -> Any:
    def pick(events: BoundEvents, column: int, rows: Indices, places: Indices, result: DataType) -> pa.Array:
        values, nulls = _bound_values(events, column, rows)
        found = np.empty(len(places) - 1, np.int64)
        extreme_places(0, len(found), places, values, nulls, sign, found)
        chosen = pa.array(rows[np.maximum(found, 0)] if len(rows) else found, mask=found < 0)
        return events.columns.take(column, chosen)

    return pick


def _count(events: BoundEvents, column: int, rows: Indices, places: Indices, result: DataType) -> pa.Array:
    return pa.array(_present(events, column, rows, places))


def _sum(events: BoundEvents, column: int, rows: Indices, places: Indices, result: DataType) -> pa.Array:
    sums, present = _sums(events, column, rows, places)
    return arrow_array(sums, present == 0, result)


def _avg(events: BoundEvents, column: int, rows: Indices, places: Indices, result: DataType) -> pa.Array:
    sums, present = _sums(events, column, rows, places)
    source = events.columns.type(column)
    unit = 10.0**source.scale if source.kind is Kind.DECIMAL else 1.0
    return arrow_array(sums / np.maximum(present, 1) / unit, present == 0, FLOAT)


_AGGREGATES = {"min": _extreme(1), "max": _extreme(-1), "count": _count, "sum": _sum, "avg": _avg}


def _bound_values(events: BoundEvents, column: int, rows: Indices) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Machine values at rows, text as its rank, and where they are NULL."""
    picked = events.take(column, rows)
    nulls = picked.is_null().to_numpy(zero_copy_only=False)
    if events.columns.type(column).kind is not Kind.STRING:
        return machine_values(picked, events.columns.name(column)), nulls
    return pc.rank(_plain(picked), tiebreaker="dense").to_numpy().astype(np.int64), nulls


def _present(events: BoundEvents, column: int, rows: Indices, places: Indices) -> Indices:
    counts = np.empty(len(places) - 1, np.int64)
    count_present(0, len(counts), places, events.take(column, rows).is_null().to_numpy(zero_copy_only=False), counts)
    return counts


def _sums(events: BoundEvents, column: int, rows: Indices, places: Indices) -> tuple[Array, Indices]:
    values, nulls = _bound_values(events, column, rows)
    length = len(places) - 1
    present = np.empty(length, np.int64)
    count_present(0, length, places, nulls, present)
    if values.dtype.kind == "f":
        sums = np.empty(length, np.float64)
        sum_floats(0, length, places, values.astype(np.float64, copy=False), nulls, sums)
        return sums, present
    totals, overflowed = np.empty(length, np.int64), np.empty(length, np.bool_)
    sum_ints(0, length, places, values.astype(np.int64, copy=False), nulls, totals, overflowed)
    if overflowed.any():
        raise EventError(f"integer overflow in the sum of {events.columns.name(column)!r} over a binding")
    return totals, present


def _computed(planned: ReturnProgram, result: DataType, events: Returnable) -> pa.Array:
    """An item that is computed: its leaves become columns of a bank with one row per match."""
    ints = [_machine_leaf(leaf, events) for leaf in planned.ints]
    floats = [_machine_leaf(leaf, events) for leaf in planned.floats]
    length = len(events)
    vectors = stacked_lists([centred(events.leaf(leaf)) for leaf in planned.vectors], length)
    bank = make_bank(np, ints, floats, length, vectors)
    table, _ = assemble([planned.program], tabulator(events.columns))
    values, nulls, failed = evaluate(planned.program, table, bank)
    if failed >= 0:
        raise EventError(f"{failure(planned.program)} in a RETURN item")
    return arrow_array(values, nulls, result)


def _machine_leaf(leaf: Leaf, events: Returnable) -> tuple[Array, npt.NDArray[np.bool_]]:
    if leaf.type.kind is Kind.STRING and leaf.column is not None:
        return events.codes(leaf, leaf.column)
    array = events.leaf(leaf)
    return machine_values(array, leaf.type.name or str(INTEGER)), array.is_null().to_numpy(zero_copy_only=False)


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array

"""Look up the input rows of the events that matches bind, no more of them than a result reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.bound import BoundPattern, BoundQuery
from gpu_cep.analysis.bound_expressions import Aggregation, Binding, Field
from gpu_cep.analysis.types import Kind
from gpu_cep.engine.events.matches import BoundRows, Ends, FoundMatches, Indices, Rows, bound_singles
from gpu_cep.engine.events.placed_matches import rows_of_match
from gpu_cep.engine.input.arrow_arrays import masked_array
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.output.ordered_values import OrderedValues
from gpu_cep.engine.output.returns import BoundEvents, read_leaves
from gpu_cep.identity import while_alive
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.compile.launch import threads_for

# A variable, and whether its last event is meant, not its first.
End = tuple[int, bool]


class EventsRead(NamedTuple):
    """What a result reads of the events of matches.

    It reads the rows of all events of some variables, ascending, the rows of the ends of others, and,
    by column, values at ends of columns that are held in the order of events.
    """

    whole: tuple[int, ...]
    ends: tuple[End, ...] = ()
    held: tuple[tuple[int, tuple[End, ...]], ...] = ()


@dataclass
class MatchedEvents(BoundEvents):
    """The events of matches, looked up by variable: by :meth:`gather`, or when those of a variable are first asked for.

    ``rows[e]`` is the input row of ordered event e, and `held` are the columns that lie in that order. At most
    `threads` threads work, and one where matches are few. Two threads that ask for a variable at one time both
    look its events up, with the same result.
    """

    columns: EventColumns
    rows: Indices
    matches: FoundMatches
    threads: int = 1
    held: OrderedValues = field(default_factory=dict)
    _bindings: dict[int, BoundRows] = field(default_factory=dict)
    _ends: dict[End, Indices] = field(default_factory=dict)
    _values: dict[tuple[int, End], Indices] = field(default_factory=dict)
    _common: dict[int, pa.Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.threads = threads_for(len(self) * len(self.columns.query.positives), self.threads)

    def __len__(self) -> int:
        return len(self.matches)

    def gather(self, read: EventsRead) -> None:
        """Look events up together, by all threads: threads that make columns would wait for it."""
        lists, ends = _lookups(read.whole, read.ends, _quantified(self.columns.query) if not self.matches.single else frozenset())
        self._list(lists)
        held = {column: self._without_lists(asked) for column, asked in read.held}
        times = self.columns.query.timestamp
        if times in self.held:
            of_matches = (self._end(*end) for end in self._ends_of_matches if end is not None)
            held[times] = tuple(sorted({*held.get(times, ()), *of_matches}))
        # a variable without a row binds nothing
        present = [] if self.matches.binds_all else [(v, False) for own in held.values() for v, _ in own]
        self._pick(tuple(sorted({*ends, *present})))
        for column, own in held.items():
            self._hold(column, own)

    def _without_lists(self, asked: tuple[End, ...]) -> tuple[End, ...]:
        """Return the ends, ascending, of variables whose events are not all looked up."""
        return tuple(sorted({self._end(v, last) for v, last in asked if v not in self._bindings}))

    def binding(self, v: int) -> BoundRows:
        if self.matches.single:
            return bound_singles(self._row(v)[np.newaxis])[0]
        if v not in self._bindings:
            self._list((v,))
        return self._bindings[v]

    def event_row(self, v: int, index: int = 0) -> pa.Array:
        return super().event_row(v, index) if v in self._bindings else masked_array(self._row(v, index == -1), self.absent(v))

    def value(self, v: int, column: int, index: int = 0) -> pa.Array:
        if self.matches.binds_all and column in _common_columns(self.columns.query):
            return self._common_value(column)
        if column not in self.held or v in self._bindings:
            return super().value(v, column, index)
        return self._held_value(column, self._end(v, index == -1))

    def _common_value(self, column: int) -> pa.Array:
        """Return a column's value in each match, all of whose events have it: it is looked up once for all variables."""
        if column not in self._common:
            self._common[column] = self.take(column, self.event_row(0))
        return self._common[column]

    def _held_value(self, column: int, end: End) -> pa.Array:
        """Return a held column's value at an end; NULL where the variable is absent."""
        if (column, end) not in self._values:
            self._hold(column, (end,))
        return self._as_column(column, masked_array(self._values[column, end], self.absent(end[0])))

    def event_values(self, v: int, column: int) -> tuple[pa.Array, Rows]:
        if column not in self.held or not self._has_list(v):
            return super().event_values(v, column)
        ((bits, offsets),) = self.matches.bound_rows(np.array([v], np.int64), self.held[column], self.threads)
        return self._as_column(column, masked_array(bits)), offsets

    def value_of_match(self, column: int, *, last: bool) -> pa.Array:
        """Return a column's value at the first or last event of each match."""
        end = self._ends_of_matches[last]
        if end is not None and column in self.held:
            # also where all events of the variable are looked up
            return self._held_value(column, self._end(*end))
        if end is not None:
            return self.value(end[0], column, -1 if last else 0)
        if column in self.held:
            return self._as_column(column, pa.array(rows_of_match(self.matches, self.held[column], last=last)))
        return self.take(column, rows_of_match(self.matches, self.rows, last=last))

    @cached_property
    def _ends_of_matches(self) -> tuple[End | None, End | None]:
        """Return the ends of variables that are the first and the last event of every match; None if matches differ in that."""
        return _extreme_ends(self.columns.query) if self.matches.binds_all else (None, None)

    def _as_column(self, column: int, bits: pa.Array) -> pa.Array:
        """Return 64 bits of each value as values of a column."""
        return bits.view(self.columns.schema.field(column).type)

    def numbers_bound(self, v: int) -> npt.NDArray[np.integer[Any]]:
        return super().numbers_bound(v) if v in self._bindings else np.ascontiguousarray(self.matches.counts[:, v])

    def absent(self, v: int) -> npt.NDArray[np.bool_] | None:
        if self.matches.binds_all:
            return None
        missing = self.numbers_bound(v) == 0 if v in self._bindings else self._row(v) < 0
        return missing if missing.any() else None

    def _has_list(self, v: int) -> bool:
        """Return whether v binds several events in some match."""
        return self.columns.query.variables[v].quantified and not self.matches.single

    def _end(self, v: int, last: bool) -> End:
        """Return an end of v; where it binds one event at most, both are the first."""
        return v, last and self._has_list(v)

    def _row(self, v: int, last: bool = False) -> Indices:
        """Return the input row of the first or last event that v binds in each match; −1 where it binds none."""
        end = self._end(v, last)
        if end not in self._ends:
            self._pick((end,))
        return self._ends[end]

    def _pick(self, ends: tuple[End, ...]) -> None:
        """Look up the input rows of ascending ends."""
        self._ends.update(self._at_ends(ends, self.rows))

    def _hold(self, column: int, ends: tuple[End, ...]) -> None:
        """Look up the bits of a held column at ascending ends."""
        self._values.update(((column, end), bits) for end, bits in self._at_ends(ends, self.held[column]))

    def _at_ends(self, ends: tuple[End, ...], values: Indices) -> Iterator[tuple[End, Indices]]:
        """Yield the values of events at ascending ends."""
        if not ends:
            return
        if self.matches.single:
            yield from zip(ends, self.matches.rows_of_singles(_asked(ends).variables, values, self.threads), strict=True)
        else:
            yield from zip(ends, self.matches.rows_of_ends(_asked(ends), values, self.threads), strict=True)

    def _list(self, variables: tuple[int, ...]) -> None:
        """Look up the input rows of all events of ascending variables that bind several."""
        if variables:
            found = self.matches.bound_rows(np.array(variables, np.int64), self.rows, self.threads)
            self._bindings.update(zip(variables, found, strict=True))


@while_alive
def _quantified(query: BoundQuery) -> frozenset[int]:
    """Return the variables that may bind several events."""
    return frozenset(v for v, variable in enumerate(query.variables) if variable.quantified)


@while_alive
def _common_columns(query: BoundQuery) -> frozenset[int]:
    """Return the input columns that have one value in all events of a match that binds all variables; not floats: 0.0 equals -0.0."""
    agreed = [frozenset(branch.agreed) for branch in query.branches] if isinstance(query, BoundPattern) else []
    common = frozenset(query.partition_by).union(frozenset.intersection(*agreed) if agreed else ())
    inputs = (column for column in common if column < len(query.schema.attributes))
    return frozenset(column for column in inputs if query.column_type(column).kind not in (Kind.FLOAT, Kind.OTHER))


@while_alive
def _extreme_ends(query: BoundQuery) -> tuple[End | None, End | None]:
    """Return the ends of variables that are the first and the last event of every match that binds all; None if none always is."""
    if not isinstance(query, BoundPattern) or len(query.branches) > 1:
        return None, None
    (branch,) = query.branches
    first = next((v for v in branch.variables if branch.begins_with(v)), None)
    last = next((v for v in branch.variables if branch.ends_with(v)), None)
    return None if first is None else (first, False), None if last is None else (last, True)


@lru_cache(maxsize=256)
def _lookups(
    whole: tuple[int, ...], ends: tuple[End, ...], quantified: frozenset[int]
) -> tuple[tuple[int, ...], tuple[End, ...]]:  # fmt: skip
    """Return the variables of which all events are looked up, and the ends of others, given those that may bind several events."""
    lists = tuple(v for v in whole if v in quantified)
    asked = {(v, last and v in quantified) for v, last in [*((v, False) for v in whole), *ends] if v not in lists}
    return lists, tuple(sorted(asked))


@lru_cache(maxsize=256)
def _asked(ends: tuple[End, ...]) -> Ends:
    """Return ends as arrays, which are shared."""
    variables, last = zip(*ends, strict=True)
    return Ends(np.array(variables, np.int64), np.array(last, np.bool_))


def all_events(plan: Plan) -> EventsRead:
    """Return that the rows of all events are read."""
    return EventsRead(tuple(range(len(plan.query.positives))))


def events_read(plan: Plan, held: OrderedValues) -> EventsRead:
    """Return what RETURN reads of the events, of which `held` columns need no rows; all if there is no RETURN."""
    query = plan.query
    if not query.returns:
        every = all_events(plan)
        return every._replace(held=tuple((column, tuple((v, False) for v in every.whole)) for column in held))
    items = zip(query.returns, plan.returns, strict=True)
    whole: set[int] = set()
    ends: set[End] = set()
    values: dict[int, set[End]] = {}
    for leaf in (leaf for item, planned in items for leaf in read_leaves(item.expression, planned)):
        match leaf:
            case Field(variable=v, column=column) if column in held:
                values.setdefault(column, set()).add((v, False))
            case Aggregation(function="first" | "last" as function, variable=v, column=int() as column) if column in held:
                values.setdefault(column, set()).add((v, function == "last"))
            case Field(variable=v):
                ends.add((v, False))
            case Aggregation(function="first" | "last" as function, variable=v, column=int()):
                ends.add((v, function == "last"))
            case Aggregation(variable=v, column=int() as column) if column in held and query.variables[v].quantified:
                continue
            case Binding(variable=v) | Aggregation(variable=v, column=int()):
                whole.add(v)
    return EventsRead(tuple(sorted(whole)), tuple(sorted(ends)), tuple((column, tuple(sorted(own))) for column, own in values.items()))

"""Write matches of situations as Arrow tables, in each form of `output`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gpu_cep.analysis.bind_intervals import DETECTED_AT
from gpu_cep.engine.events.event_sequence import EventSequence
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.arrow_arrays import masked_array
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.intervals.events import MatchedSituations
from gpu_cep.engine.intervals.matches import IntervalMatches
from gpu_cep.engine.lowering.lists import offsets as list_offsets
from gpu_cep.engine.output.moments import times_of
from gpu_cep.engine.output.result_tables import (
    MATCH_END,
    MATCH_START,
    ColumnOf,
    carried_columns,
    count_fields,
    event_fields,
    event_number_columns,
    index_fields,
    known_schema,
    match_fields,
    numbered,
)
from gpu_cep.engine.output.returns import return_array
from gpu_cep.plan.event_plan import Plan
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import over_slices, spread
from gpu_cep_kernels.matches.flat_matches import repeat_bindings


def interval_schema(plan: IntervalPlan, schema: pa.Schema) -> pa.Schema:
    """Return the schema of the result over events of `schema`.

    Raises
    ------
    PatternError
        Two columns of the result would have one name, or `columns=` names one that is not there.
    UnsupportedError
        The result would hold a column of a type that Arrow cannot copy.
    """
    return known_schema(plan, schema, _fields)


def _fields(plan: IntervalPlan, schema: pa.Schema) -> list[pa.Field]:
    return _SCHEMAS[plan.settings.output](plan, schema, carried_columns(plan, schema))


_TIMES = (MATCH_START, MATCH_END, DETECTED_AT)
_SCHEMAS: dict[str, Callable[[Plan, pa.Schema, tuple[str, ...]], list[pa.Field]]] = {
    "matches": partial(match_fields, times=_TIMES),
    "events": event_fields,
    "indices": index_fields,
    "count": count_fields,
}


@record()
class IntervalResult:
    """What the table of a run is made of: its matches, in the order of results, and their situations.

    `events`: the events, to which the numbers in `matches` belong.
    """

    plan: IntervalPlan
    events: EventSequence
    matches: IntervalMatches
    situations: MatchedSituations
    threads: int

    @property
    def columns(self) -> EventColumns:
        """Return the columns of the events."""
        return self.situations.columns

    @property
    def carried(self) -> tuple[str, ...]:
        """Return the columns of whole events that the result has."""
        return carried_columns(self.plan, self.columns.schema)


def interval_table(result: IntervalResult) -> pa.Table:
    """Return the matches as a table; threads build columns side by side."""
    schema = interval_schema(result.plan, result.columns.schema)
    made = _TABLES[result.plan.settings.output](result) + _end_columns(result)
    return pa.Table.from_arrays(spread(lambda column: column(), made, result.threads), schema=schema)


def _match_columns(result: IntervalResult) -> list[ColumnOf]:
    """Return functions that make a value of each column for each match."""
    plan, columns, matches, situations, carried = result.plan, result.columns, result.matches, result.situations, result.carried
    query = plan.query
    first = pa.array(result.events.input_rows(matches.first))
    made: list[ColumnOf] = [partial(columns.take, column, first) for column in (*query.partition_by, query.timestamp)]
    made += [partial(times_of, columns, matches.end, matches.is_open), partial(times_of, columns, matches.detected, None)]
    if query.returns:
        items = zip(query.returns, plan.returns, strict=True)
        return made + [
            partial(return_array, f"RETURN item {item.name!r}", item.expression, planned, situations, carried) for item, planned in items
        ]
    return made + [partial(situations.whole, v, carried) for v in range(len(query.variables))]


def _event_columns(result: IntervalResult) -> list[ColumnOf]:
    """Return functions that make a value of each column for each event of a match."""
    schema, bound = result.plan.query.schema, _bound_rows(result.situations, result.threads)
    names = [each.name for each in result.plan.query.variables]
    made = event_number_columns(bound.sizes, bound.offsets, _stream_numbers(result.situations), names, result.threads)
    return made + [partial(result.columns.take, schema.index(name), masked_array(bound.rows)) for name in result.carried]


def _index_columns(result: IntervalResult) -> list[ColumnOf]:
    """Return functions that make the input rows of each name for each match."""
    return numbered(result.columns, (partial(result.situations.indices, v) for v in range(len(result.plan.query.variables))))


_TABLES: dict[str, Callable[[IntervalResult], list[ColumnOf]]] = {
    "matches": _match_columns,
    "events": _event_columns,
    "indices": _index_columns,
}


def _end_columns(result: IntervalResult) -> list[ColumnOf]:
    """Return functions that make the columns of the plan's `ends`, for each match or for each event of one."""
    plan, situations = result.plan, result.situations
    if not plan.ends:
        return []
    repeats = _sizes(situations).sum(axis=1) if plan.settings.output == "events" else 1
    last = np.maximum.reduce([own.last[places] for own, places in zip(situations.names, situations.places, strict=True)])
    ends = [pa.array(np.repeat(result.events.input_rows(bound), repeats)) for bound in (result.matches.first, last)]
    return [partial(result.columns.take, column, rows) for rows in ends for column in plan.ends]


def _stream_numbers(situations: MatchedSituations) -> Indices:
    """Return ascending stream numbers for matches that are sorted by stream."""
    streams = situations.names[0].stream[situations.places[0]]
    return np.cumsum(np.diff(streams, prepend=streams[:1]) != 0)


class _BoundRows(NamedTuple):
    """The input rows of all events, match by match and name by name.

    `offsets`: where those of each match begin, with the end.
    `sizes`: how many there are, [match, name].
    """

    rows: Indices
    offsets: Indices
    sizes: Indices


def _bound_rows(situations: MatchedSituations, threads: int) -> _BoundRows:
    """Return the input rows of the events of all matches."""
    sizes = _sizes(situations)
    rows, begins = _joined_ranges(situations)
    firsts = accumulate((len(own) for own in situations.names), initial=0)
    chosen = np.stack([places + first for places, first in zip(situations.places, firsts, strict=False)], axis=1).ravel()
    places = list_offsets(sizes.ravel())
    bound = new_values(int(places[-1]), np.int64)
    over_slices(repeat_bindings, len(chosen), threads, chosen, begins, rows, places, bound)
    # numba compiles a kernel anew for an array with gaps
    return _BoundRows(bound, np.ascontiguousarray(places[:: len(situations.names)]), sizes)


def _joined_ranges(situations: MatchedSituations) -> tuple[Array, Indices]:
    """Return input rows, and where those of each situation begin among them, name after name."""
    rows, begins = zip(*((own.ranges.rows, own.ranges.begins) for own in situations.names), strict=True)
    if all(own is rows[0] for own in rows):
        return rows[0], np.concatenate(begins)
    firsts = accumulate(map(len, rows), initial=0)
    return np.concatenate(rows), np.concatenate([own + first for own, first in zip(begins, firsts, strict=False)])


def _sizes(situations: MatchedSituations) -> Indices:
    """Return the number of events, [match, name]."""
    return np.stack([own.sizes[places] for own, places in zip(situations.names, situations.places, strict=True)], axis=1)

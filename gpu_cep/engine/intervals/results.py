"""Write matches of situations as Arrow tables, in each form of `output`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate

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


def interval_table(
    plan: IntervalPlan, columns: EventColumns, events: EventSequence, matches: IntervalMatches, situations: MatchedSituations, threads: int
) -> pa.Table:
    """Return the matches as a table, in the order of results; `threads` columns are built side by side."""
    schema = interval_schema(plan, columns.schema)
    carried = carried_columns(plan, columns.schema)
    made = _TABLES[plan.settings.output](plan, columns, events, matches, situations, carried, threads)
    made += _end_columns(plan, columns, events, matches, situations)
    return pa.Table.from_arrays(spread(lambda column: column(), made, threads), schema=schema)


def _match_columns(
    plan: IntervalPlan, columns: EventColumns, events: EventSequence, matches: IntervalMatches, situations: MatchedSituations,
    carried: tuple[str, ...], threads: int,
) -> list[ColumnOf]:  # fmt: skip
    query = plan.query
    first = pa.array(events.input_rows(matches.first))
    made: list[ColumnOf] = [partial(columns.take, column, first) for column in (*query.partition_by, query.timestamp)]
    made += [partial(times_of, columns, matches.end, matches.is_open), partial(times_of, columns, matches.detected, None)]
    if query.returns:
        items = zip(query.returns, plan.returns, strict=True)
        return made + [
            partial(return_array, f"RETURN item {item.name!r}", item.expression, planned, situations, carried) for item, planned in items
        ]
    return made + [partial(situations.whole, v, carried) for v in range(len(query.variables))]


def _event_columns(
    plan: IntervalPlan, columns: EventColumns, events: EventSequence, matches: IntervalMatches, situations: MatchedSituations,
    carried: tuple[str, ...], threads: int,
) -> list[ColumnOf]:  # fmt: skip
    rows, offsets, sizes = bound_rows(situations, threads)
    names = [each.name for each in plan.query.variables]
    made = event_number_columns(sizes, offsets, _stream_numbers(situations), names, threads)
    return made + [partial(columns.take, plan.query.schema.index(name), masked_array(rows)) for name in carried]


def _end_columns(
    plan: IntervalPlan, columns: EventColumns, events: EventSequence, matches: IntervalMatches, situations: MatchedSituations
) -> list[ColumnOf]:  # fmt: skip
    """Return functions that make the columns of the plan's `ends`, for each match or for each event of one."""
    if not plan.ends:
        return []
    repeats = _sizes(situations).sum(axis=1) if plan.settings.output == "events" else 1
    last = np.maximum.reduce([own.last[places] for own, places in zip(situations.names, situations.places, strict=True)])
    ends = [pa.array(np.repeat(events.input_rows(bound), repeats)) for bound in (matches.first, last)]
    return [partial(columns.take, column, rows) for rows in ends for column in plan.ends]


def _stream_numbers(situations: MatchedSituations) -> Indices:
    """Return ascending stream numbers for matches that are sorted by stream."""
    streams = situations.names[0].stream[situations.places[0]]
    return np.cumsum(np.diff(streams, prepend=streams[:1]) != 0)


def bound_rows(situations: MatchedSituations, threads: int) -> tuple[Indices, Indices, Indices]:
    """Return the input rows of all events, match by match and name by name.

    The second array says where each match's begin, with the end. The third one is the number of events, [match, name].
    """
    sizes = _sizes(situations)
    rows, begins = _joined_ranges(situations)
    firsts = accumulate((len(own) for own in situations.names), initial=0)
    chosen = np.stack([places + first for places, first in zip(situations.places, firsts, strict=False)], axis=1).ravel()
    places = list_offsets(sizes.ravel())
    bound = new_values(int(places[-1]), np.int64)
    over_slices(repeat_bindings, len(chosen), threads, chosen, begins, rows, places, bound)
    # numba compiles a kernel anew for an array with gaps
    return bound, np.ascontiguousarray(places[:: len(situations.names)]), sizes


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


def _index_columns(
    plan: IntervalPlan, columns: EventColumns, events: EventSequence, matches: IntervalMatches, situations: MatchedSituations,
    carried: tuple[str, ...], threads: int,
) -> list[ColumnOf]:  # fmt: skip
    return numbered(columns, (partial(situations.indices, v) for v in range(len(plan.query.variables))))


_TABLES: dict[str, Callable[..., list[ColumnOf]]] = {"matches": _match_columns, "events": _event_columns, "indices": _index_columns}

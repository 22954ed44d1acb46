"""Write matches as Arrow tables, in each form of `output`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.events.matches import Flags, Indices
from gpu_cep.engine.input.arrow_arrays import masked_array
from gpu_cep.engine.input.buffers import new_values, values_at
from gpu_cep.engine.input.encodings import is_copied
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.schema_memo import SchemaMemo
from gpu_cep.engine.output.kinds import Beside, with_kind_columns, with_kinds
from gpu_cep.engine.output.matched_events import MatchedEvents, all_events, events_read
from gpu_cep.engine.output.returns import return_array, return_type, whole_type
from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError, list_choices, nearest
from gpu_cep.identity import WeakIdentity
from gpu_cep.plan.event_plan import Plan, PlanT
from gpu_cep_kernels.compile.launch import over_slices, spread
from gpu_cep_kernels.matches.flat_matches import number_bound
from gpu_cep_kernels.matches.groups import group_begins

MATCH_START, MATCH_END = "match_start", "match_end"
_EVENT_COLUMNS = (("match_id", pa.int64()), ("variable", pa.string()), ("event_index", pa.int64()))
_NODE_COLUMNS = (
    ("part", pa.int64()),
    ("stream", pa.int64()),
    ("node", pa.int64()),
    ("group", pa.int64()),
    ("variable", pa.string()),
    ("position", pa.int64()),
    ("moment", pa.int64()),
    ("predecessors", pa.list_(pa.struct([("first", pa.int64()), ("last", pa.int64())]))),
    ("start", pa.bool_()),
    ("latest_start", pa.int64()),
    ("earliest_start", pa.int64()),
    ("row", pa.int64()),
)


def result_schema(plan: Plan, schema: pa.Schema) -> pa.Schema:
    """Return the schema of the result over events of `schema`; no event is needed.

    Raises
    ------
    PatternError
        Two columns of the result would have one name, or `columns=` names one that is not there.
    UnsupportedError
        The result would hold a column of a type that Arrow cannot copy.
    """
    return known_schema(plan, schema, _fields)


def _fields(plan: Plan, schema: pa.Schema) -> list[pa.Field]:
    return with_kinds(plan, schema, _SCHEMAS[plan.settings.output](plan, schema, carried_columns(plan, schema)))


# Over few events the schema takes a twentieth of the time.
_known_schemas: SchemaMemo[WeakIdentity[Plan], pa.Schema] = SchemaMemo(1024, metadata=True)


def known_schema(plan: PlanT, schema: pa.Schema, fields: Callable[[PlanT, pa.Schema], list[pa.Field]]) -> pa.Schema:
    """Return the schema of a result with `fields`, which are asked for once for each plan; raises as :func:`result_schema`."""
    return _known_schemas.of(WeakIdentity(plan), schema, lambda own: _checked(plan, own, fields(plan, own) + end_fields(plan, own)))


def _checked(plan: Plan, schema: pa.Schema, fields: list[pa.Field]) -> pa.Schema:
    """Return the schema of a result with these fields; raises as :func:`result_schema`."""
    names = [field.name for field in fields]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise PatternError([Diagnostic(f"the result would have two columns {name!r}", hint=_clash_hint(plan, name)) for name in twice])
    if not all(is_copied(field.type) for field in fields):
        raise UnsupportedError([_not_copied(field) for field in schema if not is_copied(field.type)])
    return pa.schema(fields)


def _not_copied(field: pa.Field) -> Diagnostic:
    return Diagnostic(
        f"the column {field.name!r} of type {field.type} in the result is not supported", hint="leave it out, with columns= or RETURN"
    )


def _clash_hint(plan: Plan, name: str) -> str:
    """Return what to rename so that two columns do not have one name.

    Items of RETURN come here beside columns that timeouts or detected_at= add; all others are checked when the query is bound.
    """
    if plan.settings.output == "events":
        return "rename the input column, or leave it out with columns="
    if plan.settings.output == "matches" and any(item.name == name for item in plan.query.returns):
        return "name it otherwise with AS"
    variables = [variable.name for variable in plan.query.positives]
    if plan.settings.output != "matches" or name not in variables:
        return "rename the input column"
    keys = [plan.query.schema.names[column] for column in plan.query.partition_by]
    return f"rename the variable {name}{', since keys of streams are columns, too' if name in keys else ''}"


def carried_columns(plan: Plan, schema: pa.Schema) -> tuple[str, ...]:
    """Return the input columns that whole events carry: all, or those of `columns=`."""
    chosen = plan.settings.columns
    if chosen is None:
        return tuple(schema.names)
    missing = [name for name in chosen if name not in schema.names]
    if missing:
        hints = {name: nearest(name, schema.names) or f"there are {list_choices(name, schema.names)}" for name in missing}
        raise PatternError([Diagnostic(f"columns: there is no column {name!r}", hint=hint) for name, hint in hints.items()])
    twice = sorted({name for name in chosen if chosen.count(name) > 1})
    if twice:
        raise PatternError([Diagnostic(f"columns: {name!r} is named twice") for name in twice])
    return chosen


def match_fields(
    plan: Plan, schema: pa.Schema, carried: tuple[str, ...], times: tuple[str, ...] = (MATCH_START, MATCH_END)
) -> list[pa.Field]:  # fmt: skip
    """Return the fields of output="matches", a row for each match.

    They are keys, `times`, and RETURN's items or whole events.
    """
    query = plan.query
    time = schema.field(query.timestamp).type
    fields = [*_key_fields(plan, schema), *(pa.field(name, time) for name in times)]
    if query.returns:
        return fields + [pa.field(item.name, return_type(item.expression, query, schema, carried)) for item in query.returns]
    return fields + [pa.field(variable.name, whole_type(query, v, schema, carried)) for v, variable in enumerate(query.positives)]


def event_fields(plan: Plan, schema: pa.Schema, carried: tuple[str, ...]) -> list[pa.Field]:
    """Return the fields of output="events", a row for each event of a match."""
    return [pa.field(name, kind) for name, kind in _EVENT_COLUMNS] + [schema.field(name) for name in carried]


def index_fields(plan: Plan, schema: pa.Schema, carried: tuple[str, ...]) -> list[pa.Field]:
    """Return the fields of output="indices", a row for each match: the input rows of each variable."""
    return [pa.field(v.name, pa.list_(pa.int64()) if v.quantified else pa.int64()) for v in plan.query.positives]


def count_fields(plan: Plan, schema: pa.Schema, carried: tuple[str, ...]) -> list[pa.Field]:
    """Return the fields of output="count", a row for each stream: keys and the number of matches."""
    return [*_key_fields(plan, schema), pa.field("count", pa.int64())]


def _node_fields(plan: Plan, schema: pa.Schema, carried: tuple[str, ...]) -> list[pa.Field]:
    """Return the fields of output="compressed", a row for each node of the graph."""
    event = pa.field("event", pa.struct([schema.field(name) for name in carried]))
    return [*_key_fields(plan, schema), *(pa.field(name, kind) for name, kind in _NODE_COLUMNS), event]


def _key_fields(plan: Plan, schema: pa.Schema) -> list[pa.Field]:
    return [schema.field(column) for column in plan.query.partition_by]


def end_fields(plan: Plan, schema: pa.Schema) -> list[pa.Field]:
    """Return the fields of the plan's `ends`: columns at a match's first event, then at its last."""
    return [schema.field(column).with_name(f"{schema.names[column]}_{end}") for end in ("first", "last") for column in plan.ends]


_SCHEMAS: dict[str, Callable[[Plan, pa.Schema, tuple[str, ...]], list[pa.Field]]] = {
    "matches": match_fields,
    "events": event_fields,
    "indices": index_fields,
    "count": count_fields,
    "compressed": _node_fields,
}


# Makes one column of the result.
ColumnOf = Callable[[], pa.Array]


def match_table(
    plan: Plan, events: MatchedEvents, streams: Indices, *, beside: Beside | None = None, final: Flags | None = None
) -> pa.Table:  # fmt: skip
    """Return the matches, whose `events` are given, in the form of `output`, or their numbers.

    ``streams[m]`` is match m's stream number (ascending). `beside` is what stands beside matches
    that say when they are certain. `final` are the matches that are settled, which is told by NULL
    in the last column of ends (None: none). A thread makes one column at a time.
    """
    if plan.settings.output == "count":
        return _match_counts(plan, events, streams, final)
    columns, matches = events.columns, len(events)
    schema = result_schema(plan, columns.schema)
    made = _TABLES[plan.settings.output](plan, events, streams)
    if beside is not None:
        made = with_kind_columns(plan, columns, matches, made, beside)
    made += _end_columns(plan, events, final)
    arrays = spread(lambda column: column(), made, events.threads)
    return pa.Table.from_arrays(arrays, schema=schema)


def _end_columns(plan: Plan, events: MatchedEvents, final: Flags | None) -> list[ColumnOf]:
    """Return functions that make the columns of :func:`end_fields`, the last of which is NULL for `final` matches."""
    if not plan.ends:
        return []
    matches = events.matches
    # a row for each match, or for each event of one
    repeats = matches.counts.sum(axis=1) if plan.settings.output == "events" else 1
    first, last = (np.repeat(events.rows[bound], repeats) for bound in (matches.first, matches.last))
    taken = _rows_of_ends(plan, first, last, None if final is None else np.repeat(final, repeats))
    return [partial(events.take, column, rows) for column, rows in taken]


def _rows_of_ends(plan: Plan, first: Indices, last: Indices, final: Flags | None) -> list[tuple[int, pa.Array]]:
    """Return the columns of :func:`end_fields`, each with the rows that it is read from: NULL in the last one for `final` matches."""
    told = [(column, pa.array(rows)) for rows in (first, last) for column in plan.ends]
    return [*told[:-1], (plan.ends[-1], pa.array(last, mask=final))]


def _match_columns(plan: Plan, events: MatchedEvents, streams: Indices) -> list[ColumnOf]:
    query, carried = plan.query, carried_columns(plan, events.columns.schema)
    events.gather(events_read(plan, events.held))
    ends = [(column, False) for column in query.partition_by] + [(query.timestamp, False), (query.timestamp, True)]
    columns: list[ColumnOf] = [partial(events.value_of_match, column, last=last) for column, last in ends]
    if query.returns:
        items = zip(query.returns, plan.returns, strict=True)
        return columns + [
            partial(return_array, f"RETURN item {item.name!r}", item.expression, planned, events, carried) for item, planned in items
        ]
    return columns + [partial(events.whole, v, carried) for v in range(len(query.positives))]


def _event_columns(plan: Plan, events: MatchedEvents, streams: Indices) -> list[ColumnOf]:
    matches, carried = events.matches, carried_columns(plan, events.columns.schema)
    rows = values_at(events.rows, matches.events, events.threads)
    names = [variable.name for variable in plan.query.positives]
    numbers = event_number_columns(matches.counts, matches.offsets, streams, names, events.threads)
    return numbers + [partial(events.take, plan.query.schema.index(name), rows) for name in carried]


def event_number_columns(
    counts: npt.NDArray[np.integer[Any]], offsets: Indices, streams: Indices, names: list[str], threads: int
) -> list[ColumnOf]:  # fmt: skip
    """Return functions that make the columns match_id, variable and event_index of output="events".

    Match m binds ``counts[m, v]`` events to the variable ``names[v]``; all of its events begin at row
    ``offsets[m]``. Its stream number is ``streams[m]`` (ascending).
    """
    begins = group_begins(streams)
    given = np.arange(len(streams)) - np.repeat(begins, np.diff(begins, append=len(streams)))
    match_ids, variables, places = (new_values(int(offsets[-1]), kind) for kind in (np.int64, np.int32, np.int64))
    bound = np.ascontiguousarray(counts, np.int32)
    over_slices(number_bound, len(given), threads, given, bound, offsets, match_ids, variables, places)
    of_rows = pa.DictionaryArray.from_arrays(masked_array(variables), pa.array(names))
    return [partial(masked_array, match_ids), of_rows.dictionary_decode, partial(masked_array, places)]


def _index_columns(plan: Plan, events: MatchedEvents, streams: Indices) -> list[ColumnOf]:
    events.gather(all_events(plan))
    of_variables = (
        partial(events.indices if variable.quantified else events.event_row, v) for v, variable in enumerate(plan.query.positives)
    )
    return numbered(events.columns, of_variables)


def numbered(columns: EventColumns, of_rows: Iterable[ColumnOf]) -> list[ColumnOf]:
    """Return functions that make the same columns of rows, with their numbers in the caller's input."""
    if columns.numbers is None:
        return list(of_rows)

    def number(rows: ColumnOf) -> pa.Array:
        return columns.numbers_of(rows())

    return [partial(number, rows) for rows in of_rows]


_TABLES: dict[str, Callable[[Plan, MatchedEvents, Indices], list[ColumnOf]]] = {
    "matches": _match_columns,
    "events": _event_columns,
    "indices": _index_columns,
}


def _match_counts(plan: Plan, events: MatchedEvents, streams: Indices, final: Flags | None) -> pa.Table:
    """Return the number of matches in each `partition_by` stream that has any.

    Without keys, it is that of the one stream, even if that is 0. If the plan tells the ends of matches, each match has a row
    with its ends, except for those that are `final`: these are counted together.
    """
    if plan.ends:
        return _counts_with_ends(plan, events, streams, final)
    if not plan.query.partition_by:
        return count_table(plan, events.columns, np.empty(0, np.int64), np.array([len(events)], np.int64))
    borders = group_begins(streams)
    return count_table(plan, events.columns, events.rows[events.matches.first[borders]], np.diff(borders, append=len(streams)))


def _counts_with_ends(plan: Plan, events: MatchedEvents, streams: Indices, final: Flags | None) -> pa.Table:
    """Return a row with the number of the `final` matches of each stream, and rows of 1 with the ends of the others."""
    columns, rows, matches = events.columns, events.rows, events.matches
    counted = np.flatnonzero(np.zeros(len(matches), np.bool_) if final is None else final)
    borders = group_begins(streams[counted])
    others = np.arange(len(matches)) if final is None else np.flatnonzero(~final)
    shown = np.concatenate([counted[borders], others])
    counts = np.concatenate([np.diff(borders, append=len(counted)), np.ones(len(others), np.int64)])
    first, last = rows[matches.first[shown]], rows[matches.last[shown]]
    ends = _rows_of_ends(plan, first, last, np.arange(len(shown)) < len(borders))
    behind = [columns.take(column, rows) for column, rows in ends]
    return pa.Table.from_arrays([*_keys(plan, columns, first), pa.array(counts), *behind], schema=result_schema(plan, columns.schema))


def count_table(plan: Plan, columns: EventColumns, stream_rows: Indices, counts: Indices) -> pa.Table:
    """Return the numbers of matches by stream; `stream_rows` holds one input row of each stream."""
    return pa.Table.from_arrays([*_keys(plan, columns, stream_rows), pa.array(counts)], schema=result_schema(plan, columns.schema))


def _keys(plan: Plan, columns: EventColumns, rows: Indices) -> list[pa.Array]:
    """Return the keys of the streams that have these rows; of a stream with 0.0 and -0.0, which are equal, it is 0.0."""
    return [plain_zeros(columns.take(column, pa.array(rows))) for column in plan.query.partition_by]


def plain_zeros(keys: pa.Array) -> pa.Array:
    """Return keys with 0.0 in the place of -0.0: which row stands for a stream depends on how its events were divided."""
    return pc.add(keys, pa.scalar(0, keys.type)) if pa.types.is_float32(keys.type) or pa.types.is_float64(keys.type) else keys

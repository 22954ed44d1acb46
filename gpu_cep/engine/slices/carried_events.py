"""Carry the last event of each stream from one slice of time to the next.

It shows whether a situation begins with the first event of the next slice, or before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from gpu_cep.engine.events.own_events import TimeSlice
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.events.tie_ranks import rank_rows
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.input_events import Rows
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.parquet_files import PartOfFiles
from gpu_cep.engine.input.read_tables import to_host
from gpu_cep.engine.input.time_cut import FileSlice
from gpu_cep.engine.input.timed_events import timed_events
from gpu_cep.engine.input.times import load_times
from gpu_cep.plan.event_plan import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """The last event of each stream before a time, as plain text, and the numbers of these rows."""

    events: pa.Table
    numbers: Rows

    @classmethod
    def nothing(cls, schema: pa.Schema) -> Carried:
        """Return what is carried to the first slice."""
        return cls(schema.empty_table(), np.empty(0, np.int64))


def carry_on(plan: Plan, carried: Carried, part: PartOfFiles, own: FileSlice) -> tuple[PartOfFiles, Carried]:
    """Return the events that a run over the slice `own` reads, and what is carried to the next slice.

    Those events are what was `carried` here, and the events of `part` that are not before the slice.
    """
    part = _from(plan, part, own.begin)
    assert part.numbers is not None, "the rows of slices are numbered"
    table = pa.concat_tables([_in_types(carried.events, part.table.schema), part.table])
    numbers = np.concatenate([carried.numbers, part.numbers])
    last = _last_of_streams(plan, table, TimeSlice(end=own.end))
    # with plain text, since a dictionary would be kept as a whole for each value of it
    after = Carried(_in_types(table.take(last), part.schema).combine_chunks(), numbers[last])
    return replace(part, table=table, numbers=numbers), after


def _from(plan: Plan, part: PartOfFiles, begin: int | float | None) -> PartOfFiles:
    """Return the events of a part from the time `begin` on, without those that the query leaves out."""
    timed, kept = timed_events(plan.query, part.table)
    table, numbers = to_host(timed), part.numbers
    assert numbers is not None, "the rows of slices are numbered"
    numbers = numbers if kept is None else numbers[kept]
    inside = TimeSlice(begin).holds(_times(plan, table))
    if inside.all():
        return replace(part, table=table, numbers=numbers)
    return replace(part, table=table.filter(pa.array(inside)), numbers=numbers[inside])


def _last_of_streams(plan: Plan, table: pa.Table, within: TimeSlice) -> Rows:
    """Return the row of the last event of each stream that has one `within` a time."""
    columns = EventColumns(table, plan.query, plan.dictionaries)
    times, keys = load_times(columns, plan.query.timestamp), encode_keys(columns, plan.query.partition_by)
    rows = np.flatnonzero(within.holds(times))
    streams = np.zeros(len(rows), np.int64) if keys.codes is None else keys.codes[rows]
    latest = np.zeros(keys.count, times.dtype)
    # any time of the stream will do to begin with
    latest[streams] = times[rows]
    np.maximum.at(latest, streams, times[rows])
    at_last = times[rows] == latest[streams]
    rows, streams = rows[at_last], streams[at_last]
    ranks = rank_rows(columns, plan.query.order_by, rows)
    order = np.lexsort([ranks, streams] if ranks.size else [streams])
    ordered = streams[order]
    ends = np.append(ordered[1:] != ordered[:-1], np.ones(min(1, len(order)), np.bool_))
    found: Rows = rows[order[ends]]
    return found


def _in_types(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the table in the types of a schema."""
    # only types that differ are cast: pyarrow cannot cast some nested types, not even to the same type
    pairs = zip(table.columns, schema.types, strict=True)
    return pa.Table.from_arrays([column if column.type == kind else column.cast(kind) for column, kind in pairs], schema=schema)


def _times(plan: Plan, table: pa.Table) -> Array:
    return load_times(EventColumns(table, plan.query, plan.dictionaries), plan.query.timestamp)

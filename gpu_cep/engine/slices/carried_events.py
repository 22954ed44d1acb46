"""Find the last event of each stream, which a slice of time is told beside its own events.

That of earlier slices shows whether a situation begins with the first event of a slice, or before.
That of all files shows that a gap has ended a situation, however late the next event comes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from gpu_cep.engine.events.own_events import TimeSlice
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.events.tie_ranks import rank_rows
from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.grouped_files import GroupedFiles
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.parquet_files import PartOfFiles
from gpu_cep.engine.input.row_numbers import Rows
from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.input.time_cut import FileSlice
from gpu_cep.engine.input.times import load_times
from gpu_cep.engine.slices.loading import in_types, numbers_of
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.phase_one.ordering import DISORDERED, order_faults


def nothing_of(files: GroupedFiles) -> PartOfFiles:
    """Return no event of some files, which is what is carried to the first slice."""
    return PartOfFiles(no_rows(files.schema), files.schema, np.empty(0, np.int64))


def last_rows(plan: Plan, columns: EventColumns, within: TimeSlice) -> Rows:
    """Return the row of the last event of each stream that has one `within` a time, ascending."""
    times, keys = load_times(columns, plan.query.timestamp), encode_keys(columns, plan.query.partition_by)
    streams = np.zeros(len(times), np.int32) if keys.codes is None else keys.codes
    rows = np.flatnonzero(within.holds(times))
    if plan.query.order_by or order_faults(0, len(times), times) & DISORDERED:
        rows = rows[_at_last_time(times[rows], streams[rows], keys.count)]
        alike = np.bincount(streams[rows], minlength=1).max() > 1
        ranks = rank_rows(columns, plan.query.order_by, rows) if alike else rows[:0]
        rows = rows[np.argsort(ranks, kind="stable")] if ranks.size else rows
    last = np.full(keys.count, -1, np.int64)
    # of the events of one stream, the one that is assigned last stays
    last[streams[rows]] = rows
    found: Rows = np.sort(last[last >= 0])
    return found


def last_of_streams(plan: Plan, columns: EventColumns, part: PartOfFiles, end: Tick | None) -> PartOfFiles:
    """Return the last event before the time `end` of each stream in a part, of which `columns` are the columns.

    They are in the order of rows.
    """
    last = last_rows(plan, columns, TimeSlice(end=end))
    # with plain text, since a dictionary would be kept as a whole for each value of it
    table = in_types(part.table.take(last), part.schema).combine_chunks()
    return replace(part, table=table, numbers=numbers_of(part)[last])


def events_behind(plan: Plan, last: PartOfFiles, own: FileSlice) -> PartOfFiles:
    """Return those of the `last` events of streams that come too late to bear on the matches of a slice."""
    times = load_times(EventColumns(last.table, plan.query, plan.dictionaries, threads=1), plan.query.timestamp)
    behind = times > np.asarray(own.high, times.dtype)
    return replace(last, table=last.table.filter(pa.array(behind)), numbers=numbers_of(last)[behind])


def _at_last_time(times: Array, streams: Array, count: int) -> Array:
    """Return which events have the last time of their stream."""
    latest = np.zeros(count, times.dtype)
    # any time of the stream will do to begin with
    latest[streams] = times
    np.maximum.at(latest, streams, times)
    found: Array = times == latest[streams]
    return found

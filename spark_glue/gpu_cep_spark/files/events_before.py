"""Find the last event of each stream before a slice of time: it shows whether a situation begins in the slice, or has begun before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.ticks import preceding
from gpu_cep.engine.input.times import load_times
from gpu_cep.engine.slices.carried_events import last_rows
from gpu_cep.engine.slices.loading import in_types
from gpu_cep.plan.event_plan import Plan
from gpu_cep_spark.files.reading import Earlier, Reading, Share, read_earlier

ColumnsOf = Callable[[pa.Table], EventColumns]

# Row groups of so many rows are read back together, since to begin a reading takes as long.
TOGETHER = 1 << 17


def last_events_before(plan: Plan, what: Reading, share: Share, events: pa.Table, columns_of: ColumnsOf, profile: Profile) -> pa.Table:
    """Return the last event before a share of each stream that has events in it, in the order of time.

    Row groups are read back until none of those left can have a stream's last event. A stream that begins in the share has all of
    them read.

    Parameters
    ----------
    plan
        The plan over whole streams.
    what, share
        How files are read, and what this task reads of them.
    events
        The events of the share, as :func:`gpu_cep_spark.files.reading.read_share` gives them; the result has their schema.
    columns_of
        Returns the columns of such a table as the plan reads them.
    profile
        Receives the counts of what is read.

    Raises
    ------
    EventError
        A file has changed or gone since the query was made, or cannot be read; the message names it.
    """
    assert share.own.begin is not None, "nothing is before the first slice"
    # with plain text, since a dictionary would be kept as a whole for each value of it
    plain = pa.schema([what.schema.field(name).with_name(f"c{place}") for place, name in enumerate(what.columns)])
    sought = in_types(events.take(_row_of_each(plan, columns_of(events))), plain)
    found: list[pa.Table] = []
    last, left = plain.empty_table(), share.earlier
    while left and sought.num_rows:
        number = _at_once(left, sought.num_rows)
        near = read_earlier(what, left[:number], preceding(share.own.begin), profile)
        near = near.filter(_are_of(plan, near, sought, columns_of))
        both = pa.concat_tables([last, in_types(near.take(last_rows(plan, columns_of(near), WHOLE)), plain)])
        last, left = both.take(last_rows(plan, columns_of(both), WHOLE)), left[number:]
        surely = _are_later(plan, columns_of(last), left)
        found.append(last.filter(surely))
        last = last.filter(pc.invert(surely))
        sought = sought.filter(pc.invert(_are_of(plan, sought, found[-1], columns_of)))
    return in_types(pa.concat_tables([last, *found]).sort_by(plain.names[what.timestamp]), events.schema)


def _row_of_each(plan: Plan, columns: EventColumns) -> Array:
    """Return a row of each stream."""
    streams, count = _streams(plan, columns)
    rows = np.full(count, -1, np.int64)
    # of the rows of one stream, the one that is assigned last stays
    rows[streams] = np.arange(len(columns))
    return rows[rows >= 0]


def _at_once(left: Sequence[Earlier], streams: int) -> int:
    """Return how many row groups are read next: fewer cannot have an event of each of so many streams, or are few rows."""
    rows = np.cumsum([each.rows for each in left])
    return min(len(left), max(1, int(np.searchsorted(rows, TOGETHER, side="right")), int(np.searchsorted(rows, streams)) + 1))


def _are_of(plan: Plan, events: pa.Table, sought: pa.Table, columns_of: ColumnsOf) -> pa.Array:
    """Return which events are of streams that have one among those `sought`."""
    streams, count = _streams(plan, columns_of(pa.concat_tables([in_types(sought, events.schema), events])))
    wanted = np.zeros(count, np.bool_)
    wanted[streams[: sought.num_rows]] = True
    return pa.array(wanted[streams[sought.num_rows :]])


def _are_later(plan: Plan, columns: EventColumns, left: Sequence[Earlier]) -> pa.Array:
    """Return which events are later than all of the row groups that are `left`, of which the first has the latest."""
    times = load_times(columns, plan.query.timestamp)
    return pa.array(times > left[0].latest if left else np.ones(len(times), np.bool_))


def _streams(plan: Plan, columns: EventColumns) -> tuple[Array, int]:
    """Return the number of each event's stream, and how many numbers there are."""
    keys = encode_keys(columns, plan.query.partition_by)
    return (np.zeros(len(columns), np.int64) if keys.codes is None else keys.codes), keys.count

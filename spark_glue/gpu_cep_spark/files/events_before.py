"""Find the last event of each stream before a slice of time: it shows whether a situation begins in the slice, or has begun before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.matches import Flags
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.ticks import Tick, preceding
from gpu_cep.engine.input.times import load_times
from gpu_cep.engine.slices.carried_events import last_rows
from gpu_cep.engine.slices.loading import in_types
from gpu_cep.plan.event_plan import Plan
from gpu_cep_spark.files.reading import Reading, Share, read_earlier

ColumnsOf = Callable[[pa.Table], EventColumns]


def last_events_before(plan: Plan, what: Reading, share: Share, events: pa.Table, columns_of: ColumnsOf, profile: Profile) -> pa.Table:
    """Return the last event before a share of each stream that has events in it, in the order of time, and maybe of others.

    Row groups are read back one after the other, until none of those left can have a stream's last event. A stream that begins
    in the share has all of them read.

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
    last = plain.empty_table()
    for earlier in share.earlier:
        sought = sought.filter(pa.array(~_known(plan, last, sought, columns_of, earlier.latest)))
        if not sought.num_rows:
            break
        near = _of_streams(plan, read_earlier(what, earlier, preceding(share.own.begin), profile), sought, columns_of)
        of_group = in_types(near.take(last_rows(plan, columns_of(near), WHOLE)), plain)
        both = pa.concat_tables([last, of_group])
        last = both.take(last_rows(plan, columns_of(both), WHOLE))
    return in_types(last.sort_by(plain.names[what.timestamp]), events.schema)


def _row_of_each(plan: Plan, columns: EventColumns) -> Array:
    """Return a row of each stream."""
    streams, count = _streams(plan, columns)
    rows = np.full(count, -1, np.int64)
    # of the rows of one stream, the one that is assigned last stays
    rows[streams] = np.arange(len(columns))
    return rows[rows >= 0]


def _of_streams(plan: Plan, events: pa.Table, sought: pa.Table, columns_of: ColumnsOf) -> pa.Table:
    """Return the events of the streams that are `sought`."""
    streams, count = _streams(plan, columns_of(pa.concat_tables([in_types(sought, events.schema), events])))
    wanted = np.zeros(count, np.bool_)
    wanted[streams[: sought.num_rows]] = True
    return events.filter(pa.array(wanted[streams[sought.num_rows :]]))


def _known(plan: Plan, last: pa.Table, sought: pa.Table, columns_of: ColumnsOf, latest: Tick) -> Flags:
    """Return which of the streams that are `sought` have a `last` event behind all that are no later than `latest`."""
    columns = columns_of(pa.concat_tables([last, sought]))
    (streams, count), times = _streams(plan, columns), load_times(columns, plan.query.timestamp)
    known, held = np.zeros(count, np.bool_), slice(0, last.num_rows)
    known[streams[held][times[held] > latest]] = True
    return known[streams[last.num_rows :]]


def _streams(plan: Plan, columns: EventColumns) -> tuple[Array, int]:
    """Return the number of each event's stream, and how many numbers there are."""
    keys = encode_keys(columns, plan.query.partition_by)
    return (np.zeros(len(columns), np.int64) if keys.codes is None else keys.codes), keys.count

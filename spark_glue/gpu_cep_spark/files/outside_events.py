"""Find events of streams outside a slice of time, on which matches of situations bear that start in it.

The last event before the slice shows whether a situation begins in it, or has begun before. Any event behind all that the slice holds
shows that a gap has ended a situation, however late it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.ticks import following, preceding
from gpu_cep.engine.input.times import load_times
from gpu_cep.engine.slices.carried_events import last_rows
from gpu_cep.engine.slices.loading import in_types
from gpu_cep.plan.event_plan import Plan
from gpu_cep_spark.files.reading import Outside, Reading, Share, read_outside

# Row groups of so many rows are read together, since to begin a reading takes as long.
TOGETHER = 1 << 17
# Events among which streams are looked for at a time: their numbers fit in a core's cache, and often no more are needed.
AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class OutsideEvents:
    """Find events of the streams of a share that are outside it; row groups are read until each stream has what it needs.

    Parameters
    ----------
    plan
        The plan over whole streams.
    what, share
        How files are read, and what this task reads of them.
    columns_of
        Returns the columns of a table of events as the plan reads them.
    profile
        Receives the counts of what is read.
    """

    plan: Plan
    what: Reading
    share: Share
    columns_of: Callable[[pa.Table], EventColumns]
    profile: Profile

    def last_before(self, events: pa.Table) -> pa.Table:
        """Return the last event before the share of each stream that has some of `events`, in the order of time.

        A stream that begins in the share has all row groups before it read.

        Parameters
        ----------
        events
            The events of the share, as :func:`gpu_cep_spark.files.reading.read_share` gives them; the result has their schema.

        Raises
        ------
        EventError
            A file has changed or gone since the query was made, or cannot be read; the message names it.
        """
        if not self.share.earlier:
            return events.slice(0, 0)
        assert self.share.own.begin is not None, "nothing is before the first slice"
        before = preceding(self.share.own.begin)
        sought, left, found = self._one_of_each(events), self.share.earlier, list[pa.Table]()
        last = sought.slice(0, 0)
        while left and sought.num_rows:
            number = _at_once(left, sought.num_rows)
            near = self._last(read_outside(self.what, left[:number], None, before, self.profile))
            both = pa.concat_tables([last, self._of_streams(near, sought)])
            last, left = self._last(both), left[number:]
            surely = self._are_later(last, left)
            found.append(last.filter(surely))
            last = last.filter(pc.invert(surely))
            sought = self._others(sought, found[-1])
        return self._by_time([last, *found], events.schema)

    def one_behind(self, events: pa.Table) -> pa.Table:
        """Return an event later than all of the share of each stream that has some of `events`, as :meth:`last_before` does.

        A stream that ends in the share has all row groups behind it read.
        """
        if not self.share.later:
            return events.slice(0, 0)
        assert self.share.high is not None, "nothing is behind the last slice"
        behind = following(self.share.high)
        sought, left, found = self._one_of_each(events), self.share.later, list[pa.Table]()
        while left and sought.num_rows:
            number = _at_once(left, sought.num_rows)
            near = self._one_of_each(read_outside(self.what, left[:number], behind, None, self.profile))
            left = left[number:]
            found.append(self._of_streams(near, sought))
            sought = self._others(sought, found[-1])
        return self._by_time([sought.slice(0, 0), *found], events.schema)

    def _plain(self, events: pa.Table) -> pa.Table:
        """Return events with plain text, since a dictionary would be kept as a whole for each value of it."""
        fields = [self.what.schema.field(name).with_name(f"c{place}") for place, name in enumerate(self.what.columns)]
        return in_types(events, pa.schema(fields))

    def _one_of_each(self, events: pa.Table) -> pa.Table:
        """Return an event of each stream."""
        streams, count = self._streams(events)
        rows = np.full(count, -1, np.int64)
        for begin in range(0, len(streams), AT_ONCE):
            part = streams[begin : begin + AT_ONCE]
            # of the rows of one stream, the one that is assigned last stays
            rows[part] = np.arange(begin, begin + len(part))
            if rows.min() >= 0:
                break
        return self._plain(events.take(rows[rows >= 0]))

    def _last(self, events: pa.Table) -> pa.Table:
        """Return the last event of each stream."""
        return self._plain(events.take(last_rows(self.plan, self.columns_of(events), WHOLE)))

    def _of_streams(self, events: pa.Table, sought: pa.Table) -> pa.Table:
        """Return the events of streams that have one among those `sought`."""
        return events.filter(self._are_of(events, sought))

    def _others(self, events: pa.Table, known: pa.Table) -> pa.Table:
        """Return the events of streams that have none among those `known`."""
        return events.filter(pc.invert(self._are_of(events, known)))

    def _are_of(self, events: pa.Table, sought: pa.Table) -> pa.Array:
        streams, count = self._streams(pa.concat_tables([in_types(sought, events.schema), events]))
        wanted = np.zeros(count, np.bool_)
        wanted[streams[: sought.num_rows]] = True
        return pa.array(wanted[streams[sought.num_rows :]])

    def _are_later(self, events: pa.Table, left: Sequence[Outside]) -> pa.Array:
        """Return which events are later than all of the row groups that are `left`, of which the first has the latest."""
        times = load_times(self.columns_of(events), self.plan.query.timestamp)
        return pa.array(times > left[0].latest if left else np.ones(len(times), np.bool_))

    def _by_time(self, parts: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
        """Return the events of some parts in the order of time, in the types of `schema`."""
        return in_types(pa.concat_tables(parts).sort_by(f"c{self.what.timestamp}"), schema)

    def _streams(self, events: pa.Table) -> tuple[Array, int]:
        """Return the number of each event's stream, and how many numbers there are."""
        keys = encode_keys(self.columns_of(events), self.plan.query.partition_by)
        return (np.zeros(events.num_rows, np.int64) if keys.codes is None else keys.codes), keys.count


def _at_once(left: Sequence[Outside], streams: int) -> int:
    """Return how many row groups are read next: fewer cannot have an event of each of so many streams, or are few rows."""
    rows = np.cumsum([each.rows for each in left])
    return min(len(left), max(1, int(np.searchsorted(rows, TOGETHER, side="right")), int(np.searchsorted(rows, streams)) + 1))

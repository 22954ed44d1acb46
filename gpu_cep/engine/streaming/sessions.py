"""Cut the events of each key into sessions: a key that was silent for longer than its time to live begins anew.

A window of a number of events is over with an event alone, so that the last events of every key would be kept for ever.
Hence it holds events of one session. Once a key has been silent for too long, its session is closed: its windows are
over, and nothing is kept of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from gpu_cep.engine.events.matches import Flags, Indices, Rows
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.ticks import Tick, window_end
from gpu_cep.engine.slices.sliced_plan import SlicedPlan
from gpu_cep.engine.streaming.certainty import earliest_open
from gpu_cep.engine.streaming.state import Times
from gpu_cep.plan.event_plan import EventPlan, Plan
from gpu_cep_kernels.matches.groups import order_by_group


@dataclass(frozen=True, slots=True, eq=False)
class Sessions:
    """The sessions of events that are known.

    `numbers`: the session of each event. `behind`: how many events of its session follow each event.
    `last`: the time of the last event of each session. `followed`: whether a later session of its key has begun.
    """

    numbers: Indices
    behind: Indices
    last: Times
    followed: Flags

    def are_closed(self, until: Tick | None, time_to_live: Tick) -> Flags:
        """Return which sessions no event can join any more if events are known up to a time; None: no event comes any more."""
        if until is None:
            return np.ones(len(self.last), np.bool_)
        closed: Flags = self.followed | (self.last < earliest_open(until, time_to_live))
        return closed

    def are_over(self, events: int, closed: Flags) -> Flags:
        """Return at which events a window of so many `events` is over, if these sessions are closed."""
        over: Flags = closed[self.numbers] | (self.behind >= events - 1)
        return over


def find_sessions(streams: Indices, times: Times, order: Rows | None, time_to_live: Tick) -> Sessions:
    """Return the sessions of events of some streams and times; `order` has them in the order of each stream (None: they are in it)."""
    ordered = streams if order is None else streams[order]
    places, _ = order_by_group(ordered, int(ordered.max(initial=-1)) + 1)
    by_stream = places if order is None else order[places]
    own, at = streams[by_stream], times[by_stream]
    begins = np.ones(len(own), np.bool_)
    begins[1:] = (own[1:] != own[:-1]) | _are_silences(at, time_to_live)
    firsts = np.flatnonzero(begins)
    ends = np.append(firsts[1:], len(own))[: len(firsts)]
    numbers, behind = np.empty((2, len(own)), np.int64)
    numbers[by_stream] = in_order = np.cumsum(begins) - 1
    behind[by_stream] = ends[in_order] - 1 - np.arange(len(own))
    followed = np.append(own[firsts[1:]] == own[firsts[:-1]], False)[: len(firsts)]
    return Sessions(numbers, behind, at[ends - 1], followed)


def _are_silences(times: Times, length: Tick) -> Flags:
    """Return whether more than a length of time lies between each event of a stream and the next one."""
    if times.dtype.kind == "f":
        return np.diff(times) > length
    # without a sign no difference overflows
    return np.diff(times.view(np.uint64)) > np.uint64(length)


def streams_of_events(plan: Plan, events: pa.Table) -> Indices:
    """Return the number of the stream of each event, by `partition_by`."""
    codes = encode_keys(EventColumns(events, plan.query, plan.dictionaries, threads=1), plan.query.partition_by).codes
    return np.zeros(events.num_rows, np.int64) if codes is None else codes.astype(np.int64)


def first_closing(plan: Plan, events: pa.Table, times: Times, time_to_live: Tick) -> Tick | None:
    """Return the watermark at which the first session of events, which are in order of time, is closed; None of no events."""
    if not len(times):
        return None
    streams = streams_of_events(plan, events)
    last = np.full(int(streams.max()) + 1, times[-1])
    # of several values for one place, the last one is taken
    last[streams] = times
    return window_end(last.min().item(), time_to_live)


def by_sessions(sliced: SlicedPlan, place: int) -> SlicedPlan:
    """Return the plan with sessions as streams in its runs; column `place` of the events has their numbers."""
    plan = sliced.plan
    assert isinstance(plan, EventPlan), "situations have windows of time"
    keys = (*plan.query.partition_by, place)
    return replace(sliced, plan=replace(plan, query=replace(plan.query, partition_by=keys), stream_keys=keys, slice_key=place))


def with_numbers(name: str, events: pa.Table, schema: pa.Schema, sessions: Indices) -> tuple[pa.Table, pa.Schema]:
    """Return events of a schema with the numbers of their sessions in a last column, and the schema with that."""
    field = pa.field(name, pa.int64())
    return events.append_column(field, pa.array(sessions)), schema.append(field)


def without_numbers(sliced: SlicedPlan, name: str, found: pa.Table) -> pa.Table:
    """Return the result of a run without the numbers of sessions; matched events have a number for each match of a stream."""
    if name not in found.column_names:
        return found
    if sliced.whole.settings.output == "events":
        # their first column has the numbers of matches, which begin anew in each session
        ids, sessions = found.column(0).to_numpy(), found.column(name).to_numpy()
        moved = (ids[1:] != ids[:-1]) | (sessions[1:] != sessions[:-1])
        numbers = np.append(np.zeros(min(len(ids), 1), np.int64), np.cumsum(moved))
        found = found.set_column(0, found.schema.field(0), pa.array(numbers))
    return found.drop_columns([name])

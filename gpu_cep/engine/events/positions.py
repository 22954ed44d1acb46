"""Number events in streams that no single table holds.

A position is a time, and a number among the stream's events of that time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.event_sequence import NO_POSITION
from gpu_cep.engine.events.matches import Indices, Rows
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.events.tie_ranks import rank_rows
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.times import load_times
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.matches.flat_matches import select_disjoint
from gpu_cep_kernels.matches.groups import order_by_group
from gpu_cep_kernels.phase_one.ordering import order_faults_of_streams

# Numbers of pairs of a time and a place must stay below.
_MOST_NUMBERS = 1 << 63

# Positions in streams: times, and numbers among the events of one time.
Positions = tuple[Array, Indices]


def positions_of_events(plan: Plan, columns: EventColumns) -> Positions:
    """Return the positions of all events.

    These are their times (int64 or float64), and how many events of their stream and time come
    before. Streams are those of `partition_by`. The table holds all of a stream's events of one
    time, or none.
    """
    times = load_times(columns, plan.query.timestamp)
    if (times[1:] > times[:-1]).all():
        # most often no two events have the same time
        return times, np.zeros(len(times), np.int64)
    keys = encode_keys(columns, plan.query.partition_by)
    streams = np.zeros(len(times), np.int32) if keys.codes is None else keys.codes
    if not order_faults_of_streams(streams, times, np.full(keys.count, NO_POSITION, np.int32)):
        # events have the same time, but none of one stream
        return times, np.zeros(len(times), np.int64)
    rows = _by_stream_and_time(streams, times)
    moved = (times[rows[1:]] != times[rows[:-1]]) | (streams[rows[1:]] != streams[rows[:-1]])
    moments = np.concatenate([np.zeros(min(len(rows), 1), np.int64), np.cumsum(moved)])
    tied = np.flatnonzero(np.bincount(moments)[moments] > 1)
    moments, rows = moments[tied], rows[tied]
    ranks = rank_rows(columns, plan.query.order_by, rows)
    order = np.lexsort([ranks, moments]) if ranks.size else np.arange(len(rows))
    places = np.zeros(len(times), np.int64)
    places[rows[order]] = np.arange(len(rows)) - np.searchsorted(moments, moments)
    return times, places


def _by_stream_and_time(streams: Rows, times: Array) -> Indices:
    """Return the rows of events by stream and time, in a stable order; those whose time no other event has may be left out."""
    if not (times[1:] >= times[:-1]).all():
        return np.lexsort([times, streams])
    alike = np.concatenate([[False], times[1:] == times[:-1], [False]])
    rows = np.flatnonzero(alike[1:] | alike[:-1])
    order, _ = order_by_group(streams[rows].astype(np.int64), int(streams.max(initial=-1)) + 1)
    return rows[order]


def choose_disjoint(streams: Indices, first: Positions, last: Positions) -> npt.NDArray[np.bool_]:
    """Return True for the matches that are chosen if none may overlap another of its stream.

    They are taken in order of completion, each behind the last one chosen (SASE+'s format). `first`
    and `last` are the positions of their first and last events. No two matches of a stream have the
    same first event. A match may be given several times; it is then chosen each time or never.
    """
    begins, ends = _number_positions(streams, first, last)
    order = order_rows_by_stream(streams, [begins, ends])
    streams, begins, ends = streams[order], begins[order], ends[order]
    repeated = (streams[1:] == streams[:-1]) & (begins[1:] == begins[:-1])
    matches = np.flatnonzero(np.append(np.ones(min(len(order), 1), np.bool_), ~repeated))
    taken, chosen = np.empty(len(matches), np.bool_), np.empty(len(order), np.bool_)
    select_disjoint(np.arange(len(matches)), streams[matches], begins[matches], ends[matches], taken)
    chosen[order] = np.repeat(taken, np.diff(matches, append=len(order)))
    return chosen


def _number_positions(streams: Indices, first: Positions, last: Positions) -> tuple[Indices, Indices]:
    """Return integers from 0 in place of first and last positions; they ascend as the positions of a stream."""
    times, places = (np.concatenate(both) for both in zip(first, last, strict=True))
    if times.dtype.kind == "i" and len(times):
        earliest, lowest = int(times.min()), int(places.min())
        moments, ranks = int(times.max()) - earliest + 1, int(places.max()) - lowest + 1
        if moments * ranks < _MOST_NUMBERS:
            begins, ends = np.split((times - earliest) * ranks + (places - lowest), 2)
            return begins, ends
    keys = [np.concatenate([streams, streams]), times, places]
    order = np.lexsort(keys[::-1])
    moved = np.logical_or.reduce([values[order[1:]] != values[order[:-1]] for values in keys])
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.concatenate([np.zeros(min(len(order), 1), np.int64), np.cumsum(moved)])
    begins, ends = np.split(numbers, 2)
    return begins, ends


def order_rows_by_stream(streams: Indices, keys: Sequence[Array]) -> Indices:
    """Return the order of rows by stream, and within a stream by `keys`, of which the last one is the most significant.

    Equal rows stay as they come. Those of a stream most often come in order.
    """
    order, _ = order_by_group(streams, int(streams.max(initial=-1)) + 1)
    behind = np.zeros(max(len(order) - 1, 0), np.bool_)
    for values in (*keys, streams):
        ordered = values[order]
        behind = (ordered[1:] < ordered[:-1]) | ((ordered[1:] == ordered[:-1]) & behind)
    return np.lexsort([*keys, streams]) if behind.any() else order

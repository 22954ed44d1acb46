"""Add events to those that a stream keeps, and give those up that no later match depends on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.streaming.state import StreamState, Times

# Chunks that a table may have before they are joined: every run joins the columns that it reads.
_MOST_CHUNKS = 32


def add_events(state: StreamState, events: pa.Table, times: Times, numbers: npt.NDArray[np.int64]) -> StreamState:
    """Return the state with further events; those that are kept stay in order of time, and in order of arrival at one time."""
    if not len(times):
        return state
    # before there were events, the type of times was not known
    before = state.times if len(state.times) else times[:0]
    untouched = int(np.searchsorted(before, times.min(), side="right"))
    moved_times = np.concatenate([before[untouched:], times])
    moved = pa.concat_tables([state.events.slice(untouched), events])
    moved_numbers = np.concatenate([state.numbers[untouched:], numbers])
    if (moved_times[1:] < moved_times[:-1]).any():
        order = np.argsort(moved_times, kind="stable")
        moved_times, moved, moved_numbers = moved_times[order], moved.take(pa.array(order)), moved_numbers[order]
    joined = [state.events.slice(0, untouched), moved] if untouched else [moved]
    return replace(
        state,
        events=_few_chunks(pa.concat_tables(joined)),
        times=np.concatenate([before[:untouched], moved_times]),
        numbers=np.concatenate([state.numbers[:untouched], moved_numbers]),
    )


def count_until(state: StreamState, until: Tick) -> int:
    """Return how many of the kept events are not after a time; they are the first ones."""
    return int(np.searchsorted(state.times, until, side="right"))


def keep_from(state: StreamState, begin: Tick) -> StreamState:
    """Return the state without the events before a time."""
    return drop_first(state, int(np.searchsorted(state.times, begin, side="left")))


def drop_first(state: StreamState, dropped: int) -> StreamState:
    """Return the state without its first events."""
    if not dropped:
        return state
    kept = state.events.slice(dropped)
    # a slice holds the memory of all that it was cut from
    events = kept.combine_chunks() if kept.num_rows <= dropped else _few_chunks(kept)
    return replace(state, events=events, times=state.times[dropped:], numbers=state.numbers[dropped:])


def _few_chunks(table: pa.Table) -> pa.Table:
    return table.combine_chunks() if table.num_columns and table.column(0).num_chunks > _MOST_CHUNKS else table

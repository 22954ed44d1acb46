"""Add events to those that a stream keeps, and give those up that no later match depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.events.matches import Rows
from gpu_cep.engine.input.chunk_dictionaries import join_chunks, take_events
from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.streaming.event_tags import Tags
from gpu_cep.engine.streaming.state import StreamState, Times

# Chunks that a table may have before they are joined: every run joins the columns that it reads.
_MOST_CHUNKS = 32
# Times are sorted by their bits if more than one in so many is before its predecessor.
_FEW_FALLS = 32


def add_events(
    state: StreamState, events: pa.Table, times: Times, numbers: npt.NDArray[np.int64], tags: Tags | None = None
) -> StreamState:  # fmt: skip
    """Return the state with further events; those that are kept stay in order of time, and in order of arrival at one time.

    They have tags if the `tags` of all are given.
    """
    if not len(times):
        return state
    # before there were events, the type of times was not known, and whether they have tags
    before, tagged = (state.times, state.tags) if len(state.times) else (times[:0], None if tags is None else tags[:0])
    untouched = int(np.searchsorted(before, times.min(), side="right"))
    moved_times = np.concatenate([before[untouched:], times])
    moved, order = pa.concat_tables([state.events.slice(untouched), events]), None
    falls = int(np.count_nonzero(moved_times[1:] < moved_times[:-1]))
    if falls:
        order = _order_of_times(moved_times, falls)
        moved = moved.take(pa.array(order))
    joined = [state.events.slice(0, untouched), moved] if untouched else [moved]
    return replace(
        state,
        events=few_chunks(pa.concat_tables(joined)),
        times=_merged(before, times, untouched, order),
        numbers=_merged(state.numbers, numbers, untouched, order),
        tags=None if tagged is None or tags is None else _merged(tagged, tags, untouched, order),
    )


def _order_of_times(times: Times, falls: int) -> Rows:
    """Return the order of times, in which equal ones stay as they are; `falls` says how often one is before its predecessor.

    Integers that are not far from each other are sorted by 16 bits at a time, which NumPy does by counting.
    """
    begin = times.min()
    # Python's integers do not overflow
    if falls <= len(times) // _FEW_FALLS or times.dtype.kind == "f" or int(times.max()) - int(begin) >= 1 << 32:
        # long runs in order are merged
        return np.argsort(times, kind="stable")
    behind = times - begin
    order = np.argsort(behind.astype(np.uint16), kind="stable")
    return order[np.argsort((behind >> 16).astype(np.uint16)[order], kind="stable")]


def _merged(before: npt.NDArray[Any], more: npt.NDArray[Any], untouched: int, order: Rows | None) -> npt.NDArray[Any]:
    """Return values with more of them; those behind the `untouched` ones are in the `order` given (None: as they come)."""
    merged = np.concatenate([before, more])
    if order is not None:
        merged[untouched:] = merged[untouched:][order]
    return merged


def beside(state: StreamState, chosen: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> dict[str, Any]:
    """Return by name what stands beside events in a state, for those events alone of which `chosen` returns the values."""
    tags = None if state.tags is None else chosen(state.tags)
    return {"times": chosen(state.times), "numbers": chosen(state.numbers), "tags": tags}


def count_until(state: StreamState, until: Tick) -> int:
    """Return how many of the kept events are not after a time; they are the first ones."""
    return int(np.searchsorted(state.times, until, side="right"))


def keep_from(state: StreamState, begin: Tick) -> StreamState:
    """Return the state without the events before a time."""
    return drop_first(state, int(np.searchsorted(state.times, begin, side="left")))


def drop_others(state: StreamState, before: int, kept: Rows) -> StreamState:
    """Return the state without those of its first events that are not `kept`; `before` says how many are first."""
    if len(kept) == before:
        return state
    rest = pa.concat_tables([take_events(state.events.slice(0, before), kept), state.events.slice(before)])
    return replace(state, events=few_chunks(rest), **beside(state, lambda values: np.concatenate([values[kept], values[before:]])))


def drop_first(state: StreamState, dropped: int) -> StreamState:
    """Return the state without its first events, whose memory is held until :func:`release_dropped`."""
    if not dropped:
        return state
    return replace(state, events=few_chunks(state.events.slice(dropped)), **beside(state, lambda values: values[dropped:]))


def release_dropped(state: StreamState, before: int) -> StreamState:
    """Return the state without the memory of dropped events if these were at least half of the events `before`.

    A slice holds the memory of all that it was cut from.
    """
    kept = state.events.num_rows
    return replace(state, events=join_chunks(state.events)) if kept < before and 2 * kept <= before else state


def keep_rows(state: StreamState, rows: Rows, tags: Tags | None) -> StreamState:
    """Return the state with these of its events alone, whose `tags` are given."""
    events = join_chunks(take_events(state.events, rows))
    return replace(state, events=events, times=state.times[rows], numbers=state.numbers[rows], tags=tags)


def few_chunks(table: pa.Table) -> pa.Table:
    """Return the table in one chunk if it has many, with dictionaries of its own values."""
    return join_chunks(table) if table.num_columns and table.column(0).num_chunks > _MOST_CHUNKS else table

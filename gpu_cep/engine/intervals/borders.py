"""Find the borders of situations (``002_…`` Definition 7): the events at which a run opens or closes.

One pass reads the events of all streams, in slices side by side. A slice does not know the last
label of each stream before it. So its first borders are settled afterwards, slice after slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpu_cep.engine.events.event_sequence import NO_POSITION, EventSequence, as_clock
from gpu_cep.engine.events.label_words import words_for
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.phase_one.label_events import BLOCK
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep_kernels.compile.launch import blocks, slices, spread
from gpu_cep_kernels.intervals.situations import (
    UNKNOWN,
    Borders,
    Gaps,
    LastSeen,
    find_borders,
    find_borders_and_gaps,
    make_borders,
    new_crossings,
    new_last_seen,
    settle_borders,
)

# ``fill(low, high, out)`` writes the labels of the events [low, high) to `out`, as [word, event].
Fill = Callable[[int, int, Array], None]


def find_all_borders(plan: IntervalPlan, events: EventSequence, fill: Fill, threads: int) -> Borders:
    """Return the borders of all streams in order of position.

    Last come the borders behind streams that end with open runs.
    """
    settled: list[Borders] = []
    seen = new_last_seen(events.count)
    for borders, own in spread(lambda span: _borders_of(plan, events, fill, span), slices(len(events), threads), threads):
        settle_borders(borders, gap_limit(plan, events.times), seen)
        settled.append(_keep_crossed(borders))
        seen = _overlay(seen, own)
    settled.append(_close_streams(seen, events.times.dtype))
    return concatenate_borders(np, settled)


def _borders_of(plan: IntervalPlan, events: EventSequence, fill: Fill, span: tuple[int, int]) -> tuple[Borders, LastSeen]:
    """Return the borders in the slice `span`, and the last label and position of each stream in it."""
    low, high = span
    seen, crossings = new_last_seen(events.count), new_crossings(high - low, new_values)
    streams = np.empty(0, np.int32) if events.streams is None else events.streams
    labels = np.empty((1, min(BLOCK, high - low)), words_for(len(plan.query.variables))[0].kind)
    found = 0
    gaps = gap_limit(plan, events.times)
    for begin, end in blocks(low, high, BLOCK):
        block = labels[:, : end - begin]
        fill(begin, end, block)
        if len(gaps.clock):
            found = find_borders_and_gaps(begin, end, block[0], streams, gaps, seen, crossings, found)
        else:
            found = find_borders(begin, end, block[0], streams, seen, crossings, found)
    return make_borders(crossings, found, streams, events.times), seen


def gap_limit(plan: IntervalPlan, times: Array) -> Gaps:
    """Return the clock on which gaps are measured, and the longest gap that does not end a run.

    The clock is empty if gaps end no run.
    """
    points = as_clock(times)
    gap = plan.query.gap
    return Gaps(points[:0], points.dtype.type(0)) if gap is None else Gaps(points, points.dtype.type(gap))


def _keep_crossed(borders: Borders) -> Borders:
    """Return only the borders at which some name opens or closes."""
    crossed = np.flatnonzero(borders.opened | borders.closed)
    if len(crossed) == len(borders.position):
        return borders
    columns: list[Any] = [array[crossed] for array in borders]
    return Borders(*columns)


def _overlay(seen: LastSeen, later: LastSeen) -> LastSeen:
    """Return the last label and position of each stream: those of `later` where that slice has events of the stream."""
    there = later.label != UNKNOWN
    return LastSeen(np.where(there, later.label, seen.label), np.where(there, later.position, seen.position))


def _close_streams(seen: LastSeen, time: np.dtype[Any]) -> Borders:
    """Return a border behind the last event of each stream that ends with open runs."""
    streams = np.flatnonzero(seen.label & ~UNKNOWN).astype(np.int32)
    return closing_borders(np, streams, seen.position[streams], seen.label[streams], time)


def closing_borders(xp: Any, streams: Array, last: Array, closed: Array, time: np.dtype[Any]) -> Borders:
    """Return a border behind the last event of each of some streams.

    Border i stands in stream ``streams[i]`` behind event ``last[i]``.
    It closes the names whose bits ``closed[i]`` has.
    """
    nowhere = xp.full(len(streams), NO_POSITION, np.int32)
    return Borders(nowhere, xp.zeros(len(streams), time), streams, last, xp.zeros(len(streams), np.uint16), closed)


def concatenate_borders(xp: Any, parts: Sequence[Borders]) -> Borders:
    """Return the borders of all parts, one part after the other."""
    columns: list[Any] = [xp.concatenate(arrays) for arrays in zip(*parts, strict=True)]
    return Borders(*columns)

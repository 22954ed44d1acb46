"""Find the borders of situations (TPStream, Definition 7): the events at which a run opens or closes.

One pass reads the events of all streams, in slices side by side. Where streams lie one after the
other, an event and the one before it tell all. Else a slice does not know the last label of each
stream before it. So its first borders are settled afterwards, slice after slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpu_cep.engine.events.event_sequence import NO_POSITION, EventSequence, as_clock
from gpu_cep.engine.events.label_words import words_for
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.phase_one.label_events import BLOCK
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep_kernels.compile.launch import blocks, slices, spread
from gpu_cep_kernels.device.interface import Backend
from gpu_cep_kernels.intervals.situations import (
    UNKNOWN,
    Gaps,
    LastSeen,
    SituationBorders,
    cross_borders,
    find_borders,
    find_borders_and_gaps,
    make_borders,
    mark_borders,
    new_crossings,
    new_last_seen,
    settle_borders,
)

# ``fill(low, high, out)`` writes the labels of the events [low, high) to `out`, as [word, event].
Fill = Callable[[int, int, Array], None]


def find_all_borders(plan: IntervalPlan, events: EventSequence, fill: Fill, threads: int) -> SituationBorders:
    """Return the borders of all streams; those of a stream are in order of position.

    Last of them comes the border behind a stream that ends with open runs.
    """
    find = _find_among_streams if events.offsets is None else _find_in_streams
    return find(plan, events, fill, threads)


def _find_in_streams(plan: IntervalPlan, events: EventSequence, fill: Fill, threads: int) -> SituationBorders:
    """Return the borders where streams lie one after the other."""
    assert events.offsets is not None, "streams lie one after the other"
    offsets, kind = events.offsets, words_for(len(plan.query.variables))[0].kind

    def find(span: tuple[int, int]) -> SituationBorders:
        low, high = span
        # whether a run goes on at event `low` depends on the event before it
        begin = max(0, low - 1)
        labels = np.empty((1, high - begin), kind)
        fill(begin, high, labels)
        return borders_of_part(plan, events.place, EventPart(offsets, events.times[begin:high], labels[0], begin, low))

    spans = [block for span in slices(len(events), threads) for block in blocks(*span, BLOCK)]
    return concatenate_borders(np, spread(find, spans or [(0, 0)], threads), threads)


class EventPart(NamedTuple):
    """The events from `begin` on, of which those from `low` on are asked about: a run goes on by the event before.

    `offsets`: where each stream begins among all events, with the end.
    `times`, `labels`: those of the part's events, where borders are found.
    """

    offsets: Indices
    times: Array
    labels: Array
    begin: int
    low: int


def borders_of_part(plan: IntervalPlan, place: Backend, part: EventPart) -> SituationBorders:
    """Return the borders in a part, which lies at `place`, then those behind streams that end there with open runs."""
    return concatenate_borders(place.xp, [_borders_inside(plan, place, part), _open_ends(place, part)])


def _borders_inside(plan: IntervalPlan, place: Backend, part: EventPart) -> SituationBorders:
    """Return the borders at the events of a part."""
    offsets, times, labels, begin, low = part
    xp, size = place.xp, len(times)
    first, last = np.searchsorted(offsets, [begin, begin + size])
    streams_begin, begins = place.upload(offsets[first:last] - begin), xp.zeros(size, np.bool_)
    begins[streams_begin] = True
    # the event before the first is not given; any border here lies before `low` and is dropped below
    begins[:1] = True
    neighbours = labels, begins, gap_limit(plan, times)
    marks = xp.empty(size, np.bool_)
    place.launch(mark_borders, size, *neighbours, marks)
    marks[: low - begin] = False
    crossed = xp.flatnonzero(marks)
    opened, closed = (xp.empty(len(crossed), np.uint16) for _ in range(2))
    place.launch(cross_borders, len(crossed), crossed, *neighbours, opened, closed)
    positions = (crossed + begin).astype(np.int32)
    streams = (xp.searchsorted(streams_begin, crossed, side="right") + (int(first) - 1)).astype(np.int32)
    return SituationBorders(positions, times[crossed], streams, positions - np.int32(1), opened, closed)


def _open_ends(place: Backend, part: EventPart) -> SituationBorders:
    """Return the borders behind streams that end in a part with open runs."""
    offsets, times, labels, begin, low = part
    ends, high = offsets[1:], begin + len(times)
    ending = np.flatnonzero((offsets[:-1] < ends) & (low < ends) & (ends <= high))
    streams, last = place.upload(ending.astype(np.int32)), place.upload((ends[ending] - 1).astype(np.int32))
    closed = labels[last - np.int32(begin)].astype(np.uint16)
    is_open = place.xp.flatnonzero(closed)
    return closing_borders(place.xp, streams[is_open], last[is_open], closed[is_open], times.dtype)


def _find_among_streams(plan: IntervalPlan, events: EventSequence, fill: Fill, threads: int) -> SituationBorders:
    """Return the borders where streams lie among each other; those behind streams come last."""
    settled: list[SituationBorders] = []
    seen = new_last_seen(events.count)
    for borders, own in spread(lambda span: _borders_of(plan, events, fill, span), slices(len(events), threads), threads):
        # what neither opens nor closes a name then is in no run
        settle_borders(borders, gap_limit(plan, events.times), seen)
        settled.append(borders)
        seen = _overlay(seen, own)
    settled.append(_close_streams(seen, events.times.dtype))
    return concatenate_borders(np, settled, threads)


def _borders_of(plan: IntervalPlan, events: EventSequence, fill: Fill, span: tuple[int, int]) -> tuple[SituationBorders, LastSeen]:
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


def _overlay(seen: LastSeen, later: LastSeen) -> LastSeen:
    """Return the last label and position of each stream: those of `later` where that slice has events of the stream."""
    there = later.label != UNKNOWN
    return LastSeen(np.where(there, later.label, seen.label), np.where(there, later.position, seen.position))


def _close_streams(seen: LastSeen, time: np.dtype[Any]) -> SituationBorders:
    """Return a border behind the last event of each stream that ends with open runs."""
    streams = np.flatnonzero(seen.label & ~UNKNOWN).astype(np.int32)
    return closing_borders(np, streams, seen.position[streams], seen.label[streams], time)


def closing_borders(xp: Any, streams: Array, last: Array, closed: Array, time: np.dtype[Any]) -> SituationBorders:
    """Return a border behind the last event of each of some streams.

    Border i stands in stream ``streams[i]`` behind event ``last[i]``.
    It closes the names whose bits ``closed[i]`` has.
    """
    nowhere = xp.full(len(streams), NO_POSITION, np.int32)
    return SituationBorders(nowhere, xp.zeros(len(streams), time), streams, last, xp.zeros(len(streams), np.uint16), closed)


def concatenate_borders(xp: Any, parts: Sequence[SituationBorders], threads: int = 1) -> SituationBorders:
    """Return the borders of all parts, one part after the other; on the host threads share the columns."""
    columns: list[Any] = spread(xp.concatenate, list(zip(*parts, strict=True)), threads)
    return SituationBorders(*columns)

"""Phase 1 of interval patterns: columns → labels → borders of runs → the situations of all names and streams (``002_…`` Definition 7).

Events that come in the order of time in each stream are taken as they come,
streams interleaved or not; only others are brought in order first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.bound_intervals import BoundSituation
from gpu_cep.engine.columns import Array, EventColumns
from gpu_cep.engine.keys import encode_keys
from gpu_cep.engine.labels import BLOCK, label_events, labeller, words_for
from gpu_cep.engine.matches import Indices
from gpu_cep.engine.profile import Profile
from gpu_cep.engine.streams import load_times, order_events
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep_kernels.interval_join import Situations
from gpu_cep_kernels.launch import blocks, slices, spread
from gpu_cep_kernels.matches import grouped
from gpu_cep_kernels.situations import (
    DISORDERED,
    TIED,
    Borders,
    LastSeen,
    find_borders,
    first_reaching,
    room_for_borders,
    settle_borders,
    unseen,
)

# The position of what is no event.
NO_POSITION = -1

Positions = npt.NDArray[np.int32]
Fill = Callable[[int, int, Array], None]


@dataclass(frozen=True, slots=True)
class EventSequence:
    """The events by position, in the order of time in each stream.

    ``streams[p]`` is the number of the event's stream among `count` (None:
    all are one); ``rows[p]`` its input row (None: p itself). Where streams lie
    one after the other, `offsets` says where each begins, with the end. `fill`
    writes the labels of some positions.
    """

    times: Array
    streams: Array | None
    count: int
    rows: Positions | None
    offsets: Indices | None
    fill: Fill

    def __len__(self) -> int:
        return len(self.times)

    def input_rows(self, positions: Array) -> Array:
        """The input rows of the events at some positions."""
        return positions if self.rows is None else self.rows[positions]


@dataclass(frozen=True, slots=True)
class Runs:
    """Situations of all names, one name after the other; those of a name by stream, then in order of time.

    ``names[v]`` is where those of name v begin, with the end. A situation has
    the events of its stream from position `first` to `last`; its end is the
    time of the event at `ended` (−1 while it is open).
    """

    names: Indices
    stream: Positions
    first: Positions
    last: Positions
    ended: Positions


@dataclass(frozen=True, slots=True)
class Derived:
    """The events, their situations, and these as the join reads them.

    `latest` is the last endpoint at which a match can be decided. Endpoints
    are times, or with early detection `moments`, each the position of the
    first event of a time: an open end is then behind them all.
    """

    events: EventSequence
    runs: Runs
    situations: Situations
    latest: np.int64 | np.float64
    moments: Indices | None = None


def derive(plan: IntervalPlan, columns: EventColumns, threads: int, profile: Profile) -> Derived:
    """All situations that a match may take.

    Raises
    ------
    EventError
        The events are at fault.
    """
    with profile.stage("timestamps"):
        times = load_times(columns, plan.query.timestamp)
    with profile.stage("keys"):
        keys = encode_keys(columns, plan.query.partition_by)
    with profile.stage("situations"):
        found = None
        events = EventSequence(times, keys.codes, keys.count, None, None, labeller(plan.events, columns).fill)
        if not plan.query.early:
            found = _borders(plan, events, threads, DISORDERED | (TIED if plan.query.order_by else 0))
    if found is None:
        with profile.stage("order"):
            events = _ordered(plan, columns, times, threads)
        with profile.stage("situations"):
            found = _borders(plan, events, threads, DISORDERED)
    assert found is not None, "ordered events are in order"
    with profile.stage("situations"):
        derived = _derived(plan, events, _runs(plan, events, found))
    profile.add("situations", len(derived.runs.stream))
    return derived


def _ordered(plan: IntervalPlan, columns: EventColumns, times: Array, threads: int) -> EventSequence:
    """The events stream after stream, each in order of time and of `order_by`."""
    keys = encode_keys(columns, plan.query.partition_by)
    ordered = order_events(plan.events, columns, times, label_events(plan.events, columns, threads), keys, threads)
    labels = ordered.labels

    def fill(low: int, high: int, out: Array) -> None:
        out[:] = labels[:, low:high]

    count = len(ordered.offsets) - 1
    streams = np.repeat(np.arange(count, dtype=np.int32), np.diff(ordered.offsets)) if count > 1 else None
    own_times = ordered.times if ordered.times.dtype.kind == "f" else ordered.times.view(np.int64)
    return EventSequence(own_times, streams, count, ordered.rows.astype(np.int32, copy=False), ordered.offsets, fill)


def _borders(plan: IntervalPlan, events: EventSequence, threads: int, refused: int) -> Borders | None:
    """The borders of all streams in order of position, those that close what is open at the end last; None where a fault is `refused`."""
    parts = spread(lambda span: _borders_of(plan, events, span), slices(len(events), threads), threads)
    settled: list[Borders] = []
    seen = unseen(events.count, _kind(plan), events.times.dtype)
    for borders, own, faults in parts:
        if (faults | settle_borders(borders, events.times, seen)) & refused:
            return None
        settled.append(_crossed(borders))
        seen = _overlaid(seen, own)
    settled.append(_closing(seen))
    return Borders(*(np.concatenate(arrays) for arrays in zip(*settled, strict=True)))


def _borders_of(plan: IntervalPlan, events: EventSequence, span: tuple[int, int]) -> tuple[Borders, LastSeen, int]:
    """The borders in a slice of the events, what is seen of each stream at its end, and the faults that were met."""
    low, high = span
    kind = _kind(plan)
    seen, borders = unseen(events.count, kind, events.times.dtype), room_for_borders(high - low, kind)
    streams = np.empty(0, np.int32) if events.streams is None else events.streams
    labels = np.empty((1, min(BLOCK, high - low)), kind)
    found, faults = 0, 0
    for begin, end in blocks(low, high, BLOCK):
        block = labels[:, : end - begin]
        events.fill(begin, end, block)
        found, fault = find_borders(begin, end, block[0], streams, events.times, seen, borders, found)
        faults |= fault
    return Borders(*(array[:found] for array in borders)), seen, faults


def _kind(plan: IntervalPlan) -> type[np.unsignedinteger[Any]]:
    """The type of a label, which is one word: there are few names."""
    return words_for(len(plan.query.situations))[0].kind


def _crossed(borders: Borders) -> Borders:
    """Those at which a name opens or closes."""
    crossed = np.flatnonzero(borders.opened | borders.closed)
    return borders if len(crossed) == len(borders.position) else Borders(*(array[crossed] for array in borders))


def _overlaid(seen: LastSeen, later: LastSeen) -> LastSeen:
    """What is seen of each stream after a later slice, too."""
    there = later.position >= 0
    return LastSeen(*(np.where(there, new, old) for new, old in zip(later, seen, strict=True)))


def _closing(seen: LastSeen) -> Borders:
    """A border behind the last event of each stream that ends with open runs."""
    streams = np.flatnonzero(seen.label).astype(np.int32)
    nowhere = np.full(len(streams), NO_POSITION, np.int32)
    closed = seen.label[streams]
    return Borders(nowhere, streams, seen.position[streams], np.zeros_like(closed), closed)


def _runs(plan: IntervalPlan, events: EventSequence, borders: Borders) -> Runs:
    """The runs of all names: in a stream, each name opens and closes by turns."""
    if events.count > 1:
        order, _ = grouped(borders.stream, events.count)
        borders = Borders(*(array[order] for array in borders))
    parts = [_runs_of(v, situation, plan, events, borders) for v, situation in enumerate(plan.query.situations)]
    arrays = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
    names = np.cumsum([0, *(len(stream) for stream, *_ in parts)])
    return Runs(names, *arrays)


def _runs_of(
    v: int, situation: BoundSituation, plan: IntervalPlan, events: EventSequence, borders: Borders
) -> tuple[Positions, Positions, Positions, Positions]:
    """Stream, first, last and ending event of each situation of name v that lasts as long as it should, or still may."""
    bit = borders.opened.dtype.type(1 << v)
    opening, closing = np.flatnonzero(borders.opened & bit), np.flatnonzero(borders.closed & bit)
    first, ended = borders.position[opening], borders.position[closing]
    suits = _suits(situation, events.times, first, ended, early=plan.query.early)
    return borders.stream[opening][suits], first[suits], borders.before[closing][suits], ended[suits]


def _suits(situation: BoundSituation, times: Array, first: Positions, ended: Positions, *, early: bool) -> Array:
    """Which situations have ended and last as long as they should; `early`: or are open and have no longest duration."""
    start, end = times[first], times[ended]
    is_open = ended == NO_POSITION
    length = elapsed(start, end)
    suits: Array = (end > start) & ~is_open
    if situation.shortest is not None:
        suits &= length >= length.dtype.type(situation.shortest)
    if situation.longest is not None:
        suits &= length <= length.dtype.type(situation.longest)
    return suits | is_open if early and situation.longest is None else suits


def elapsed(start: Array, end: Array) -> Array:
    """The time from `start` to `end`, as uint64 or float64; none from infinity to infinity."""
    length: Array
    if start.dtype.kind != "f":
        length = end.view(np.uint64) - start.view(np.uint64)
        return length
    with np.errstate(invalid="ignore"):
        length = np.where(start == end, 0.0, end - start)
    return length


def _derived(plan: IntervalPlan, events: EventSequence, runs: Runs) -> Derived:
    return _early(plan, events, runs) if plan.query.early else _final(events, runs)


def _final(events: EventSequence, runs: Runs) -> Derived:
    """Situations by their times; they are known when they have ended."""
    start, end = events.times[runs.first], events.times[runs.ended]
    clocks = [clock(points) for points in (start, end)]
    situations = Situations(_offsets(events, runs), start, end, end, clocks[0], clocks[1], clocks[1])
    latest = np.float64(np.inf) if start.dtype.kind == "f" else np.int64(np.iinfo(np.int64).max)
    return Derived(events, runs, situations, latest)


def _early(plan: IntervalPlan, events: EventSequence, runs: Runs) -> Derived:
    """Situations by the first events of their endpoints' times, those that come to be known at some event."""
    known = _known(plan, events, runs)
    kept = np.flatnonzero(known < len(events))
    names = np.searchsorted(kept, runs.names)
    runs = Runs(names, *(array[kept] for array in (runs.stream, runs.first, runs.last, runs.ended)))
    moments = _moments(events)
    is_open = runs.ended == NO_POSITION
    start, reached = moments[runs.first], moments[known[kept]]
    end = np.where(is_open, len(events), moments[runs.ended])
    clocks = [clock(events.times[points]) for points in (start, np.where(is_open, 0, end), reached)]
    situations = Situations(_offsets(events, runs), start, end, reached, *clocks)
    return Derived(events, runs, situations, np.int64(len(events) - 1), moments)


def _known(plan: IntervalPlan, events: EventSequence, runs: Runs) -> Indices:
    """The event at which each situation may first be in a match (section 5.3.2); the number of events, if at none."""
    known = runs.first.astype(np.int64)
    for v, situation in enumerate(plan.query.situations):
        own = slice(int(runs.names[v]), int(runs.names[v + 1]))
        if situation.longest is not None:
            known[own] = runs.ended[own]
        elif situation.shortest is not None:
            known[own] = _lasting(situation.shortest, events, runs, own)
    return known


def _lasting(shortest: float, events: EventSequence, runs: Runs, own: slice) -> Indices:
    """The first event at which each situation has lasted so long."""
    assert events.offsets is not None, "early detection takes streams one after the other"
    first, ends = runs.first[own], events.offsets[runs.stream[own] + 1]
    found, times = np.empty(len(first), np.int64), clock(events.times)
    first_reaching(0, len(first), first, ends, times, times.dtype.type(shortest), found)
    return np.where(found == ends, len(events), found)


def _moments(events: EventSequence) -> Indices:
    """The first event of each event's time in its stream."""
    begins = np.ones(len(events), np.bool_)
    begins[1:] = events.times[1:] != events.times[:-1]
    if events.offsets is not None:
        begins[events.offsets[:-1][np.diff(events.offsets) > 0]] = True
    return np.maximum.accumulate(np.where(begins, np.arange(len(events)), 0))


def _offsets(events: EventSequence, runs: Runs) -> Indices:
    """Where the situations of each name in each stream begin: [name, stream], with the end."""
    names = len(runs.names) - 1
    offsets = np.empty((names, events.count + 1), np.int64)
    for v in range(names):
        own = runs.stream[runs.names[v] : runs.names[v + 1]]
        offsets[v, 0] = runs.names[v]
        offsets[v, 1:] = runs.names[v] + np.cumsum(np.bincount(own, minlength=events.count))
    return offsets


def clock(points: Array) -> Array:
    """Times as numbers whose differences are lengths of time: float64, or integers as uint64."""
    return points if points.dtype.kind == "f" else points.view(np.uint64)


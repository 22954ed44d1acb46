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
from gpu_cep.engine.budget import Budget
from gpu_cep.engine.columns import Array, EventColumns
from gpu_cep.engine.keys import encode_keys
from gpu_cep.engine.labels import BLOCK, label_events, labeller, words_for
from gpu_cep.engine.matches import Indices
from gpu_cep.engine.phase_one import Run
from gpu_cep.engine.phase_one_run import phase_one
from gpu_cep.engine.profile import Profile
from gpu_cep.engine.slices import WHOLE
from gpu_cep.engine.streams import OrderedEvents, load_times, order_events
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep_kernels.groups import grouped
from gpu_cep_kernels.interval_join import Situations
from gpu_cep_kernels.launch import blocks, slices, spread
from gpu_cep_kernels.ordering import DISORDERED, TIED, order_faults, order_faults_of_streams
from gpu_cep_kernels.situations import (
    UNKNOWN,
    Borders,
    LastSeen,
    count_runs,
    find_borders,
    find_borders_and_gaps,
    first_reaching,
    pair_borders,
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
    the events of its stream from position `first` to `last`. It lasts from
    `start` to `end`, the time of the event at `ended` (−1 while it is open),
    unless a gap ended it before.
    """

    names: Indices
    stream: Positions
    first: Positions
    last: Positions
    ended: Positions
    start: Array
    end: Array


@dataclass(frozen=True, slots=True)
class Derived:
    """The events, their situations, and these as the join reads them.

    The join knows the streams that have situations, by ``numbers[i]``: the
    place of situation i's stream among `streams` of them. `latest` is the last
    endpoint at which a match can be decided; no situation starts at `never`
    or later. Endpoints are times, or with early detection `moments`, each the
    position of the first event of a time: an open end is then behind them all.
    """

    events: EventSequence
    runs: Runs
    numbers: Positions
    streams: int
    situations: Situations
    latest: np.int64 | np.float64
    never: np.int64 | np.float64
    moments: Indices | None = None


def derive(plan: IntervalPlan, columns: EventColumns, budget: Budget, threads: int, profile: Profile) -> Derived:
    """All situations that a match may take.

    Raises
    ------
    EventError
        The events are at fault.
    EngineUnavailable
        The plan asks for the GPU, which cannot be used, or whose memory does not suffice.
    """
    if plan.settings.engine == "gpu":
        events = _sequence(phase_one(Run(plan.events, columns, (), WHOLE, budget, threads, profile)).ordered)
    else:
        events = _in_order(plan, columns, threads, profile)
    with profile.stage("situations"):
        derived = _derived(plan, events, _runs(plan, events, _borders(plan, events, threads)))
    profile.add("situations", len(derived.runs.stream))
    return derived


def _in_order(plan: IntervalPlan, columns: EventColumns, threads: int, profile: Profile) -> EventSequence:
    """The events as they come, if those of each stream come in order, else ordered; early detection wants streams one after the other."""
    with profile.stage("timestamps"):
        times = load_times(columns, plan.query.timestamp)
    with profile.stage("keys"):
        keys = encode_keys(columns, plan.query.partition_by)
    events = EventSequence(times, keys.codes, keys.count, None, None, labeller(plan.events, columns).fill)
    with profile.stage("order"):
        if plan.query.early or _faults(events, bool(plan.query.order_by), threads):
            labelled = label_events(plan.events, columns, threads)
            return _sequence(order_events(plan.events, columns, times, labelled, keys, threads))
    return events


def _faults(events: EventSequence, tied: bool, threads: int) -> bool:
    """Whether the events of some stream are out of order, or if asked for tie."""
    spans = [(max(0, low - 1), high) for low, high in slices(len(events), threads)]
    refused = DISORDERED | (TIED if tied else 0)
    if not any(fault & refused for fault in spread(lambda span: order_faults(*span, events.times), spans, threads)):
        return False
    if events.streams is None:
        return True
    return bool(order_faults_of_streams(events.streams, events.times, np.full(events.count, NO_POSITION, np.int32)) & refused)


def _sequence(ordered: OrderedEvents) -> EventSequence:
    """The events stream after stream, each in order of time and of `order_by`."""
    labels, count = ordered.labels, len(ordered.offsets) - 1

    def fill(low: int, high: int, out: Array) -> None:
        out[:] = labels[:, low:high]

    streams = np.repeat(np.arange(count, dtype=np.int32), np.diff(ordered.offsets)) if count > 1 else None
    times = ordered.times if ordered.times.dtype.kind == "f" else ordered.times.view(np.int64)
    return EventSequence(times, streams, count, ordered.rows.astype(np.int32, copy=False), ordered.offsets, fill)


def _borders(plan: IntervalPlan, events: EventSequence, threads: int) -> Borders:
    """The borders of all streams in order of position, those that close what is open at the end last."""
    settled: list[Borders] = []
    seen = unseen(events.count)
    for borders, own in spread(lambda span: _borders_of(plan, events, span), slices(len(events), threads), threads):
        settle_borders(borders, *_gap(plan, events), seen)
        settled.append(_crossed(borders))
        seen = _overlaid(seen, own)
    settled.append(_closing(seen, events.times.dtype))
    return _arranged(settled)


def _borders_of(plan: IntervalPlan, events: EventSequence, span: tuple[int, int]) -> tuple[Borders, LastSeen]:
    """The borders in a slice of the events, and what is seen of each stream at its end."""
    low, high = span
    seen, borders = unseen(events.count), room_for_borders(high - low, events.times.dtype)
    streams = np.empty(0, np.int32) if events.streams is None else events.streams
    labels = np.empty((1, min(BLOCK, high - low)), words_for(len(plan.query.situations))[0].kind)
    found = 0
    points, gap = _gap(plan, events)
    for begin, end in blocks(low, high, BLOCK):
        block = labels[:, : end - begin]
        events.fill(begin, end, block)
        if len(points):
            found = find_borders_and_gaps(begin, end, block[0], streams, events.times, points, gap, seen, borders, found)
        else:
            found = find_borders(begin, end, block[0], streams, events.times, seen, borders, found)
    columns: list[Any] = [array[:found] for array in borders]
    return Borders(*columns), seen


def _gap(plan: IntervalPlan, events: EventSequence) -> tuple[Array, np.uint64 | np.float64]:
    """What gaps are measured on, nothing where there is no limit, and the longest gap that breaks no run."""
    points = clock(events.times)
    gap = plan.query.gap
    return (points[:0], points.dtype.type(0)) if gap is None else (points, points.dtype.type(gap))


def _crossed(borders: Borders) -> Borders:
    """Those at which a name opens or closes."""
    crossed = np.flatnonzero(borders.opened | borders.closed)
    if len(crossed) == len(borders.position):
        return borders
    columns: list[Any] = [array[crossed] for array in borders]
    return Borders(*columns)


def _overlaid(seen: LastSeen, later: LastSeen) -> LastSeen:
    """What is seen of each stream after a later slice, too."""
    there = later.label != UNKNOWN
    return LastSeen(np.where(there, later.label, seen.label), np.where(there, later.position, seen.position))


def _arranged(parts: list[Borders]) -> Borders:
    """All borders of the parts, one part after the other."""
    columns: list[Any] = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
    return Borders(*columns)


def _closing(seen: LastSeen, time: np.dtype[Any]) -> Borders:
    """A border behind the last event of each stream that ends with open runs."""
    streams = np.flatnonzero(seen.label & ~UNKNOWN).astype(np.int32)
    nowhere = np.full(len(streams), NO_POSITION, np.int32)
    closed = seen.label[streams]
    return Borders(nowhere, np.zeros(len(streams), time), streams, seen.position[streams], np.zeros_like(closed), closed)


def _runs(plan: IntervalPlan, events: EventSequence, borders: Borders) -> Runs:
    """The runs of all names that last as long as they should, or still may."""
    opening, closing, names = _paired(len(plan.query.situations), events, borders)
    start, end, ended = borders.time[opening], borders.time[closing], borders.position[closing]
    if plan.query.gap is not None:
        end = _broken_off(plan.query.gap, events.times[borders.before[closing]], end)
    suits = np.empty(len(opening), np.bool_)
    for situation, low, high in zip(plan.query.situations, names[:-1], names[1:], strict=True):
        own = slice(int(low), int(high))
        suits[own] = _suits(situation, start[own], end[own], ended[own] == NO_POSITION, early=plan.query.early)
    kept = np.flatnonzero(suits)
    opening, closing = opening[kept], closing[kept]
    names = np.searchsorted(kept, names)
    return Runs(names, borders.stream[opening], borders.position[opening], borders.before[closing], ended[kept], start[kept], end[kept])


def _broken_off(gap: float, last: Array, end: Array) -> Array:
    """Where a run ends: at the event behind it, but no later than a `gap` behind its last event."""
    length = elapsed(last, end)
    broken: Array = np.where(length > length.dtype.type(gap), (clock(last) + length.dtype.type(gap)).view(last.dtype), end)
    return broken


def _paired(names: int, events: EventSequence, borders: Borders) -> tuple[Indices, Indices, Indices]:
    """The borders that open and close each run, name after name, by stream and time; and where those of each name begin, with the end."""
    order = grouped(borders.stream, events.count)[0] if events.count > 1 else np.arange(len(borders.stream))
    counts = np.zeros(names, np.int64)
    count_runs(borders.opened, counts)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    opening, closing = np.empty(int(ends[-1]), np.int64), np.empty(int(ends[-1]), np.int64)
    pair_borders(order, borders.opened, borders.closed, ends[:-1].copy(), ends[:-1].copy(), opening, closing)
    return opening, closing, ends


def _suits(situation: BoundSituation, start: Array, end: Array, is_open: Array, *, early: bool) -> Array:
    """Which situations have ended and last as long as they should; `early`: or are open and have no longest duration."""
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
    start, end = runs.start, runs.end
    clocks = [clock(points) for points in (start, end)]
    numbers, streams = _numbered(events, runs)
    situations = Situations(_offsets(numbers, streams, runs), start, end, end, clocks[0], clocks[1], clocks[1])
    latest = np.float64(np.inf) if start.dtype.kind == "f" else np.int64(np.iinfo(np.int64).max)
    return Derived(events, runs, numbers, streams, situations, latest, latest)


def _early(plan: IntervalPlan, events: EventSequence, runs: Runs) -> Derived:
    """Situations by the first events of their endpoints' times, those that come to be known at some event."""
    known = _known(plan, events, runs)
    kept = np.flatnonzero(known < len(events))
    names = np.searchsorted(kept, runs.names)
    runs = Runs(names, *(array[kept] for array in (runs.stream, runs.first, runs.last, runs.ended, runs.start, runs.end)))
    moments = _moments(events)
    is_open = runs.ended == NO_POSITION
    start, reached = moments[runs.first], moments[known[kept]]
    end = np.where(is_open, len(events), moments[runs.ended])
    clocks = [clock(events.times[points]) for points in (start, np.where(is_open, 0, end), reached)]
    numbers, streams = _numbered(events, runs)
    situations = Situations(_offsets(numbers, streams, runs), start, end, reached, *clocks)
    return Derived(events, runs, numbers, streams, situations, np.int64(len(events) - 1), np.int64(len(events)), moments)


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


def _numbered(events: EventSequence, runs: Runs) -> tuple[Positions, int]:
    """The place of each situation's stream among those that have any, and how many they are: keys may leave many numbers unused."""
    present = np.zeros(events.count, np.bool_)
    present[runs.stream] = True
    places = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return places[runs.stream], int(np.count_nonzero(present))


def _offsets(numbers: Positions, streams: int, runs: Runs) -> Indices:
    """Where the situations of each name in each stream begin: [name, stream], with the end."""
    names = len(runs.names) - 1
    offsets = np.empty((names, streams + 1), np.int64)
    for v in range(names):
        own = numbers[runs.names[v] : runs.names[v + 1]]
        offsets[v, 0] = runs.names[v]
        offsets[v, 1:] = runs.names[v] + np.cumsum(np.bincount(own, minlength=streams))
    return offsets


def clock(points: Array) -> Array:
    """Times as numbers whose differences are lengths of time: float64, or integers as uint64."""
    return points if points.dtype.kind == "f" else points.view(np.uint64)


"""Derive the situations of all names and streams (phase 1 of interval patterns, TPStream's Definition 7).

Columns give labels, labels give the borders of runs, and pairs of borders are situations.
Events that are ordered by time in each stream are read as they come, even if streams are
interleaved. Other events are ordered first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gpu_cep.analysis.bound_intervals import Duration
from gpu_cep.engine.events.event_sequence import NO_POSITION, EventSequence, as_clock, elapsed_time, host_sequence
from gpu_cep.engine.events.label_words import Words
from gpu_cep.engine.events.matches import Flags, Indices, Rows
from gpu_cep.engine.events.own_events import TimeSlice
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.input.times import load_pieces_of_times
from gpu_cep.engine.intervals.borders import Fill, find_all_borders
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.phase_one.label_events import label_with, make_labeller, prepare_columns
from gpu_cep.engine.phase_one.order_events import order_events
from gpu_cep.engine.phase_one.run import Run
from gpu_cep.errors import EventError
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import slices, spread, threads_for
from gpu_cep_kernels.device.interface import HOST, Backend
from gpu_cep_kernels.device.primitives import paired_borders
from gpu_cep_kernels.intervals.joins import Situations
from gpu_cep_kernels.intervals.situations import SituationBorders, count_crossings, first_reaching, pair_borders
from gpu_cep_kernels.matches.groups import order_by_group
from gpu_cep_kernels.phase_one.ordering import DISORDERED, TIED, order_faults, order_faults_of_streams
from gpu_cep_kernels.rules.tables import Places


@record()
class SituationRuns:
    """Situations of all names, sorted by name, stream and time.

    `names`: the situations of name v are ``names[v]`` to ``names[v + 1]``.
    `stream`: the stream of each situation.
    `first`, `last`: the positions of its first and last events in the event sequence.
    `ended`: the position of the event that ended it; −1 while it is open.
    `start`, `end`: from when to when it lasts. It ends at the time of `ended`, or before, by a gap.
    """

    names: Indices
    stream: Places
    first: Places
    last: Places
    ended: Places
    start: Array
    end: Array


@record()
class DerivedSituations:
    """The events and their situations.

    `runs`: the situations, by events and times.
    `numbers`: the number of each situation's stream among the streams that have situations.
    `streams`: the number of these streams.
    `situations`: the same situations, by endpoints, as the join reads them.
    `latest`: the last endpoint at which a match can be decided.
    `never`: an endpoint before which all situations start.
    `early`: whether they are for early detection.

    With final detection endpoints are times. With early detection they are twice the moments.
    A moment is the position of the first event of a time. The end of an open situation lies
    behind all moments. An end that a gap makes is one less than that of the moment at which it is known.
    """

    events: EventSequence
    runs: SituationRuns
    numbers: Places
    streams: int
    situations: Situations
    latest: np.int64 | np.float64
    never: np.int64 | np.float64
    early: bool = False


def derive(plan: IntervalPlan, run: Run) -> DerivedSituations:
    """Return all situations that a match may take, found on the CPU.

    Raises
    ------
    EventError
        The events are at fault.
    """
    events, fill = _order_events(plan, run)
    with run.profile.stage("situations"):
        runs = lasting_runs(plan, events, find_all_borders(plan, events, fill, run.threads), run.threads)
        derived = derive_from_runs(plan, events, runs, run.threads)
    run.profile.add("situations", len(derived.runs.stream))
    return derived


def events_in_contact(plan: IntervalPlan, run: Run, contacts: int) -> Rows:
    """Return the rows, ascending, of the events of each stream from the first situation on that matters to later matches.

    Open situations do, and those that touch one which does, over less than so many contacts. So do all behind them.
    """
    events, fill = _order_events(plan, run)
    borders = find_all_borders(plan, events, fill, run.threads)
    opening, closing, _ = _pair_borders(len(plan.query.variables), events, borders, run.threads)
    stream, start, end = borders.stream[opening], borders.time[opening], borders.time[closing]
    matters = borders.position[closing] == NO_POSITION
    kind = events.times.dtype
    since = np.full(events.count, np.inf if kind.kind == "f" else np.iinfo(kind).max, kind)
    np.minimum.at(since, stream[matters], start[matters])
    for _ in range(contacts - 1):
        matters |= end >= since[stream]
        np.minimum.at(since, stream[matters], start[matters])
    kept = np.flatnonzero(events.times >= events.of_streams(since))
    return np.sort(events.input_rows(kept))


def _order_events(plan: IntervalPlan, run: Run) -> tuple[EventSequence, Fill]:
    """Return the events in the order of time in each stream, and the function that labels them.

    Events that are in order stay as they come. Early detection always orders them, since it needs
    streams one after the other.
    """
    columns, threads, profile = run.columns, run.threads, run.profile
    prepare_columns(run, () if plan.query.early else (plan.query.timestamp,), (plan.query.timestamp,), plan.query.partition_by)
    with profile.stage("timestamps"):
        times = load_pieces_of_times(columns, plan.query.timestamp)
    with profile.stage("keys"):
        keys = encode_keys(columns, plan.query.partition_by)
    labels_of = make_labeller(plan, columns)
    with profile.stage("order"):
        if not plan.query.early:
            events = EventSequence(times.whole, keys.codes, keys.count, None, None)
            if not _out_of_order(events, bool(plan.query.order_by), threads):
                return events, labels_of.fill
        labelled = label_with(labels_of, plan, threads)
        ordered = order_events(plan, columns, times, labelled, keys, threads)
    return host_sequence(ordered), partial(_copy_labels, ordered.labels)


def _copy_labels(labels: Words, low: int, high: int, out: Array) -> None:
    """Copy the labels of the events [low, high) to `out`."""
    out[:] = labels[:, low:high]


def _out_of_order(events: EventSequence, tied: bool, threads: int) -> bool:
    """Return whether some stream has events out of order or, if `tied`, events that tie."""
    spans = [(max(0, low - 1), high) for low, high in slices(len(events), threads)]
    refused = DISORDERED | (TIED if tied else 0)
    if not any(fault & refused for fault in spread(lambda span: order_faults(*span, events.times), spans, threads)):
        return False
    if events.streams is None:
        return True
    return bool(order_faults_of_streams(events.streams, events.times, np.full(events.count, NO_POSITION, np.int32)) & refused)


def lasting_runs(plan: IntervalPlan, events: EventSequence, borders: SituationBorders, threads: int = 1) -> SituationRuns:
    """Return the runs of all names whose duration is as the query says, or may still become so.

    The borders lie on the same device as the events. On the host `threads` gather the columns of runs.
    """
    place, xp = events.place, events.place.xp
    opening, closing, sizes = _pair_borders(len(plan.query.variables), events, borders, threads)
    names = offsets(sizes)
    start, end, ended = _gathered([(borders.time, opening), (borders.time, closing), (borders.position, closing)], threads)
    if plan.query.gap is not None:
        last = events.times[borders.before[closing]]
        if plan.query.early and last.dtype.kind == "f":
            _refuse_lost_gaps(plan, place, names, start, last, xp.where(ended != NO_POSITION, end, last))
        end = _end_at_gap(xp, plan.query.gap, last, end)
    suits = xp.empty(len(opening), np.bool_)
    for duration, low, high in zip(plan.query.durations, names[:-1], names[1:], strict=True):
        own = slice(int(low), int(high))
        suits[own] = _lasts_long_enough(duration, start[own], end[own], ended[own] == NO_POSITION, early=plan.query.early)
    kept = xp.flatnonzero(suits)
    opening, closing = _gathered([(opening, kept), (closing, kept)], threads)
    bordering = [(borders.stream, opening), (borders.position, opening), (borders.before, closing)]
    columns = _gathered([*bordering, (ended, kept), (start, kept), (end, kept)], threads)
    return SituationRuns(place.download(xp.searchsorted(kept, place.upload(names))), *(place.download(column) for column in columns))


def _gathered(wanted: Sequence[tuple[Array, Array]], threads: int) -> list[Array]:
    """Return ``values[places]`` of each pair of arrays; threads share the pairs."""
    return spread(lambda pair: pair[0][pair[1]], wanted, threads_for(len(wanted[0][1]), threads))


def _end_at_gap(xp: Any, gap: float, last: Array, end: Array) -> Array:
    """Return the end of each run: the time `end` of the event behind it, or an earlier end by a gap.

    A gap ends a run `gap` ticks after its `last` event.
    """
    length = elapsed_time(last, end)
    broken: Array = xp.where(length > length.dtype.type(gap), (as_clock(last) + length.dtype.type(gap)).view(last.dtype), end)
    return broken


def _refuse_lost_gaps(plan: IntervalPlan, place: Backend, names: Indices, start: Array, last: Array, end: Array) -> None:
    """Raise EventError if a gap ends a run at its `last` event, where floats are too coarse to add the gap.

    A run that is too short then is no situation at any time. `names`: where the runs of each name begin.
    """
    gap = last.dtype.type(plan.query.gap)
    lost = (elapsed_time(last, end) > gap) & (last + gap == last)
    for duration, low, high in zip(plan.query.durations, names[:-1], names[1:], strict=True):
        if duration.shortest is not None:
            own = slice(int(low), int(high))
            lost[own] &= elapsed_time(start[own], last[own]) >= last.dtype.type(duration.shortest)
    faults = last[lost]
    if len(faults):
        time = place.download(faults[:1])[0]
        # the run would be open until the next event, and then turn out to have ended before
        raise EventError(
            f"column {plan.query.column_name(plan.query.timestamp)!r} has the time {time}, to which gap={gap} adds nothing, "
            "so that detect='early' cannot tell when a situation ends there; give times as integers, or a longer gap"
        )


def _pair_borders(
    names: int, events: EventSequence, borders: SituationBorders, threads: int
) -> tuple[Array, Array, Sequence[int] | Indices]:  # fmt: skip
    """Return the opening and the closing border of each run, and the number of runs of each name.

    Runs are sorted by name, stream and time. On the host `threads` share the borders.
    """
    if events.place is not HOST:
        return paired_borders(events.place.xp, borders.stream, borders.opened, borders.closed, names)
    order = order_by_group(borders.stream, events.count)[0] if events.count > 1 else np.arange(len(borders.stream))
    threads = threads_for(len(order), threads)
    parts = [order[low:high] for low, high in slices(len(order), threads)] or [order]
    crossed = np.zeros((len(parts), 2, names), np.int64)
    opened, closed = borders.opened, borders.closed
    spread(lambda part: count_crossings(parts[part], opened, closed, crossed[part, 0], crossed[part, 1]), range(len(parts)), threads)
    counts: Indices = crossed[:, 0].sum(axis=0)
    # a part's runs follow those that earlier parts open, or close
    places = np.cumsum(counts) - counts + np.cumsum(crossed, axis=0) - crossed
    opening, closing = new_values(int(counts.sum()), np.int64), new_values(int(counts.sum()), np.int64)
    spread(
        lambda part: pair_borders(parts[part], opened, closed, places[part, 0], places[part, 1], opening, closing),
        range(len(parts)), threads,
    )  # fmt: skip
    return opening, closing, counts


def _lasts_long_enough(duration: Duration, start: Array, end: Array, is_open: Array, *, early: bool) -> Array:
    """Return whether each situation has ended and its duration is as asked.

    If `early`, open situations count as well, unless there is a longest duration.
    """
    length = elapsed_time(start, end)
    suits = (end > start) & ~is_open
    if duration.shortest is not None:
        suits &= length >= length.dtype.type(duration.shortest)
    if duration.longest is not None:
        suits &= length <= length.dtype.type(duration.longest)
    return suits | is_open if early and duration.longest is None else suits


def derive_from_runs(plan: IntervalPlan, events: EventSequence, runs: SituationRuns, threads: int = 1) -> DerivedSituations:
    """Return the runs with their endpoints, as the join reads them; on the host `threads` gather these."""
    return _derive_early(plan, events, runs, threads) if plan.query.early else _derive_final(events, runs)


def _derive_final(events: EventSequence, runs: SituationRuns) -> DerivedSituations:
    """Return the situations for final detection: endpoints are times, and a situation is known at its end."""
    start, end = runs.start, runs.end
    clocks = [as_clock(points) for points in (start, end)]
    numbers, streams = _number_streams(events, runs)
    situations = Situations(_stream_offsets(numbers, streams, runs), start, end, end, clocks[0], clocks[1], clocks[1])
    latest = np.float64(np.inf) if start.dtype.kind == "f" else np.int64(np.iinfo(np.int64).max)
    return DerivedSituations(events, runs, numbers, streams, situations, latest, latest)


def _derive_early(plan: IntervalPlan, events: EventSequence, runs: SituationRuns, threads: int) -> DerivedSituations:
    """Return the situations for early detection that some match may take: endpoints are twice the moments."""
    known = _first_known(plan, events, runs)
    kept = np.flatnonzero(known < len(events))
    names = np.searchsorted(kept, runs.names)
    columns = runs.stream, runs.first, runs.last, runs.ended, runs.start, runs.end
    runs = SituationRuns(names, *_gathered([(column, kept) for column in columns], threads))
    is_open = runs.ended == NO_POSITION
    began, start = _moments(events, runs.stream, runs.first.astype(np.int64), threads)
    ended, end = _moments(events, runs.stream, np.where(is_open, 0, runs.ended).astype(np.int64), threads)
    waits = any(duration != Duration(None, None) for duration in plan.query.durations)
    learned, reached = _moments(events, runs.stream, known[kept], threads) if waits else (began, start)
    # an end that a gap makes is known at the event behind the gap, so its endpoint is one less than that event's
    end = np.where(is_open, 2 * len(events), end - (runs.end != ended))
    numbers, streams = _number_streams(events, runs)
    clocks = map(as_clock, (began, ended, learned))
    situations = Situations(_stream_offsets(numbers, streams, runs), start, end, np.minimum(reached, end), *clocks)
    never = np.int64(2 * len(events))
    return DerivedSituations(events, runs, numbers, streams, situations, never - 2, never, early=True)


def _moments(events: EventSequence, streams: Array, positions: Indices, threads: int) -> tuple[Array, Indices]:
    """Return the times of the events at some positions of these streams, and twice their moments; threads share the positions."""
    times, moments = new_values(len(positions), events.times.dtype), new_values(len(positions), np.int64)

    def fill(span: tuple[int, int]) -> None:
        own = slice(*span)
        times[own] = events.gather(events.times, positions[own])
        np.multiply(events.moments(positions[own], streams[own], times[own]), 2, out=moments[own])

    threads = threads_for(len(positions), threads)
    spread(fill, slices(len(positions), threads), threads)
    return times, moments


def _first_known(plan: IntervalPlan, events: EventSequence, runs: SituationRuns) -> Indices:
    """Return the event at which each situation can first be in a match (section 5.3.2).

    It is the number of events for situations that can be in none.
    """
    known = runs.first.astype(np.int64)
    for v, duration in enumerate(plan.query.durations):
        own = slice(int(runs.names[v]), int(runs.names[v + 1]))
        if duration.longest is not None:
            known[own] = runs.ended[own]
        elif duration.shortest is not None:
            known[own] = _first_lasting(duration.shortest, events, runs, own)
    return known


def _first_lasting(shortest: float, events: EventSequence, runs: SituationRuns, own: slice) -> Indices:
    """Return the first event at which each of the situations `own` has lasted at least `shortest`.

    It is the number of events for situations that never do.
    """
    assert events.offsets is not None, "early detection takes streams one after the other"
    place, first, ends = events.place, runs.first[own], events.offsets[runs.stream[own] + 1]
    times, reached = as_clock(events.times), place.xp.empty(len(first), np.int64)
    place.launch(first_reaching, len(first), place.upload(first), place.upload(ends), times, times.dtype.type(shortest), reached)
    found = place.download(reached)
    return np.where(found == ends, len(events), found)


def recent_situations(derived: DerivedSituations, begin: Tick) -> Flags:
    """Return which situations end at `begin` or later; each match that is detected then has one of them."""
    events, runs = derived.events, derived.runs
    since = TimeSlice(begin)
    if not derived.early:
        found: Flags = since.holds(runs.end)
    else:
        is_open = runs.ended == NO_POSITION
        # an end that a gap makes is known at the event behind the gap
        found = is_open | since.holds(events.gather(events.times, np.where(is_open, 0, runs.ended)))
    return found


def _number_streams(events: EventSequence, runs: SituationRuns) -> tuple[Places, int]:
    """Return the stream of each situation, numbered among those that have any, and how many these are.

    Keys may leave many stream numbers unused.
    """
    present = np.zeros(events.count, np.bool_)
    present[runs.stream] = True
    places = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return places[runs.stream], int(np.count_nonzero(present))


def _stream_offsets(numbers: Places, streams: int, runs: SituationRuns) -> Indices:
    """Return the first situation of each name in each stream, [name, stream], with a column for the end."""
    names = len(runs.names) - 1
    offsets = np.empty((names, streams + 1), np.int64)
    for v in range(names):
        own = numbers[runs.names[v] : runs.names[v + 1]]
        offsets[v, 0] = runs.names[v]
        offsets[v, 1:] = runs.names[v] + np.cumsum(np.bincount(own, minlength=streams))
    return offsets

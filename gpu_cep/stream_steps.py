"""Take a stream from one state to the next: events come in, the watermark moves, matches become certain."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.answers import answer
from gpu_cep.engine.events.own_events import WHOLE, TimeSlice, events_to_keep
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.input_events import Origin
from gpu_cep.engine.input.parquet_files import PartOfFiles
from gpu_cep.engine.input.read_tables import to_host
from gpu_cep.engine.input.ticks import Tick, following
from gpu_cep.engine.input.timed_events import timed_events
from gpu_cep.engine.input.times import load_times
from gpu_cep.engine.slices.assembly import drop_added
from gpu_cep.engine.slices.disjoint import Held, take_decided
from gpu_cep.engine.slices.sliced_plan import SlicedPlan, add_columns
from gpu_cep.engine.streaming.certainty import Certain, earliest_open
from gpu_cep.engine.streaming.state import Clock, StreamState
from gpu_cep.errors import EventError, MatchLimitExceeded
from gpu_cep.live_queries import LiveQuery

Times = npt.NDArray[np.int64] | npt.NDArray[np.float64]


def push_events(live: LiveQuery, state: StreamState, events: pa.Table) -> StreamState:
    """Return the state with further events, of the schema of the query; the watermark moves behind the latest one.

    An event is late if its time is not after the watermark before.

    Raises
    ------
    EventError
        A timestamp is NULL or NaN, or an event is late, unless these are dropped.
    """
    timed, rows = timed_events(live.plan.query, events)
    host, clock = to_host(timed), state.clock
    times = _times(live, host)
    numbers = clock.pushed + (np.arange(events.num_rows) if rows is None else rows)
    if clock.watermark is not None and len(times):
        in_time = times > clock.watermark
        _refuse_late(live, clock, numbers, in_time)
        late = len(times) - int(np.count_nonzero(in_time))
        if late:
            host, times, numbers = host.filter(pa.array(in_time)), times[in_time], numbers[in_time]
            clock = replace(clock, late=clock.late + late)
    clock = replace(clock, pushed=clock.pushed + events.num_rows, watermark=_moved(live, clock.watermark, times))
    kept = pa.concat_tables([state.events, host]) if host.num_rows else state.events
    return replace(state, events=kept, numbers=np.concatenate([state.numbers, numbers]), clock=clock)


def _refuse_late(live: LiveQuery, clock: Clock, numbers: npt.NDArray[np.int64], in_time: npt.NDArray[np.bool_]) -> None:
    """Raise EventError if events are late and that is an error."""
    if live.refuses_late and not in_time.all():
        first, late = int(numbers[np.argmin(in_time)]), int(np.count_nonzero(~in_time))
        told = f"{late:,} events are late, the first of them event {first:,}: the watermark is at {clock.watermark} ticks"
        raise EventError(f"{told}; give a longer lateness=, or drop late events by late='drop'")


def _times(live: LiveQuery, events: pa.Table) -> Times:
    """Return the times of events, in ticks."""
    return load_times(EventColumns(events, live.plan.query, live.plan.dictionaries), live.plan.query.timestamp)


def _moved(live: LiveQuery, watermark: Tick | None, times: Times) -> Tick | None:
    """Return the watermark once events have come."""
    if not len(times):
        return watermark
    behind: Tick = times.max().item() - live.lateness
    return behind if watermark is None else max(watermark, behind)


def is_due(live: LiveQuery, clock: Clock) -> bool:
    """Return whether the watermark has moved so far that the engine runs."""
    if clock.watermark is None or clock.answered is None:
        return clock.watermark is not None
    moved = clock.watermark - clock.answered
    return moved > 0 and (live.every is None or moved >= live.every)


def certain_matches(live: LiveQuery, state: StreamState, threads: int | None, profile: Profile | None) -> tuple[StreamState, pa.Table]:
    """Return the state without events that no later match depends on, and the matches that have become certain.

    These are the matches that were not certain when the engine ran last. A stream that has finished has no watermark:
    then all other matches are certain.
    """
    clock = state.clock
    until = None if clock.finished else clock.watermark
    own, ends = _asked(live, clock.answered, until)
    # what comes behind the watermark is not complete
    table, numbers = (state.events, state.numbers) if until is None else _known(live, state, until)
    run = partial(answer, own=own, ends=ends, threads=threads, profile=profile)
    if live.sliced is None:
        return _forget(live, state, until), run(live.plan, table, origin=Origin(numbers=numbers))
    numbered, origin = add_columns(live.sliced, PartOfFiles(table, live.schema, numbers))
    taken, held = _take(live, live.sliced, state.held, run(live.sliced.plan, numbered, origin=origin), until)
    return replace(_forget(live, state, until), held=held), taken


def _take(live: LiveQuery, sliced: SlicedPlan, held: Held | None, found: pa.Table, until: Tick | None) -> tuple[pa.Table, Held]:
    """Return the matches that ``skip_past_last`` keeps for certain, and those that decide about later ones."""
    before = Held(found.slice(0, 0), np.zeros(0, np.bool_)) if held is None else held
    later = None if until is None else earliest_open(until, live.window)
    decided = None if live.certain is Certain.WITH_LAST_EVENT else later
    taken, after = take_decided(sliced, before, found, decided, later)
    most = sliced.whole.settings.max_matches
    if most is not None and taken.num_rows > most:
        raise MatchLimitExceeded(f"more than max_matches={most:,} matches have become certain at once")
    return drop_added(sliced, taken), after


def _asked(live: LiveQuery, answered: Tick | None, until: Tick | None) -> tuple[TimeSlice, TimeSlice]:
    """Return the slices in which the first and the last event of a match are that has become certain.

    `answered` and `until` are the watermarks at the last run and now; None: before all events, and behind them.
    """
    if live.certain is Certain.WITH_LAST_EVENT:
        return WHOLE, TimeSlice(None if answered is None else following(answered), None)
    begin, end = (None if at is None else earliest_open(at, live.window) for at in (answered, until))
    return TimeSlice(begin, end), WHOLE


def _known(live: LiveQuery, state: StreamState, until: Tick) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Return the events up to a time, and their numbers."""
    known = _times(live, state.events) <= until
    return (state.events, state.numbers) if known.all() else (state.events.filter(pa.array(known)), state.numbers[known])


def _forget(live: LiveQuery, state: StreamState, until: Tick | None) -> StreamState:
    """Return the state without the events that no later match depends on, all matches up to the watermark having been found."""
    clock = replace(state.clock, answered=until)
    if until is None:
        return replace(state, events=state.events.slice(0, 0), numbers=state.numbers[:0], clock=clock)
    passed = TimeSlice(end=earliest_open(until, live.window))
    # numbers come along as a column behind those of the query
    numbered = state.events.append_column(pa.field("number", pa.int64()), pa.array(state.numbers))
    kept = events_to_keep(live.plan, numbered, passed)
    columns = range(kept.num_columns - 1)
    return replace(state, events=kept.select(columns).combine_chunks(), numbers=kept.column(kept.num_columns - 1).to_numpy(), clock=clock)

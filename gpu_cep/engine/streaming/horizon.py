"""Say which matches a run over a stream reports, and which events later runs need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gpu_cep.analysis.bound import CountWindow, TimeWindow
from gpu_cep.engine.events.match_ends import EndsByBranch, KnownTimes, NewlyClosed, ReportedEnds
from gpu_cep.engine.events.matches import Indices, Rows
from gpu_cep.engine.events.own_events import WHOLE, Own, OwnRows, TimeSlice
from gpu_cep.engine.events.positions import positions_of_events
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.ticks import Tick, following, window_begin
from gpu_cep.engine.slices.sliced_plan import numbers_ties
from gpu_cep.engine.streaming.certainty import earliest_open
from gpu_cep.engine.streaming.kept_events import count_until, drop_first, drop_others, keep_from
from gpu_cep.engine.streaming.sessions import Sessions, find_sessions, streams_of_events
from gpu_cep.engine.streaming.state import StreamState
from gpu_cep.plan.certainty import Certain, waiting_branches
from gpu_cep.plan.event_plan import EventPlan, Plan
from gpu_cep.plan.interval_plan import IntervalPlan


@dataclass(frozen=True, slots=True, eq=False)
class Horizon:
    """How far a run over a stream looks.

    `known`: how many of the kept events are known to be all of their time; they are the first ones.
    `own`, `ends`: where the first event of a match that is reported may be, and where its last one, or its detection.
    `later`: the earliest time at which a match of a later run may begin (None: there is no later run). With sessions, that of one
    which begins with an event that is not known yet; others may begin at `open` events.
    `over`: with a window of a number of events, how many of the known ones, in order, have windows that are over; else 0.
    `order`: the known events in the order of the stream, for such a window (None: as they are).
    `sessions`: those of the known events, if keys have a time to live.
    `needed`: then, the known events that later runs need.
    `open`: then, the known events whose windows are not over.
    `expired`: then, how many sessions have been closed.
    """

    known: int
    own: Own
    ends: ReportedEnds
    later: Tick | None
    over: int = 0
    order: Indices | None = None
    sessions: Sessions | None = None
    needed: Indices | None = None
    open: Indices | None = None
    expired: int = 0


def horizon_of(plan: Plan, certain: Certain, state: StreamState, until: Tick | None, time_to_live: Tick | None = None) -> Horizon:
    """Return how far a run looks if events are known up to the time `until`; None: no event comes any more.

    `time_to_live` is that of keys, for a window of a number of their events (None: there is none).
    """
    known = len(state.times) if until is None else count_until(state, until)
    answered = state.clock.answered
    ends = WHOLE if certain is Certain.WITH_WINDOW else TimeSlice(None if answered is None else following(answered))
    window = plan.query.window
    if isinstance(window, CountWindow) and time_to_live is not None:
        return _of_sessions(_Counted(plan, window, certain, state, until, known, ends), time_to_live)
    if isinstance(window, CountWindow):
        return _of_numbers(_Counted(plan, window, certain, state, until, known, ends))
    assert isinstance(window, TimeWindow), "a query without a window is refused"
    begin, later = (None if at is None else earliest_open(at, window.length) for at in (answered, until))
    if certain is Certain.WITH_NEXT_EVENT:
        return Horizon(known, WHOLE, NewlyClosed(_known(answered, begin), _known(until, later)), later)
    if certain is Certain.BY_BRANCH:
        assert isinstance(plan, EventPlan), "situations have no branches"
        return Horizon(known, WHOLE, EndsByBranch(waiting_branches(plan), TimeSlice(begin, later), ends), later)
    own = TimeSlice(begin, later) if certain is Certain.WITH_WINDOW else WHOLE
    return Horizon(known, own, ends, later)


def _known(until: Tick | None, later: Tick | None) -> KnownTimes | None:
    """Return what is known at a watermark."""
    return None if until is None else KnownTimes(TimeSlice(end=following(until)), TimeSlice(end=later))


class _Counted(NamedTuple):
    """A stream whose window is a number of events, at a watermark; the fields are as in :func:`horizon_of` and :class:`Horizon`."""

    plan: Plan
    window: CountWindow
    certain: Certain
    state: StreamState
    until: Tick | None
    known: int
    ends: TimeSlice


def _of_numbers(counted: _Counted) -> Horizon:
    """Return the horizon of a query whose window is a number of events."""
    plan, window, certain, state, until, known, ends = counted
    over = known if until is None else max(state.over, known - window.events + 1)
    order = _stream_order(plan, state, known)
    later = None if until is None else following(until)
    if until is not None and over < known:
        later = state.times[over].item()
    if certain is not Certain.WITH_WINDOW:
        return Horizon(known, WHOLE, ends, later, over, order)
    marks = np.zeros(known, np.bool_)
    marks[np.arange(state.over, over) if order is None else order[state.over : over]] = True
    return Horizon(known, OwnRows(marks), ends, later, over, order)


def _of_sessions(counted: _Counted, time_to_live: Tick) -> Horizon:
    """Return the horizon of a query whose window is a number of events of a key's session."""
    plan, window, certain, state, until, known, ends = counted
    answered = state.clock.answered
    streams = streams_of_events(plan, state.events.slice(0, known))
    sessions = _sessions(plan, state, streams, time_to_live)
    closed = sessions.are_closed(until, time_to_live)
    over = sessions.are_over(window.events, closed)
    own: Own = WHOLE
    if certain is Certain.WITH_WINDOW:
        before = 0 if answered is None else count_until(state, answered)
        earlier = _sessions(plan, state, streams[:before], time_to_live)
        reported = earlier.are_over(window.events, earlier.are_closed(answered, time_to_live))
        own = OwnRows(over & ~np.append(reported, np.zeros(known - before, np.bool_)))
    needed = ~over
    if _looks_back(plan):
        needed |= ~closed[sessions.numbers] & (sessions.behind < 2 * (window.events - 1))
    later = None if until is None else following(until)
    expired = 0 if until is None else int(np.count_nonzero(closed))
    kept, still_open = np.flatnonzero(needed), np.flatnonzero(~over)
    return Horizon(known, own, ends, later, sessions=sessions, needed=kept, open=still_open, expired=expired)


def _sessions(plan: Plan, state: StreamState, streams: Indices, time_to_live: Tick) -> Sessions:
    """Return the sessions of the events that are known, whose `streams` are given."""
    known = len(streams)
    return find_sessions(streams, state.times[:known], _stream_order(plan, state, known), time_to_live)


def _stream_order(plan: Plan, state: StreamState, known: int) -> Indices | None:
    """Return the known events in the order of the stream; None if that is how they are kept."""
    if not plan.query.order_by:
        return None
    columns = EventColumns(state.events.slice(0, known), plan.query, plan.dictionaries, threads=1)
    times, places = positions_of_events(plan, columns)
    return np.lexsort([places, times])


def forget(plan: Plan, state: StreamState, horizon: Horizon) -> StreamState:
    """Return the state without the events that no match of a later run depends on."""
    if horizon.later is None:
        return drop_first(state, len(state.times))
    if isinstance(plan, IntervalPlan):
        return _with_events_before(plan, state, horizon.later)
    if horizon.needed is not None:
        return drop_others(state, horizon.known, with_ties(plan, state, horizon.known, horizon.needed))
    looks_back = _looks_back(plan)
    match plan.query.window:
        case CountWindow(events=events):
            dropped = max(0, horizon.over - looks_back * (events - 1))
            if plan.query.order_by and dropped < len(state.times):
                # events of one time are kept or dropped together: the next run puts them in order again
                dropped = int(np.searchsorted(state.times, state.times[dropped]))
            return replace(drop_first(state, dropped), over=horizon.over - dropped)
        case TimeWindow(length=length):
            return keep_from(state, window_begin(horizon.later, length) if looks_back else horizon.later)
    raise AssertionError("a query without a window is refused")


def _looks_back(plan: Plan) -> bool:
    """Return whether a negation asks for events before the first one of a match."""
    assert isinstance(plan, EventPlan), "situations have windows of time"
    return any(not negation.after for branch in plan.branches for negation in branch.negations)


def with_ties(plan: Plan, state: StreamState, known: int, kept: Rows) -> Rows:
    """Return the rows of known events that are `kept`, and of all others of their streams and times if runs number these."""
    if not numbers_ties(plan):
        return kept
    streams, times = streams_of_events(plan, state.events.slice(0, known)), state.times[:known]
    order = np.lexsort([times, streams])
    moved = (np.diff(times[order]) != 0) | (np.diff(streams[order]) != 0)
    moments = np.empty(known, np.int64)
    moments[order] = np.concatenate([np.zeros(min(known, 1), np.int64), np.cumsum(moved)])
    return np.flatnonzero(np.isin(moments, moments[kept]))


def _with_events_before(plan: IntervalPlan, state: StreamState, begin: Tick) -> StreamState:
    """Return the state without the events before a time, but for the last ones of each stream, which say what began before."""
    before = int(np.searchsorted(state.times, begin, side="left"))
    columns = EventColumns(state.events.slice(0, before), plan.query, plan.dictionaries, threads=1)
    codes = encode_keys(columns, plan.query.partition_by).codes
    streams = np.zeros(before, np.int64) if codes is None else codes
    last = np.zeros(int(streams.max(initial=0)) + 1, np.int64)
    # of several values for one place, the last one is taken
    last[streams] = np.arange(before)
    tied = np.flatnonzero(state.times[:before] == state.times[last[streams]]) if before else last[:0]
    return drop_others(state, before, tied)

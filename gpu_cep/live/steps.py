"""Take a stream from one state to the next: events come in, the watermark moves, matches become certain."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.accounting.resources import ALL_CORES, Resources
from gpu_cep.engine.answers import answer, answer_schema, open_run_rows, rows_in_contact
from gpu_cep.engine.events.matches import Indices, Rows
from gpu_cep.engine.events.own_events import TimeSlice
from gpu_cep.engine.events.reported import Reported
from gpu_cep.engine.events.settling import Borders
from gpu_cep.engine.input.chunk_dictionaries import most_values, take_events, without_others
from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.input_events import Origin
from gpu_cep.engine.input.parquet_files import PartOfFiles
from gpu_cep.engine.input.read_tables import to_host
from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.input.timed_events import timed_events
from gpu_cep.engine.slices.assembly import drop_added, number_matches, total_of
from gpu_cep.engine.slices.disjoint import LaterMatches, take_decided
from gpu_cep.engine.slices.held_matches import Held, HeldRows
from gpu_cep.engine.slices.sliced_plan import SlicedPlan, add_columns
from gpu_cep.engine.streaming.decisive import Decisive, InContact, LastOfStreams, OpenRuns, is_worth_a_look, last_rows_of_streams
from gpu_cep.engine.streaming.event_tags import Tags, bindable_rows, may_begin, tag_events, tagged_rows
from gpu_cep.engine.streaming.horizon import Horizon, forget, horizon_of, with_ties
from gpu_cep.engine.streaming.kept_events import add_events, count_until, drop_first, drop_others, keep_rows, release_dropped
from gpu_cep.engine.streaming.moving_streams import events_of_keys
from gpu_cep.engine.streaming.row_patterns import certain_rows, marked
from gpu_cep.engine.streaming.sessions import with_numbers, without_numbers
from gpu_cep.engine.streaming.state import Clock, StreamState, Times
from gpu_cep.errors import CepError, MatchLimitExceeded
from gpu_cep.live.clocks import is_due, moved_clock, refuse_late, times_of
from gpu_cep.live.queries import LiveQuery
from gpu_cep.plan.certainty import Certain
from gpu_cep.plan.event_plan import EventPlan, Plan
from gpu_cep.plan.interval_plan import IntervalPlan

# Of fewer events, it takes less time to leave out those that no variable can bind before a run than after it.
_LARGE = 1 << 15
# So many values in dictionaries for each event of such a push take longer to join than that saves.
_MOST_VALUES = 0.1
# Of so many of its events the share is taken that variables can bind; where it is less, leaving the others out first pays.
_SAMPLED, _FEWEST_BOUND = 1 << 10, 0.2
# Dictionaries of a push keep what they have besides its own values if they have at most so many for each event.
_MOST_OTHERS = 16.0


class Pushed(NamedTuple):
    """What a push leaves to the run that follows.

    `state`: the state with the events that came in time.
    `late`: the rows of the pushed events that were late.
    `filtered`: whether events that no variable can bind were left out, if they do not matter; else the run leaves them out.
    """

    state: StreamState
    late: Indices
    filtered: bool = True


class _InTime(NamedTuple):
    """The events of a push that were not late, their times in ticks, and their rows; the clock behind them; the rows of late ones."""

    events: pa.Table
    times: Times
    rows: Indices
    clock: Clock
    late: Indices


def push_events(live: LiveQuery, state: StreamState, events: pa.Table) -> Pushed:
    """Return the state with further events, of the schema of the query, but for those that no variable can bind and that do not matter.

    The watermark moves behind the latest event. An event is late if its time is not after the watermark before.

    Raises
    ------
    EventError
        A timestamp is NULL or NaN, an event is late, unless these are dropped, or a condition overflows.
    """
    return _push_filtered(live, state, _in_time(live, state.clock, events))


def push_before_run(live: LiveQuery, state: StreamState, events: pa.Table) -> Pushed:
    """Return what :func:`push_events` does, if :func:`run_pushed` is next as soon as a run is due.

    So a large push may stay as it came until then: its events are labelled once, but for the few that are kept.
    """
    pushed = _in_time(live, state.clock, events)
    if is_due(live, pushed.clock) and _stays_unfiltered(live, state, pushed.events):
        moved = replace(state, clock=pushed.clock)
        return Pushed(add_events(moved, pushed.events, pushed.times, state.clock.pushed + pushed.rows), pushed.late, filtered=False)
    return _push_filtered(live, state, pushed)


def _in_time(live: LiveQuery, clock: Clock, events: pa.Table) -> _InTime:
    """Return the events that came in time, on the host; raises as :func:`push_events`."""
    timed, kept = timed_events(live.plan.query, events)
    host = to_host(timed)
    if live.tagging is not None:
        # runs read the events of few keys
        host = without_others(host, _MOST_OTHERS)
    times, rows = times_of(live, host), np.arange(events.num_rows) if kept is None else kept
    late = rows[:0]
    if clock.watermark is not None and len(times) and times.min() <= clock.watermark:
        in_time = times > clock.watermark
        late = rows[~in_time]
        refuse_late(live, clock, clock.pushed + late)
        host, times, rows = host.filter(pa.array(in_time)), times[in_time], rows[in_time]
    return _InTime(host, times, rows, moved_clock(live, clock, times, pushed=events.num_rows, late=len(late)), late)


def _push_filtered(live: LiveQuery, state: StreamState, pushed: _InTime) -> Pushed:
    """Return the state with those of the events in time that some variable may bind, or with all if the others matter, too."""
    numbers = state.clock.pushed + pushed.rows
    return Pushed(add_bindable(live, replace(state, clock=pushed.clock), pushed.events, pushed.times, numbers), pushed.late)


def add_bindable(live: LiveQuery, state: StreamState, events: pa.Table, times: Times, numbers: npt.NDArray[np.int64]) -> StreamState:
    """Return the state with those of the events that some variable may bind, or with all if the others matter, too.

    `times` are theirs in ticks, and `numbers` those among all events that came.
    """
    chosen, tags = bindable_events(live, events)
    if len(chosen) < events.num_rows:
        events, times, numbers = take_events(events, chosen), times[chosen], numbers[chosen]
    return add_events(state, events if live.rows is None else marked(events), times, numbers, tags)


def _stays_unfiltered(live: LiveQuery, state: StreamState, pushed: pa.Table) -> bool:
    """Return whether a push is large, and most of what the next run reads, and variables can bind many of its events."""
    if live.rows is not None or pushed.num_rows <= max(_LARGE, len(state.times)):
        return False
    if most_values(pushed, state.events) > _MOST_VALUES * pushed.num_rows:
        return False
    spread = np.arange(0, pushed.num_rows, max(1, pushed.num_rows // _SAMPLED))
    bound, _ = bindable_events(live, take_events(pushed, spread))
    return len(bound) >= _FEWEST_BOUND * len(spread)


def with_tags(live: LiveQuery, state: StreamState) -> StreamState:
    """Return a state that was saved with the tags of its events."""
    return state if live.tagging is None else replace(state, tags=tag_events(live.tagging, state.events))


def hold_events(live: LiveQuery, state: StreamState, events: pa.Table, numbers: npt.NDArray[np.int64]) -> StreamState:
    """Return the state with these events, which were kept elsewhere, in place of its own; raises as :func:`push_events`."""
    emptied = release_dropped(drop_first(state, len(state.times)), len(state.times))
    return add_events(emptied, events, times_of(live, events), numbers)


def bindable_events(live: LiveQuery, events: pa.Table) -> tuple[Rows, Tags | None]:
    """Return the rows of the events that some variable may bind, or of all if the others matter, too; and their tags, if any."""
    return (bindable_rows(live.labelling, events), None) if live.tagging is None else tagged_rows(live.tagging, events)


def no_matches(live: LiveQuery) -> pa.Table:
    """Return the result of a call by which nothing has become certain."""
    if live.plan.settings.output != "count" or live.plan.query.partition_by:
        return no_rows(live.result)
    return pa.Table.from_arrays([pa.array([0], pa.int64())], schema=live.result)


def certain_matches(live: LiveQuery, state: StreamState, resources: Resources = ALL_CORES) -> tuple[StreamState, pa.Table]:
    """Return the state without events that no later match depends on, and the matches that have become certain, then timeouts.

    These are those that were not certain when the engine ran last. A stream that has finished has no watermark:
    then all other matches are certain.
    """
    after, found = _run_over(live, state, resources)
    return release_dropped(after, len(state.times)), found


def run_pushed(live: LiveQuery, pushed: Pushed, resources: Resources) -> tuple[StreamState, pa.Table]:
    """Return what :func:`certain_matches` does, of what was pushed just before."""
    if pushed.filtered:
        return certain_matches(live, pushed.state, resources)
    after, found = _run_over(live, pushed.state, resources)
    return keep_rows(after, *bindable_events(live, after.events)), found


def _run_over(live: LiveQuery, state: StreamState, resources: Resources) -> tuple[StreamState, pa.Table]:
    """Return what :func:`certain_matches` does; the state may hold the memory of the events that it left out."""
    assert len(state.times) == state.events.num_rows, "hold_events() puts events into a state"
    until = state.clock.known_until
    if live.rows is not None:
        after, found = certain_rows(live.rows, state, until, resources.threads, live.plan.settings.max_steps, resources.profile)
        return _counted(live, replace(after, clock=replace(state.clock, answered=until)), found.num_rows), found
    if live.timeouts is None:
        return _certain_matches(live, state, until, resources)
    own = horizon_of(live.timeouts, Certain.WITH_WINDOW, state, until)
    # both runs read the same columns of the same events
    shared = EventColumns(state.events.slice(0, own.known), live.plan.query, threads=resources.threads)
    after, found = _certain_matches(live, state, until, resources, shared)
    read = _read_by(live, Certain.WITH_WINDOW, state, own, shared)
    told, reported = replace(resources, spent=None), Reported(own.own)
    over = answer(live.timeouts, read.table, origin=read.origin, shared=read.shared, reported=reported, resources=told)
    return after, pa.concat_tables([found, over])


class _Read(NamedTuple):
    """The events that a run reads, where they are from, and their columns, which other runs may read, too (None: none does)."""

    table: pa.Table
    origin: Origin
    shared: EventColumns | None


def _read_by(live: LiveQuery, certain: Certain, state: StreamState, horizon: Horizon, columns: EventColumns) -> _Read:
    """Return what a run reads of the events that are known, whose `columns` are given: those of keys that may have something to report.

    What comes behind the watermark is not complete.
    """
    table, numbers = state.events.slice(0, horizon.known), state.numbers[: horizon.known]
    chosen = events_of_keys(live.tagging, certain, state, horizon, columns)
    if chosen is None:
        return _Read(table, Origin(live.schema, numbers), columns)
    return _Read(take_events(table, chosen), Origin(live.schema, numbers[chosen]), None)


def _certain_matches(
    live: LiveQuery, state: StreamState, until: Tick | None, resources: Resources, shared: EventColumns | None = None
) -> tuple[StreamState, pa.Table]:  # fmt: skip
    """Return the state, and the matches that have become certain if events are known up to a time; None: no event comes any more."""
    time_to_live = None if live.sessions is None else live.sessions.time_to_live
    horizon = horizon_of(live.plan, live.certain, state, until, time_to_live)
    columns = shared or EventColumns(state.events.slice(0, horizon.known), live.plan.query, threads=resources.threads)
    read = _read_by(live, live.certain, state, horizon, columns)
    reported = Reported(horizon.own, horizon.ends, _borders(live, state, horizon))
    run = partial(_run, live, reported=reported, resources=resources)
    clock = replace(state.clock, answered=until, expired=state.clock.expired + horizon.expired)
    after = forget(live.plan, replace(state, clock=clock), horizon)
    if live.sliced is None:
        found = run(read.table, read.origin, shared=read.shared)
        return _counted(live, after, _sum(found) if live.plan.settings.output == "count" else found.num_rows), found
    # further columns are added
    part = PartOfFiles(read.table, live.schema, read.origin.numbers)
    later = _later(live, state, horizon) if live.sliced.takes else None
    if live.sessions is None or horizon.sessions is None:
        return _put_together(live, live.sliced, after, run(*add_columns(live.sliced, part), shared=None), later)
    table, schema = with_numbers(live.sessions.column, part.table, part.schema, horizon.sessions.numbers)
    found = run(*add_columns(live.sliced, replace(part, table=table, schema=schema)), shared=None)
    return _put_together(live, live.sliced, after, without_numbers(live.sliced, live.sessions.column, found), later)


def _run(
    live: LiveQuery, table: pa.Table, origin: Origin, *, reported: Reported, resources: Resources, shared: EventColumns | None
) -> pa.Table:  # fmt: skip
    """Return the matches that have become certain, as the plan of a run gives them."""
    # a profile has the counts of each run
    if not table.num_rows and resources.profile is None:
        return no_rows(answer_schema(live.running, origin.schema))
    return answer(
        live.running, table, origin=origin, shared=shared, reported=reported, resources=resources, choose_order=live.orders,
        algorithms=live.algorithms,
    )  # fmt: skip


def _borders(live: LiveQuery, state: StreamState, horizon: Horizon) -> Borders | None:
    """Return by which events a run settles what ``skip_past_last`` keeps; None if it settles nothing.

    Where keys have a time to live, later matches begin at times of their own.
    """
    if live.sliced is None or not live.sliced.takes or horizon.sessions is not None:
        return None
    return Borders.of_times(TimeSlice(end=horizon.later), state.clock.answered)


def _put_together(
    live: LiveQuery, sliced: SlicedPlan, state: StreamState, found: pa.Table, later: LaterMatches | None
) -> tuple[StreamState, pa.Table]:  # fmt: skip
    """Return the state after a run, and the rows of the result that it made certain.

    The state counts, numbers or holds back the matches that were found.
    """
    if sliced.takes:
        found, held = _take(live, sliced, state.held, found, later)
        state = replace(state, held=held)
    if sliced.totals:
        total = total_of(sliced, [found])
        return _counted(live, state, _sum(total)), total
    matches = found.num_rows
    if sliced.whole.settings.output == "events":
        before = 0 if state.numbering is None else state.numbering.total
        found, numbering = number_matches(sliced, state.numbering, found)
        state, matches = replace(state, numbering=numbering), numbering.total - before
    return _counted(live, state, matches), drop_added(sliced, found)


def give_up_decided(live: LiveQuery, state: StreamState, threads: int | None, brought: int = 0) -> StreamState:
    """Return the state after a run, without the known events on which no later match depends, if these may be many.

    `brought` says how many events the last push had. Where most pushes are large, windows give up as many.
    """
    until = state.clock.answered
    if live.decisive is None or until is None:
        return state
    known = count_until(state, until)
    if not is_worth_a_look(state, known, brought if brought > _LARGE else 0):
        return state
    try:
        kept = _decisive_rows(live.plan, live.decisive, state.events.slice(0, known), state.times[:known], threads)
    except CepError:
        # a condition of a run that is not complete yet: it is an error of the push that completes it
        kept = None
    if kept is None:
        return replace(state, settled=known)
    kept = with_ties(live.plan, state, known, kept)
    return replace(release_dropped(drop_others(state, known, kept), len(state.times)), settled=len(kept))


def _decisive_rows(plan: Plan, decisive: Decisive, known: pa.Table, times: Times, threads: int | None) -> Rows | None:
    """Return the rows of the known events on which later matches depend; None: these may be all."""
    match decisive, plan:
        case OpenRuns(runs), _:
            return open_run_rows(runs, known, threads)
        case LastOfStreams(number), EventPlan():
            return last_rows_of_streams(plan, known, times, number)
        case InContact(contacts), IntervalPlan():
            return rows_in_contact(plan, known, contacts, threads)
    raise AssertionError(f"{decisive} is not of such a plan")


def _sum(counts: pa.Table) -> int:
    """Return the sum of the numbers of matches of streams."""
    return int(counts.column(counts.num_columns - 1).to_numpy().sum())


def _counted(live: LiveQuery, state: StreamState, matches: int) -> StreamState:
    """Return the state with so many more matches that have come out.

    Raises
    ------
    MatchLimitExceeded
        There are more than the settings allow: of a run, or of all runs over batches.
    """
    most, reported = live.plan.settings.max_matches, state.clock.reported + matches
    if most is not None and (reported if live.in_order else matches) > most:
        raise MatchLimitExceeded(f"more than max_matches={most:,} matches{'' if live.in_order else ' have become certain at once'}")
    return replace(state, clock=replace(state.clock, reported=reported))


def _later(live: LiveQuery, state: StreamState, horizon: Horizon) -> LaterMatches | None:
    """Return when a match of a later run may begin, at the earliest (None: there is no later run)."""
    plan = live.plan
    if horizon.later is None or horizon.open is None or not isinstance(plan, EventPlan):
        return None if horizon.later is None else LaterMatches(horizon.later)
    known = state.events.slice(0, horizon.known)
    starts = horizon.open[may_begin(plan, known)[horizon.open]]
    keys = known.select(list(plan.query.partition_by)).take(pa.array(starts))
    return LaterMatches(horizon.later, keys, state.times[starts])


def _take(live: LiveQuery, sliced: SlicedPlan, held: Held | None, found: pa.Table, later: LaterMatches | None) -> tuple[pa.Table, Held]:
    """Return the matches that ``skip_past_last`` surely keeps, and those on which later ones depend."""
    before = HeldRows(found.slice(0, 0), np.zeros(0, np.bool_)) if held is None else held
    # what is not closed yet ends with the last event of its stream
    waits = live.certain not in (Certain.WITH_LAST_EVENT, Certain.WITH_NEXT_EVENT)
    return take_decided(sliced, before, found, later, waits=waits)

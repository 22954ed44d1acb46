"""Plan a query for events that keep coming; all faults are raised here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.options import Options
from gpu_cep.analysis.windows import UNIT_NAMES, bind_length, length_of, own_tick
from gpu_cep.engine.answers import answer_schema
from gpu_cep.engine.input.encodings import widen_schema
from gpu_cep.engine.input.ticks import Tick
from gpu_cep.engine.slices.sliced_plan import SlicedPlan
from gpu_cep.engine.streaming.decisive import Decisive, OpenRuns, decided_by_runs, decided_by_streams
from gpu_cep.engine.streaming.kinds import refuse_taken_names
from gpu_cep.engine.streaming.sessions import by_sessions
from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError, nearest
from gpu_cep.lang.ast import UNITS
from gpu_cep.lang.format import format_query
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.lang.row_patterns.format import format_row_pattern
from gpu_cep.live.queries import EMIT, LATE, Idle, InSessions, LiveQuery, check_live, needs_slices, row_query
from gpu_cep.plan.columns_read import columns_read, narrow_settings
from gpu_cep.plan.event_plan import EventPlan, Plan
from gpu_cep.plan.interval_plan import AnyPlan, IntervalPlan
from gpu_cep.plan.settings import Settings
from gpu_cep.plan.timeouts import as_open_runs, by_kind, of_open_runs
from gpu_cep.queries.plans import as_query, make_plan
from gpu_cep.queries.row_plans import as_row_pattern, check_row_settings, check_rows, columns_of_rows, is_row_pattern, make_row_plan
from gpu_cep.queries.sliced_plans import plan_over_slices

if TYPE_CHECKING:
    from gpu_cep.queries.plans import Pattern


@dataclass(frozen=True, slots=True)
class Arrival:
    """How events come: how late they may be, what becomes of later ones, how often the engine runs, and when time moves without events.

    `lateness`, `late`, `every`, `idle`, `time_to_live`, `emit`: the keywords of :class:`gpu_cep.Stream`.
    `in_order`: whether they come in order of time.
    `asked`: what is asked for, for errors.
    """

    lateness: float | str = 0
    late: str = "drop"
    every: float | str | None = None
    in_order: bool = False
    asked: str = "a stream"
    idle: str | None = None
    time_to_live: float | str | None = None
    emit: str = "certain"

    @property
    def by_window(self) -> bool:
        """Return whether matches come out when their windows are over."""
        return self.emit == "window"


def check_choices(emit: object, late: object) -> None:
    """Raise PatternError if a keyword of a stream has a value that it does not take."""
    faults = []
    for name, given, taken in (("emit", emit, EMIT), ("late", late, LATE)):
        if given not in taken:
            faults.append(Diagnostic(f"{name}={given!r} is unknown; expected one of {', '.join(taken)}", hint=nearest(str(given), taken)))
    if faults:
        raise PatternError(faults)


def plan_live(pattern: Pattern, schema: pa.Schema, options: Options, settings: Settings, arrival: Arrival) -> LiveQuery:
    """Return the query of a stream of events of `schema`, planned over the columns that it reads.

    Raises
    ------
    PatternSyntaxError, PatternError
        The query or a keyword has an error.
    UnsupportedError
        A stream cannot answer the query.
    """
    check_choices(arrival.emit, arrival.late)
    if is_row_pattern(pattern):
        return _plan_live_rows(pattern, schema, options, settings, arrival)
    settings, of_timeouts = by_kind(settings) if settings.timeouts else (settings, None)
    whole = make_plan(pattern, schema, options, settings)
    check_live(whole, settings, arrival.asked, expires=arrival.time_to_live is not None)
    refuse_order(whole, arrival)
    read = [schema.names[column] for column in columns_read(whole.query, settings)]
    narrow, chosen = widen_schema(pa.schema([schema.field(name) for name in read])), narrow_settings(settings, read)
    # of its text, so that a stream which is loaded has the same plan
    text = format_query(as_query(pattern))
    plan = make_plan(text, narrow, options, chosen)
    sliced, sessions = None, in_sessions(plan, narrow, arrival.time_to_live, options.time_unit)
    if isinstance(plan, EventPlan) and (sessions is not None or needs_slices(settings)):
        sliced = plan_runs(text, narrow, options, chosen, sessions)
        # those that end after a time, or that later ones may overrule, must be told apart
        sliced = sliced.counting_ones() if sliced.totals and (sliced.takes or not arrival.in_order) else sliced
    timeouts = None if of_timeouts is None else make_plan(text, narrow, options, narrow_settings(of_timeouts, read))
    assert not isinstance(timeouts, IntervalPlan), "situations have no timeouts"
    decisive = None if arrival.in_order or arrival.by_window else decisive_of(plan, text, narrow, options, settings)
    live = _of_arrival(LiveQuery(plan, narrow, sliced, timeouts, decisive=decisive, sessions=sessions), arrival, options.time_unit)
    if live.returns_late:
        check_late_rows(live, settings)
    return live


def in_sessions(plan: AnyPlan, schema: pa.Schema, time_to_live: float | str | None, time_unit: str | None) -> InSessions | None:
    """Return how long a key may be silent; None if that is not given.

    Raises
    ------
    PatternError
        It is no length of time.
    """
    if time_to_live is None:
        return None
    ticks = ticks_to_live(plan, time_to_live, time_unit)
    column, taken = "session", {*schema.names, *answer_schema(plan, schema).names}
    while column in taken:
        column += "_"
    return InSessions(ticks, column)


def ticks_to_live(plan: AnyPlan, time_to_live: float | str, time_unit: str | None) -> Tick:
    """Return how many ticks a key may be silent; raise PatternError if it is no length of time, or none at all."""
    ticks = _length(plan, "time_to_live", time_to_live, time_unit)
    if not ticks:
        raise PatternError([Diagnostic(f"time_to_live={time_to_live!r} must be more than nothing", hint="write text such as '1 day'")])
    return ticks


def plan_runs(
    pattern: Pattern, schema: pa.Schema, options: Options, settings: Settings, sessions: InSessions | None
) -> SlicedPlan:  # fmt: skip
    """Return the plan of runs over events of `schema`, whose results are put together; for `sessions` they have one more column."""
    if sessions is None:
        return plan_over_slices(pattern, schema, options, settings)
    columns = tuple(schema.names) if settings.columns is None else settings.columns
    shown = (*columns, sessions.column) if settings.output == "events" else columns
    numbered = schema.append(pa.field(sessions.column, pa.int64()))
    return by_sessions(plan_over_slices(pattern, numbered, options, replace(settings, columns=shown)), len(schema))


def decisive_of(plan: Plan, pattern: Pattern, schema: pa.Schema, options: Options, settings: Settings) -> Decisive | None:
    """Return on which of the known events later matches and timeouts of a stream depend; None: on all of the window.

    `plan` is that of the matches of `pattern` over events of `schema`.
    """
    if not decided_by_runs(plan):
        # a run that its next event has ended is a timeout when its window is over
        return None if settings.kind is not None else decided_by_streams(plan)
    planned = make_plan(pattern, schema, options, of_open_runs(settings))
    assert isinstance(planned, EventPlan), "situations have no runs"
    return OpenRuns(as_open_runs(planned))


def _plan_live_rows(
    pattern: str | RowPatternQuery, schema: pa.Schema, options: Options, settings: Settings, arrival: Arrival
) -> LiveQuery:  # fmt: skip
    """Return the query of a stream of which a row pattern is asked; raises as :func:`plan_live`."""
    check_row_settings(settings)
    refuse_of_rows(arrival, settings)
    narrow = widen_schema(pa.schema([schema.field(name) for name in columns_of_rows(pattern, schema, options)]))
    written = make_row_plan(pattern, narrow, options)
    check_rows(written, narrow)
    live = row_query(written, narrow, settings, arrival.asked, pattern if isinstance(pattern, str) else None)
    # of its text, so that a stream which is loaded has the same plan
    plan = make_row_plan(text_of(pattern), narrow, options)
    live = _of_arrival(replace(live, rows=plan), arrival, options.time_unit)
    if live.returns_late:
        check_late_rows(live, settings)
    return live


def refuse_of_rows(arrival: Arrival, settings: Settings) -> None:
    """Raise UnsupportedError if a row pattern is to be matched on a card as rows come, or has what only other patterns have."""
    if settings.engine == "gpu":
        message = "engine='gpu' is not supported for MATCH_RECOGNIZE over a stream, or over files in slices; supported: 'auto' and 'cpu'"
        raise UnsupportedError([Diagnostic(message)])
    if arrival.by_window:
        message = "emit='window' is not supported for MATCH_RECOGNIZE"
        raise UnsupportedError([Diagnostic(message, hint="leave it out: the matches of a partition come out in order")])
    if arrival.time_to_live is not None:
        message = "time_to_live= is not supported for MATCH_RECOGNIZE"
        raise UnsupportedError([Diagnostic(message, hint="leave it out; WITHIN a length of time bounds what is kept")])


def refuse_order(plan: AnyPlan, arrival: Arrival) -> None:
    """Raise UnsupportedError if situations are to come out in the order of first events."""
    if arrival.by_window and isinstance(plan, IntervalPlan):
        message = "emit='window' is not supported for situations, of which matches come out when they are detected"
        raise UnsupportedError([Diagnostic(message, hint="leave it out; sort what comes out by match_start")])


def text_of(pattern: Pattern) -> str:
    """Return a query as text, of which a stream is made again."""
    if is_row_pattern(pattern):
        return format_row_pattern(as_row_pattern(pattern))
    return format_query(as_query(pattern))


def _of_arrival(live: LiveQuery, arrival: Arrival, time_unit: str | None) -> LiveQuery:
    """Return the query with what is said about how events come."""
    lateness = _length(live.plan, "lateness", arrival.lateness, time_unit)
    every = None if arrival.every is None else _length(live.plan, "every", arrival.every, time_unit)
    idle = None if arrival.idle is None else _idle(live.plan, arrival.idle, time_unit)
    refuses, returns = arrival.late == "error", arrival.late == "rows"
    return replace(
        live, lateness=lateness, every=every, refuses_late=refuses, returns_late=returns, by_window=arrival.by_window,
        in_order=arrival.in_order, idle=idle,
    )  # fmt: skip


def check_late_rows(live: LiveQuery, settings: Settings) -> None:
    """Refuse late events as rows of a result that has no place for them."""
    if settings.output != "matches":
        message = f"late='rows' is not supported with output={settings.output!r}; supported: matches"
        raise UnsupportedError([Diagnostic(message, hint="give late='drop', which counts late events")])
    refuse_taken_names(live.result, of_kinds=live.timeouts is not None)


def _idle(plan: Plan, given: str, time_unit: str | None) -> Idle:
    """Return what `idle` says in seconds, and how many ticks a second has."""
    length = length_of(given)
    if length is not None and not length.amount:
        raise PatternError([Diagnostic(f"idle={given!r} must be more than nothing", hint="write text such as '30 seconds'")])
    if length is None or length.unit is None:
        message = f"idle={given!r} is no length of time that a clock tells"
        raise PatternError([Diagnostic(message, hint="write it with a unit, such as idle='30 seconds'")])
    # the ticks of the timestamps must have a length, too
    _length(plan, "idle", given, time_unit)
    timestamp = plan.query.schema.attributes[plan.query.timestamp]
    tick = own_tick(timestamp) or UNITS[UNIT_NAMES[time_unit or ""]]
    return Idle(float(length.amount) * UNITS[length.unit] / 1e9, 1e9 / tick)


def _length(plan: Plan, name: str, given: float | str, time_unit: str | None) -> Tick:
    """Return a length of time that the keyword `name` gives, in ticks; raise PatternError if it is none."""
    length, faults = length_of(given), Faults()
    if length is None:
        hint = f"write {name}= with a number, or text such as '10 seconds'"
        raise PatternError([Diagnostic(f"{name}={given!r} is no length of time", hint=hint)])
    if not length.amount:
        return 0
    timestamp = plan.query.schema.attributes[plan.query.timestamp]
    ticks = bind_length(name, length, timestamp, time_unit, faults, form=f"{name}='{{}}'")
    faults.raise_any(None)
    assert ticks is not None, "no length is a fault"
    return ticks

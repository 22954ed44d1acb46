"""Plan queries over events, and run the plans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpu_cep.analysis.options import Options
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.errors import FEWER_EVENTS, AbsentValueWarning, EventError, UnsupportedError, ending_in, warn_caller
from gpu_cep.lang.ast import Query
from gpu_cep.lang.ast_intervals import IntervalQuery
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.plan.columns_read import columns_read, narrow_settings
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep.plan.settings import Settings, check_settings
from gpu_cep.plan.timeouts import TIMEOUT
from gpu_cep.queries.plans import as_query, make_plan
from gpu_cep.queries.row_plans import bind_rows, check_row_settings, columns_of_rows, make_row_plan

if TYPE_CHECKING:
    import pyarrow as pa

    from gpu_cep.engine.events.own_events import Own
    from gpu_cep.engine.input.absent_values import Texts
    from gpu_cep.engine.input.input_events import InputEvents
    from gpu_cep.engine.input.sources import Source
    from gpu_cep.plan.interval_plan import AnyPlan
    from gpu_cep.queries.plans import Pattern, PatternQuery


@dataclass(frozen=True, slots=True)
class MatchCall:
    """A call of :func:`gpu_cep.match` or :func:`gpu_cep.explain`, but for its events and the form of its result.

    `memory`: the bytes that events which are read may take (None: a share of what is free). `complete_until`: the time until
    which all events are there (None: all are). `profile`: receives what is counted.
    """

    pattern: Pattern
    options: Options
    settings: Settings
    memory: int | None = None
    threads: int | None = None
    profile: Profile | None = None
    complete_until: Any = None


def check_engine(settings: Settings) -> None:
    """Raise if a setting is unknown, or the engine cannot run here. This comes before reading: files may be large."""
    check_settings(settings)
    if settings.engine == "gpu":
        from gpu_cep.engine.phase_one.engine_choice import require_device

        require_device()


def run_plan(plan: AnyPlan, call: MatchCall, events: InputEvents) -> pa.Table:
    """Return the result of running `plan`, which :func:`make_plan` made of the call's pattern, over the events."""
    from gpu_cep.engine.answers import has_matches

    if plan.algorithm == "brute_force":
        found = _by_definition(plan, as_query(call.pattern), call.options, events.table)
    else:
        found = run_engine(plan, events, Resources(call.threads, call.profile))
    if plan.settings.kind != TIMEOUT and not has_matches(plan, found):
        for sentence in absent_texts(plan, events):
            warn_caller(sentence, AbsentValueWarning)
    return found


def read_run(plan: AnyPlan, call: MatchCall, events: InputEvents) -> pa.RecordBatchReader:
    """Return a reader of the result of :func:`run_plan`, which is found when it is read."""
    from gpu_cep.engine.answers import answer_schema
    from gpu_cep.engine.output.readers import reader_of

    def found() -> Iterator[pa.Table]:
        yield run_plan(plan, call, events)

    schema = answer_schema(plan, events.table.schema if events.origin.schema is None else events.origin.schema)
    return reader_of(schema, found())


def run_engine(plan: AnyPlan, events: InputEvents, resources: Resources, own: Own | None = None) -> pa.Table:
    """Return the engine's result, of matches that start at `own` events (None: at any); its profile receives what was read, too."""
    from gpu_cep.engine.answers import answer
    from gpu_cep.engine.events.reported import EVERY_MATCH, Reported

    profile, reported = resources.profile, EVERY_MATCH if own is None else Reported(own)
    if profile is not None and events.groups is not None:
        profile.add_groups(events.groups.read, events.groups.all)
    if profile is not None and events.told:
        profile.source = events.told
    return answer(plan, events.table, origin=events.origin, shared=events.shared, reported=reported, resources=resources)


def absent_texts(plan: AnyPlan, events: InputEvents, known: dict[str, Texts] | None = None) -> list[str]:
    """Return a sentence for each text that the query asks for and no event has.

    `known` keeps what the events have, for further queries over the same events.
    """
    from gpu_cep.engine.input.absent_values import absent_values, asked_columns
    from gpu_cep.engine.input.picked_rows import PickedRows

    assert not isinstance(events.table, PickedRows), "what other rows have is not absent"
    if events.read_all is None:
        return absent_values(plan.query, events.table, known)
    if events.table.num_rows and not absent_values(plan.query, events.table):
        return []
    # the events that were left out may have them
    asked = asked_columns(plan.query)
    return absent_values(plan.query, events.read_all(asked), known) if asked else []


def open_source(events: Any) -> Source | None:
    """Return the events as a source of columns; None if they are read as a whole, or are a table. Raises as reading does."""
    from gpu_cep.engine.input.sources import source_of

    return source_of(events)


def as_reader(events: Any) -> Any:
    """Return an iterator of batches as a reader of them, and other events as they are; raises EventError if it gives none."""
    if not isinstance(events, Iterator):
        return events
    from gpu_cep.engine.input.batch_readers import reader_of_batches

    return reader_of_batches(events)


def is_path(events: Any) -> bool:
    """Return whether events are named by a path, a glob or a URI, or by a list of them."""
    from gpu_cep.engine.input.file_systems import locations_of

    return bool(locations_of(events))


def open_files(events: Any, memory: int | None) -> Source | None:
    """Return the events, which may be files for the card, as a source of columns; None if they are read as a whole.

    Raises UnsupportedError if the caller bounds the host's `memory` for what a card takes, and as reading does.
    """
    from gpu_cep.engine.input.device.gpu_files import GpuFiles

    source = events.source if isinstance(events, GpuFiles) else open_source(events)
    if source is not None and source.reader.on_card and memory is not None:
        raise UnsupportedError("memory= is not supported with gpu_files(): it bounds what the host reads, and cuDF reads to the card")
    return source


@ending_in(EventError, "reading the events", FEWER_EVENTS)
def plan_events(call: MatchCall, events: Any) -> tuple[AnyPlan, InputEvents]:
    """Return the plan of a call's query, and the events: of a source, only what the query reads.

    Raises any error of the query, and EventError if the events cannot be read.
    """
    from gpu_cep.engine.input.input_events import InputEvents
    from gpu_cep.engine.input.times import is_ready

    if is_ready(events, call.options):
        return make_plan(call.pattern, events.schema, call.options, call.settings), InputEvents(events)
    source = open_source(events)
    return _plan_table(call, events) if source is None else _plan_source(call, source)


def _plan_table(call: MatchCall, events: Any) -> tuple[AnyPlan, InputEvents]:
    """Return the plan of a query over events that are read as a whole, and these."""
    from gpu_cep.engine.input.input_events import InputEvents
    from gpu_cep.engine.input.read_tables import read_events, to_host
    from gpu_cep.engine.input.times import lacks_times, type_times

    table = read_events(events)
    if not table.num_rows or lacks_times(table.schema, call.options):
        table = type_times(to_host(table), as_query(call.pattern), call.options)
    return make_plan(call.pattern, table.schema, call.options, call.settings), InputEvents(table)


def _plan_source(call: MatchCall, source: Source) -> tuple[AnyPlan, InputEvents]:
    """Return the plan of a query over a source, and what it reads of this."""
    from gpu_cep.engine.input.event_filter import wanted_events
    from gpu_cep.engine.input.input_events import InputEvents, Origin
    from gpu_cep.engine.input.times import lacks_times

    pattern, options, settings = call.pattern, call.options, call.settings
    if lacks_times(source.schema, options):
        return _plan_table(call, source)
    whole = make_plan(pattern, source.schema, options, settings)
    read = [source.schema.names[column] for column in columns_read(whole.query, settings)]
    narrow = narrow_settings(whole.settings, read)
    if whole.algorithm == "brute_force":
        if source.reader.on_card:
            raise UnsupportedError("gpu_files() is not supported with algorithm='brute_force', which is the host's: give the path itself")
        table = source.read(read)
        return make_plan(pattern, table.schema, options, narrow), InputEvents(table)
    wanted = wanted_events(whole, source.schema)
    part = source.read_part(read, wanted, settings.gpu_memory)
    origin = Origin(part.schema, part.numbers)
    read_all = None if part.numbers is None else source.read
    return make_plan(pattern, part.schema, options, narrow), InputEvents(part.table, origin, part.groups, read_all, told=part.told)


def run_row_pattern(call: MatchCall, pattern: str | RowPatternQuery, events: Any) -> pa.Table:
    """Return the rows that MATCH_RECOGNIZE, the `pattern` of a call as text or as a tree, returns over `events`.

    Raises
    ------
    UnsupportedError
        A setting is not supported for row patterns, the pattern has too many states, or a partition has too many rows for brute force.
    MatchLimitExceeded
        A search made more than `max_steps`.
    PatternError, EventError
        The query or the events have an error.
    """
    from gpu_cep.engine.brute_force import row_patterns as brute_force
    from gpu_cep.engine.row_patterns.answers import answer_row_pattern

    check_row_settings(call.settings)
    table = read_rows(events, pattern, call.options)
    if call.settings.algorithm == "brute_force":
        return brute_force.enumerate_row_matches(bind_rows(pattern, table.schema, call.options), call.options, table)
    plan = make_row_plan(pattern, table.schema, call.options, call.settings)
    return answer_row_pattern(plan, table, call.settings.max_steps, threads=call.threads, profile=call.profile)


@ending_in(EventError, "reading the events", FEWER_EVENTS)
def read_rows(events: Any, pattern: str | RowPatternQuery, options: Options) -> pa.Table:
    """Return the rows: of a source, only the columns that the pattern reads, once it has been found to fit them."""
    from gpu_cep.engine.input.read_tables import read_events, to_host

    source = open_source(events)
    return to_host(read_events(events)) if source is None else source.read(columns_of_rows(pattern, source.schema, options))


def _by_definition(plan: AnyPlan, query: PatternQuery, options: Options, table: Any) -> pa.Table:
    """Return the result that enumerating all candidates gives (``algorithm="brute_force"``)."""
    from gpu_cep.engine.brute_force.events import enumerate_by_definition
    from gpu_cep.engine.brute_force.intervals import enumerate_situations

    if isinstance(plan, IntervalPlan) and isinstance(query, IntervalQuery):
        return enumerate_situations(plan, query, options, table)
    assert isinstance(plan, EventPlan), "a plan is of its query's kind"
    assert isinstance(query, Query), "a plan is of its query's kind"
    return enumerate_by_definition(plan, query, options, table)

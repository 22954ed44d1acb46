"""Explain how queries are answered: at once, slice by slice, or as row patterns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.engine.phase_one.engine_choice import choose_engine, require_device, runs_on_gpu
from gpu_cep.engine.phase_one.engine_costs import bytes_per_event
from gpu_cep.engine.phase_one.engine_rates import Way
from gpu_cep.errors import Diagnostic, EngineUnavailable, UnsupportedError
from gpu_cep.lang.ast import Query
from gpu_cep.lang.ast_intervals import IntervalQuery
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.live.sliced_rows import RowReading, decide_row_reading, make_row_run, read_row_slices
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.explain import Explanation
from gpu_cep.plan.interval_explain import IntervalExplanation
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep.plan.row_patterns.explain import RowPatternExplanation
from gpu_cep.queries.plans import as_query
from gpu_cep.queries.row_plans import as_row_pattern, check_row_settings, is_row_pattern, make_row_plan
from gpu_cep.queries.runs import MatchCall, open_files, open_source, plan_events, read_rows, run_engine, run_row_pattern
from gpu_cep.queries.sliced_plans import DecidedReading, decide_reading, make_run
from gpu_cep.queries.sliced_runs import read_slices

if TYPE_CHECKING:
    from gpu_cep.plan.interval_plan import AnyPlan
    from gpu_cep.queries.plans import PatternQuery

Explained = Explanation | IntervalExplanation | RowPatternExplanation


def explain_run(call: MatchCall, events: Any, total: Profile | None) -> Explained:
    """Run a query of any kind over `events` and return how it was answered; `total` receives what was counted, if it is given.

    Raises as :func:`explain_any`.
    """
    # of its own, since the caller's may hold earlier runs
    own = Profile()
    try:
        return explain_any(replace(call, profile=own), events)
    finally:
        # also of a run that fails: what it counted says where
        if total is not None:
            total.merge(own)


def explain_any(call: MatchCall, events: Any) -> Explained:
    """Return how a query of any kind is answered over `events`.

    With an empty profile it is run, and the explanation has the counts that the profile receives.

    Raises
    ------
    UnsupportedError
        It is run by the definition, which does nothing by parts.
    CepError
        Any other error that :func:`gpu_cep.match` raises.
    """
    return _explain_rows(call, call.pattern, events) if is_row_pattern(call.pattern) else _explain_query(call, events)


def _explain_query(call: MatchCall, events: Any) -> Explanation | IntervalExplanation:
    """Return how a query over events or situations is answered; with a profile it is run."""
    query, profile = as_query(call.pattern), call.profile
    source = open_files(events, call.memory)
    decided = None if source is None else decide_reading(call, source)
    if decided is not None and decided.is_cut:
        return _explain_slices(call, decided)
    plan, read = plan_events(call, events if source is None else source)
    if profile is not None and plan.algorithm == "brute_force":
        raise UnsupportedError("explain(run=True) is not supported with algorithm='brute_force', which does nothing by parts")
    if profile is not None:
        run_engine(plan, read, Resources(call.threads, profile))
    explained = explanation_of(query, plan, read.table, call.threads, profile)
    return replace(explained, source=read.told if decided is None else decided.told)


def _explain_rows(call: MatchCall, pattern: str | RowPatternQuery, events: Any) -> RowPatternExplanation:
    """Return how MATCH_RECOGNIZE is answered; with a profile it is run."""
    check_row_settings(call.settings)
    query, options, settings, profile = as_row_pattern(pattern), call.options, call.settings, call.profile
    if settings.algorithm == "brute_force":
        message = "explain() is not supported for MATCH_RECOGNIZE with algorithm='brute_force', which has no plan"
        raise UnsupportedError([Diagnostic(message, hint="leave algorithm out")])
    source = open_source(events)
    reading = None if source is None or call.memory is None else decide_row_reading(source, pattern, options, settings, call.memory)
    if reading is not None and call.memory is not None:
        return _explain_row_slices(query, reading, call.memory, call.threads, profile)
    table = read_rows(events, pattern, options) if source is None or profile is not None else no_rows(source.schema)
    plan = make_row_plan(pattern, table.schema, options, settings)
    if profile is not None:
        run_row_pattern(call, pattern, table)
    refused = _refused_device() if settings.engine == "gpu" and profile is None else ""
    return RowPatternExplanation(query, plan, None if profile is None else dict(profile.counts), refused=refused)


def _explain_row_slices(
    query: RowPatternQuery, reading: RowReading, memory: int, threads: int | None, profile: Profile | None
) -> RowPatternExplanation:  # fmt: skip
    """Return the explanation of a row pattern over files that are read in slices; it is run if there is a `profile`."""
    if profile is not None:
        for _ in read_row_slices(replace(make_row_run(reading, memory), threads=threads, profile=profile)):
            # the rows are not wanted
            pass
    counts = None if profile is None else dict(profile.counts)
    return RowPatternExplanation(query, reading.live.rows, counts, reading.choice.told)


def explanation_of(
    query: PatternQuery, plan: AnyPlan, table: Any, threads: int | None, profile: Profile | None
) -> Explanation | IntervalExplanation:  # fmt: skip
    """Return the explanation of `plan`, which answers `query` over the events of `table`.

    With the `profile` of a run, it also holds the counts of that run.
    """
    from gpu_cep.engine.input.read_tables import is_resident, to_host

    counts = None if profile is None else dict(profile.counts)
    engine = _engine_of(plan, table.num_rows, threads, resident=is_resident(table))
    if isinstance(plan, IntervalPlan):
        assert isinstance(query, IntervalQuery), "a plan is of its query's kind"
        joined = () if profile is None else tuple(profile.joins.values())
        return IntervalExplanation(query, plan, counts, joined, device=engine.device, reason=engine.reason)
    assert isinstance(query, Query), "a plan is of its query's kind"
    if profile is None:
        return Explanation(query, plan, engine.device, engine.reason, phase_two=engine.phase_two)
    from gpu_cep.engine.phase_one.computed_columns import event_columns
    from gpu_cep.engine.phase_one.label_events import events_of_variables

    fitting = events_of_variables(plan, event_columns(plan, to_host(table)), threads)
    return Explanation(
        query, plan, engine.device, engine.reason, counts, tuple(profile.answers), fitting, profile.groups, phase_two=engine.phase_two
    )  # fmt: skip


def explain_on_cards(explained: Explained) -> Explained:
    """Return the explanation of a query whose events tasks of Spark read to their cards.

    This process, which chose an engine for no events, need not have a card.
    """
    plan = None if isinstance(explained, RowPatternExplanation) else explained.plan
    if plan is None or plan.settings.engine == "cpu" or not runs_on_gpu(plan):
        return explained
    told: dict[str, Any] = {"device": "the card of each task", "reason": "tasks read the events to it"}
    if isinstance(plan, EventPlan):
        told["phase_two"] = _phase_two(plan, Way.GPU)
    return replace(explained, **told)


def _explain_slices(call: MatchCall, decided: DecidedReading) -> Explanation:
    """Return the explanation of a query over files that are read in slices; with a profile it is run."""
    query, plan, choice, profile = as_query(call.pattern), decided.whole, decided.choice, call.profile
    assert isinstance(query, Query), "others are not cut"
    assert isinstance(plan, EventPlan), "others are not cut"
    assert choice is not None, "the files are cut"
    engine = _engine_of(plan, choice.rows_of_a_slice, call.threads, resident=decided.files.reader.on_card)
    if profile is None:
        return Explanation(query, plan, engine.device, engine.reason, source=decided.told, phase_two=engine.phase_two)
    for _ in read_slices(make_run(call, decided)):
        # the rows are not wanted
        pass
    counts, answers = dict(profile.counts), tuple(profile.answers)
    return Explanation(
        query, plan, engine.device, engine.reason, counts, answers, groups=profile.groups, source=decided.told, phase_two=engine.phase_two
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Engine:
    """The engine of an explanation: the device of phase 1 (None: the CPU), the reason for it, and what runs phase 2."""

    device: str | None
    reason: str
    phase_two: str


def _engine_of(plan: AnyPlan, events: int, threads: int | None, *, resident: bool) -> _Engine:
    """Return the engine that answers a plan; where ``engine="gpu"`` finds no card, it says so in place of an error."""
    try:
        choice = choose_engine(plan, events, bytes_per_event(plan), threads, resident=resident)
    except EngineUnavailable as fault:
        return _Engine("none in this process, which refuses to run the query", str(fault), _phase_two(plan, Way.GPU))
    return _Engine(None if choice.device is None else choice.device.name, choice.reason, _phase_two(plan, choice.way))


def _refused_device() -> str:
    """Return why this process has no card; empty if it has one."""
    try:
        require_device()
    except EngineUnavailable as fault:
        return str(fault)
    return ""


def _phase_two(plan: AnyPlan, way: Way) -> str:
    """Return what runs phase 2 of a plan."""
    from gpu_cep.engine.phase_one.device.chain_walks import is_robust, walks_patterns
    from gpu_cep.engine.phase_one.device.lifted_matches import reads_lifted
    from gpu_cep.engine.phase_one.device.window_searches import searches_patterns

    if way is not Way.GPU or not isinstance(plan, EventPlan):
        return "cpu"
    if reads_lifted(plan):
        return "gpu (cpu where labels leave a choice)"
    if walks_patterns(plan):
        return f"gpu (cpu where {'a run takes many steps' if is_robust(plan) else 'an event leaves a choice'})"
    return "gpu (cpu where a search takes many steps)" if searches_patterns(plan) else "cpu"

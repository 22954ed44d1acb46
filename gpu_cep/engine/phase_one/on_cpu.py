"""What a run is, what its first phase gives, and that phase on the CPU: columns → labels → streams."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_cep.engine.accounting.budget import Budget
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.matches import Indices, Matches
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import Own
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.times import load_times
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.phase_one.label_events import label_events
from gpu_cep.engine.phase_one.order_events import order_events
from gpu_cep.engine.phase_one.rare_events import label_near_rare
from gpu_cep.plan.event_plan import EventPlan, Plan
from gpu_cep.plan.interval_plan import IntervalPlan


@dataclass(frozen=True, slots=True)
class Run:
    """What is asked, over which columns, and what it may take; only matches that start in `own` are asked for."""

    plan: Plan
    columns: EventColumns
    tables: tuple[MatcherTables, ...]
    own: Own
    budget: Budget
    threads: int
    profile: Profile


@dataclass(frozen=True, slots=True)
class EventRun(Run):
    """A run of an event pattern."""

    plan: EventPlan


@dataclass(frozen=True, slots=True)
class IntervalRun(Run):
    """A run of a query over situations."""

    plan: IntervalPlan


@dataclass(frozen=True, slots=True)
class PhaseOne:
    """The events in order; where labels decided the matches on a device, these or their numbers, too.

    `found` and `counted` (first events in ascending order, and a number of
    matches at each) number the events of `ordered`; both are None where the
    matchers are still to run.
    """

    ordered: OrderedEvents
    found: Matches | None = None
    counted: tuple[Indices, Indices] | None = None


def order_on_cpu(run: Run) -> PhaseOne:
    """All labelled events in order; windows are left to the matchers, which judge them batch by batch.

    Raises
    ------
    EventError
        The events are at fault.
    """
    plan, columns, threads, profile = run.plan, run.columns, run.threads, run.profile
    profile.count_run("cpu")
    with profile.stage("timestamps"):
        times = load_times(columns, plan.query.timestamp)
    with profile.stage("labels"):
        labelled = label_near_rare(plan, columns, run.tables, times, threads) or label_events(plan, columns, threads)
    with profile.stage("keys"):
        keys = encode_keys(columns, plan.stream_keys)
    with profile.stage("order"):
        ordered = order_events(plan, columns, times, labelled, keys, threads)
    profile.add("filtered", len(ordered.rows))
    return PhaseOne(ordered)

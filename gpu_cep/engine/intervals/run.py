"""The road of interval patterns: columns → situations → matches → table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from gpu_cep.engine.accounting.budget import Budget, BudgetExceeded, Spent, memory_for_results
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.event_sequence import EventSequence
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.own_events import WHOLE, Own
from gpu_cep.engine.events.window_names import window_name
from gpu_cep.engine.input.device.resident import ResidentTable
from gpu_cep.engine.input.event_columns import Array, EventColumns
from gpu_cep.engine.input.read_tables import on_host
from gpu_cep.engine.intervals.events import MatchedSituations
from gpu_cep.engine.intervals.join import SituationJoin, Workplace, cpu_workplace
from gpu_cep.engine.intervals.matches import IntervalMatches, in_result_order, matched_situations, seen_at_detection
from gpu_cep.engine.intervals.on_device import derive_on_device, device_workplace
from gpu_cep.engine.intervals.results import interval_table
from gpu_cep.engine.intervals.situations import Derived, derive
from gpu_cep.engine.intervals.statistics import order_choice
from gpu_cep.engine.output.footprint import result_footprint
from gpu_cep.engine.output.result_order import key_ranks
from gpu_cep.engine.output.result_tables import count_table
from gpu_cep.engine.phase_one.computed_columns import event_columns
from gpu_cep.engine.phase_one.device.memory import DeviceMemory
from gpu_cep.engine.phase_one.device.on_device import DeviceRun
from gpu_cep.engine.phase_one.on_cpu import Run
from gpu_cep.engine.phase_one.run import on_device
from gpu_cep.errors import MatchLimitExceeded
from gpu_cep.plan.interval_order import OrderChoice
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep_kernels.compile.launch import available_threads

OrderChooser = Callable[[IntervalPlan, Derived], OrderChoice]


def execute_intervals(
    plan: IntervalPlan,
    table: pa.Table | ResidentTable,
    *,
    own: Own = WHOLE,
    threads: int | None = None,
    profile: Profile | None = None,
    concurrent: int = 1,
    spent: Spent | None = None,
    choose: OrderChooser = order_choice,
) -> pa.Table:
    """Run `plan` over the events of `table`; `choose` says in which order names are joined.

    The other keywords are those of :func:`gpu_cep.engine.run.execute`.

    Raises
    ------
    EventError
        The events are at fault.
    EngineUnavailable
        The plan asks for the GPU, which cannot be used, or whose memory does not suffice.
    MatchLimitExceeded
        More matches or steps than the settings, or matches than memory, allow.
    """
    profile, threads, settings = profile or Profile(), threads or available_threads(), plan.settings
    columns = event_columns(plan, table if settings.engine == "gpu" else on_host(table))
    profile.add("events", len(columns))
    spent = spent or Spent()
    budget = spent.budget(settings, result_footprint(plan, columns), memory_for_results(concurrent))
    run = Run(plan, columns, (), own, budget, threads, profile)
    try:
        if settings.engine == "gpu":
            found = on_device(run, partial(_found_on_device, plan, choose))
        else:
            profile.ran_on("cpu")
            found = _joined(plan, run, choose, derive(plan, run), cpu_workplace(threads))
        return _result(plan, run, found)
    except MemoryError:
        raise MatchLimitExceeded("out of memory while matching; use output='count' or a narrower pattern") from None
    finally:
        budget.close()
        spent.add(budget)


@dataclass(frozen=True, slots=True)
class _Found:
    """The situations, and what was asked for: their matches, or how many each stream has that has situations."""

    derived: Derived
    matches: IntervalMatches | None = None
    counts: Indices | None = None


def _found_on_device(plan: IntervalPlan, choose: OrderChooser, run: DeviceRun, memory: DeviceMemory) -> _Found:
    derived = derive_on_device(plan, run, memory)
    return _joined(plan, run, choose, derived, device_workplace(run, derived, memory))


def _joined(plan: IntervalPlan, run: Run, choose: OrderChooser, derived: Derived, workplace: Workplace) -> _Found:
    join = SituationJoin(plan, derived, choose(plan, derived), run.budget, run.profile, workplace, run.own)
    with run.profile.stage("matching"), _limits_named(plan, run, derived):
        if plan.settings.output == "count":
            return _Found(derived, counts=join.counts())
        return _Found(derived, seen_at_detection(derived, *join.configurations()))


@contextmanager
def _limits_named(plan: IntervalPlan, run: Run, derived: Derived) -> Iterator[None]:
    """Tells of limits that are exceeded, and in which window."""
    try:
        yield
    except BudgetExceeded as exceeded:
        row = int(derived.events.input_rows(np.array([exceeded.start]))[0])
        raise MatchLimitExceeded(f"{exceeded.reason}, in {window_name(plan, run.columns, row)}") from None


def _result(plan: IntervalPlan, run: Run, found: _Found) -> pa.Table:
    """What was asked for as a table, in the order of results."""
    columns, derived = run.columns, found.derived
    events, runs = derived.events, derived.runs
    if found.counts is not None:
        return interval_counts(plan, columns, events, derived.numbers, runs.first, found.counts)
    assert found.matches is not None
    with run.profile.stage("results"), _limits_named(plan, run, derived):
        matches = in_result_order(plan, columns, events, runs, found.matches)
        situations = matched_situations(columns, events, runs, matches, run.threads)
        if not plan.query.returns or plan.settings.output != "matches":
            _account_for_events(situations, matches, run.budget)
        return interval_table(plan, columns, events, matches, situations, run.threads)


def _account_for_events(situations: MatchedSituations, matches: IntervalMatches, budget: Budget) -> None:
    """The result holds all events of each match, those of a situation in many matches many times."""
    sizes = [np.diff(events.binding(v)[1])[own] for v, (events, own) in enumerate(zip(situations.names, situations.places, strict=True))]
    total = int(sum(size.sum(dtype=np.int64) for size in sizes))
    if len(matches):
        budget.spend(0, total, 0, partial(_first_of, matches))


def _first_of(matches: IntervalMatches, _: int) -> int:
    return int(matches.first[-1])


def interval_counts(
    plan: IntervalPlan, columns: EventColumns, events: EventSequence, numbers: Array, first: Array, counts: Indices
) -> pa.Table:  # fmt: skip
    """The number of matches of each stream that has any, in the order of keys; of the one stream without keys, in any case.

    ``counts[numbers[i]]`` is that of the stream of the event at ``first[i]``.
    """
    if not plan.query.partition_by:
        return count_table(plan, columns, np.empty(0, np.int64), counts.sum(keepdims=True))
    streams = np.flatnonzero(counts)
    representatives = np.full(len(counts), -1, np.int64)
    representatives[numbers] = first
    rows = events.input_rows(representatives[streams])
    order = np.argsort(key_ranks(plan, columns, rows))
    return count_table(plan, columns, rows[order].astype(np.int64), counts[streams][order])

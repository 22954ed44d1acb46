"""Answer queries over situations: columns → situations → matches → table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from gpu_cep.engine.accounting.match_budget import Budget
from gpu_cep.engine.events.event_sequence import EventSequence
from gpu_cep.engine.events.match_ends import ReportedEnds
from gpu_cep.engine.events.matches import Flags, Indices
from gpu_cep.engine.events.own_events import WHOLE, TimeSlice
from gpu_cep.engine.events.window_names import name_windows
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.intervals.events import MatchedSituations
from gpu_cep.engine.intervals.join import SituationJoin, SituationWorkplace, cpu_workplace
from gpu_cep.engine.intervals.matches import IntervalMatches, matched_situations, matches_at_detection, sort_matches
from gpu_cep.engine.intervals.on_device import derive_on_device, device_workplace
from gpu_cep.engine.intervals.results import IntervalResult, interval_table
from gpu_cep.engine.intervals.situations import DerivedSituations, derive, recent_situations
from gpu_cep.engine.output.result_order import key_ranks
from gpu_cep.engine.output.result_tables import count_table
from gpu_cep.engine.phase_one.chosen_engine import on_chosen
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.in_pieces import run_in_pieces
from gpu_cep.engine.phase_one.engine_choice import EngineChoice
from gpu_cep.engine.phase_one.run import IntervalRun, Run
from gpu_cep.plan.interval_order import OrderChoice
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import spread, threads_for
from gpu_cep_kernels.device.interface import Device

# Of so many situations at least, one must be recent for a join that begins with recent ones of each name in turn.
_RECENT = 4

OrderChooser = Callable[[IntervalPlan, DerivedSituations], OrderChoice]


@record()
class JoinedSituations:
    """The situations, and either their matches or the number of matches of each stream; `device` found them (None: the CPU)."""

    derived: DerivedSituations
    matches: IntervalMatches | None = None
    counts: Indices | None = None
    device: Device | None = None


def find_situations(run: IntervalRun, chosen: EngineChoice, choose_order: OrderChooser) -> JoinedSituations:
    """Return the matches of a query over situations, or their numbers, as its plan asks, found on the chosen engine.

    `choose_order` returns the first order in which names are joined.
    Raises as :func:`gpu_cep.engine.phase_one.chosen_engine.phase_one`.
    """

    def on_device(device: Device) -> JoinedSituations:
        return replace(run_in_pieces(run, device, partial(_find_on_device, run.plan, choose_order)), device=device)

    return on_chosen(run, chosen, partial(_find_on_cpu, run, choose_order), on_device)


def _find_on_cpu(run: IntervalRun, choose_order: OrderChooser) -> JoinedSituations:
    run.profile.count_run("cpu")
    return _join(run.plan, run, choose_order, derive(run.plan, run), cpu_workplace(run.threads))


def _find_on_device(plan: IntervalPlan, choose_order: OrderChooser, run: DeviceRun, memory: DeviceMemory) -> JoinedSituations:
    derived = derive_on_device(plan, run, memory)
    return _join(plan, run, choose_order, derived, device_workplace(run, derived, memory))


def _join(
    plan: IntervalPlan, run: Run, choose_order: OrderChooser, derived: DerivedSituations, workplace: SituationWorkplace
) -> JoinedSituations:
    own, ends = run.reported.own, run.reported.ends
    recent = _recent(derived, ends)
    join = SituationJoin(plan, derived, choose_order(plan, derived), run.budget, run.profile, workplace, own, recent)
    with run.profile.stage("matching"), _name_windows(run, derived):
        if plan.settings.output == "count" and ends == WHOLE:
            return JoinedSituations(derived, counts=join.counts())
        found = matches_at_detection(derived, *join.configurations())
    if isinstance(ends, TimeSlice) and ends != WHOLE:
        found = found.reorder(np.flatnonzero(ends.holds(found.detected)))
    counted = plan.settings.output == "count"
    return JoinedSituations(derived, counts=_counts_of(derived, found)) if counted else JoinedSituations(derived, found)


def _recent(derived: DerivedSituations, ends: ReportedEnds) -> Flags | None:
    """Return which situations are recent, as one of every reported match is; None if they are too many to begin joins with."""
    if not isinstance(ends, TimeSlice) or ends.begin is None:
        return None
    recent = recent_situations(derived, ends.begin)
    return recent if _RECENT * np.count_nonzero(recent) <= len(recent) else None


def _counts_of(derived: DerivedSituations, found: IntervalMatches) -> Indices:
    """Return the number of matches of each stream."""
    counts: Indices = np.bincount(derived.numbers[found.members[0]], minlength=derived.streams)
    return counts


def _name_windows(run: Run, derived: DerivedSituations) -> AbstractContextManager[None]:
    """Return a context in which errors about limits name the window where they arose."""
    return name_windows(run.plan, run.columns, lambda start: int(derived.events.input_rows(np.array([start]))[0]))


def result_of_situations(run: IntervalRun, found: JoinedSituations) -> pa.Table:
    """Return the matches or their numbers as a table, in the order of results."""
    plan, columns, derived = run.plan, run.columns, found.derived
    events, runs = derived.events, derived.runs
    if found.counts is not None:
        return interval_counts(plan, columns, events, derived.numbers, runs.first, found.counts)
    assert found.matches is not None
    with run.profile.stage("results"), _name_windows(run, derived):
        matches = sort_matches(plan, columns, events, runs, found.matches, run.threads)
        situations = matched_situations(columns, events, runs, matches, run.threads)
        if not plan.query.returns or plan.settings.output != "matches":
            _account_for_events(situations, matches, run.budget, run.threads)
        return interval_table(IntervalResult(plan, events, matches, situations, run.threads))


def _account_for_events(situations: MatchedSituations, matches: IntervalMatches, budget: Budget, threads: int) -> None:
    """Charge the budget for the events of the result; a situation's events count once for each match."""
    names = list(zip(situations.names, situations.places, strict=True))
    total = sum(spread(lambda name: int(name[0].sizes[name[1]].sum()), names, threads_for(len(matches), threads)))
    if len(matches):
        budget.spend(0, total, 0, partial(_first_of, matches))


def _first_of(matches: IntervalMatches, _: int) -> int:
    return int(matches.first[-1])


def interval_counts(
    plan: IntervalPlan, columns: EventColumns, events: EventSequence, numbers: Array, first: Array, counts: Indices
) -> pa.Table:  # fmt: skip
    """Return the number of matches of each stream that has any, in the order of keys.

    Without keys there is one stream, whose number is returned even if it is 0.
    ``counts[numbers[i]]`` is the number of the stream of the event at ``first[i]``.
    """
    if not plan.query.partition_by:
        return count_table(plan, columns, np.empty(0, np.int64), counts.sum(keepdims=True))
    streams = np.flatnonzero(counts)
    representatives = np.full(len(counts), -1, np.int64)
    representatives[numbers] = first
    rows = events.input_rows(representatives[streams])
    order = np.argsort(key_ranks(plan, columns, rows))
    return count_table(plan, columns, rows[order].astype(np.int64), counts[streams][order])

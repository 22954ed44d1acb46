"""Answer what timeouts there are: for each start without a match, the longest prefix that its strategy would have bound."""

from __future__ import annotations

from functools import reduce
from operator import or_

import numpy as np
import pyarrow as pa

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.events.batches import cut_batches
from gpu_cep.engine.events.label_words import restrict_labels
from gpu_cep.engine.events.match_ends import certain_times, window_end_times
from gpu_cep.engine.events.matches import Flags, FoundMatches, Rows
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import cut_at_own
from gpu_cep.engine.events.window_names import name_windows
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.ticks import LATEST, Tick
from gpu_cep.engine.matchers.automaton.longest_runs import LongestRuns, Prefixes, concatenate_prefixes
from gpu_cep.engine.matchers.search import searches
from gpu_cep.engine.output.kinds import Beside, says_when_certain
from gpu_cep.engine.output.matched_events import MatchedEvents
from gpu_cep.engine.output.result_order import sort_results
from gpu_cep.engine.output.result_tables import match_table
from gpu_cep.engine.phase_one.on_cpu import order_on_cpu
from gpu_cep.engine.phase_one.run import EventRun
from gpu_cep.errors import LESS_MEMORY, MatchLimitExceeded, ending_in
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.compile.launch import spread


def find_timeouts(run: EventRun) -> pa.Table:
    """Return the timeouts in the order of results: by stream key, then first event.

    Raises as :func:`gpu_cep.engine.answers.answer`.
    """
    plan, columns, before = run.plan, run.columns, run.budget.steps
    ordered = order_on_cpu(run).ordered
    found = _longest_runs(run, ordered)
    run.profile.add("timeouts", len(found.bound))
    run.profile.add("steps", run.budget.steps - before)
    with run.profile.stage("results"), ending_in(MatchLimitExceeded, f"building {len(found.bound):,} timeouts", LESS_MEMORY):
        order, streams = sort_results(plan, columns, ordered, found.bound.first)
        bound, missing = found if order is None else (found.bound.reorder(order), found.missing[order])
        times = ordered.times if ordered.times.dtype.kind == "f" else ordered.times.view(np.int64)
        over = window_end_times(plan, times[bound.first], latest_time(columns))
        return match_table(plan, MatchedEvents(columns, ordered.rows, bound, run.threads), streams, beside=Beside(over, missing))


def rows_of_open_runs(run: EventRun) -> Rows | None:
    """Return the rows of the events that runs without a match bind, ascending.

    None if an event which begins a match is among them, since another run binds it.
    """
    ordered = order_on_cpu(run).ordered
    found = _longest_runs(run, ordered).bound
    bound, begin = np.zeros((2, len(ordered.rows)), np.bool_)
    bound[found.events] = True
    begin[found.first] = True
    (branch,) = run.plan.branches
    first = branch.positives[branch.before.index(0)]
    if restrict_labels(ordered.labels[:, bound & ~begin], (first,)).any():
        return None
    return np.sort(ordered.rows[bound])


def _longest_runs(run: EventRun, ordered: OrderedEvents) -> Prefixes:
    """Return the longest run of each start without a match."""
    plan, columns = run.plan, run.columns
    runs = LongestRuns(searches(run, ordered), ordered, _lone_events(plan, columns, ordered.rows))
    with name_windows(plan, columns, lambda start: int(ordered.rows[start])):
        whole = cut_batches(plan, ordered, threads=run.threads)
        batches = [part for batch in whole for part in cut_at_own(ordered, batch, run.reported.own)]
        return concatenate_prefixes(spread(runs.find, batches, run.threads), len(plan.query.positives))


def beside_matches(plan: EventPlan, columns: EventColumns, ordered: OrderedEvents, matches: FoundMatches) -> Beside | None:
    """Return what stands beside matches; None if they do not say when they are certain."""
    return None if not says_when_certain(plan) else Beside(certain_times(plan, ordered, matches, latest_time(columns)))


def latest_time(columns: EventColumns) -> Tick:
    """Return the latest time that the timestamp column can tell."""
    kind = columns.schema.field(columns.query.timestamp).type
    if pa.types.is_date32(kind):
        return int(np.iinfo(np.int32).max)
    return min(LATEST, int(np.iinfo(kind.to_pandas_dtype()).max)) if pa.types.is_integer(kind) else LATEST


def _lone_events(plan: EventPlan, columns: EventColumns, rows: Rows) -> Flags | None:
    """Return which ordered events have a derived key that is NULL or NaN, and so equals no other; None if none has."""
    lone = [marks for marks in (_equal_none(columns, column) for column in plan.derived) if marks is not None]
    return reduce(or_, lone)[rows] if lone else None


def _equal_none(columns: EventColumns, column: int) -> Flags | None:
    """Return which events have no value in a column, or one that does not equal itself; None if there are none."""
    nulls = columns.null_mask(column)
    if columns.type(column).kind is not Kind.FLOAT:
        return nulls
    unequal = np.isnan(columns.values(column))
    return unequal if nulls is None else nulls | unequal

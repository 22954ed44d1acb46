"""The road through the engine: columns → labels → streams → matches → table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from gpu_cep.engine.accounting.budget import BudgetExceeded, Spent, memory_for_results
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.adaptive.choice import Choices
from gpu_cep.engine.compressed.buffer_graph import buffer_graph, may_share_buffer, united
from gpu_cep.engine.compressed.compressed import node_table
from gpu_cep.engine.compressed.graph import Graph, label_graph, match_tree
from gpu_cep.engine.events.batches import Batch, cut_batches
from gpu_cep.engine.events.matches import Indices, Matches, concatenated
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import WHOLE, Own, at_borders, refuse_slices
from gpu_cep.engine.events.window_names import window_name
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.pattern_tables import matcher_tables
from gpu_cep.engine.lowering.programs import failure
from gpu_cep.engine.matchers.search import ConditionOverflow, Matcher, searches
from gpu_cep.engine.matchers.union import Union
from gpu_cep.engine.output.after_match import select_matches
from gpu_cep.engine.output.footprint import result_footprint
from gpu_cep.engine.output.result_order import count_by_stream, sort_results
from gpu_cep.engine.output.result_tables import carried_columns, count_table, match_table
from gpu_cep.engine.phase_one.computed_columns import event_columns
from gpu_cep.engine.phase_one.on_cpu import EventRun, PhaseOne
from gpu_cep.engine.phase_one.run import phase_one
from gpu_cep.errors import EventError, MatchLimitExceeded
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.compile.launch import available_threads, spread

# Sums of match counts are exact in int64 below this bound, whatever the rounding of the float sum that is compared with it.
_MOST_MATCHES = 2.0**62

Result = TypeVar("Result")

_LESS_MEMORY = "use output='count' or a narrower pattern"


def execute(
    plan: EventPlan,
    table: pa.Table,
    *,
    own: Own = WHOLE,
    threads: int | None = None,
    profile: Profile | None = None,
    concurrent: int = 1,
    spent: Spent | None = None,
) -> pa.Table:
    """Run `plan` over the events of `table`.

    Parameters
    ----------
    own
        Report only the matches that start in this slice of time, or at these
        rows; what a slice's successor needs,
        :func:`gpu_cep.engine.events.own_events.events_to_keep` tells.
    threads
        Threads to use; None: all cores that the process may use.
    profile
        Receives the counts and seconds of each stage.
    concurrent
        How many such runs share this machine's memory (the tasks of a Spark executor's host).
    spent
        What runs over other parts of the events have taken of the settings' bounds; this run adds to it.

    Raises
    ------
    EventError
        The events are at fault.
    EngineUnavailable
        The plan asks for the GPU, which cannot be used, or whose memory does not suffice.
    UnsupportedError
        What is reported of a slice would depend on earlier slices.
    MatchLimitExceeded
        More matches or steps than the settings, or matches than memory, allow.
    """
    if own != WHOLE:
        refuse_slices(plan)
    profile = profile or Profile()
    threads = threads or available_threads()
    columns = event_columns(plan, table)
    profile.add("events", len(columns))
    settings, spent = plan.settings, spent or Spent()
    budget = spent.budget(settings, result_footprint(plan, columns), memory_for_results(concurrent))
    run = EventRun(plan, columns, matcher_tables(plan, columns), own, budget, threads, profile)
    try:
        first = phase_one(run)
        if settings.output == "count" and settings.after_match == "all":
            return _counted(plan, columns, first.ordered, _counts(run, first))
        graph = _graph(run, first)
        if graph is not None:
            return node_table(plan, columns, first.ordered, carried_columns(plan, table.schema), graph)
        found = _matches(run, first)
    except MemoryError:
        raise MatchLimitExceeded(f"out of memory while matching; {_LESS_MEMORY}") from None
    finally:
        budget.close()
        spent.add(budget)
    with profile.stage("results"):
        return _result(run, first.ordered, found)


def _matches(run: EventRun, first: PhaseOne) -> Matches:
    """All matches, grouped by first event."""
    if first.found is not None:
        return first.found
    return concatenated(_each_batch(run, first.ordered, _matcher(run, first.ordered).find), len(run.plan.query.positives), run.threads)


def _graph(run: EventRun, first: PhaseOne) -> Graph | None:
    """All matches as a graph, where that is asked for and needs no enumeration."""
    settings = run.plan.settings
    if settings.output != "compressed" or settings.after_match != "all":
        return None
    with run.profile.stage("graph"):
        graph = label_graph(run.plan, first.ordered, run.own)
    if graph is None and run.own == WHOLE and may_share_buffer(run.plan):
        found = _each_batch(run, first.ordered, partial(buffer_graph, searches(run, first.ordered)))
        graph = united(run.plan, first.ordered, found)
    return graph


def _counts(run: EventRun, first: PhaseOne) -> list[tuple[Indices, Indices]]:
    """How many matches there are, in parts, as :meth:`Matcher.count` gives them."""
    if first.counted is not None:
        return [first.counted]
    return _each_batch(run, first.ordered, _matcher(run, first.ordered).count)


def _each_batch(run: EventRun, ordered: OrderedEvents, found_in: Callable[[Batch], Result]) -> list[Result]:
    plan, columns, before = run.plan, run.columns, run.budget.steps
    try:
        batches = [part for batch in cut_batches(plan, ordered, threads=run.threads) for part in at_borders(ordered, batch, run.own)]
        parts = spread(found_in, batches, run.threads)
    except BudgetExceeded as exceeded:
        window = window_name(plan, columns, int(ordered.rows[exceeded.start]))
        raise MatchLimitExceeded(f"{exceeded.reason}, in {window}") from None
    except ConditionOverflow as overflow:
        window = window_name(plan, columns, int(ordered.rows[overflow.start]))
        raise EventError(f"{failure(overflow.condition.program)} in {overflow.condition.text}, in {window}") from None
    # where no event was left to match, too
    run.profile.add("matches", 0)
    run.profile.add("steps", run.budget.steps - before)
    return parts


def _matcher(run: EventRun, ordered: OrderedEvents) -> Matcher:
    return Union(searches(run, ordered), Choices(run.plan.contenders).matchers)


def _result(run: EventRun, ordered: OrderedEvents, found: Matches) -> pa.Table:
    """The matches as a table, in the order of results."""
    plan, columns = run.plan, run.columns
    try:
        matches, streams = sort_results(plan, columns, ordered, found)
        matches, streams = select_matches(plan, columns, ordered, matches, streams)
        if plan.settings.output == "compressed":
            return node_table(plan, columns, ordered, carried_columns(plan, columns.table.schema), match_tree(matches))
        return match_table(plan, columns, ordered.rows, streams, matches, run.threads)
    except MemoryError:
        number = f"{len(found):,} matches"
        raise MatchLimitExceeded(f"out of memory while building the result of {number}; {_LESS_MEMORY}") from None


def _counted(plan: EventPlan, columns: EventColumns, ordered: OrderedEvents, parts: list[tuple[Indices, Indices]]) -> pa.Table:
    """Matches per `partition_by` stream, of those that have any (of the one stream without keys, in any case)."""
    starts = np.concatenate([np.empty(0, np.int64), *(starts for starts, _ in parts)])
    totals = np.concatenate([np.empty(0, np.int64), *(totals for _, totals in parts)])
    if float(totals.sum(dtype=np.float64)) > _MOST_MATCHES:
        raise MatchLimitExceeded("the number of matches does not fit a 64-bit count")
    if plan.query.partition_by:
        return count_table(plan, columns, *count_by_stream(plan, columns, ordered, starts, totals))
    return count_table(plan, columns, np.empty(0, np.int64), np.array([totals.sum()], np.int64))

"""Answer event patterns: columns → labels → streams → matches → table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from gpu_cep.engine.accounting.match_budget import refuse_uncountable
from gpu_cep.engine.adaptive.choice import AlgorithmChooser, read_runs
from gpu_cep.engine.compressed.buffer_graph import buffer_graph, may_share_buffer, unite_batches
from gpu_cep.engine.compressed.compressed import node_table
from gpu_cep.engine.compressed.graph import Graph, label_graph, match_tree
from gpu_cep.engine.events.batches import DEVICE_BATCH, Batch, cut_batches
from gpu_cep.engine.events.branchwise_matches import BranchwiseMatches
from gpu_cep.engine.events.match_ends import are_reported
from gpu_cep.engine.events.matches import AnyMatches, FoundMatches, Matches, concatenate_matches
from gpu_cep.engine.events.merged_matches import once_in_order
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import WHOLE, cut_at_own
from gpu_cep.engine.events.placed_matches import OrderedMatches, SinglesInParts, join_batches, matches_of, order_found
from gpu_cep.engine.events.runs import ContiguousMatches, concatenate_runs
from gpu_cep.engine.events.start_counts import StartCounts, concatenate_counts, count_starts, sort_counts
from gpu_cep.engine.events.window_names import name_windows
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.matchers.contiguous.contiguous import account_for, may_read_contiguous
from gpu_cep.engine.matchers.search import Search, searches
from gpu_cep.engine.matchers.start_limit import start_limit
from gpu_cep.engine.matchers.union import PatternMatcher
from gpu_cep.engine.output.after_match import ResultMatches, select_matches, settle_batch, settle_matches, take_runs_apart
from gpu_cep.engine.output.matched_events import MatchedEvents
from gpu_cep.engine.output.ordered_values import ordered_values
from gpu_cep.engine.output.result_order import count_by_stream, sort_results
from gpu_cep.engine.output.result_tables import carried_columns, count_table, match_table
from gpu_cep.engine.phase_one.chosen_engine import phase_one
from gpu_cep.engine.phase_one.engine_choice import EngineChoice
from gpu_cep.engine.phase_one.last_variables import ending_late
from gpu_cep.engine.phase_one.run import EventRun, PhaseOne
from gpu_cep.engine.timeouts import beside_matches
from gpu_cep.engine.trials import find_timed
from gpu_cep.errors import LESS_MEMORY, MatchLimitExceeded, ending_in
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.compile.launch import spread, threads_for
from gpu_cep_kernels.device.interface import Device

Result = TypeVar("Result")

# What is found before results are built: numbers of matches, in parts, a graph of matches, or matches.
Found = list[StartCounts] | Graph | ContiguousMatches | Matches | SinglesInParts | OrderedMatches


class SearchedEvents(NamedTuple):
    """Phase 1 of a run, and what was found."""

    first: PhaseOne
    found: Found

    @property
    def device(self) -> Device | None:
        """Return the device on which phase 1 ran; None: the CPU."""
        return self.first.device


def match_events(run: EventRun, algorithms: AlgorithmChooser) -> pa.Table:
    """Return the result of an event pattern: its matches, their numbers or their graph, as the plan asks.

    `algorithms` chooses the algorithm of each batch.
    Raises as :func:`gpu_cep.engine.answers.answer`.
    """
    first, found = find_timed(run, partial(_find, algorithms=algorithms), _try)
    return _result(run, first.ordered, found)


def _try(run: EventRun, chosen: EngineChoice) -> SearchedEvents:
    """Return what :func:`_find` does; what few events tell of algorithms is not kept."""
    return _find(run, chosen, AlgorithmChooser(run.plan.contenders))


def _find(run: EventRun, chosen: EngineChoice, algorithms: AlgorithmChooser) -> SearchedEvents:
    """Return phase 1 of a run, and what the plan asks for: the numbers of matches, their graph, or the matches."""
    first = phase_one(run, chosen)
    late = first.ordered if first.found is not None else ending_late(run, first.ordered)
    if late is not first.ordered:
        first = replace(first, ordered=late)
    if first.counted is not None or (run.plan.settings.output == "count" and run.plan.settings.after_match == "all"):
        return SearchedEvents(first, _limited(run, _counts(run, first, algorithms)))
    graph = _graph(run, first)
    if graph is not None:
        return SearchedEvents(first, graph)
    runs = _runs(run, first)
    return SearchedEvents(first, _matches(run, first, algorithms) if runs is None else runs)


def _result(run: EventRun, ordered: OrderedEvents, found: Found) -> pa.Table:
    """Return what was found as a table, in the order of results."""
    plan, columns = run.plan, run.columns
    match found:
        case list():
            return _count_table(plan, columns, ordered, found)
        case Graph():
            return node_table(plan, columns, ordered, carried_columns(plan, columns.schema), found)
        case ContiguousMatches():
            return _result_of_runs(run, ordered, found)
    with run.profile.stage("results"):
        return _result_of_matches(run, ordered, found)


def _runs(run: EventRun, first: PhaseOne) -> ContiguousMatches | None:
    """Return all matches of a contiguous sequence as ranges of events; None if labels do not decide them.

    They are not accounted for yet, since `after_match` may drop most of them.
    """
    if first.runs is not None:
        return first.runs
    if first.found is not None or len(run.plan.branches) > 1 or run.plan.settings.output == "compressed":
        return None
    if not may_read_contiguous(run.plan, run.plan.branches[0], first.ordered):
        return None
    (search,) = searches(run, first.ordered)
    parts = _each_batch(run, first.ordered, partial(_runs_of_batch, run, search))
    decided = [part for part in parts if part is not None]
    return concatenate_runs(decided, search.variable_count, run.threads) if len(decided) == len(parts) else None


def _runs_of_batch(run: EventRun, search: Search, batch: Batch) -> ContiguousMatches | None:
    """Return the matches of a batch as ranges of events; of a slice that settles them, without many that are dropped."""
    runs = read_runs(search, batch)
    if runs is None or run.reported.borders is None or run.plan.derived:
        return runs
    with run.profile.stage("results"):
        return settle_batch(search.ordered, runs, batch, run.reported.borders)


def _result_of_runs(run: EventRun, ordered: OrderedEvents, runs: ContiguousMatches) -> pa.Table:
    """Return the matches of a contiguous sequence as a table, in the order of results."""
    plan, columns, threads = run.plan, run.columns, threads_for(len(runs), run.threads)
    with run.profile.stage("results"):
        apart = plan.settings.after_match == "skip_past_last" and run.reported.own == WHOLE and not plan.derived
        runs = take_runs_apart(runs, threads) if apart else runs
        order, streams = sort_results(plan, columns, ordered, runs.first, threads)
        in_order: FoundMatches = runs if order is None else runs.reorder(order, threads)
        # at most one of them begins at each event, so that no other limit drops any
        overlap = plan.settings.after_match == "skip_past_last" and not apart
        found = ResultMatches(in_order, streams)
        reported = _reported(run, ordered, select_matches(plan, columns, ordered, found) if overlap else found)
        matches = reported.matches
        with name_windows(plan, columns, lambda start: int(ordered.rows[start])):
            account_for(len(matches), matches.bound, lambda match: int(matches.first[match]), run.budget, run.profile)
        with ending_in(MatchLimitExceeded, f"building the result of {len(matches):,} matches", LESS_MEMORY):
            return _table(run, ordered, reported)


def _matches(run: EventRun, first: PhaseOne, algorithms: AlgorithmChooser) -> Matches | SinglesInParts | OrderedMatches:
    """Return all matches, grouped by first event."""
    if first.found is not None:
        return _completed(run, first, first.found, algorithms)
    return join_batches(_searched(run, first, algorithms), len(run.plan.query.positives), len(first.ordered.rows), run.threads)


def _searched(run: EventRun, first: PhaseOne, algorithms: AlgorithmChooser) -> list[Matches | BranchwiseMatches]:
    """Return the matches of each batch that matchers find in the windows that phase 1 leaves."""
    find = partial(_find_kept, run, first.ordered, _matcher(run, first, algorithms))
    return _each_batch(run, first.ordered, find, first.joins_on)


def _completed(run: EventRun, first: PhaseOne, found: Matches, algorithms: AlgorithmChooser) -> Matches:
    """Return the matches `found` by a device, with those of the windows that it has left."""
    if not first.leaves_windows:
        return found
    parts = [found, *map(matches_of, _searched(run, first, algorithms))]
    both = concatenate_matches(parts, len(run.plan.query.positives), run.threads)
    in_order = both.reorder(np.argsort(both.first, kind="stable"))
    branches = [branch.positives for branch in run.plan.branches]
    # a window of a branch is searched here or there, so that the matches of the only branch that begin with an event stay together
    return in_order if len(branches) == 1 else once_in_order(in_order, branches)


def _find_kept(run: EventRun, ordered: OrderedEvents, matcher: PatternMatcher, batch: Batch) -> Matches | BranchwiseMatches:
    """Return the matches in a batch; of each first event no more than the plan keeps, so that no others wait in memory."""
    limit = start_limit(run.plan, run.columns, ordered)
    if limit is None:
        return matcher.find_apart(batch)
    return limit.keep(matcher.find(batch), tuple(range(len(run.plan.query.positives))), run.budget)


def _graph(run: EventRun, first: PhaseOne) -> Graph | None:
    """Return all matches as a graph; None if the output is no graph, or if matches must be enumerated first."""
    settings = run.plan.settings
    if settings.output != "compressed" or not settings.keeps_all:
        return None
    with run.profile.stage("graph"):
        graph = label_graph(run.plan, first.ordered, run.reported.own)
    if graph is None and run.reported.own == WHOLE and may_share_buffer(run.plan):
        found = _each_batch(run, first.ordered, partial(buffer_graph, searches(run, first.ordered)))
        graph = unite_batches(run.plan, first.ordered, found)
    return graph


def _counts(run: EventRun, first: PhaseOne, algorithms: AlgorithmChooser) -> list[StartCounts]:
    """Return the numbers of matches in parts, each as :meth:`Matcher.count` returns it."""
    if first.counted is not None and not first.leaves_windows:
        return [first.counted]
    if first.found is not None:
        return [count_starts(_completed(run, first, first.found, algorithms))]
    counted = _each_batch(run, first.ordered, _matcher(run, first, algorithms).count, first.joins_on)
    return counted if first.counted is None else [sort_counts(concatenate_counts([first.counted, *counted]))]


def _limited(run: EventRun, counts: list[StartCounts]) -> list[StartCounts]:
    """Return the numbers of matches at each first event, which stands once in them, as far as the plan keeps these."""
    limit = run.plan.settings.limit_per_start
    kept = counts if limit is None else [StartCounts(starts, np.minimum(totals, limit)) for starts, totals in counts]
    _count_kept(run, lambda: sum(int(totals.sum()) for _, totals in kept))
    return kept


def _count_kept(run: EventRun, number: Callable[[], int]) -> None:
    """Add to the profile how many matches the plan keeps, if it may leave out some, and no other run decides which."""
    if run.plan.may_leave_out and not run.plan.ends:
        run.profile.add("kept", number())


def _each_batch(
    run: EventRun, ordered: OrderedEvents, found_in: Callable[[Batch], Result], device: Device | None = None
) -> list[Result]:  # fmt: skip
    """Return ``found_in(batch)`` for each batch of the events, in the order of batches; a `device` takes large ones."""
    plan, before = run.plan, run.budget.steps
    with name_windows(plan, run.columns, lambda start: int(ordered.rows[start])):
        whole = cut_batches(plan, ordered, threads=run.threads) if device is None else cut_batches(plan, ordered, DEVICE_BATCH)
        batches = [part for batch in whole for part in cut_at_own(ordered, batch, run.reported.own)]
        parts = spread(found_in, batches, run.threads)
    # the profile names these counts even if there was no batch
    run.profile.add("matches", 0)
    run.profile.add("steps", run.budget.steps - before)
    return parts


def _matcher(run: EventRun, first: PhaseOne, algorithms: AlgorithmChooser) -> PatternMatcher:
    return PatternMatcher(searches(run, first.ordered, first.joins_on, first.inputs), algorithms.matchers)


def _result_of_matches(run: EventRun, ordered: OrderedEvents, found: Matches | SinglesInParts | OrderedMatches) -> pa.Table:
    """Return the matches as a table, in the order of results."""
    plan, columns = run.plan, run.columns
    with ending_in(MatchLimitExceeded, f"building the result of {len(found):,} matches", LESS_MEMORY):
        order, streams = sort_results(plan, columns, ordered, found.first, threads_for(len(found), run.threads))
        in_order: FoundMatches = found if order is None else order_found(found, order)
        reported = _reported(run, ordered, select_matches(plan, columns, ordered, ResultMatches(in_order, streams)))
        if plan.settings.output == "compressed":
            return node_table(plan, columns, ordered, carried_columns(plan, columns.schema), match_tree(reported.matches))
        return _table(run, ordered, reported)


def _table(run: EventRun, ordered: OrderedEvents, reported: ResultMatches[AnyMatches]) -> pa.Table:
    """Return the matches that :func:`_reported` returns as a table."""
    plan, columns, (matches, streams, final) = run.plan, run.columns, reported
    events = MatchedEvents(columns, ordered.rows, matches, run.threads, ordered_values(plan, columns, ordered))
    return match_table(plan, events, streams, beside=beside_matches(plan, columns, ordered, matches), final=final)


def _reported(run: EventRun, ordered: OrderedEvents, found: ResultMatches[AnyMatches]) -> ResultMatches[AnyMatches]:
    """Return the matches that the run reports; with borders, which of them are certain to be kept, too."""
    if run.reported.ends != WHOLE:
        found = found.take(np.flatnonzero(are_reported(run.reported.ends, ordered, found.matches)))
    if run.reported.borders is not None:
        return settle_matches(run.plan, run.columns, ordered, found, run.reported.borders)
    _count_kept(run, lambda: len(found.matches))
    return found


def _count_table(plan: EventPlan, columns: EventColumns, ordered: OrderedEvents, parts: list[StartCounts]) -> pa.Table:
    """Return the number of matches of each `partition_by` stream that has any.

    Without keys there is one stream, whose number is returned even if it is 0.
    """
    refuse_uncountable(sum(float(totals.sum(dtype=np.float64)) for _, totals in parts))
    if plan.query.partition_by:
        return count_table(plan, columns, *count_by_stream(plan, columns, ordered, parts))
    return count_table(plan, columns, np.empty(0, np.int64), np.array([sum(int(totals.sum()) for _, totals in parts)], np.int64))

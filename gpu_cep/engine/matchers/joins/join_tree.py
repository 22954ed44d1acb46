"""Find matches by joins in the order of a tree that is planned for each batch (ZStream's tree plans)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.label_words import any_overlap
from gpu_cep.engine.events.matches import Indices, Matches, concatenate_matches, ones
from gpu_cep.engine.events.start_counts import StartCounts, count_starts
from gpu_cep.engine.matchers.joins.device_joins import device_workplace, inputs_on_device, joined_on_device
from gpu_cep.engine.matchers.joins.execution import BatchJoins
from gpu_cep.engine.matchers.joins.negations import JoinNegations
from gpu_cep.engine.matchers.joins.statistics import join_statistics
from gpu_cep.engine.matchers.joins.workplace import Workplace, cpu_workplace
from gpu_cep.engine.matchers.negation_schedule import earliest_needs
from gpu_cep.engine.matchers.search import Search, entry_of_match
from gpu_cep.engine.windows.batch_events import BatchEvents
from gpu_cep.engine.windows.candidates import count_parts
from gpu_cep.plan.costs import Estimate
from gpu_cep.plan.join_trees import Join, Tree, cheapest_tree, joined_variables, tree_cost, tree_text
from gpu_cep_kernels.device.interface import Device
from gpu_cep_kernels.matches.hashing import PartialMatches
from gpu_cep_kernels.phase_one.input_buffers import InputBuffers, Streams
from gpu_cep_kernels.rules.path_arrays import new_path
from gpu_cep_kernels.rules.tables import Places

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class JoinTree:
    """Finds the matches of single variables under skip_till_any_match by joins of their events."""

    search: Search
    events: BatchEvents

    def find(self, batch: Batch) -> Matches:
        """Return the matches that start in the batch, in order of first event, last event and bindings."""
        parts = self._joined(batch, lambda planned: planned.matches()) or []
        with self.search.profile.stage("matching"):
            matches = concatenate_matches(parts, self.search.variable_count).sort_by_starts(batch.low, batch.own)
        self.search.profile.add("matches", len(matches))
        return matches

    def count(self, batch: Batch) -> StartCounts:
        """Return the numbers of matches, at ascending events.

        The matches of one row of the last join are all counted at the earliest of their starts, unless
        some matches of each start are kept.
        """
        if not self.search.plan.settings.keeps_all:
            return count_starts(self.find(batch))
        size = batch.own - batch.low
        totals = self._joined(batch, lambda planned: planned.counts(size))
        if totals is None:
            totals = np.zeros(size, np.int64)
        self.search.profile.add("matches", int(totals.sum()))
        starts = np.flatnonzero(totals)
        return StartCounts(starts + batch.low, totals[starts])

    def _joined(self, batch: Batch, read: Callable[[_PlannedJoins], Result]) -> Result | None:
        """Return what is read of a batch's joins, on the search's device or else on the CPU; None if some variable has no event."""

        def join(search: Search, device: Device | None) -> Result | None:
            planned = JoinTree(search, self.events)._plan(batch, device)
            with search.profile.stage("matching"):
                return None if planned is None else read(planned)

        if self._inputs(batch) is None:
            return None
        found = joined_on_device(self.search, batch, lambda search: join(search, search.device))
        return join(self.search, None) if found is None else found

    def estimate(self, batch: Batch) -> Estimate:
        """Return the expected cost of a batch's joins in nanoseconds, with their pairs as steps."""
        inputs = self._inputs(batch)
        if inputs is None:
            return Estimate("join_tree", 0.0)
        needs = earliest_needs(self.search, batch)
        statistics = join_statistics(self.search, batch, *inputs, needs)
        tree = cheapest_tree(statistics.round_down())
        cost, pairs, matches = tree_cost(statistics, tree)
        return Estimate("join_tree", cost, pairs, matches, order=tree_text(tree, self.search.variable_names), at_most=len(needs) > 0)

    def _plan(self, batch: Batch, device: Device | None) -> _PlannedJoins | None:
        """Return the joins of a batch with their tree, on a device or on the CPU; None if some variable has no event."""
        search, inputs = self.search, self._inputs(batch)
        if inputs is None:
            return None
        buffers, streams = inputs
        with search.profile.stage("planning"):
            needs = earliest_needs(search, batch)
            tree = cheapest_tree(join_statistics(search, batch, buffers, streams, needs).round_down())
        conditions, account = search.conditions(batch), _Account(search, batch.low)
        threads = min(search.threads, count_parts(batch))
        pattern = search.tables.pattern
        runs = tuple(new_path(search.variable_count, pattern, conditions) for _ in range(threads if len(needs) else 0))
        negations = JoinNegations(pattern, conditions, search.negations, needs, runs, account.fail)
        own, exclusive = batch.own - batch.low, not any_overlap(search.ordered.labels[:, batch.low : batch.high])
        where: Workplace = cpu_workplace(conditions, threads) if device is None else device_workplace(search, batch, device)
        placed = conditions
        if device is not None:
            placed, streams = inputs_on_device(search, device, batch, streams)
        listed = where.place.upload(buffers.events)
        joins = BatchJoins(pattern, conditions.table, buffers, streams, placed, listed, own, exclusive, account, negations, where)
        return _PlannedJoins(tree, joins, account)

    def _inputs(self, batch: Batch) -> tuple[InputBuffers, Streams] | None:
        """Return the events of each variable and their streams; None if some variable has no event."""
        positives = self.search.tables.branch.positives
        if not self.events.counts_of(positives).min():
            return None
        return self.events.buffers_of(positives), self.search.streams(batch)


@dataclass(frozen=True, slots=True)
class _Account:
    """Spends the budget of a search on a batch, which begins at ordered event `low`."""

    search: Search
    low: int

    def spend(self, candidates: int, start: Callable[[], int]) -> None:
        """Account for candidates that are about to be tested; `start` is asked if there are too many."""
        self.search.profile.add("pairs", candidates)
        self.search.budget.spend(0, 0, candidates, lambda _: self.low + start())

    def spend_matches(self, events: int, starts: Indices | Places, counts: Indices) -> None:
        """Account for ``counts[i]`` matches that start at event ``starts[i]``; they bind `events` in all."""

        def start_of(match: int) -> int:
            return self.low + int(starts[min(entry_of_match(counts, match), len(starts) - 1)])

        if len(starts):
            self.search.budget.spend(int(counts.sum()), events, 0, start_of)

    def fail(self, condition: int, start: int) -> NoReturn:
        """Raise the error that the condition of this number overflows."""
        raise self.search.overflow(condition, self.low + start)


@dataclass(frozen=True, slots=True)
class _PlannedJoins:
    """The joins of a batch with the tree that orders them."""

    tree: Tree
    joins: BatchJoins
    account: _Account

    def matches(self) -> list[Matches]:
        """Return the rows of the whole tree as matches."""
        return [self._as_matches(table) for table in self.joins.tables(self.tree)]

    def _as_matches(self, table: PartialMatches) -> Matches:
        """Return the rows of a table as matches, with the events in the pattern's order of variables."""
        table = PartialMatches(*(self.joins.where.place.download(column) for column in table))
        counts = ones(len(table.first), len(table.events))
        self.account.spend_matches(counts.size, table.first, np.ones(len(counts), np.int64))
        events = np.empty(counts.shape, np.int64)
        for v, bound in zip(joined_variables(self.tree), table.events, strict=True):
            np.add(bound, self.account.low, out=events[:, v], dtype=np.int64)
        return Matches(np.add(table.first, self.account.low, dtype=np.int64), counts, events.ravel())

    def counts(self, size: int) -> Indices:
        """Return for each of the batch's `size` own events the number of matches that are counted at it.

        The last join writes no rows, unless negations must be judged at them.
        """
        totals = np.zeros(size, np.int64)
        match self.tree:
            case Join() if not len(self.joins.negations.judged_at(self.tree)):
                for chunk in self.joins.chunks(self.tree):
                    self._add(*chunk.totals(), totals)
            case _:
                for table in self.joins.tables(self.tree):
                    starts = self.joins.where.place.download(table.first)
                    self._add(starts, np.ones(len(starts), np.int64), totals)
        return totals

    def _add(self, starts: Indices | Places, counts: Indices, totals: Indices) -> None:
        self.account.spend_matches(0, starts, counts)
        np.add.at(totals, starts, counts)

"""Joins in the order of a tree (ZStream's tree plans), which is planned batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from gpu_cep.engine.events.batches import Batch, window_clock
from gpu_cep.engine.events.label_words import overlapping
from gpu_cep.engine.events.matches import Indices, Matches, concatenated, ones
from gpu_cep.engine.lowering.programs import program_registers
from gpu_cep.engine.matchers.joins.execution import APART, Joining
from gpu_cep.engine.matchers.joins.negations import JoinNegations
from gpu_cep.engine.matchers.joins.statistics import batch_statistics
from gpu_cep.engine.matchers.negation_order import first_chances
from gpu_cep.engine.matchers.search import ConditionOverflow, Search
from gpu_cep.engine.windows.batch_events import BatchEvents
from gpu_cep.engine.windows.candidates import parts_of
from gpu_cep.plan.costs import Estimate
from gpu_cep.plan.join_trees import Join, Tree, cheapest_tree, leaves, tree_cost, tree_text
from gpu_cep_kernels.matches.hashing import PartialMatches
from gpu_cep_kernels.phase_one.input_buffers import InputBuffers, Streams
from gpu_cep_kernels.rules.tables import Places, new_path


@dataclass(frozen=True, slots=True)
class JoinTree:
    """Finds matches of single variables under skip_till_any_match by joins of their events."""

    search: Search
    events: BatchEvents

    def find(self, batch: Batch) -> Matches:
        """The matches that start in the batch, in order of first event, last event and bindings."""
        planned = self._planned(batch)
        with self.search.profile.stage("matching"):
            parts = [] if planned is None else planned.matches()
            matches = concatenated(parts, self._variables).sorted_by_starts(batch.low, batch.own)
        self.search.profile.add("matches", len(matches))
        return matches

    def count(self, batch: Batch) -> tuple[Indices, Indices]:
        """First events of matches, and how many matches are counted there: of several of one row, all at the earliest."""
        planned = self._planned(batch)
        totals = np.zeros(batch.own - batch.low, np.int64)
        with self.search.profile.stage("matching"):
            if planned is not None:
                planned.count(totals)
        self.search.profile.add("matches", int(totals.sum()))
        starts = np.flatnonzero(totals)
        return starts + batch.low, totals[starts]

    @property
    def _variables(self) -> int:
        return len(self.search.tables.pattern.order)

    def estimate(self, batch: Batch) -> Estimate:
        """What the joins of a batch are expected to cost."""
        inputs = self._inputs(batch)
        if inputs is None:
            return Estimate("join_tree", 0.0)
        needs = first_chances(self.search, batch)
        statistics = batch_statistics(self.search, batch, *inputs, needs)
        tree = cheapest_tree(statistics.rounded())
        cost, pairs, matches = tree_cost(statistics, tree)
        return Estimate("join_tree", cost, pairs, matches, order=tree_text(tree, self.search.names), at_most=len(needs) > 0)

    def _planned(self, batch: Batch) -> _PlannedBatch | None:
        """What is joined, and in which order; None if some variable has no event."""
        search, inputs = self.search, self._inputs(batch)
        if inputs is None:
            return None
        buffers, streams = inputs
        with search.profile.stage("planning"):
            needs = first_chances(search, batch)
            tree = cheapest_tree(batch_statistics(search, batch, buffers, streams, needs).rounded())
        conditions, account = search.conditions(batch), _Account(search, batch.low)
        threads = min(search.threads, parts_of(batch))
        registers = program_registers(np, conditions.programs, APART * threads, conditions.table.roles)
        pattern = search.tables.pattern
        runs = tuple(new_path(self._variables, pattern, conditions) for _ in range(threads if len(needs) else 0))
        negations = JoinNegations(pattern, conditions, search.negations, needs, runs, account.fail)
        own, exclusive = batch.own - batch.low, not overlapping(search.ordered.labels[:, batch.low : batch.high])
        joining = Joining(pattern, conditions, buffers, streams, registers, own, exclusive, account, negations, threads)
        return _PlannedBatch(tree, joining, account)

    def _inputs(self, batch: Batch) -> tuple[InputBuffers, Streams] | None:
        """The events of each variable, and the streams that they are in; None if some variable has no event."""
        search, low, high = self.search, batch.low, batch.high
        positives = search.tables.branch.positives
        if not self.events.counts_of(positives).min():
            return None
        buffers = self.events.buffers_of(positives)
        clock, length = window_clock(search.plan, search.ordered, low, high)
        return buffers, Streams(search.ordered.offsets, search.ordered.times[low:high], clock, length, search.plan.query.ties == "strict")


@dataclass(frozen=True, slots=True)
class _Account:
    """Spends the budget of a search for the batch that begins at event `low`."""

    search: Search
    low: int

    def spend(self, candidates: int, start: int) -> None:
        """So many candidates are about to be looked at."""
        self.search.profile.add("pairs", candidates)
        self.search.budget.spend(0, 0, candidates, lambda _: self.low + start)

    def found(self, events: int, starts: Indices | Places, counts: Indices) -> None:
        """So many matches start at events, and they bind `events` in all."""
        ends = np.cumsum(counts)

        def start_of(match: int) -> int:
            return self.low + int(starts[min(int(np.searchsorted(ends, match, side="right")), len(starts) - 1)])

        if len(starts):
            self.search.budget.spend(int(ends[-1]), events, 0, start_of)

    def fail(self, condition: int, start: int) -> NoReturn:
        """A condition could not be computed."""
        raise ConditionOverflow(self.search.tables.branch.conditions[condition], self.low + start)


@dataclass(frozen=True, slots=True)
class _PlannedBatch:
    """A batch, and the tree by which it is joined."""

    tree: Tree
    joining: Joining
    account: _Account

    def matches(self) -> list[Matches]:
        """The rows of the whole tree as matches."""
        return [self._matches(table) for table in self.joining.tables(self.tree)]

    def _matches(self, table: PartialMatches) -> Matches:
        counts = ones(len(table.first), len(table.events))
        self.account.found(counts.size, table.first, np.ones(len(counts), np.int64))
        events = np.empty(counts.shape, np.int64)
        for v, bound in zip(leaves(self.tree), table.events, strict=True):
            np.add(bound, self.account.low, out=events[:, v], dtype=np.int64)
        return Matches(np.add(table.first, self.account.low, dtype=np.int64), counts, events.ravel())

    def count(self, totals: Indices) -> None:
        """Raise the number of matches at their first events; the last join writes no rows, unless negations judge them."""
        match self.tree:
            case Join() if not len(self.joining.negations.judged_at(self.tree)):
                for chunk in self.joining.chunks(self.tree):
                    self._add(*chunk.totals(), totals)
            case _:
                for table in self.joining.tables(self.tree):
                    self._add(table.first, np.ones(len(table.first), np.int64), totals)

    def _add(self, starts: Indices | Places, counts: Indices, totals: Indices) -> None:
        self.account.found(0, starts, counts)
        np.add.at(totals, starts, counts)

"""Run the lazy automata over a batch, from each event of a rare variable, without candidate windows."""

from __future__ import annotations

from functools import partial
from itertools import chain

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches, concatenate_matches
from gpu_cep.engine.events.sampling import WorkSample, combine_searches
from gpu_cep.engine.events.start_counts import StartCounts, count_starts
from gpu_cep.engine.matchers.lazy.conditions import drop_closing_conditions, iteration_table
from gpu_cep.engine.matchers.lazy.enumeration import ChainEnumeration, Enumeration, IterationEnumeration, new_stream_counts
from gpu_cep.engine.matchers.negation_schedule import negation_needs
from gpu_cep.engine.matchers.search import Search
from gpu_cep.engine.windows.batch_events import BatchEvents
from gpu_cep.engine.windows.candidates import count_parts
from gpu_cep.engine.windows.window_share import measure_window_share
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.lazy.chain import find_pivots, new_chain
from gpu_cep_kernels.phase_one.input_buffers import InputBuffers, Streams
from gpu_cep_kernels.rules.path_arrays import new_path
from gpu_cep_kernels.rules.tables import Flags


@record()
class LazyAutomaton:
    """Finds matches under skip_till_any_match from a rare variable on.

    It binds single variables first, then quantified ones. The chain automaton
    has one order of variables for a batch. The tree automaton has an
    `order_per_start`: each event that may start a match has its own order.
    """

    search: Search
    events: BatchEvents
    order_per_start: bool = False

    def find(self, batch: Batch) -> Matches:
        """Return the matches that start in the batch, in order of first event, last event and bindings."""
        enumerations = self._enumerations(batch, count_parts(batch))
        with self.search.profile.stage("matching"):
            found = spread(lambda enumeration: enumeration.matches(), enumerations, self.search.threads)
            grouped = concatenate_matches([*chain.from_iterable(found)], len(self._single)).group_by_starts(batch.low, batch.own)
            matches = grouped if self._finds_in_result_order else grouped.sort_within_starts()
        self.search.profile.add("matches", len(matches))
        return matches

    def count(self, batch: Batch) -> StartCounts:
        """Return the number of matches of each stream that has any, at the first of their starts.

        If some matches of each start are kept, every start is returned.
        """
        if not self.search.plan.settings.keeps_all:
            return count_starts(self.find(batch))
        enumerations = self._enumerations(batch, count_parts(batch))
        starts, totals = new_stream_counts(self.search, batch)
        with self.search.profile.stage("matching"):
            for first, counted in spread(lambda enumeration: enumeration.count(), enumerations, self.search.threads):
                np.minimum(starts, first, out=starts)
                totals += counted
        self.search.profile.add("matches", int(totals.sum()))
        matched = totals > 0
        return StartCounts(starts[matched] + batch.low, totals[matched])

    def sample(self, batch: Batch, pivots: int, steps: int) -> tuple[WorkSample, WorkSample]:
        """Return a sample of the work on single variables, and one on quantified ones.

        There are at most `pivots` pivots; each sample ends a little after `steps` steps.
        """
        samples = [enumeration.sample(pivots, steps) for enumeration in self._enumerations(batch, 1)]
        return combine_searches([single for single, _ in samples]), combine_searches([quantified for _, quantified in samples])

    @property
    def _single(self) -> Flags:
        """Return whether each variable binds one event."""
        single: Flags = self.search.tables.pattern.maximum == 1
        return single

    @property
    def _order(self) -> Indices:
        """Return the variables from the rarest to the most frequent, quantified ones behind single ones."""
        return np.lexsort([self.events.counts_of(self.search.tables.branch.positives), ~self._single])

    @property
    def _finds_in_result_order(self) -> bool:
        """Return whether the matches of one start are found in order of last event and bindings.

        They are if pivots end matches, and the variables between are bound in the pattern's order.
        """
        order, precedes = self._order, self.search.tables.pattern.precedes
        others = len(order) - 1
        begins = precedes.sum(axis=1) == others
        ends = bool(begins.any()) and precedes[:, order[0]].sum() == others
        between = order[1:][~begins[order[1:]]]
        return not self.order_per_start and bool(self._single.all()) and ends and bool((np.diff(between) > 0).all())

    def _enumerations(self, batch: Batch, parts: int) -> list[Enumeration]:
        """Return the enumeration from the rarest variable, or one from each variable that may begin a match.

        Each is divided into `parts` parts. There is none if some variable has too few events.
        """
        search = self.search
        positives = search.tables.branch.positives
        counts = self.events.counts_of(positives)
        enough = bool((counts >= search.tables.pattern.minimum).all())
        order = self._order
        pivots = [v for v, mask in enumerate(search.tables.branch.before) if mask == 0] if self.order_per_start else [int(order[0])]
        search.profile.add("pivots", int(counts[pivots].sum()) if enough else 0)
        if not enough:
            return []
        buffers = self.events.buffers_of(positives)
        orders = [np.concatenate([[v], order[order != v]]) for v in pivots]
        return [enumeration for order in orders for enumeration in self._in_order(batch, buffers, order, parts)]

    def _in_order(self, batch: Batch, buffers: InputBuffers, order: Indices, parts: int) -> list[Enumeration]:
        """Return the enumeration of a batch in an order of variables, in `parts` parts with their own pivots.

        Quantified variables come last in the order, except for the pivot.
        """
        search, pattern, streams = self.search, self.search.tables.pattern, self.search.streams(batch)
        needs = self._negation_needs(batch, buffers, streams, order)
        depths = 1 + int(np.count_nonzero(self._single[order[1:]]))
        conditions = search.conditions(batch)._replace(table=drop_closing_conditions(search.tables))
        quantified, uses = order[~self._single[order]], iteration_table(search.tables)

        def from_pivots(pivots: tuple[int, int]) -> Enumeration:
            chain = new_chain(order, depths, pivots, buffers, pattern, needs)
            run = new_path(depths, pattern, conditions)
            # one event of each variable is bound, and the first one of a quantified pivot at depth 0
            run.earlier[:], run.first[order[0]] = -1, 0
            chained = ChainEnumeration(search, batch, buffers, streams, conditions, chain, run, self.order_per_start)
            return IterationEnumeration(chained, order[:depths], quantified, uses) if len(quantified) else chained

        first, last = find_pivots(order[0], buffers, pattern, batch.own - batch.low, self.order_per_start)
        return [from_pivots((first + low, first + high)) for low, high in slices(last - first, parts)]

    def _negation_needs(self, batch: Batch, buffers: InputBuffers, streams: Streams, order: Indices) -> Flags:
        """Return bool [negation, variable]: whether the negation is judged only after the variable is bound."""
        search = self.search
        if not search.tables.branch.negations:
            return np.zeros((0, len(order)), np.bool_)
        share = measure_window_share(batch, buffers, streams, search.tables.branch.before)
        expected = np.diff(buffers.first)[order] * np.where(order == order[0], 1.0, share)
        return negation_needs(search, batch, order, expected)


LazyChain, LazyTree = partial(LazyAutomaton, order_per_start=False), partial(LazyAutomaton, order_per_start=True)

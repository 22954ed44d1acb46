"""The lazy automata over the batches: no windows, no candidates, only the events that rare ones need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np

from gpu_cep.engine.events.batches import Batch, window_clock
from gpu_cep.engine.events.matches import Indices, Matches, concatenated
from gpu_cep.engine.events.sampling import Sample, together
from gpu_cep.engine.matchers.lazy.conditions import iteration_table, without_closing
from gpu_cep.engine.matchers.lazy.enumeration import Chained, Enumeration, Iterated, no_counts
from gpu_cep.engine.matchers.negation_order import negation_needs
from gpu_cep.engine.matchers.search import Search
from gpu_cep.engine.windows.batch_events import BatchEvents
from gpu_cep.engine.windows.candidates import parts_of
from gpu_cep.engine.windows.window_share import window_share
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.lazy.chain import find_pivots, new_chain
from gpu_cep_kernels.phase_one.input_buffers import InputBuffers, Streams
from gpu_cep_kernels.rules.tables import Flags, new_path


@dataclass(frozen=True, slots=True)
class LazyAutomaton:
    """Finds matches under skip_till_any_match from a rare variable on: single variables first, then quantified ones.

    The chain automaton has one order of variables for a batch. With `anew`, it
    is the tree automaton: each event that may start a match has its own order.
    """

    search: Search
    events: BatchEvents
    anew: bool = False

    def find(self, batch: Batch) -> Matches:
        """The matches that start in the batch, in order of first event, last event and bindings."""
        enumerations = self._begin(batch, parts_of(batch))
        with self.search.profile.stage("matching"):
            found = spread(lambda enumeration: enumeration.matches(), enumerations, self.search.threads)
            grouped = concatenated([*chain.from_iterable(found)], len(self._single)).grouped_by_starts(batch.low, batch.own)
            matches = grouped if self._finds_in_order else grouped.sorted_within_starts()
        self.search.profile.add("matches", len(matches))
        return matches

    def count(self, batch: Batch) -> tuple[Indices, Indices]:
        """The first event of a match in each stream of the batch that has one, and the number of that stream's matches."""
        enumerations = self._begin(batch, parts_of(batch))
        starts, totals = no_counts(self.search, batch)
        with self.search.profile.stage("matching"):
            for first, counted in spread(lambda enumeration: enumeration.count(), enumerations, self.search.threads):
                np.minimum(starts, first, out=starts)
                totals += counted
        self.search.profile.add("matches", int(totals.sum()))
        matched = totals > 0
        return starts[matched] + batch.low, totals[matched]

    def sample(self, batch: Batch, pivots: int, steps: int) -> tuple[Sample, Sample]:
        """What single variables take from some pivots, and quantified ones from some of the rows that these give.

        At most so many pivots, and as many as little more than so many `steps` suffice for.
        """
        samples = [enumeration.sample(pivots, steps) for enumeration in self._begin(batch, 1)]
        return together([single for single, _ in samples]), together([quantified for _, quantified in samples])

    @property
    def _single(self) -> Flags:
        """Whether each variable binds one event."""
        single: Flags = self.search.tables.pattern.maximum == 1
        return single

    @property
    def _order(self) -> Indices:
        """The variables from the rarest to the most frequent, quantified ones behind single ones."""
        return np.lexsort([self.events.counts_of(self.search.tables.branch.positives), ~self._single])

    @property
    def _finds_in_order(self) -> bool:
        """Whether the matches of one first event are found by last event, then bindings: pivots end them, and what is between ascends."""
        order, precedes = self._order, self.search.tables.pattern.precedes
        others = len(order) - 1
        begins = precedes.sum(axis=1) == others
        ends = bool(begins.any()) and precedes[:, order[0]].sum() == others
        between = order[1:][~begins[order[1:]]]
        return not self.anew and bool(self._single.all()) and ends and bool((np.diff(between) > 0).all())

    def _begin(self, batch: Batch, parts: int) -> list[Enumeration]:
        """The enumeration from the rarest variable's events on, or one for each variable that may begin a match; each in so many parts.

        There is none if some variable has too few events.
        """
        search = self.search
        positives = search.tables.branch.positives
        counts = self.events.counts_of(positives)
        enough = bool((counts >= search.tables.pattern.minimum).all())
        order = self._order
        pivots = [v for v, mask in enumerate(search.tables.branch.before) if mask == 0] if self.anew else [int(order[0])]
        search.profile.add("pivots", int(counts[pivots].sum()) if enough else 0)
        if not enough:
            return []
        buffers = self.events.buffers_of(positives)
        orders = [np.concatenate([[v], order[order != v]]) for v in pivots]
        return [enumeration for order in orders for enumeration in self._enumerations(batch, buffers, order, parts)]

    def _enumerations(self, batch: Batch, buffers: InputBuffers, order: Indices, parts: int) -> list[Enumeration]:
        """The enumeration of a batch with the variables in that order, the quantified ones last except for the first.

        Each of its parts has its own pivots.
        """
        search, pattern, own = self.search, self.search.tables.pattern, batch.own - batch.low
        clock, length = window_clock(search.plan, search.ordered, batch.low, batch.high)
        strict = search.plan.query.ties == "strict"
        streams = Streams(search.ordered.offsets, search.ordered.times[batch.low : batch.high], clock, length, strict)
        needs = np.zeros((0, len(order)), np.bool_)
        if search.tables.branch.negations:
            share = window_share(batch, buffers, streams, search.tables.branch.before)
            expected = np.diff(buffers.first)[order] * np.where(order == order[0], 1.0, share)
            needs = negation_needs(search, batch, order, expected)
        depths = 1 + int(np.count_nonzero(self._single[order[1:]]))
        conditions = search.conditions(batch)._replace(table=without_closing(search.tables))
        quantified, uses = order[~self._single[order]], iteration_table(search.tables)

        def of_pivots(pivots: tuple[int, int]) -> Enumeration:
            chain = new_chain(order, depths, pivots, buffers, pattern, needs)
            run = new_path(depths, pattern, conditions)
            # one event of each variable is bound, and the first one of a quantified pivot at depth 0
            run.earlier[:], run.first[order[0]] = -1, 0
            chained = Chained(search, batch, buffers, streams, conditions, chain, run, self.anew)
            return Iterated(chained, order[:depths], quantified, uses) if len(quantified) else chained

        first, last = find_pivots(order[0], buffers, pattern, own, self.anew)
        return [of_pivots((first + low, first + high)) for low, high in slices(last - first, parts)]


LazyChain, LazyTree = partial(LazyAutomaton, anew=False), partial(LazyAutomaton, anew=True)

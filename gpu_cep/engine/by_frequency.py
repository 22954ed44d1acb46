"""The choice between the lazy chain and the two-phase strategy, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpu_cep.engine.batches import Batch
from gpu_cep.engine.lazy_chain import LazyChain, frequencies
from gpu_cep.engine.matches import Indices, Matches
from gpu_cep.engine.search import Matcher, Search
from gpu_cep.engine.two_phase import TwoPhase
from gpu_cep.engine.windowed import windowed
from gpu_cep.plan.states import branch_states
from gpu_cep_kernels.primitives import marked_events

# The lazy chain is chosen from this many starts, or events of the most frequent variable, for each pivot on. Measured: between
# equal frequencies the automaton is up to 1.7 times as fast, for its chained condition prunes better; from here on it loses.
_EVENTS_PER_PIVOT = 2


@dataclass(frozen=True, slots=True)
class ByFrequency:
    """Finds matches of single variables under skip_till_any_match by the algorithm that has less to begin with."""

    search: Search

    def find(self, batch: Batch) -> Matches:
        """The matches that start in the batch, in order of first event, last event and bindings."""
        return self._matcher(batch).find(batch)

    def count(self, batch: Batch) -> tuple[Indices, Indices]:
        """How many matches start where."""
        plan, branch = self.search.plan, self.search.tables.branch
        by_states = branch_states(plan, branch, plan.query.ties == "strict") is not None
        return (windowed(TwoPhase)(self.search) if by_states else self._matcher(batch)).count(batch)

    def _matcher(self, batch: Batch) -> Matcher:
        tables = self.search.tables
        labels = self.search.ordered.labels[:, batch.low : batch.high]
        counts = frequencies(labels, len(tables.pattern.order))
        starts = np.count_nonzero(marked_events(labels, tables.minimal))
        rare = _EVENTS_PER_PIVOT * counts.min() <= max(starts, counts.max())
        return LazyChain(self.search) if rare else windowed(TwoPhase)(self.search)

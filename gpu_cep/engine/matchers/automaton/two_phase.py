"""The two-phase strategy (thesis chapter 5): candidate windows first, then their matches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches, concatenated
from gpu_cep.engine.matchers.automaton.ses_automaton import SesAutomaton
from gpu_cep.engine.matchers.search import Search
from gpu_cep.engine.windows.candidates import Candidates, Windows, branch_windows, counted, divided, prune_windows
from gpu_cep.engine.windows.direct import DirectMatcher, is_deterministic, reads_directly
from gpu_cep.engine.windows.state_counts import counted_by_states, sum_of
from gpu_cep.plan.states import branch_states
from gpu_cep_kernels.compile.launch import spread


@dataclass(frozen=True, slots=True)
class TwoPhase:
    """Finds the matches of a branch window by window: read off the chained condition where that decides, else by the SES automaton."""

    search: Search

    def find_in(self, batch: Batch, shared: Windows) -> Matches:
        """The matches that start in the batch, in order of first event, last event and bindings."""
        windows, direct = self._windows(batch, shared)
        parts = divided(windows, batch)
        found = spread(lambda part: self._found(batch, part, direct, 1 / len(parts)), parts, self.search.threads)
        return concatenated(found, len(self.search.tables.pattern.order))

    def count_in(self, batch: Batch, shared: Windows) -> tuple[Indices, Indices]:
        """The candidates of the batch, and how many matches start at each."""
        windows, direct = self._windows(batch, shared)
        parts = divided(windows, batch)
        counts = spread(lambda part: self._counted(batch, part, direct, 1 / len(parts)), parts, self.search.threads)
        nothing = np.empty(0, np.int64)
        return np.concatenate([nothing, *(starts for starts, _ in counts)]), np.concatenate([nothing, *(totals for _, totals in counts)])

    def _windows(self, batch: Batch, shared: Windows) -> tuple[Windows, DirectMatcher | None]:
        """The branch's windows, and what reads matches off the chained condition where that decides."""
        plan, tables, profile = self.search.plan, self.search.tables, self.search.profile
        windows = branch_windows(shared, self.search.ordered, batch, tables, self.search.own, profile)
        if reads_directly(plan, tables) and is_deterministic(plan, windows, tables):
            return windows, DirectMatcher(tables)
        return counted(plan, windows, tables, profile), None

    def _found(self, batch: Batch, windows: Windows, direct: DirectMatcher | None, share: float) -> Matches:
        """The matches that start at the starts of `windows`, a `share` of the batch's."""
        candidates = self._candidates(windows, direct)
        with self.search.profile.stage("matching"):
            if direct is not None:
                counts = direct.counts(windows, candidates)
                self._spend(batch, candidates, int(counts.sum(dtype=np.int64)))
                matches = direct.find(batch, windows, candidates, counts)
            else:
                matches = SesAutomaton(self.search).find(batch, windows, candidates, share)
        self.search.profile.add("matches", len(matches))
        return matches

    def _counted(self, batch: Batch, windows: Windows, direct: DirectMatcher | None, share: float) -> tuple[Indices, Indices]:
        """The candidates among the starts of `windows`, and how many matches start at each."""
        candidates = self._candidates(windows, direct)
        with self.search.profile.stage("matching"):
            if direct is not None:
                totals = np.ones(len(candidates.starts), np.int64)
                self._spend(batch, candidates, 0)
            else:
                totals = self._totals(batch, windows, candidates, share)
        self.search.profile.add("matches", sum_of(totals))
        return candidates.starts + batch.low, totals

    def _totals(self, batch: Batch, windows: Windows, candidates: Candidates, share: float) -> Indices:
        """The number of matches that start at each candidate: by states where labels decide, else by enumeration."""
        branch = self.search.tables.branch
        space = branch_states(self.search.plan, branch, bool(windows.after.size))
        if space is None:
            return SesAutomaton(self.search).count(batch, windows, candidates, share)
        totals = counted_by_states(branch, space, windows, candidates)

        def start_of(match: int) -> int:
            through = np.cumsum(totals, dtype=np.float64)
            return batch.low + int(candidates.starts[min(int(np.searchsorted(through, match, side="right")), len(totals) - 1)])

        if len(totals):
            self.search.budget.spend(sum_of(totals), 0, 0, start_of)
        return totals

    def _candidates(self, windows: Windows, direct: DirectMatcher | None) -> Candidates:
        plan, tables, profile = self.search.plan, self.search.tables, self.search.profile
        if direct is None:
            return prune_windows(plan, windows, tables, profile)
        with profile.stage("chain"):
            candidates = direct.candidates(windows)
        if not windows.judged:
            profile.add("candidates", len(candidates.starts))
        return candidates

    def _spend(self, batch: Batch, candidates: Candidates, events: int) -> None:
        """Account for one match of each candidate, which bind so many events together."""
        starts = candidates.starts
        if len(starts):
            self.search.budget.spend(len(starts), events, 0, lambda match: batch.low + int(starts[min(match, len(starts) - 1)]))

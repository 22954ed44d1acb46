"""Find matches in two phases (thesis chapter 5): prune a batch's windows, then search the candidates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches, concatenate_matches
from gpu_cep.engine.events.start_counts import StartCounts, concatenate_counts
from gpu_cep.engine.matchers.automaton.ses_automaton import SesAutomaton
from gpu_cep.engine.matchers.search import Search, entry_of_match
from gpu_cep.engine.windows.batch_events import BranchEvents
from gpu_cep.engine.windows.candidates import BranchWindows, count_for_summary, divide_starts, prune_windows
from gpu_cep.engine.windows.direct import DirectMatcher, drop_ruled_out, negation_lookup
from gpu_cep.engine.windows.placed_windows import Candidates
from gpu_cep.engine.windows.state_counts import count_by_states, sum_counts
from gpu_cep.plan.states import branch_states
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import spread
from gpu_cep_kernels.matches.negations import NegatedEvents


class _WindowsOfThread(NamedTuple):
    """The windows that one thread searches, a `share` of the batch's.

    `direct` reads their matches off the chained condition. It is None if that does not decide them. `negated` is what it
    looks up for negations; None if there are none.
    """

    batch: Batch
    windows: BranchWindows
    direct: DirectMatcher | None
    negated: NegatedEvents | None
    share: float


@record()
class TwoPhase:
    """Finds a branch's matches window by window.

    Where the chained condition decides a match, it is read off that. Else the
    SES automaton searches the candidate windows.
    """

    search: Search

    def find_in(self, batch: Batch, branch: BranchEvents) -> Matches:
        """Return the matches that start in the batch, in order of first event, last event and bindings."""
        found = spread(self._find, self._divide(batch, branch), self.search.threads)
        return concatenate_matches(found, self.search.variable_count)

    def count_in(self, batch: Batch, branch: BranchEvents) -> StartCounts:
        """Return how many matches start at each candidate of the batch."""
        return concatenate_counts(spread(self._count, self._divide(batch, branch), self.search.threads))

    def _divide(self, batch: Batch, branch: BranchEvents) -> list[_WindowsOfThread]:
        """Return the branch's windows as threads share them."""
        plan, tables, profile = self.search.plan, self.search.tables, self.search.profile
        direct = DirectMatcher(tables) if branch.decided_by_labels else None
        windows = branch.windows if direct is not None else count_for_summary(plan, branch.windows, tables, profile)
        parts = divide_starts(windows, batch)
        rules_out = direct is not None and tables.branch.negations
        negated = negation_lookup(batch, windows, tables.branch, self.search.negations) if rules_out else None
        return [_WindowsOfThread(batch, part, direct, negated, 1 / len(parts)) for part in parts]

    def _find(self, own: _WindowsOfThread) -> Matches:
        """Return the matches that start in a thread's windows."""
        batch, windows, direct, _, share = own
        candidates = self._candidates(windows, direct)
        with self.search.profile.stage("matching"):
            if direct is not None:
                matches = self._read(own, direct, candidates)
            else:
                matches = SesAutomaton(self.search).find(batch, windows, candidates, share)
        self.search.profile.add("matches", len(matches))
        return matches

    def _count(self, own: _WindowsOfThread) -> StartCounts:
        """Return how many matches start at each candidate among a thread's windows."""
        batch, windows, direct, _, _ = own
        candidates = self._candidates(windows, direct)
        first = candidates.starts + batch.low
        with self.search.profile.stage("matching"):
            if direct is None:
                totals = self._totals(own, candidates)
            elif own.negated is not None:
                first = self._read(own, direct, candidates).first
                totals = np.ones(len(first), np.int64)
            else:
                totals = np.ones(len(first), np.int64)
                self._spend(first, 0)
        self.search.profile.add("matches", sum_counts(totals))
        return StartCounts(first, totals)

    def _read(self, own: _WindowsOfThread, direct: DirectMatcher, candidates: Candidates) -> Matches:
        """Return the matches of the candidates, read off the chained condition."""
        counts = direct.counts(own.windows, candidates)
        if own.negated is None:
            self._spend(candidates.starts + own.batch.low, int(counts.sum(dtype=np.int64)))
            return direct.find(own.batch, own.windows, candidates, counts)
        matches = direct.find(own.batch, own.windows, candidates, counts)
        matches = drop_ruled_out(matches, self.search.negations, own.negated)
        self._spend(matches.first, matches.counts.size)
        return matches

    def _totals(self, own: _WindowsOfThread, candidates: Candidates) -> Indices:
        """Return the number of matches that start at each candidate.

        They are counted by states where labels decide matches, else by enumeration.
        """
        branch, batch, windows = self.search.tables.branch, own.batch, own.windows
        space = branch_states(self.search.plan, branch, bool(windows.next_events.after.size))
        if space is None:
            return SesAutomaton(self.search).count(batch, windows, candidates, own.share)
        totals: Indices = count_by_states(branch, space, windows, candidates)

        def start_of(match: int) -> int:
            return batch.low + int(candidates.starts[min(entry_of_match(totals, match), len(totals) - 1)])

        if len(totals):
            self.search.budget.spend(sum_counts(totals), 0, 0, start_of)
        return totals

    def _candidates(self, windows: BranchWindows, direct: DirectMatcher | None) -> Candidates:
        """Return the candidates among the windows: by the plan's pruning, or by `direct`."""
        plan, tables, profile = self.search.plan, self.search.tables, self.search.profile
        if direct is None:
            return prune_windows(plan, windows, tables, profile)
        with profile.stage("chain"):
            candidates = direct.candidates(windows)
        if not windows.judged:
            profile.add("candidates", len(candidates.starts))
        return candidates

    def _spend(self, first: Indices, events: int) -> None:
        """Account for matches that begin at the ordered events `first`; together they bind so many `events`."""
        if len(first):
            self.search.budget.spend(len(first), events, 0, lambda match: int(first[min(match, len(first) - 1)]))

"""Unite the matches of a pattern's branches, as a set (docs/language.md, OR)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.branchwise_matches import BranchwiseMatches, may_stay_apart
from gpu_cep.engine.events.matches import Matches
from gpu_cep.engine.events.merged_matches import BranchMatches, unite_matches
from gpu_cep.engine.events.start_counts import StartCounts, concatenate_counts, count_starts, sort_counts
from gpu_cep.engine.matchers.search import Matcher, Search
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.records import record

# Gives a matcher for each branch in a batch.
BranchMatchers = Callable[[tuple[Search, ...], Batch], list[Matcher]]


@record()
class PatternMatcher:
    """Find the matches of all branches of a pattern, each once; a branch has a search, and in each batch a matcher."""

    searches: tuple[Search, ...]
    matchers: BranchMatchers

    def find(self, batch: Batch) -> Matches:
        """Return the matches that start in the batch, in order of first event, last event and bindings."""
        return unite_matches(self._find_each(batch), self._variables)

    def find_apart(self, batch: Batch) -> Matches | BranchwiseMatches:
        """Return the matches that :meth:`find` returns; those of branches may stay apart if no two of them begin with one event."""
        parts = self._find_each(batch)
        apart = len(parts) > 1 and self._plan.finds_once and may_stay_apart(parts, batch)
        return BranchwiseMatches(tuple(parts), self._variables) if apart else unite_matches(parts, self._variables)

    def _find_each(self, batch: Batch) -> list[BranchMatches]:
        """Return the matches of each branch that start in the batch."""
        matchers = self.matchers(self.searches, batch)
        return [
            BranchMatches(matcher.find(batch), search.tables.branch.positives)
            for matcher, search in zip(matchers, self.searches, strict=True)
        ]

    def count(self, batch: Batch) -> StartCounts:
        """Return the numbers of matches, at ascending events."""
        if not self._plan.finds_once:
            return count_starts(self.find(batch))
        counts = [matcher.count(batch) for matcher in self.matchers(self.searches, batch)]
        if len(counts) == 1:
            return counts[0]
        starts, totals = sort_counts(concatenate_counts(counts))
        # several branches may begin at one event
        own = np.flatnonzero(starts[1:] != starts[:-1]) + 1
        begins = np.concatenate([np.zeros(min(1, len(starts)), np.intp), own])
        return StartCounts(starts[begins], np.add.reduceat(totals, begins))

    @property
    def _plan(self) -> EventPlan:
        return self.searches[0].plan

    @property
    def _variables(self) -> int:
        """Return the number of variables of the query that bind events."""
        return len(self._plan.query.positives)

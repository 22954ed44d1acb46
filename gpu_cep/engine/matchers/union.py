"""All branches of a pattern: the union of what each of them finds, as a set (SPEC section 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Counts, Indices, Matches, concatenated
from gpu_cep.engine.matchers.search import Matcher, Search

# The matchers of all branches for a batch.
Matchers = Callable[[tuple[Search, ...], Batch], list[Matcher]]


@dataclass(frozen=True, slots=True)
class Union:
    """Finds the matches of all branches; of a single one, what its matcher finds."""

    searches: tuple[Search, ...]
    matchers: Matchers

    def find(self, batch: Batch) -> Matches:
        """The matches that start in the batch, in order of first event, last event and bindings, each once."""
        found = [matcher.find(batch) for matcher in self.matchers(self.searches, batch)]
        if len(found) == 1:
            return found[0]
        variables = len(self.searches[0].plan.query.positives)
        parts = [_widened(matches, search, variables) for matches, search in zip(found, self.searches, strict=True)]
        matches = concatenated(parts, variables).sorted_by_starts(batch.low, batch.own)
        return matches if self._disjoint else matches.distinct()

    def count(self, batch: Batch) -> tuple[Indices, Indices]:
        """Starts of matches, and how many matches start at each."""
        if not self._disjoint:
            starts, totals = np.unique(self.find(batch).first, return_counts=True)
            return starts, totals
        counted = [matcher.count(batch) for matcher in self.matchers(self.searches, batch)]
        if len(counted) == 1:
            return counted[0]
        starts = np.concatenate([starts for starts, _ in counted])
        order = np.argsort(starts, kind="stable")
        return starts[order], np.concatenate([totals for _, totals in counted])[order]

    @property
    def _disjoint(self) -> bool:
        """Whether no two branches bind the same variables, and so no match is found twice."""
        return len({search.tables.branch.positives for search in self.searches}) == len(self.searches)


def _widened(matches: Matches, search: Search, variables: int) -> Matches:
    """Matches of a branch as matches of the query, which binds nothing to the variables that the branch lacks."""
    counts: Counts = np.zeros((len(matches), variables), np.int32)
    counts[:, list(search.tables.branch.positives)] = matches.counts
    return Matches(matches.first, counts, matches.events)

"""Adapt algorithms that go from window to window to the protocol of a matcher."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Matches
from gpu_cep.engine.events.start_counts import StartCounts
from gpu_cep.engine.matchers.search import Matcher, Search
from gpu_cep.engine.windows.batch_events import BatchEvents, BranchEvents
from gpu_cep.records import record


class WindowMatcher(Protocol):
    """An algorithm for one branch that is given what the branch sees of a batch, its windows among it."""

    def find_in(self, batch: Batch, branch: BranchEvents) -> Matches:
        """Return the matches that start in the batch, in order of first event, last event and bindings."""

    def count_in(self, batch: Batch, branch: BranchEvents) -> StartCounts:
        """Return the numbers of matches, at ascending events."""


@record()
class _OverWindows:
    """A window matcher as a matcher of one batch."""

    matcher: WindowMatcher
    search: Search
    events: BatchEvents

    def find(self, batch: Batch) -> Matches:
        """Return the matches that start in the batch, in order of first event, last event and bindings."""
        return self.matcher.find_in(batch, self._branch())

    def count(self, batch: Batch) -> StartCounts:
        """Return the numbers of matches, at ascending events."""
        return self.matcher.count_in(batch, self._branch())

    def _branch(self) -> BranchEvents:
        """Return what the branch sees of the batch, and record how it was found."""
        branch = self.events.branch(self.search.tables, self.search.own)
        self.search.profile.merge(branch.made)
        return branch


def over_windows(matcher: Callable[[Search], WindowMatcher]) -> Callable[[Search, BatchEvents], Matcher]:
    """Return a function that makes a matcher, from one that makes a window matcher."""
    return lambda search, events: _OverWindows(matcher(search), search, events)

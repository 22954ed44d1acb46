"""Matchers that go from window to window of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches
from gpu_cep.engine.matchers.search import Matcher, Search
from gpu_cep.engine.windows.batch_events import BatchEvents
from gpu_cep.engine.windows.candidates import Windows


class WindowMatcher(Protocol):
    """An algorithm for one branch that is given the windows of a batch."""

    def find_in(self, batch: Batch, shared: Windows) -> Matches:
        """The matches that start in the batch, in order of first event, last event and bindings."""

    def count_in(self, batch: Batch, shared: Windows) -> tuple[Indices, Indices]:
        """Starts of matches, ascending, and how many matches start at each."""


@dataclass(frozen=True, slots=True)
class Windowed:
    """A window matcher as a matcher."""

    matcher: WindowMatcher
    events: BatchEvents

    def find(self, batch: Batch) -> Matches:
        """The matches that start in the batch, in order of first event, last event and bindings."""
        return self.matcher.find_in(batch, self.events.windows)

    def count(self, batch: Batch) -> tuple[Indices, Indices]:
        """Starts of matches, ascending, and how many matches start at each."""
        return self.matcher.count_in(batch, self.events.windows)


def windowed(matcher: Callable[[Search], WindowMatcher]) -> Callable[[Search, BatchEvents], Matcher]:
    """What makes a matcher of a search and of the events of a batch."""
    return lambda search, events: Windowed(matcher(search), events)

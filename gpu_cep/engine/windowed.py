"""Matchers that go from window to window: the windows of a batch are found once, whatever looks into them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from gpu_cep.engine.batches import Batch
from gpu_cep.engine.candidates import Windows, match_windows
from gpu_cep.engine.matches import Indices, Matches
from gpu_cep.engine.search import Matcher, Search

# Gives the windows of a batch.
WindowsOf = Callable[[Batch], Windows]


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
    windows: WindowsOf

    def find(self, batch: Batch) -> Matches:
        """The matches that start in the batch, in order of first event, last event and bindings."""
        return self.matcher.find_in(batch, self.windows(batch))

    def count(self, batch: Batch) -> tuple[Indices, Indices]:
        """Starts of matches, ascending, and how many matches start at each."""
        return self.matcher.count_in(batch, self.windows(batch))


def windowed(matcher: Callable[[Search], WindowMatcher]) -> Callable[[Search, WindowsOf], Matcher]:
    """What makes a matcher of a search and of what finds windows."""
    return lambda search, windows: Windowed(matcher(search), windows)


def shared_windows(search: Search) -> WindowsOf:
    """What finds the windows of a batch, once: they are the same for all branches."""
    return lru_cache(maxsize=1)(lambda batch: match_windows(search.plan, search.ordered, batch, search.profile))

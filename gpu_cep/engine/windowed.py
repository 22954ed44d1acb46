"""Matchers that go from window to window: the windows of a batch are found once, whatever looks into them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gpu_cep.engine.batches import Batch
from gpu_cep.engine.candidates import Windows, match_windows
from gpu_cep.engine.matches import Indices, Matches
from gpu_cep.engine.search import Matcher, Search


class WindowMatcher(Protocol):
    """An algorithm for one branch that is given the windows of a batch."""

    def find_in(self, batch: Batch, shared: Windows) -> Matches:
        """The matches that start in the batch, in order of first event, last event and bindings."""

    def count_in(self, batch: Batch, shared: Windows) -> tuple[Indices, Indices]:
        """Starts of matches, ascending, and how many matches start at each."""


# The matchers of all branches for a batch.
Matchers = Callable[[tuple[Search, ...], Batch], list[Matcher]]


@dataclass(frozen=True, slots=True)
class Windowed:
    """A window matcher as a matcher of one branch."""

    matcher: WindowMatcher
    search: Search

    def find(self, batch: Batch) -> Matches:
        """The matches that start in the batch, in order of first event, last event and bindings."""
        return self.matcher.find_in(batch, _windows(self.search, batch))

    def count(self, batch: Batch) -> tuple[Indices, Indices]:
        """Starts of matches, ascending, and how many matches start at each."""
        return self.matcher.count_in(batch, _windows(self.search, batch))


@dataclass(frozen=True, slots=True)
class _WithWindows:
    """A branch's matcher with the windows of the one batch that it is for."""

    matcher: WindowMatcher
    windows: Windows

    def find(self, batch: Batch) -> Matches:
        return self.matcher.find_in(batch, self.windows)

    def count(self, batch: Batch) -> tuple[Indices, Indices]:
        return self.matcher.count_in(batch, self.windows)


def windowed(matcher: Callable[[Search], WindowMatcher]) -> Callable[[Search], Matcher]:
    """What makes a matcher of a search with one branch."""
    return lambda search: Windowed(matcher(search), search)


def sharing_windows(matcher: Callable[[Search], WindowMatcher]) -> Matchers:
    """A matcher for each branch; labels, windows and occurrences of the batch are theirs in common."""

    def matchers(searches: tuple[Search, ...], batch: Batch) -> list[Matcher]:
        windows = _windows(searches[0], batch)
        return [_WithWindows(matcher(search), windows) for search in searches]

    return matchers


def _windows(search: Search, batch: Batch) -> Windows:
    return match_windows(search.plan, search.ordered, batch, search.profile)

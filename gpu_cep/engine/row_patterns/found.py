"""Hold the matches of a row pattern, by number, and the states of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.row_patterns.ordering import OrderedRows
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.row_patterns.matches import map_rows
from gpu_cep_kernels.row_patterns.tables import UNMATCHED, Reach, RowAutomatonTable

States = npt.NDArray[np.int32]
Lengths = npt.NDArray[np.int32]
# Of states, given as flags: the first and the last row with one of them, −1 if there is none.
SharedRows = Callable[[npt.NDArray[np.bool_]], tuple[Indices, Indices]]


class SearchProgress(NamedTuple):
    """Say what was found before: with which row the search of partition p begins, and the number of its matches so far."""

    firsts: Indices
    counts: Indices


class InPartitions(NamedTuple):
    """Say of each match its number in its partition, from 1, the first row of the partition, and the one behind its last."""

    numbers: Indices
    begins: Indices
    ends: Indices


@dataclass(frozen=True)
class RowMatches:
    """Matches in the order in which they begin.

    ``firsts[m]``, ``lengths[m]``: the first ordered row and the number of rows of match m.
    `find_partitions` returns where they are in their partitions.
    `find_states` returns the states of all rows, match after match.
    `shared` returns the first and the last row with one of some states in the match that begins at each ordered row. It is
    None where matches share no rows, or where what they share depends on where they begin.
    `steps`: how many steps a search made to find them all.
    """

    firsts: Indices
    lengths: Indices
    find_partitions: Callable[[], InPartitions]
    find_states: Callable[[RowMatches], States]
    shared: SharedRows | None = None
    steps: int = 0

    def __len__(self) -> int:
        return len(self.firsts)

    @cached_property
    def partitions(self) -> InPartitions:
        """Return where the matches are in their partitions."""
        return self.find_partitions()

    @cached_property
    def some_empty(self) -> bool:
        """Return whether a match has no rows."""
        return bool((self.lengths == 0).any())

    @cached_property
    def places(self) -> Indices:
        """Return where the rows of each match begin among those of all, with the end."""
        return offsets(self.lengths)

    @cached_property
    def states(self) -> States:
        """Return the states of all rows, match after match."""
        return self.find_states(self)

    @cached_property
    def owners(self) -> Indices:
        """Return the match of each of these rows."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @cached_property
    def rows(self) -> Indices:
        """Return these rows."""
        return np.arange(self.places[-1]) + np.repeat(self.firsts - self.places[:-1], self.lengths)

    def parts(self, most_rows: int) -> Iterator[RowMatches]:
        """Yield the matches in parts that have at most so many rows together, or are one match."""
        low = 0
        while low < len(self):
            high = max(low + 1, int(np.searchsorted(self.places, self.places[low] + most_rows, "right")) - 1)
            yield self if high - low == len(self) else self._part(low, high)
            low = high

    def chosen(self, kept: npt.NDArray[np.bool_]) -> RowMatches:
        """Return the matches with a mark in `kept`; they keep their match numbers."""
        known = "states" in vars(self)
        find = known_states(self.states[np.repeat(kept, self.lengths)]) if known else self.find_states
        return RowMatches(self.firsts[kept], self.lengths[kept], self._partitions_of(kept), find, self.shared)

    def _part(self, low: int, high: int) -> RowMatches:
        cut = slice(low, high)
        # states that are known already are not found again
        known = "states" in vars(self)
        find = known_states(self.states[self.places[low] : self.places[high]]) if known else self.find_states
        return RowMatches(self.firsts[cut], self.lengths[cut], self._partitions_of(cut), find, self.shared)

    def _partitions_of(self, chosen: slice | npt.NDArray[np.bool_]) -> Callable[[], InPartitions]:
        return lambda: InPartitions(*(each[chosen] for each in self.partitions))


def known_states(states: States) -> Callable[[RowMatches], States]:
    """Return a :attr:`RowMatches.find_states` that gives `states`, whatever the matches."""
    return lambda matches: states


def followed_states(automaton: RowAutomatonTable, find_reach: Callable[[], Reach], threads: int) -> Callable[[RowMatches], States]:
    """Return a function that finds the states of rows again: behind each the preferred one from which a match can end."""

    def find(matches: RowMatches) -> States:
        reach = find_reach()
        states = np.empty(matches.places[-1], np.int32)
        begins, ends = matches.partitions.begins, matches.partitions.ends
        limits = reach.limits[matches.firsts] if reach.limits.size else ends - 1

        def fill(span: tuple[int, int]) -> None:
            map_rows(*span, matches.firsts, begins, matches.places, automaton, reach, limits, states)

        spread(fill, slices(len(matches), threads), threads)
        return states

    return find


def row_matches_of(
    ordered: OrderedRows, lengths: Lengths, find_states: Callable[[RowMatches], States], shared: SharedRows | None = None,
    begun: SearchProgress | None = None,
) -> RowMatches:  # fmt: skip
    """Return the matches, given the length of the one that begins at each row; they are numbered behind those `begun` counts."""
    firsts = np.flatnonzero(lengths != UNMATCHED)
    return row_matches_at(ordered, firsts, lengths[firsts], find_states, shared, begun)


def row_matches_at(
    ordered: OrderedRows, firsts: Indices, lengths: Lengths, find_states: Callable[[RowMatches], States], shared: SharedRows | None = None,
    begun: SearchProgress | None = None,
) -> RowMatches:  # fmt: skip
    """Return the matches, given the first row and the length of each; they are numbered behind those `begun` counts."""

    def find() -> InPartitions:
        before = np.searchsorted(firsts, ordered.offsets)
        in_each = np.diff(before)
        numbers = np.arange(1, len(firsts) + 1) - np.repeat(before[:-1] if begun is None else before[:-1] - begun.counts, in_each)
        return InPartitions(numbers, np.repeat(ordered.offsets[:-1], in_each), np.repeat(ordered.offsets[1:], in_each))

    return RowMatches(firsts, lengths.astype(np.int64), find, find_states, shared)

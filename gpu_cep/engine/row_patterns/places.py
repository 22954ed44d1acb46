"""Find the rows that measures read, for all rows of the result at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.bound_expressions import Field
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.row_patterns.found import RowMatches
from gpu_cep.engine.row_patterns.shown import ShownRows
from gpu_cep.plan.row_patterns.places import RowColumns, RowPlace, Total
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.row_patterns.matches import find_mapped_rows

Members = tuple[int, ...] | None
NO_ROW = -1


@dataclass(frozen=True, slots=True)
class MappedRows:
    """The rows of matches that are mapped to some variables.

    ``entries[i]``: the place of the i-th one among the rows of all matches, match after match.
    ``offsets[m]``: the first one of match m, with the end.
    ``before[e]``: how many there are before the e-th row of all matches, with the end.
    """

    entries: Indices
    offsets: Indices
    before: Indices


@dataclass
class PlaceFinder:
    """Finds rows; what several places need is found once."""

    plan: RowPlan
    shown: ShownRows
    threads: int
    _mapped: dict[Members, MappedRows] = field(default_factory=dict)
    _shared: dict[Members, tuple[Indices, Indices]] = field(default_factory=dict)

    def rows(self, place: RowPlace) -> Indices:
        """Return the ordered row to which a place leads from each result row, NO_ROW if to none."""
        matches, shown = self.shown.matches, self.shown
        if place.members is None:
            found = self._by_number(place)
        elif shown.last:
            found = self._scan(place, place.members)
        else:
            found = self._among_mapped(place)
        if place.distance:
            moved = found + place.distance
            begins, ends = (shown.of_match(each) for each in (matches.partitions.begins, matches.partitions.ends))
            inside = (moved >= begins) & (moved < ends)
            found = np.where((found >= 0) & inside, moved, NO_ROW)
        # without a distance it leads to a row of the match, if to any
        if place.inside and place.distance:
            firsts, behind = (shown.of_match(each) for each in (matches.firsts, matches.firsts + matches.lengths))
            found = np.where((found >= firsts) & (found < behind), found, NO_ROW)
        return found if shown.unmatched is None else np.where(shown.unmatched, NO_ROW, found)

    def _by_number(self, place: RowPlace) -> Indices:
        """Return the row so far behind the first or before the last one of its match, whichever variable it has."""
        matches, shown = self.shown.matches, self.shown
        last = shown.of_match(matches.firsts + matches.lengths - 1) if place.final and not shown.last else shown.current
        if not (place.from_first or place.offset or matches.some_empty):
            return last
        firsts = shown.of_match(matches.firsts)
        found = firsts + place.offset if place.from_first else last - place.offset
        if not place.offset and not matches.some_empty:
            return found
        return np.where((found >= firsts) & (found <= last), found, NO_ROW)

    def prepare(self) -> None:
        """Find what several measures read, before threads ask for it at the same time."""
        by_state = any(total.members is not None for total in self.plan.totals)
        if by_state or any(_is_sought(place, self.shown.matches, self.shown.last) for place in self.plan.places):
            assert len(self.shown.matches.states) == self.shown.matches.places[-1], "each row of a match has a state"
        listed = [total.members for total in self.plan.totals if reads_listed_rows(total, self.plan.columns)]
        spread(self.mapped, list(dict.fromkeys(listed)), self.threads)

    def members(self, members: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Return which states map rows to some variables."""
        return np.array([variable in members for variable in self.plan.automaton.variable], np.bool_)

    def mapped(self, members: Members) -> MappedRows:
        """Return the rows of all matches that are mapped to some variables; to any variable for None."""
        if members not in self._mapped:
            self._mapped[members] = self._find_mapped(members)
        return self._mapped[members]

    def counts(self, members: Members, final: bool) -> Indices:
        """Return how many rows mapped to some variables a match has at each result row: up to there, or all."""
        matches = self.shown.matches
        if members is None:
            reached = self.shown.of_match(matches.lengths)
            if not (final or self.shown.last):
                reached = self.shown.current - self.shown.of_match(matches.firsts) + 1
            return self._of_matched(reached)
        mapped = self.mapped(members)
        begins = self.shown.of_match(mapped.offsets[:-1])
        if final or self.shown.last:
            counts = self.shown.of_match(mapped.offsets[1:]) - begins
            return self._of_matched(counts)
        # the place of the current row among the rows of all matches, and one more
        reached = self.shown.current - self.shown.of_match(matches.firsts - matches.places[:-1]) + 1
        return self._of_matched(mapped.before[self._of_matched(reached)] - begins)

    def _of_matched(self, counts: Indices) -> Indices:
        """Return counts with 0 for rows of no match."""
        return counts if self.shown.unmatched is None else np.where(self.shown.unmatched, 0, counts)

    def _find_mapped(self, members: Members) -> MappedRows:
        matches = self.shown.matches
        if members is None:
            every = np.arange(matches.places[-1] + 1)
            return MappedRows(every[:-1], matches.places, every)
        chosen = self.members(members)[matches.states]
        before = offsets(chosen)
        return MappedRows(np.flatnonzero(chosen), before[matches.places], before)

    def _scan(self, place: RowPlace, members: tuple[int, ...]) -> Indices:
        """Return the row of each match, sought from its first or its last row on."""
        matches, chosen = self.shown.matches, self.members(members)
        if matches.shared is not None and not place.offset:
            if members not in self._shared:
                self._shared[members] = matches.shared(chosen)
            first, last = self._shared[members]
            return np.where(matches.lengths > 0, (first if place.from_first else last)[matches.firsts], NO_ROW)
        found = np.empty(len(matches), np.int64)
        step = 1 if place.from_first else -1

        def scan(span: tuple[int, int]) -> None:
            find_mapped_rows(*span, matches.firsts, matches.places, matches.states, chosen, step, place.offset, found)

        spread(scan, slices(len(matches), self.threads), self.threads)
        return found

    def _among_mapped(self, place: RowPlace) -> Indices:
        mapped, matches = self.mapped(place.members), self.shown.matches
        counts = self.counts(place.members, place.final)
        number = np.full(len(counts), place.offset) if place.from_first else counts - 1 - place.offset
        there = (number >= 0) & (number < counts)
        found = np.full(len(counts), NO_ROW)
        found[there] = matches.rows[mapped.entries[(self.shown.of_match(mapped.offsets[:-1]) + number)[there]]]
        return found


def reads_listed_rows(total: Total, columns: RowColumns) -> bool:
    """Return whether the rows that an aggregate covers are listed: to put their values in order, or to compute them there."""
    plain = isinstance(total.argument, Field) and total.argument.column != columns.classifier
    return is_sorted(total) or not (total.argument is None or plain)


def is_sorted(total: Total) -> bool:
    """Return whether the values of a match are put in order for an aggregate."""
    return total.function in ("median", "count_distinct")


def reads_all_rows(plan: RowPlan, matches: RowMatches) -> bool:
    """Return whether measures read what grows with the rows of all matches, shared ones once for each."""
    last = plan.bound.query.rows == "one"
    aggregated = any(total.members is not None or reads_listed_rows(total, plan.columns) for total in plan.totals)
    return not last or aggregated or any(_is_sought(place, matches, last) for place in plan.places)


def _is_sought(place: RowPlace, matches: RowMatches, last: bool) -> bool:
    """Return whether a place is sought among the states of rows; with `last` at the last row of each match."""
    if place.members is None:
        return place.inside
    # the first and the last such row of matches that share rows are found for all at once
    return place.inside or not last or matches.shared is None or place.offset > 0

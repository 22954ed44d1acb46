"""Hold matches on their way to a table: in the order of results, or in the parts in which they were found.

Their events stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.branchwise_matches import BranchwiseMatches
from gpu_cep.engine.events.matches import (
    AS_THEY_ARE,
    BoundRows,
    Counts,
    Ends,
    FoundMatches,
    Indices,
    Matches,
    Rows,
    bound_singles,
    concatenate_matches,
    ones,
    order_placed_rows,
)
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import spread
from gpu_cep_kernels.matches.flat_matches import place_rows
from gpu_cep_kernels.matches.groups import order_by_row


@record(slots=False)
class SinglesInParts:
    """Matches that bind one event to each variable, in the parts in which they were found.

    Their events are joined only if somebody asks for all of them.
    """

    parts: tuple[Matches, ...]

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def first(self) -> Indices:
        """Return the first event of each match."""
        return np.concatenate([part.first for part in self.parts])

    @cached_property
    def last(self) -> Indices:
        """Return the last event of each match."""
        return np.concatenate([part.last for part in self.parts])

    @property
    def counts(self) -> Counts:
        """Return how many events each variable binds in each match, [match, variable]."""
        return ones(len(self), self.parts[0].counts.shape[1])

    @property
    def single(self) -> bool:
        """Return that each match binds one event to every variable."""
        return True

    @property
    def binds_all(self) -> bool:
        """Return that each match binds an event to every variable."""
        return True

    @property
    def bound(self) -> int:
        """Return how many events all matches bind together."""
        return self.counts.size

    @property
    def offsets(self) -> Indices:
        """Return where each match's events begin in `events`, and where the last match's end."""
        return self._joined.offsets

    @property
    def events(self) -> Indices:
        """Return all bound events, match after match, variable after variable, in stream order."""
        return self._joined.events

    @cached_property
    def _joined(self) -> Matches:
        """Return the matches of all parts in one part."""
        return concatenate_matches(self.parts, self.counts.shape[1])

    def bound_rows(self, variables: Indices, rows: Rows, threads: int = 1) -> list[BoundRows]:
        """Return ``rows[e]`` of the one event e bound to each of some ascending variables, as lists of one."""
        return bound_singles(self.rows_of_singles(variables, rows, threads))

    def rows_of_ends(self, ends: Ends, rows: Rows, threads: int = 1) -> npt.NDArray[np.int64]:
        """Return ``rows[e]`` of the one event e bound to each of some variables, [end, match]."""
        return self.rows_of_singles(ends.variables, rows, threads)

    def rows_of_singles(self, variables: Indices, rows: Rows, threads: int = 1) -> npt.NDArray[np.int64]:
        """Return ``rows[e]`` of the event e bound to each of some variables, [variable, match]."""
        return self.singles_in_order(variables, rows, AS_THEY_ARE, len(self), threads)

    def singles_in_order(self, variables: Indices, rows: Rows, order: Indices, number: int, threads: int) -> npt.NDArray[np.int64]:
        """Return what :meth:`rows_of_singles` does, for so many matches in the given order (empty: as they are)."""
        placed = new_values((len(self), len(variables)), rows.dtype)
        targets = np.split(placed, np.cumsum([len(part) for part in self.parts])[:-1])

        def place(part: Matches, target: Rows) -> None:
            place_rows(0, len(part), variables, part.events.reshape(part.counts.shape), rows, target)

        spread(lambda own: place(*own), list(zip(self.parts, targets, strict=True)), threads)
        return order_placed_rows(order, number, placed, threads)

    def reorder(self, order: Indices) -> SinglesInParts:
        """Return the matches in the order given; some may be left out, none is taken twice."""
        return SinglesInParts((self._joined.reorder(order),))


@record(slots=False)
class OrderedMatches:
    """Matches in the order of results: ``source[order[m]]`` is match m, and some may be left out.

    Their events stay where they are. They are gathered only if somebody asks for all of them.
    """

    source: Matches | SinglesInParts | BranchwiseMatches
    order: Indices

    def __len__(self) -> int:
        return len(self.order)

    @cached_property
    def first(self) -> Indices:
        """Return the first event of each match."""
        return self.source.first[self.order]

    @cached_property
    def last(self) -> Indices:
        """Return the last event of each match."""
        return self.source.last[self.order]

    @cached_property
    def counts(self) -> Counts:
        """Return how many events each variable binds in each match, [match, variable]."""
        variables = self.source.counts.shape[1]
        return ones(len(self), variables) if self.single else np.take(self.source.counts, self.order, axis=0)

    @property
    def single(self) -> bool:
        """Return whether each match binds one event to every variable."""
        return self.source.single

    @property
    def binds_all(self) -> bool:
        """Return whether each match binds an event to every variable; some that are left out may be among these."""
        return self.source.binds_all

    @property
    def bound(self) -> int:
        """Return how many events all matches bind together."""
        return self.source.bound if len(self) == len(self.source) else int(self.counts.sum(dtype=np.int64))

    @property
    def offsets(self) -> Indices:
        """Return where each match's events begin in `events`, and where the last match's end."""
        return self._gathered.offsets

    @property
    def events(self) -> Indices:
        """Return all bound events, match after match, variable after variable, in stream order."""
        return self._gathered.events

    @cached_property
    def _gathered(self) -> Matches | SinglesInParts:
        """Return the matches in their order, with their events gathered."""
        return self.source.reorder(self.order)

    def bound_rows(self, variables: Indices, rows: Rows, threads: int = 1) -> list[BoundRows]:
        """Return ``rows[e]`` of the events e bound to each of some ascending variables; `threads` gather them."""
        if not len(self):
            return bound_singles(np.empty((len(variables), 0), np.int64))
        if self.single:
            return bound_singles(self.rows_of_singles(variables, rows, threads))
        assert not isinstance(self.source, SinglesInParts), "parts are of matches of single variables"
        return self.source.bound_in_order(variables, rows, self.order, len(self), threads)

    def rows_of_ends(self, ends: Ends, rows: Rows, threads: int = 1) -> npt.NDArray[np.int64]:
        """Return ``rows[e]`` of the first or last event e bound to each of some variables, [end, match]; −1 where it binds none."""
        if isinstance(self.source, SinglesInParts):
            return self.rows_of_singles(ends.variables, rows, threads)
        return self.source.ends_in_order(ends, rows, self.order, len(self), threads)

    def rows_of_singles(self, variables: Indices, rows: Rows, threads: int = 1) -> npt.NDArray[np.int64]:
        """Return ``rows[e]`` of the event e bound to each of some variables, [variable, match]; each match binds one to every variable."""
        return self.source.singles_in_order(variables, rows, self.order, len(self), threads)

    def reorder(self, order: Indices) -> OrderedMatches:
        """Return the matches in the order given; some may be left out, none is taken twice."""
        return OrderedMatches(self.source, self.order[order])


def join_matches(parts: Sequence[Matches], variables: int, threads: int = 1) -> Matches | SinglesInParts:
    """Return the matches of all parts, one part after the other; the events of single variables stay where they are."""
    if len(parts) > 1 and all(part.of_singles for part in parts):
        return SinglesInParts(tuple(parts))
    return concatenate_matches(parts, variables, threads)


def join_batches(
    parts: Sequence[Matches | BranchwiseMatches], variables: int, events: int, threads: int = 1
) -> Matches | SinglesInParts | OrderedMatches:  # fmt: skip
    """Return the matches of batches, which begin at some of so many `events`, by first event; branch by branch if all come so."""
    apart = [part for part in parts if isinstance(part, BranchwiseMatches)]
    if not apart or len(apart) < len(parts):
        return join_matches([matches_of(part) for part in parts], variables, threads)
    whole = BranchwiseMatches(tuple(branch for part in apart for branch in part.parts), variables)
    return OrderedMatches(whole, order_by_row(whole.first, events, threads))


def matches_of(part: Matches | BranchwiseMatches) -> Matches:
    """Return matches as one list by first event, also those that are held branch by branch."""
    return part if isinstance(part, Matches) else part.reorder(part.first.argsort())


def order_found(found: Matches | SinglesInParts | OrderedMatches, order: Indices) -> OrderedMatches:
    """Return the matches in the order given; their events stay where they are."""
    return found.reorder(order) if isinstance(found, OrderedMatches) else OrderedMatches(found, order)


def rows_of_match(matches: FoundMatches | BranchwiseMatches, rows: Rows, *, last: bool) -> Rows:
    """Return ``rows[e]`` of the first or last event e of each match."""
    if isinstance(matches, OrderedMatches):
        # looked up before they are moved: the events of matches ascend as these were found
        return rows_of_match(matches.source, rows, last=last)[matches.order]
    return rows[matches.last if last else matches.first]

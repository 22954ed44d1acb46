"""Hold matches in flat arrays, and sort them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import over_slices, slices, spread
from gpu_cep_kernels.matches.flat_matches import (
    FlatMatches,
    gather_matches,
    gather_singles,
    invert_order,
    last_events,
    match_offsets,
    order_matches,
    order_placed,
    place_bound,
    place_rows,
    split_binding,
    sum_bound,
)
from gpu_cep_kernels.matches.groups import order_by_group

Indices = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.integer[Any]]
# The rows that a variable binds, match after match, and where those of each match begin, with the end.
BoundRows = tuple[Indices, Rows]
# What 32 bits number.
MOST_PLACES = 2**31 - 1
_Number = TypeVar("_Number", bound=np.generic)


class Ends(NamedTuple):
    """Ask for events of variables: for the last one that ``variables[k]`` binds if ``last[k]``, else for the first; variables ascend."""

    variables: Indices
    last: Flags


class FoundMatches(Protocol):
    """The bindings of matches, in one of the forms in which they are held; see :class:`Matches`."""

    def __len__(self) -> int: ...

    @property
    def first(self) -> Indices:
        """Return the first event of each match."""

    @property
    def last(self) -> Indices:
        """Return the last event of each match."""

    @property
    def counts(self) -> Counts:
        """Return how many events each variable binds in each match, [match, variable]."""

    @property
    def single(self) -> bool:
        """Return whether each match binds one event to every variable."""

    @property
    def binds_all(self) -> bool:
        """Return whether each match binds an event to every variable."""

    @property
    def bound(self) -> int:
        """Return how many events all matches bind together."""

    @property
    def offsets(self) -> Indices:
        """Return where each match's events begin in `events`, and where the last match's end."""

    @property
    def events(self) -> Indices:
        """Return all bound events, match after match, variable after variable, in stream order."""

    def bound_rows(self, variables: Indices, rows: Rows, threads: int = 1) -> list[BoundRows]:
        """Return ``rows[e]`` of the events e bound to each of some ascending variables."""

    def rows_of_ends(self, ends: Ends, rows: Rows, threads: int = 1) -> npt.NDArray[np.int64]:
        """Return ``rows[e]`` of the first or last event e bound to each of some variables, [end, match]; −1 where it binds none."""

    def rows_of_singles(self, variables: Indices, rows: Rows, threads: int = 1) -> npt.NDArray[np.int64]:
        """Return ``rows[e]`` of the event e bound to each of some variables, [variable, match]; each match binds one to every variable."""

    def reorder(self, order: Indices) -> Self:
        """Return the matches in the order given; some may be left out, none is taken twice."""


AnyMatches = TypeVar("AnyMatches", bound=FoundMatches)


@record(slots=False)
class Matches:
    """The bindings of M matches of V variables; events are numbers of ordered events.

    * ``first[m]``: the first event of match m.
    * ``counts[m, v]``: how many events variable v binds in match m.
    * `events`: all bound events, match after match, variable after variable, in stream order.
    """

    first: Indices
    counts: Counts
    events: Indices

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def single(self) -> bool:
        """Return whether each match binds one event to every variable."""
        return self.of_singles or (len(self.events) == self.counts.size and bool((self.counts == 1).all()))

    @property
    def of_singles(self) -> bool:
        """Return whether no variable is quantified; then `counts` is a single 1 in memory, repeated."""
        return self.counts.strides == (0, 0)

    @cached_property
    def binds_all(self) -> bool:
        """Return whether each match binds an event to every variable."""
        return self.single or bool(self.counts.min(initial=1))

    @property
    def bound(self) -> int:
        """Return how many events all matches bind together."""
        return len(self.events)

    @cached_property
    def offsets(self) -> Indices:
        """Return where each match's events begin in `events`, and where the last match's end."""
        if self.single:
            return np.arange(0, (len(self) + 1) * self.counts.shape[1], self.counts.shape[1])
        places = new_values(len(self) + 1, np.int64)
        match_offsets(self.counts, places)
        return places

    @cached_property
    def last(self) -> Indices:
        """Return the last event of each match."""
        lasts = new_values(len(self), np.int64)
        last_events(0, len(self), self.offsets, self.events, lasts)
        return lasts

    def bound_rows(self, variables: Indices, rows: Rows, threads: int = 1) -> list[BoundRows]:
        """Return ``rows[e]`` of the events e bound to each of some ascending variables; `threads` gather them."""
        if self.single:
            return bound_singles(self.rows_of_singles(variables, rows, threads))
        return self.bound_in_order(variables, rows, AS_THEY_ARE, len(self), threads)

    def rows_of_ends(self, ends: Ends, rows: Rows, threads: int = 1) -> npt.NDArray[np.int64]:
        """Return ``rows[e]`` of the first or last event e bound to each of some variables, [end, match]; −1 where it binds none."""
        return self.ends_in_order(ends, rows, AS_THEY_ARE, len(self), threads)

    def rows_of_singles(self, variables: Indices, rows: Rows, threads: int = 1) -> npt.NDArray[np.int64]:
        """Return ``rows[e]`` of the event e bound to each of some variables, [variable, match]; each match binds one to every variable."""
        gathered = new_values((len(variables), len(self)), np.int64)
        events = self.events.reshape(self.counts.shape)
        over_slices(gather_singles, len(self), threads, variables, events, rows, gathered)
        return gathered

    def singles_in_order(self, variables: Indices, rows: Rows, order: Indices, number: int, threads: int) -> npt.NDArray[np.int64]:
        """Return what :meth:`rows_of_singles` does, for so many matches in the given order (empty: as they are)."""
        # rows are looked up before matches are moved: then a match is all that lies far from the one before
        placed = new_values((len(self), len(variables)), rows.dtype)
        events = self.events.reshape(self.counts.shape)
        over_slices(place_rows, len(self), threads, variables, events, rows, placed)
        return order_placed_rows(order, number, placed, threads)

    def ends_in_order(self, ends: Ends, rows: Rows, order: Indices, number: int, threads: int) -> npt.NDArray[np.int64]:
        """Return what :meth:`rows_of_ends` does, for so many matches in the given order (empty: as they are)."""
        placed = new_values((len(self), len(ends.variables)), rows.dtype)
        matches = FlatMatches(self.offsets, self.counts, self.events)
        over_slices(place_bound, len(self), threads, *ends, matches, rows, placed)
        return order_placed_rows(order, number, placed, threads)

    def bound_in_order(self, variables: Indices, rows: Rows, order: Indices, number: int, threads: int) -> list[BoundRows]:
        """Return what :meth:`bound_rows` does, for so many matches in the given order (empty: as they are)."""
        places, ranks = binding_places(variables, order, number, self, threads), _ranks(order, len(self))
        return [(self._split(v, rows, ranks, own, threads), own) for v, own in zip(variables.tolist(), places, strict=True)]

    def _split(self, v: int, rows: Rows, ranks: Indices, places: Rows, threads: int) -> Indices:
        """Return ``rows[e]`` of the events e bound to v; those of the match of each rank begin at its place."""
        matches = FlatMatches(self.offsets, self.counts, self.events)
        bound: Indices = new_values(int(places[-1]), np.int64)
        # events are read as they lie in memory
        over_slices(split_binding, len(self), threads, v, matches, rows, ranks, places, bound)
        return bound

    def widen(self, places: tuple[int, ...], variables: int) -> Matches:
        """Return them as matches of so many variables: variable v becomes number ``places[v]``, and the others bind nothing."""
        if places == tuple(range(variables)):
            return self
        counts: Counts = np.zeros((len(self), variables), np.int32)
        counts[:, list(places)] = self.counts
        return Matches(self.first, counts, self.events)

    def reorder(self, order: Indices) -> Matches:
        """Return the matches in the order given; some may be left out, none is taken twice."""
        if self.single:
            counts = ones(len(order), self.counts.shape[1])
            return Matches(self.first[order], counts, np.take(self.events.reshape(self.counts.shape), order, axis=0).ravel())
        offsets = self._offsets_of(order)
        counts, events = new_values((len(order), self.counts.shape[1]), np.int32), new_values(int(offsets[-1]), np.int64)
        given, gathered = FlatMatches(self.offsets, self.counts, self.events), FlatMatches(offsets, counts, events)
        gather_matches(0, len(order), order, given, gathered)
        return Matches(self.first[order], counts, events)

    def sort_within_starts(self) -> Matches:
        """Sort the matches of each first event by last event, then by bindings (docs/semantics.md, Results).

        Those of one first event stand together.
        """
        order = self.order_within_starts()
        return self if order is None else self.reorder(order)

    def order_within_starts(self) -> Indices | None:
        """Return the order in which :meth:`sort_within_starts` puts the matches; None if they are in it.

        Matches that are the same stay in the order in which they are.
        """
        if (self.first[1:] != self.first[:-1]).all():
            return None
        order = np.arange(len(self))
        given = FlatMatches(self.offsets, np.ascontiguousarray(self.counts), self.events)
        return order if order_matches(self.first, given, self.last, order, np.empty_like(order)) else None

    def _offsets_of(self, order: Indices) -> Indices:
        """Return the offsets that the given matches would have, one after the other."""
        return offsets(np.diff(self.offsets)[order])

    def drop_repeated(self) -> Matches:
        """Drop each match that equals the one before.

        The matches are in order, so that equal ones stand together.
        """
        sizes = np.diff(self.offsets)
        alike = np.flatnonzero((self.counts[1:] == self.counts[:-1]).all(axis=1) & (self.first[1:] == self.first[:-1])) + 1
        lengths = sizes[alike]
        begins = np.cumsum(lengths) - lengths
        places = np.repeat(self.offsets[alike] - begins, lengths) + np.arange(int(lengths.sum()))
        same = self.events[places] == self.events[places - np.repeat(lengths, lengths)]
        repeated = alike[np.logical_and.reduceat(same, begins)] if len(alike) else alike
        return self if not len(repeated) else self.reorder(np.delete(np.arange(len(self)), repeated))

    def group_by_starts(self, low: int, own: int) -> Matches:
        """Sort the matches by first event; the sort is stable. All start in the events [low, own)."""
        order, _ = order_by_group(self.first - low, own - low)
        return self.reorder(order)

    def sort_by_starts(self, low: int, own: int) -> Matches:
        """Sort the matches by first event, last event, then bindings; all start in the events [low, own)."""
        # neighbours in memory before any two are compared
        return self.group_by_starts(low, own).sort_within_starts()


AS_THEY_ARE = np.empty(0, np.int64)


def place_type(most: int) -> npt.DTypeLike:
    """Return the type of numbers up to `most` of events in a list: 32 bits if these do, as in Arrow's lists."""
    return np.int32 if most <= MOST_PLACES else np.int64


def bound_singles(rows: npt.NDArray[np.int64]) -> list[BoundRows]:
    """Return the `rows` [variable, match] of variables that bind one event in each match, as lists of one."""
    places = np.arange(rows.shape[1] + 1, dtype=place_type(rows.shape[1]))
    return [(own, places) for own in rows]


def binding_places(variables: Indices, order: Indices, number: int, matches: FoundMatches, threads: int) -> Rows:
    """Return where the events that each match binds to each of some variables begin among those of all, with the end.

    They are [variable, match], for so many matches in the given order (empty: as they are).
    """
    places: Rows = new_values((len(variables), number + 1), place_type(matches.bound))
    places[:, :1] = 0
    spans, counts = slices(number, threads), matches.counts
    spread(lambda span: sum_bound(*span, variables, order, counts, places), spans, threads)
    if len(spans) < 2:
        return places
    before = np.cumsum([places[:, high] for _, high in spans[:-1]], axis=0, dtype=places.dtype)

    def shift(part: int) -> None:
        low, high = spans[part + 1]
        places[:, low + 1 : high + 1] += before[part][:, np.newaxis]

    spread(shift, range(len(spans) - 1), threads)
    return places


def _ranks(order: Indices, number: int) -> Indices:
    """Return the place of each of so many matches in `order`, −1 if it is left out; empty if the order is."""
    if not len(order):
        return order
    ranks = np.full(number, -1, np.int64)
    invert_order(order, ranks)
    return ranks


def order_placed_rows(order: Indices, number: int, placed: Rows, threads: int) -> npt.NDArray[np.int64]:
    """Return ``placed[m, v]`` of so many matches in the given order (empty: as they are), [v, match]."""
    ordered = new_values((placed.shape[1], number), np.int64)
    over_slices(order_placed, number, threads, order, placed, ordered)
    return ordered


def matches_at(first: Indices, counts: Counts, events: Indices, offsets: Indices) -> Matches:
    """Return matches whose `offsets` are known, so that they are not computed again."""
    matches = Matches(first, counts, events)
    # where cached_property looks
    vars(matches)["offsets"] = offsets
    return matches


def concatenate_matches(parts: Sequence[Matches], variables: int, threads: int = 1) -> Matches:
    """Return the matches of all parts, one part after the other, copied by `threads`."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Matches(AS_THEY_ARE, ones(0, variables), AS_THEY_ARE)
    lists = [part.first for part in parts], [part.events for part in parts]
    first, events = (concatenate_arrays([np.empty(0, np.int64), *own], threads) for own in lists)
    if all(part.of_singles for part in parts):
        return Matches(first, ones(len(first), variables), events)
    return Matches(first, concatenate_arrays([np.empty((0, variables), np.int32), *(part.counts for part in parts)], threads), events)


def concatenate_arrays(arrays: Sequence[npt.NDArray[_Number]], threads: int) -> npt.NDArray[_Number]:
    """Return the arrays, one at least, as one array, copied by several threads."""
    ends = [*accumulate(map(len, arrays))]
    whole = new_values((ends[-1], *arrays[0].shape[1:]), arrays[0].dtype)
    targets = [whole[end - len(array) : end] for array, end in zip(arrays, ends, strict=True)]

    def fill(part: tuple[int, int]) -> None:
        for target, array in zip(targets[slice(*part)], arrays[slice(*part)], strict=True):
            target[...] = array

    spread(fill, slices(len(arrays), threads), threads)
    return whole


_ONE = np.ones(1, np.int32)


def ones(matches: int, variables: int) -> Counts:
    """Return the counts of matches that bind one event to each variable.

    They must not be written to: all entries are one number in memory.
    """
    counts: Counts = np.ndarray((matches, variables), np.int32, _ONE, strides=(0, 0))
    counts.flags.writeable = False
    return counts

"""Hold matches in flat arrays, and sort them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.matches.flat_matches import binding_places, gather_matches, last_events, match_offsets, order_matches, split_binding
from gpu_cep_kernels.matches.groups import order_by_group
from gpu_cep_kernels.phase_one.ordering import gather

Indices = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]
_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True)
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
        return self._of_singles or (len(self.events) == self.counts.size and bool((self.counts == 1).all()))

    @property
    def _of_singles(self) -> bool:
        """Return whether no variable is quantified; then `counts` is a single 1 in memory, repeated."""
        return self.counts.strides == (0, 0)

    @cached_property
    def offsets(self) -> Indices:
        """Return where each match's events begin in `events`, and where the last match's end."""
        if self.single:
            return np.arange(0, (len(self) + 1) * self.counts.shape[1], self.counts.shape[1])
        places = np.empty(len(self) + 1, np.int64)
        match_offsets(self.counts, places)
        return places

    @cached_property
    def _numbers(self) -> Indices:
        """Return the offsets of the matches' events if each match had one event."""
        return np.arange(len(self) + 1)

    @cached_property
    def last(self) -> Indices:
        """Return the last event of each match."""
        lasts = np.empty(len(self), np.int64)
        last_events(0, len(self), self.offsets, self.events, lasts)
        return lasts

    def bound_rows(self, v: int, rows: npt.NDArray[np.integer[Any]], threads: int = 1) -> tuple[Indices, Indices]:
        """Return ``rows[e]`` of the events e bound to variable v, match after match, and where each match's begin.

        The second array ends with the number of these events. `threads` gather the rows.
        """
        if self.single:
            events = self.events.reshape(self.counts.shape)[:, v]
            bound: Indices = np.empty(len(events), np.int64)
            spread(lambda span: gather(*span, events, rows, bound), slices(len(events), threads), threads)
            return bound, self._numbers
        places = np.empty(len(self) + 1, np.int64)
        binding_places(v, self.counts, places)
        bound = np.empty(int(places[-1]), np.int64)
        counts, offsets = self.counts, self.offsets
        spread(
            lambda span: split_binding(*span, v, offsets, counts, self.events, rows, places, bound), slices(len(self), threads), threads
        )  # fmt: skip
        return bound, places

    def reorder(self, order: Indices) -> Matches:
        """Return the matches in the order given; some may be left out, none is taken twice."""
        if self.single:
            counts = ones(len(order), self.counts.shape[1])
            return Matches(self.first[order], counts, np.take(self.events.reshape(self.counts.shape), order, axis=0).ravel())
        offsets = self._offsets_of(order)
        counts, events = np.empty((len(order), self.counts.shape[1]), np.int32), np.empty(int(offsets[-1]), np.int64)
        gather_matches(0, len(order), order, self.offsets, self.counts, self.events, offsets, counts, events)
        return Matches(self.first[order], counts, events)

    def sort_within_starts(self) -> Matches:
        """Sort the matches of each first event by last event, then by bindings (SPEC section 3).

        Those of one first event stand together.
        """
        if (self.first[1:] != self.first[:-1]).all():
            return self
        order = np.arange(len(self))
        counts = np.ascontiguousarray(self.counts)
        moved = order_matches(self.first, self.offsets, counts, self.events, self.last, order, np.empty_like(order))
        return self.reorder(order) if moved else self

    def _offsets_of(self, order: Indices) -> Indices:
        """Return the offsets that the given matches would have, one after the other."""
        return np.concatenate([[0], np.cumsum(np.diff(self.offsets)[order])]).astype(np.int64)

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


def concatenate_matches(parts: Sequence[Matches], variables: int, threads: int = 1) -> Matches:
    """Return the matches of all parts, one part after the other, copied by `threads`."""
    if len(parts) == 1:
        return parts[0]
    first, events = (_concatenate([np.empty(0, np.int64), *own], threads) for own in ([p.first for p in parts], [p.events for p in parts]))
    if all(part._of_singles for part in parts):
        return Matches(first, ones(len(first), variables), events)
    return Matches(first, _concatenate([np.empty((0, variables), np.int32), *(part.counts for part in parts)], threads), events)


def _concatenate(arrays: Sequence[npt.NDArray[_Number]], threads: int) -> npt.NDArray[_Number]:
    """Return the arrays as one, copied by several threads."""
    ends = np.cumsum([len(array) for array in arrays])
    whole = np.empty((int(ends[-1]), *arrays[0].shape[1:]), arrays[0].dtype)
    targets = np.split(whole, ends[:-1])

    def fill(part: tuple[int, int]) -> None:
        for target, array in zip(targets[slice(*part)], arrays[slice(*part)], strict=True):
            target[...] = array

    spread(fill, slices(len(arrays), threads), threads)
    return whole


def ones(matches: int, variables: int) -> Counts:
    """Return the counts of matches that bind one event to each variable.

    They must not be written to: all entries are one number in memory.
    """
    return np.broadcast_to(np.int32(1), (matches, variables))

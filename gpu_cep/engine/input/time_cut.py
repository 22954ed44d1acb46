"""Cut time into slices along the borders of row groups, each with the row groups that a run over it must read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapreplace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.row_groups import RowGroups, limits_of
from gpu_cep.engine.input.ticks import Tick, window_begin, window_end

Numbers = npt.NDArray[np.int64]

# How many budgets are told apart for each slice, where their number is given.
_FINENESS = 64


class SliceReach(NamedTuple):
    """How far the matches of a slice reach beyond it, in ticks.

    They bind events up to `window` behind their first one. If a negation looks back (`back`), events up
    to `window` before it bear on them, too.
    """

    window: Tick
    back: bool = False


class Most(NamedTuple):
    """The most that a slice may read: so many bytes in memory (`size`), or so many `rows`."""

    amount: int
    of: Literal["size", "rows"] = "size"


@dataclass(frozen=True, slots=True, eq=False)
class FileSlice:
    """The times from `begin` to before `end` (None: no bound), and the places of the row groups that its run must read.

    No event before `low` or behind `high` bears on its matches. Those of earlier slices have no event later than `reached`.
    """

    begin: Tick | None
    end: Tick | None
    low: Tick
    high: Tick
    reached: Tick
    groups: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class TimeCut:
    """Slices in the order of time, which partition it; `groups` are the row groups that they read."""

    slices: tuple[FileSlice, ...]
    groups: RowGroups

    @property
    def rows_read(self) -> int:
        """Return the number of rows that all slices read together."""
        return sum(int(self.groups.rows[each.groups].sum()) for each in self.slices)

    @property
    def overlap(self) -> float:
        """Return the rows that all slices read together, for each row that there is; 1 if none is read twice."""
        return self.rows_read / max(1, int(self.groups.rows.sum()))

    def longest_turn(self, workers: int) -> int:
        """Return the rows of the worker that reads most of so many, if each takes the next slice as soon as it is free."""
        return longest_turn([int(self.groups.rows[each.groups].sum()) for each in self.slices], workers)

    @property
    def largest(self) -> int:
        """Return the bytes in memory of what the slice that reads most reads."""
        return max(int(self.groups.size[each.groups].sum()) for each in self.slices)


def longest_turn(amounts: Sequence[int], workers: int) -> int:
    """Return what the worker takes that takes most, if each of so many takes the next amount as soon as it is free."""
    turns = [0] * workers
    for amount in amounts:
        heapreplace(turns, turns[0] + amount)
    return max(turns)


def cut_by_budget(groups: RowGroups, reach: SliceReach, most: Most) -> TimeCut:
    """Return the fewest slices that each read at most what the budget allows.

    A slice that cannot be cut further, since its row groups overlap or its window reaches so far, may read more.
    """
    borders, order = _borders(groups), _Order.of(groups)
    amounts = _Amounts.of(groups, order, reach, borders, most.of)
    return _cut(groups, order, reach, borders[amounts.cut(most.amount)])


def cut_by_number(groups: RowGroups, reach: SliceReach, number: int) -> TimeCut:
    """Return at most `number` slices, of which the one that reads most rows reads hardly more than it must."""
    borders, order, rows = _borders(groups), _Order.of(groups), int(groups.rows.sum())
    amounts = _Amounts.of(groups, order, reach, borders, "rows")
    step = max(1, rows // (_FINENESS * number))
    budgets = range(rows // number, rows + step, step)
    least = bisect_left(budgets, True, key=lambda budget: len(amounts.cut(budget)) < number)
    return _cut(groups, order, reach, borders[amounts.cut(budgets[least])])


class _Amounts(NamedTuple):
    """The bytes or rows that slices read, by the borders at which they begin and end.

    `begun`: for each border, the amount in row groups of slices that end there or earlier.
    `ended`: the amount in row groups that end too early for a slice: first for one without
    a beginning, then for one that begins at each border.
    `whole`: the amount in all row groups.
    """

    begun: Numbers
    ended: Numbers
    whole: int

    @classmethod
    def of(cls, groups: RowGroups, order: _Order, reach: SliceReach, borders: Array, what: Literal["size", "rows"]) -> _Amounts:
        amounts = getattr(groups, what)
        by_latest = order.places[np.argsort(order.latest, kind="stable")]
        begun, ended = _sums(amounts[order.places]), _sums(amounts[by_latest])
        return cls(
            begun[np.searchsorted(order.earliest, _far_ends(borders, reach), side="right")],
            np.concatenate([ended[:1], ended[np.searchsorted(groups.latest[by_latest], _lows(borders, reach))]]),
            int(ended[-1]),
        )

    def cut(self, most: int) -> list[int]:
        """Return the places of the fewest borders between which slices read at most so much, or have but one border inside."""
        chosen: list[int] = []
        while True:
            following = chosen[-1] + 1 if chosen else 0
            allowed = most + int(self.ended[following])
            if self.whole <= allowed or following == len(self.begun):
                return chosen
            chosen.append(max(following, int(np.searchsorted(self.begun, allowed, side="right")) - 1))


class _Order(NamedTuple):
    """The row groups with rows by their earliest times: their places, these times, and the latest of all up to each."""

    places: Numbers
    earliest: Array
    latest: Array
    latest_so_far: Array

    @classmethod
    def of(cls, groups: RowGroups) -> _Order:
        held = np.flatnonzero(groups.rows > 0)
        places = held[np.argsort(groups.earliest[held], kind="stable")]
        latest = groups.latest[places]
        return cls(places, groups.earliest[places], latest, np.maximum.accumulate(latest) if len(latest) else latest)

    def earlier(self, time: Tick) -> int:
        """Return how many row groups begin at `time` or earlier."""
        return int(np.searchsorted(self.earliest, _of(self.earliest, time), side="right"))

    def needed(self, low: Tick, high: Tick) -> Numbers:
        """Return the places of the row groups that may have an event from `low` to `high`, in the order of rows."""
        first = int(np.searchsorted(self.latest_so_far, _of(self.latest, low)))
        near = slice(first, self.earlier(high))
        found: Numbers = np.sort(self.places[near][self.latest[near] >= low])
        return found


def _cut(groups: RowGroups, order: _Order, reach: SliceReach, borders: Array) -> TimeCut:
    """Return the slices between the borders."""
    lowest, highest = limits_of(groups.latest)
    highs = [*_far_ends(borders, reach).tolist(), highest]
    ends: list[Tick | None] = [*borders.tolist(), None]
    begins = [None, *ends[:-1]]
    lows = [lowest, *_lows(borders, reach).tolist()]
    bounds = zip(begins, ends, lows, highs, [lowest, *highs[:-1]], strict=True)
    return TimeCut(tuple(FileSlice(*each, order.needed(each[2], each[3])) for each in bounds), groups)


def _borders(groups: RowGroups) -> Array:
    """Return the times behind the last event of some row group, ascending; a slice may begin or end there."""
    lowest, highest = limits_of(groups.latest)
    ends = np.unique(groups.latest[(groups.rows > 0) & (groups.latest < highest) & (groups.latest > lowest)])
    later = np.nextafter(ends, np.inf) if ends.dtype.kind == "f" else ends + 1
    # behind the last event of all there is nothing to cut
    return later[:-1] if len(later) and not (groups.latest == highest).any() else later


def _far_ends(borders: Array, reach: SliceReach) -> Array:
    """Return the latest time that a match may reach whose first event is before each border."""
    last = borders if borders.dtype.kind == "f" else borders - 1
    return np.array([window_end(time, reach.window) for time in last.tolist()], borders.dtype)


def _lows(borders: Array, reach: SliceReach) -> Array:
    """Return the earliest time of an event that bears on the matches of a slice which begins at each border."""
    if not reach.back:
        return borders
    return np.array([window_begin(time, reach.window) for time in borders.tolist()], borders.dtype)


def _sums(amounts: Numbers) -> Numbers:
    """Return the sum of the first so many amounts, from none to all."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(amounts)])


def _of(times: Array, time: Tick) -> Array:
    """Return a time in the type of `times`."""
    return np.asarray(time, times.dtype)

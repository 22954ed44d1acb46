"""Cut time into slices along the borders of row groups, each with the row groups that a run over it must read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.row_groups import RowGroups, limits_of
from gpu_cep.engine.input.ticks import Tick, window_begin, window_end

Numbers = npt.NDArray[np.int64]


class Reach(NamedTuple):
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
        """The number of rows that all slices read together."""
        return sum(int(self.groups.rows[each.groups].sum()) for each in self.slices)

    @property
    def overlap(self) -> float:
        """The rows that all slices read together, for each row that there is; 1 if none is read twice."""
        return self.rows_read / max(1, int(self.groups.rows.sum()))

    @property
    def largest(self) -> int:
        """The bytes in memory of what the slice that reads most reads."""
        return max(int(self.groups.size[each.groups].sum()) for each in self.slices)


def cut_by_budget(groups: RowGroups, reach: Reach, most: Most) -> TimeCut:
    """Return the fewest slices that each read at most what the budget allows.

    A slice that cannot be cut further, since its row groups overlap or its window reaches so far, may read more.
    """
    order, borders, amounts = _Order.of(groups), _borders(groups), getattr(groups, most.of)
    # what lies in row groups that begin before the last window does which begins before a border
    begun = _sums(amounts[order.places])[np.searchsorted(order.earliest, _far_ends(borders, reach), side="right")]
    by_latest = order.places[np.argsort(order.latest, kind="stable")]
    ended, latest = _sums(amounts[by_latest]), groups.latest[by_latest]
    chosen: list[int] = []
    begin: Tick | None = None
    while True:
        allowed = most.amount + int(ended[np.searchsorted(latest, _of(latest, _low(begin, reach, groups)))])
        following = chosen[-1] + 1 if chosen else 0
        if int(ended[-1]) <= allowed or following == len(borders):
            break
        chosen.append(max(following, int(np.searchsorted(begun, allowed, side="right")) - 1))
        begin = borders[chosen[-1]].item()
    return _cut(groups, order, reach, borders[chosen])


def cut_by_number(groups: RowGroups, reach: Reach, number: int) -> TimeCut:
    """Return at most `number` slices in which about as many rows begin."""
    borders, order = _borders(groups), np.argsort(groups.latest, kind="stable")
    rows = _sums(groups.rows[order])
    before = rows[np.searchsorted(groups.latest[order], borders)]
    targets = np.arange(1, number) * (int(rows[-1]) / max(1, number))
    chosen = np.unique(np.minimum(np.searchsorted(before, targets), len(borders) - 1)) if len(borders) else np.empty(0, np.int64)
    return _cut(groups, _Order.of(groups), reach, borders[chosen])


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


def _cut(groups: RowGroups, order: _Order, reach: Reach, borders: Array) -> TimeCut:
    """Return the slices between the borders."""
    lowest, highest = limits_of(groups.latest)
    highs = [*_far_ends(borders, reach).tolist(), highest]
    ends: list[Tick | None] = [*borders.tolist(), None]
    begins = [None, *ends[:-1]]
    lows = [_low(begin, reach, groups) for begin in begins]
    bounds = zip(begins, ends, lows, highs, [lowest, *highs[:-1]], strict=True)
    return TimeCut(tuple(FileSlice(*each, order.needed(each[2], each[3])) for each in bounds), groups)


def _borders(groups: RowGroups) -> Array:
    """Return the times behind the last event of some row group, ascending; a slice may begin or end there."""
    lowest, highest = limits_of(groups.latest)
    ends = np.unique(groups.latest[(groups.rows > 0) & (groups.latest < highest) & (groups.latest > lowest)])
    later = np.nextafter(ends, np.inf) if ends.dtype.kind == "f" else ends + 1
    # behind the last event of all there is nothing to cut
    return later[:-1] if len(later) and not (groups.latest == highest).any() else later


def _far_ends(borders: Array, reach: Reach) -> Array:
    """Return the latest time that a match may reach whose first event is before each border."""
    last = borders if borders.dtype.kind == "f" else borders - 1
    return np.array([window_end(time, reach.window) for time in last.tolist()], borders.dtype)


def _low(begin: Tick | None, reach: Reach, groups: RowGroups) -> Tick:
    """Return the earliest time of an event that bears on the matches of a slice."""
    lowest, _ = limits_of(groups.latest)
    if begin is None or not reach.back:
        return lowest if begin is None else begin
    return window_begin(begin, reach.window)


def _sums(amounts: Numbers) -> Numbers:
    """Return the sum of the first so many amounts, from none to all."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(amounts)])


def _of(times: Array, time: Tick) -> Array:
    """Return a time in the type of `times`."""
    return np.asarray(time, times.dtype)

"""Leave out row groups that are further than a window from all that a match needs, by the times of their footers.

Any event that bears on a match is at most a window's length from each event of the match
(:mod:`gpu_cep.engine.phase_one.rare_events` tells why). So it matters only if it is so near to an
event of each variable of some branch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpu_cep.engine.input.machine_values import Array, Flags
from gpu_cep.engine.input.row_groups import RowGroups, limits_of


def near_groups(groups: RowGroups, length: int | float, holds: Sequence[Sequence[Flags]]) -> Flags:
    """Return which row groups may have an event that bears on a match.

    Parameters
    ----------
    groups
        The row groups, with the times of their events.
    length
        The length of the window in ticks.
    holds
        For each branch, and each of its variables, which row groups may have an event of the variable.
    """
    found = np.zeros(len(groups), np.bool_)
    low, high = _widened(groups.earliest, groups.latest, length)
    for branch in holds:
        near = np.ones(len(groups), np.bool_)
        for marks in branch:
            earliest, latest = np.sort(groups.earliest[marks]), np.sort(groups.latest[marks])
            # one overlaps that begins in time and does not end too early
            near &= np.searchsorted(earliest, high, side="right") > np.searchsorted(latest, low, side="left")
        found |= near
    return found


def _widened(earliest: Array, latest: Array, length: int | float) -> tuple[Array, Array]:
    """Return the times between which an event is that is at most `length` from one between `earliest` and `latest`."""
    lowest, highest = limits_of(earliest)
    if earliest.dtype.kind == "f":
        # rounding may bring two times nearer by one float
        reach = np.nextafter(np.float64(length), np.inf)
        low, high = np.nextafter(earliest - reach, -np.inf), np.nextafter(latest + reach, np.inf)
        return np.where(np.isnan(low), lowest, low), np.where(np.isnan(high), highest, high)
    if length > highest:
        return np.full_like(earliest, lowest), np.full_like(latest, highest)
    low = np.where(earliest < lowest + length, lowest, np.maximum(earliest, lowest + length) - length)
    high = np.where(latest > highest - length, highest, np.minimum(latest, highest - length) + length)
    return low, high

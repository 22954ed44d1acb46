"""Choose by their costs whether streams are cut into slices of time or stay whole.

The work before the shuffle is spread over all cores in either case. The work behind it takes as long
as on the fullest core. Whole streams fill one core if a stream has most of the rows. Slices spread
evenly, but events are copied, and each row is sent with the number of its slice. More tasks have rows,
and their results are shuffled once more, however few rows there are.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

# What a row costs before the shuffle (read, filtered, written to it) and behind it (fetched, handed over, matched), of the whole.
BEFORE, BEHIND = 0.4, 0.6
# What the number of its slice adds to the cost of a row.
NUMBERING = 0.1
# The rows that a core reads, sends and matches in the time that the further tasks and the further shuffle of slices take.
ROWS_OF_SHUFFLE = 150_000
# Whole streams must cost so many times as much as slices before they are cut: the costs are rough.
MARGIN = 1.25
# Cores where their number is not known.
ASSUMED_CORES = 8
# Streams for each core that are placed one by one; smaller ones fill up evenly.
_PLACED_PER_CORE = 16


def cost_of_whole(shares: Sequence[float], cores: int) -> float:
    """Return the time of whole streams as a multiple of perfectly spread work; `shares` are as for :func:`fullest_core`."""
    return BEFORE + BEHIND * cores * fullest_core(shares, cores)


def cost_of_slices(shares: Sequence[float], cores: int, copies: float, slices: float, rows: float) -> float:
    """Return the time of streams cut into so many `slices` each, in the same unit.

    `copies` is the number of copies for each event, and `rows` that of all events.
    """
    largest = max(shares, default=0.0) / max(slices, 1.0)
    of_rows = (BEFORE + BEHIND * cores * max(1 / cores, largest)) * (1 + NUMBERING) * (1 + copies)
    return of_rows + ROWS_OF_SHUFFLE * cores / max(rows, 1.0)


def cutting_pays(shares: Sequence[float], cores: int, copies: float, slices: float, rows: float) -> bool:
    """Return whether slices are expected to be faster than whole streams by more than the error of the costs."""
    return cost_of_whole(shares, cores) >= MARGIN * cost_of_slices(shares, cores, copies, slices, rows)


def fullest_core(shares: Sequence[float], cores: int) -> float:
    """Return the share of the rows on the core that has most of them, if each stream goes to the emptiest core.

    Parameters
    ----------
    shares
        The shares of the rows that the largest streams have. The rest of the rows is spread evenly.
    cores
        The number of cores.

    Examples
    --------
    >>> fullest_core([0.5, 0.3, 0.2], 2), fullest_core([0.3], 2)
    (0.5, 0.5)
    """
    loads = [0.0] * cores
    for share in sorted(shares, reverse=True)[: cores * _PLACED_PER_CORE]:
        heapq.heapreplace(loads, loads[0] + share)
    return max(*loads, 1 / cores)

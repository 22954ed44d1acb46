"""Hold how many matches start at events, where matches are counted and not listed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gpu_cep.engine.events.matches import Indices, Matches

_NONE = np.empty(0, np.int64)


class StartCounts(NamedTuple):
    """The numbers of matches that are counted at some ordered events.

    ``totals[i]`` matches are counted at event ``starts[i]``, at which one of them starts. An algorithm may
    count all matches of a stream at one event, unless the plan keeps some of each start.
    """

    starts: Indices
    totals: Indices


def count_starts(matches: Matches) -> StartCounts:
    """Return how many of the matches start at each event, ascending."""
    return StartCounts(*np.unique(matches.first, return_counts=True))


def concatenate_counts(parts: Iterable[StartCounts]) -> StartCounts:
    """Return the counts of all parts, one part behind the other."""
    starts, totals = zip(*parts, StartCounts(_NONE, _NONE), strict=True)
    return StartCounts(np.concatenate(starts), np.concatenate(totals))


def sort_counts(counts: StartCounts) -> StartCounts:
    """Return the counts in the order of their events."""
    order = np.argsort(counts.starts, kind="stable")
    return StartCounts(counts.starts[order], counts.totals[order])

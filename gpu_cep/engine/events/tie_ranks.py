"""Find events of a stream with the same time, and rank them by `order_by`.

:mod:`gpu_cep_kernels.rules.ties` judges whether one of two tied events is before the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep_kernels.device.interface import Array


def find_ties(xp: Any, begins: Array, times: Array) -> Array:
    """Return the events, ascending, that have the same time as a neighbour in their stream.

    Streams begin at the events `begins`; arrays are of the module `xp`.
    """
    return _in_ties(xp, _tied_with_last(xp, begins, times))


def find_tie_groups(begins: Array, times: Array) -> tuple[Indices, Indices]:
    """Return the events of :func:`find_ties`, and where among them those of each time of a stream begin, with the end."""
    same = _tied_with_last(np, begins, times)
    tied = _in_ties(np, same)
    return tied, np.append(np.flatnonzero(~same[tied]), len(tied))


def _tied_with_last(xp: Any, begins: Array, times: Array) -> Array:
    """Return for each event whether it has the time of the one before it in its stream, and at the end False."""
    same = xp.zeros(len(times) + 1, xp.bool_)
    same[1:-1] = times[1:] == times[:-1]
    same[begins] = False
    return same


def _in_ties(xp: Any, same: Array) -> Array:
    """Return the events, ascending, that share their time with a neighbour in their stream."""
    return xp.flatnonzero(same[1:] | same[:-1])


def rank_rows(columns: EventColumns, by: tuple[int, ...], rows: Indices) -> Indices:
    """Return the rank of each of `rows` among them by the columns `by`; empty without columns.

    NULL comes first, and equal rows have the same rank.
    """
    ranks = np.empty(0, np.int64)
    for column in by:
        rank = columns.dense_rank(column, rows)
        if not ranks.size:
            ranks = rank
            continue
        width = int(rank.max(initial=0)) + 1
        _, dense = np.unique(ranks, return_inverse=True)
        ranks = dense * width + rank
    return ranks

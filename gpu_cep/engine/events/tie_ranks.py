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
    same = xp.zeros(len(times) + 1, xp.bool_)  # whether event e has the time of e − 1
    same[1:-1] = times[1:] == times[:-1]
    same[begins] = False
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

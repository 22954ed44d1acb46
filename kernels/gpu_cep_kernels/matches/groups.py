"""Order rows by the group that they belong to."""

from __future__ import annotations

import numpy as np

from gpu_cep_kernels.matches.flat_matches import group_matches, order_distinct
from gpu_cep_kernels.rules.tables import Ints, Places


def order_by_group(groups: Ints | Places, number: int) -> tuple[Ints, Ints]:
    """Return the rows in a stable order by group, and where each group begins in it.

    Groups are numbered below `number`. The second array has one more entry, the end
    of the last group.
    """
    order, places = np.empty(len(groups), np.int64), np.zeros(number + 2, np.int64)
    group_matches(groups, places, order)
    return order, places[:-1]


def order_by_row(rows: Ints | Places, number: int) -> Ints:
    """Return the order of numbers below `number`, equal ones as they come; different ones take half the time."""
    order, found = np.empty(number + 1, np.int64), np.full(number, -1, np.int32)
    if len(rows) < np.iinfo(np.int32).max and order_distinct(rows, found, order) == len(rows):
        return order[: len(rows)]
    return order_by_group(rows, number)[0]

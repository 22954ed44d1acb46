"""Order rows by the group that they belong to, and say where groups begin."""

from __future__ import annotations

import numpy as np

from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.matches.flat_matches import group_matches
from gpu_cep_kernels.phase_one.distinct import count_marked, mark_distinct, order_distinct
from gpu_cep_kernels.rules.tables import Ints, Places


def order_by_group(groups: Ints | Places, number: int) -> tuple[Ints, Ints]:
    """Return the rows in a stable order by group, and where each group begins in it.

    Groups are numbered below `number`. The second array has one more entry, the end
    of the last group.
    """
    order, places = np.empty(len(groups), np.int64), np.zeros(number + 2, np.int64)
    group_matches(groups, places, order)
    return order, places[:-1]


def group_begins(groups: Ints | Places) -> Ints:
    """Return where each group begins, for rows whose groups stand together; ``groups[r]`` is the group of row r."""
    behind = np.flatnonzero(groups[1:] != groups[:-1]) + 1
    return np.concatenate([np.zeros(min(len(groups), 1), np.int64), behind])


# Up to so many rows are sorted in less time than three kernels are called.
_FEW = 1 << 8


def order_by_row(rows: Ints | Places, number: int, threads: int = 1) -> Ints:
    """Return the order of rows numbered below `number`, equal ones as they come; it is quick if all differ."""
    if len(rows) <= _FEW:
        return rows.argsort(kind="stable")
    words, spans = number // 64 + 1, slices(len(rows), threads) or [(0, 0)]
    parts, before = np.zeros((len(spans), words), np.uint64), np.empty(words, np.int64)
    spread(lambda part: mark_distinct(rows[slice(*spans[part])], parts[part]), range(len(spans)), threads)
    marks = parts[0] if len(parts) == 1 else np.bitwise_or.reduce(parts)
    if count_marked(marks, before) < len(rows):
        return order_by_group(rows, number)[0]
    order = np.empty(len(rows), np.int64)
    spread(lambda span: order_distinct(*span, rows, marks, before, order), spans, threads)
    return order

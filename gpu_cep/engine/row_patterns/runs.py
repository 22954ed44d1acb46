"""Find the variables whose rows form runs: their conditions read little that changes from row to row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpu_cep.plan.row_patterns.places import RowPlace
from gpu_cep_kernels.row_patterns.conditions import COUNT_DISTINCT, MatchConditionTable
from gpu_cep_kernels.row_patterns.operands import ALONE, Operand
from gpu_cep_kernels.row_patterns.runs import NO_RUN, NO_TOTAL, RunTable, Side
from gpu_cep_kernels.rules.tables import BY_PROGRAM


def run_table(table: MatchConditionTable, places: Sequence[RowPlace]) -> RunTable:
    """Return what the condition of each variable reads in a run of its rows; `places` are those it reads."""
    found = [_run(v, table, places) or (NO_RUN, Side.FIXED, Side.FIXED) for v in range(len(table.condition_first) - 1)]
    total, left, right = np.array(found, np.int64).reshape(-1, 3).T.copy()
    return RunTable(total, left, right)


def _run(v: int, table: MatchConditionTable, places: Sequence[RowPlace]) -> tuple[int, int, int] | None:
    """Return the total that rows of a variable change, and the sides of its condition.

    None if the rows form no runs.
    """
    changed = np.flatnonzero(table.argument[:, v] >= 0).tolist()
    if table.classifier >= 0 or table.in_set[:, v].any() or len(changed) > 1 or (table.step[changed] == COUNT_DISTINCT).any():
        return None
    total, conditions = changed[0] if changed else NO_TOTAL, range(*table.condition_first[v : v + 2])
    if not conditions:
        return total, Side.FIXED, Side.FIXED
    c = conditions[0]
    if len(conditions) > 1 or table.means[c] == BY_PROGRAM:
        return None
    left, right = (_side(o, total, table, places) for o in (table.left[c], table.right[c]))
    return None if left is None or right is None else (total, left, right)


def _side(o: int, total: int, table: MatchConditionTable, places: Sequence[RowPlace]) -> Side | None:
    """Return how the side that begins with an operand changes in a run that changes one total; None if it is no :class:`Side`."""
    if table.operands.operation[o] == ALONE:
        return _part(o, total, table, places)
    return Side.FIXED if _part(o, total, table, places) == _part(o + 1, total, table, places) == Side.FIXED else None


def _part(o: int, total: int, table: MatchConditionTable, places: Sequence[RowPlace]) -> Side | None:
    """Return how an operand changes in a run that changes one total; None if it is no :class:`Side`."""
    kind, number, other = table.operands.kind[o], table.operands.number[o], table.operands.other[o]
    if kind == Operand.COLUMN:
        return _side_of_place(places[other])
    if kind == Operand.COLUMN_OF_INTS:
        return Side.FIXED if _side_of_place(places[other]) == Side.FIXED else None
    if kind == Operand.CONSTANT:
        return Side.FIXED
    read = {number} if kind in (Operand.TOTAL, Operand.COUNT) else {number, other}
    if total not in read:
        return Side.FIXED
    return Side.RUNNING if read == {total} and kind != Operand.MEAN_OF_INTS else None


def _side_of_place(place: RowPlace) -> Side | None:
    """Return what a column at a place is; the rows of a run are in the set of no place."""
    if place.from_first or place.members is not None:
        return Side.FIXED
    return None if place.offset or place.distance else Side.CURRENT

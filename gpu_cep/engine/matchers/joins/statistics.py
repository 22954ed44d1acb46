"""Estimate what decides the sizes of a batch's joins: a window's share, and conditions' selectivities."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.matchers.search import Search
from gpu_cep.engine.windows.window_share import _SAMPLE, measure_window_share, sample_places
from gpu_cep.plan.join_trees import EstimatedCondition, JoinStatistics
from gpu_cep_kernels.phase_one.input_buffers import InputBuffers, Streams
from gpu_cep_kernels.rules.scalars import EQ
from gpu_cep_kernels.rules.tables import BY_INTS, ColumnBank, ConditionTable, Flags

# The selectivity that is assumed of a condition that is a program.
_UNKNOWN = 0.5
# Comparisons, by their numbers in the condition table.
_COMPARE = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def join_statistics(search: Search, batch: Batch, buffers: InputBuffers, streams: Streams, needs: Flags) -> JoinStatistics:
    """Return the statistics of a batch by which its joins are ordered.

    All variables must have events. ``needs[n, v]``: negation n cannot be judged
    before variable v is bound.
    """
    branch = search.tables.branch
    groups = equality_groups(search.tables.conditions, len(branch.before))
    share = measure_window_share(batch, buffers, streams, branch.before)
    window_size = share * len(streams.times)
    conditions = (
        EstimatedCondition(sum(1 << v for v in condition.variables), _selectivity(search, batch, buffers, window_size, c), group)
        for c, (condition, group) in enumerate(zip(branch.conditions, groups, strict=True))
        # the others are read by negations
        if max(condition.variables) < len(branch.before)
    )
    judged = tuple(sum(1 << int(v) for v in np.flatnonzero(needed)) for needed in needs)
    return JoinStatistics(tuple(np.diff(buffers.first).tolist()), branch.before, share, tuple(conditions), judged)


def equality_groups(table: ConditionTable, positives: int) -> list[int]:
    """Return a group number for each condition, −1 for all but equalities of positive variables.

    Equalities are in one group if they compare a column in common, directly or
    through others.
    """
    pairs = (table.left_variable >= 0) & (np.maximum(table.left_variable, table.right_variable) < positives)
    equal = np.flatnonzero(pairs & (table.comparison == EQ)).tolist()
    group_of: dict[tuple[int, ...], int] = {}
    for c in equal:
        columns = _compared_columns(table, c)
        connected = {group_of[column] for column in columns if column in group_of}
        group = min(connected, default=c)
        group_of.update({column: group for column, other in group_of.items() if other in connected})
        group_of.update(dict.fromkeys(columns, group))
    return [group_of[_compared_columns(table, c)[0]] if c in equal else -1 for c in range(len(table.means))]


def _compared_columns(table: ConditionTable, c: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return (variable, bank, column) of the left and of the right side of comparison c."""
    means = int(table.means[c])
    left = int(table.left_variable[c]), means, int(table.left_column[c])
    right = int(table.right_variable[c]), means, int(table.right_column[c])
    return left, right


def _selectivity(search: Search, batch: Batch, buffers: InputBuffers, window_size: float, c: int) -> float:
    """Estimate the share of pairs of events that satisfy condition c.

    The pairs are those in the pattern's order with at most `window_size` events between.
    """
    table, bank = search.tables.conditions, search.ordered.bank
    left, right = int(table.left_variable[c]), int(table.right_variable[c])
    if left < 0:
        return _UNKNOWN
    by_ints = table.means[c] == BY_INTS
    lefts, rights = _sample_pairs(search.tables.branch.before, buffers, window_size, left, right)
    one, one_present = _values(bank, by_ints, table.left_column[c], batch.low + lefts)
    other, other_present = _values(bank, by_ints, table.right_column[c], batch.low + rights)
    true = _COMPARE[table.comparison[c]](one, other) & one_present & other_present
    return (float(true.sum()) + 0.5) / (true.size + 1)


def _sample_pairs(
    before: tuple[int, ...], buffers: InputBuffers, window_size: float, left: int, right: int
) -> tuple[Indices, Indices]:  # fmt: skip
    """Return some events of the variable `left`, each paired with some events of the variable `right`.

    A pair is at most `window_size` events apart, in the order that the pattern demands.
    """
    lefts, rights = (buffers.events[buffers.first[v] : buffers.first[v + 1]].astype(np.int64) for v in (left, right))
    events = lefts[sample_places(len(lefts))]
    begin = events + (1 if before[right] >> left & 1 else -int(window_size))
    end = events + (0 if before[left] >> right & 1 else int(window_size) + 1)
    low, high = np.searchsorted(rights, begin), np.searchsorted(rights, end)
    # a range with fewer events than are wanted gives some of them several times
    places = low[:, np.newaxis] + (high - low)[:, np.newaxis] * np.arange(_SAMPLE) // _SAMPLE
    found = np.repeat(high > low, _SAMPLE)
    return np.repeat(events, _SAMPLE)[found], rights[places.ravel()[found]]


def _values(bank: ColumnBank, by_ints: bool, column: int, rows: Indices) -> tuple[Array, Array]:
    """Return the values of a column of the bank in some rows, and whether each is there (not NULL)."""
    values, nulls = (bank.ints, bank.int_nulls) if by_ints else (bank.floats, bank.float_nulls)
    missing = nulls[rows] >> np.uint64(column) & np.uint64(1) if nulls.size else np.zeros(len(rows), np.uint64)
    return values[column, rows], missing == 0

"""What a batch tells of how large joins will be: how much of it a window holds, and how many events conditions let pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.matchers.search import Search
from gpu_cep.engine.windows.window_share import _SAMPLE, _sampled, window_share
from gpu_cep.plan.join_trees import Relation, Statistics
from gpu_cep_kernels.phase_one.input_buffers import InputBuffers, Streams
from gpu_cep_kernels.rules.scalars import EQ
from gpu_cep_kernels.rules.tables import BY_INTS, ColumnBank, ConditionTable, Flags

Array = npt.NDArray[Any]

# The selectivity of a condition that is computed by a program.
_UNKNOWN = 0.5
# Comparisons by number.
_COMPARE = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def batch_statistics(search: Search, batch: Batch, buffers: InputBuffers, streams: Streams, needs: Flags) -> Statistics:
    """The statistics of a batch whose variables all have events; ``needs[n, v]``: negation n waits for v."""
    branch = search.tables.branch
    groups = equality_groups(search.tables.conditions, len(branch.before))
    share = window_share(batch, buffers, streams, branch.before)
    reach = share * len(streams.times)
    relations = (
        Relation(sum(1 << v for v in condition.variables), _selectivity(search, batch, buffers, reach, c), group)
        for c, (condition, group) in enumerate(zip(branch.conditions, groups, strict=True))
        # negations read the others
        if max(condition.variables) < len(branch.before)
    )
    judged = tuple(sum(1 << int(v) for v in np.flatnonzero(needed)) for needed in needs)
    return Statistics(tuple(np.diff(buffers.first).tolist()), branch.before, share, tuple(relations), judged)


def equality_groups(table: ConditionTable, positives: int) -> list[int]:
    """A number for each condition: the same for equalities of positive variables that the columns they compare connect, −1 for others."""
    pairs = (table.left_variable >= 0) & (np.maximum(table.left_variable, table.right_variable) < positives)
    equal = np.flatnonzero(pairs & (table.comparison == EQ)).tolist()
    group_of: dict[tuple[int, ...], int] = {}
    for c in equal:
        ends = _ends(table, c)
        joined = {group_of[end] for end in ends if end in group_of}
        group = min(joined, default=c)
        group_of.update({end: group for end, other in group_of.items() if other in joined})
        group_of.update(dict.fromkeys(ends, group))
    return [group_of[_ends(table, c)[0]] if c in equal else -1 for c in range(len(table.means))]


def _ends(table: ConditionTable, c: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What comparison c compares: a variable's value in a column of the bank, and another's."""
    means = int(table.means[c])
    left = int(table.left_variable[c]), means, int(table.left_column[c])
    right = int(table.right_variable[c]), means, int(table.right_column[c])
    return left, right


def _selectivity(search: Search, batch: Batch, buffers: InputBuffers, reach: float, c: int) -> float:
    """The share of the combinations that stand in order, in a window of `reach` events, that satisfy condition c."""
    table, bank = search.tables.conditions, search.ordered.bank
    left, right = int(table.left_variable[c]), int(table.right_variable[c])
    if left < 0:
        return _UNKNOWN
    by_ints = table.means[c] == BY_INTS
    lefts, rights = _pairs(search.tables.branch.before, buffers, reach, left, right)
    one, one_present = _values(bank, by_ints, table.left_column[c], batch.low + lefts)
    other, other_present = _values(bank, by_ints, table.right_column[c], batch.low + rights)
    true = _COMPARE[table.comparison[c]](one, other) & one_present & other_present
    return (float(true.sum()) + 0.5) / (true.size + 1)


def _pairs(before: tuple[int, ...], buffers: InputBuffers, reach: float, left: int, right: int) -> tuple[Indices, Indices]:
    """Some events of `left`, each with some of `right` that are near enough, and on the side that the pattern wants."""
    lefts, rights = (buffers.events[buffers.first[v] : buffers.first[v + 1]].astype(np.int64) for v in (left, right))
    events = lefts[_sampled(len(lefts))]
    begin = events + (1 if before[right] >> left & 1 else -int(reach))
    end = events + (0 if before[left] >> right & 1 else int(reach) + 1)
    low, high = np.searchsorted(rights, begin), np.searchsorted(rights, end)
    # where a range holds fewer events than are wanted, they stand in for one another
    places = low[:, np.newaxis] + (high - low)[:, np.newaxis] * np.arange(_SAMPLE) // _SAMPLE
    found = np.repeat(high > low, _SAMPLE)
    return np.repeat(events, _SAMPLE)[found], rights[places.ravel()[found]]


def _values(bank: ColumnBank, by_ints: bool, column: int, rows: Indices) -> tuple[Array, Array]:
    """The values of a column of the bank in some rows, and whether each is there."""
    values, nulls = (bank.ints, bank.int_nulls) if by_ints else (bank.floats, bank.float_nulls)
    missing = nulls[rows] >> np.uint64(column) & np.uint64(1) if nulls.size else np.zeros(len(rows), np.uint64)
    return values[column, rows], missing == 0

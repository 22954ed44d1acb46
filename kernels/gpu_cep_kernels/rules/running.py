"""Update aggregates while a binding grows, one place of the path after the other.

The value at a place covers the binding's events up to there. So a step back
on the path undoes nothing. An aggregate of the events before the current one
is the value at the place of the event before.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.scalars import add_ints
from gpu_cep_kernels.rules.tables import AggregateTable, AggregateValues, ColumnBank


class Aggregation(IntEnum):
    """Name what an event does to the value of an aggregate."""

    COUNT_EVENTS = 0
    COUNT_INTS = 1
    SUM_INTS = 2
    MIN_INTS = 3
    MAX_INTS = 4
    COUNT_FLOATS = 5
    SUM_FLOATS = 6
    MIN_FLOATS = 7
    MAX_FLOATS = 8


AGGREGATIONS = {each.name.lower(): each.value for each in Aggregation}

SUM_OVERFLOWED = -1
"""The count of a sum of int64 that does not fit."""


@rule
def is_null(words: Any, column: int, row: int) -> bool:
    """Return whether a column of the bank is NULL in a row."""
    return words.size > 0 and ((words[row] >> np.uint64(column)) & np.uint64(1)) != 0


@rule
def _extreme_int(aggregation: int, current: int, value: int) -> int:
    """Return the lesser or greater of two."""
    return min(current, value) if aggregation == Aggregation.MIN_INTS else max(current, value)


@rule
def _extreme_float(aggregation: int, current: float, value: float) -> float:
    """Return the lesser or greater of two; NaN if one of them is."""
    if current != current or value != value:
        return np.nan
    return min(current, value) if aggregation == Aggregation.MIN_FLOATS else max(current, value)


@rule
def _accumulate_ints(
    k: int, before: int, depth: int, row: int, aggregates: AggregateTable, bank: ColumnBank, values: AggregateValues
) -> None:
    """Set int64 aggregate k at place `depth` from its value at place `before` (-1: none) and the event in `row`."""
    count, total = (values.counts[k, before], values.ints[k, before]) if before >= 0 else (0, 0)
    aggregation, column = aggregates.step[k], aggregates.column[k]
    if count != SUM_OVERFLOWED and not is_null(bank.int_nulls, column, row):
        value = bank.ints[column, row]
        if aggregation == Aggregation.SUM_INTS:
            total, wrapped = add_ints(total, value)
            count = SUM_OVERFLOWED if wrapped else count + 1
        else:
            total = value if count == 0 else _extreme_int(aggregation, total, value)
            count += 1
    values.counts[k, depth] = count
    values.ints[k, depth] = total


@rule
def _accumulate_floats(
    k: int, before: int, depth: int, row: int, aggregates: AggregateTable, bank: ColumnBank, values: AggregateValues
) -> None:
    """Set float64 aggregate k at place `depth` from its value at place `before` (-1: none) and the event in `row`."""
    count, total = (values.counts[k, before], values.floats[k, before]) if before >= 0 else (0, 0.0)
    aggregation, column = aggregates.step[k], aggregates.column[k]
    if not is_null(bank.float_nulls, column, row):
        value = bank.floats[column, row]
        if aggregation == Aggregation.SUM_FLOATS:
            total += value
        else:
            total = value if count == 0 else _extreme_float(aggregation, total, value)
        count += 1
    values.counts[k, depth] = count
    values.floats[k, depth] = total


@rule
def accumulate(v: int, before: int, depth: int, row: int, aggregates: AggregateTable, bank: ColumnBank, values: AggregateValues) -> None:
    """Set v's aggregates at place `depth`, which binds the event in `row` of the bank.

    `before` is the place of v's event before that, or -1.
    """
    for k in range(aggregates.first[v], aggregates.first[v + 1]):
        aggregation = aggregates.step[k]
        if aggregation == Aggregation.COUNT_EVENTS:
            values.counts[k, depth] = values.counts[k, before] + 1 if before >= 0 else 1
        elif aggregation <= Aggregation.MAX_INTS:
            _accumulate_ints(k, before, depth, row, aggregates, bank, values)
        else:
            _accumulate_floats(k, before, depth, row, aggregates, bank, values)


@rule
def accumulate_run(
    v: int, place: int, event: int, number: int, base: int, occurrence: Any, aggregates: AggregateTable, bank: ColumnBank,
    values: AggregateValues,
) -> None:  # fmt: skip
    """Let v's aggregates at `place` go on by a `number` of events, `event` and those behind it.

    ``occurrence[e]`` is the first of them from e on; event e stands in row ``base + e`` of the bank.
    """
    for k in range(aggregates.first[v], aggregates.first[v + 1]):
        aggregation, each = aggregates.step[k], event
        if aggregation == Aggregation.COUNT_EVENTS:
            values.counts[k, place] += number
        elif aggregation <= Aggregation.MAX_INTS:
            for _ in range(number):
                _accumulate_ints(k, place, place, base + each, aggregates, bank, values)
                each = int(occurrence[each + 1])
        else:
            for _ in range(number):
                _accumulate_floats(k, place, place, base + each, aggregates, bank, values)
                each = int(occurrence[each + 1])


@rule
def mean_of(k: int, place: int, values: AggregateValues) -> tuple[float, bool]:
    """Return (the mean of the values that sum k of float64 has at a place, whether it is NULL): there may be none."""
    count = values.counts[k, place]
    return (values.floats[k, place] / np.float64(count), False) if count != 0 else (0.0, True)

"""Aggregates that grow with a binding: what an event does to a value, one place of the path after the other.

The value at a place counts the binding's events up to there, so that going
back on the path needs no undoing, and an aggregate of the events before the
current one stands at the place of the event before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.scalars import add_ints

STEPS = ("count_events", "count_ints", "sum_ints", "min_ints", "max_ints", "count_floats", "sum_floats", "min_floats", "max_floats")
STEP = {name: number for number, name in enumerate(STEPS)}
COUNT_EVENTS, COUNT_INTS, SUM_INTS, MIN_INTS, MAX_INTS, COUNT_FLOATS, SUM_FLOATS, MIN_FLOATS, MAX_FLOATS = range(len(STEPS))

OVERFLOWED = -1
"""The count of a sum of int64 that does not fit."""


@rule
def is_null(words: Any, column: int, row: int) -> bool:
    """Whether a column of the bank is NULL in a row."""
    return words.size > 0 and ((words[row] >> np.uint64(column)) & np.uint64(1)) != 0


@rule
def _extreme_int(step: int, current: int, value: int) -> int:
    return min(current, value) if step == MIN_INTS else max(current, value)


@rule
def _extreme_float(step: int, current: float, value: float) -> float:
    """The lesser or greater of two; NaN if one of them is."""
    if current != current or value != value:
        return np.nan
    return min(current, value) if step == MIN_FLOATS else max(current, value)


@rule
def _accumulate_ints(k: int, before: int, depth: int, row: int, aggregates: Any, bank: Any, values: Any) -> None:
    count, total = (values.counts[k, before], values.ints[k, before]) if before >= 0 else (0, 0)
    step, column = aggregates.step[k], aggregates.column[k]
    if count != OVERFLOWED and not is_null(bank.int_nulls, column, row):
        value = bank.ints[column, row]
        if step == SUM_INTS:
            total, wrapped = add_ints(total, value)
            count = OVERFLOWED if wrapped else count + 1
        else:
            total = value if count == 0 else _extreme_int(step, total, value)
            count += 1
    values.counts[k, depth] = count
    values.ints[k, depth] = total


@rule
def _accumulate_floats(k: int, before: int, depth: int, row: int, aggregates: Any, bank: Any, values: Any) -> None:
    count, total = (values.counts[k, before], values.floats[k, before]) if before >= 0 else (0, 0.0)
    step, column = aggregates.step[k], aggregates.column[k]
    if not is_null(bank.float_nulls, column, row):
        value = bank.floats[column, row]
        if step == SUM_FLOATS:
            total += value
        else:
            total = value if count == 0 else _extreme_float(step, total, value)
        count += 1
    values.counts[k, depth] = count
    values.floats[k, depth] = total


@rule
def accumulate(v: int, before: int, depth: int, row: int, aggregates: Any, bank: Any, values: Any) -> None:
    """Set v's aggregates at place `depth`, which binds the event in `row` of the bank; `before` is the place of v's last (or -1)."""
    for k in range(aggregates.first[v], aggregates.first[v + 1]):
        step = aggregates.step[k]
        if step == COUNT_EVENTS:
            values.counts[k, depth] = values.counts[k, before] + 1 if before >= 0 else 1
        elif step <= MAX_INTS:
            _accumulate_ints(k, before, depth, row, aggregates, bank, values)
        else:
            _accumulate_floats(k, before, depth, row, aggregates, bank, values)

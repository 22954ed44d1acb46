"""Number distinct values by a bit for each that there may be, without a sort."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.rules.scalars import bit, count_bits


@sequential(writes=("marks", "before"))
def mark_distinct(values: Any, marks: Any, before: Any) -> int:
    """``marks``: the bits of the values that occur; return how many values these are.

    `marks` is given as zeros: one bit for each value that there may be. ``before[w]``
    is how many bits are set in the words before w. Both are small, so that nothing
    is looked up far away.
    """
    for j in range(values.size):
        marks[values[j] >> 6] |= bit(values[j] & 63)
    count = 0
    for w in range(marks.size):
        before[w] = count
        count += count_bits(marks[w])
    return count


@rule
def count_less(value: Any, marks: Any, before: Any) -> int:
    """Return how many marked values are less than a marked one; the tables are those of :func:`mark_distinct`."""
    word, own = value >> 6, bit(value & 63)
    return before[word] + count_bits(marks[word] & (own - np.uint64(1)))


@kernel(writes=("numbers",))
def number_distinct(low: int, high: int, values: Any, marks: Any, before: Any, numbers: Any) -> None:
    """``numbers[j]``: how many distinct values are less than ``values[j]``; the tables are those of :func:`mark_distinct`."""
    for j in range(low, high):
        numbers[j] = count_less(values[j], marks, before)


@kernel(writes=("order",))
def order_distinct(low: int, high: int, values: Any, marks: Any, before: Any, order: Any) -> None:
    """``order``: the places of the values by value, of which no two are the same; the tables are those of :func:`mark_distinct`."""
    for j in range(low, high):
        order[count_less(values[j], marks, before)] = j

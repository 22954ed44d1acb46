"""Number distinct values by a bit for each that there may be, without a sort."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.rules.scalars import bit, count_bits


@sequential(writes=("marks",))
def mark_distinct(values: Any, marks: Any) -> None:
    """Set in `marks`, which have a bit for each value that there may be, the bits of the values that occur."""
    for j in range(values.size):
        marks[values[j] >> 6] |= bit(values[j] & 63)


@sequential(writes=("before",))
def count_marked(marks: Any, before: Any) -> int:
    """``before[w]``: how many bits are set in the words before w; return how many are set.

    Both tables are small, so that nothing is looked up far away.
    """
    count = 0
    for w in range(marks.size):
        before[w] = count
        count += count_bits(marks[w])
    return count


@rule
def count_less(value: Any, marks: Any, before: Any) -> int:
    """Return how many marked values are less than a marked one; the tables are those of :func:`count_marked`."""
    word, own = value >> 6, bit(value & 63)
    return before[word] + count_bits(marks[word] & (own - np.uint64(1)))


@kernel(writes=("numbers",))
def number_distinct(low: int, high: int, values: Any, marks: Any, before: Any, numbers: Any) -> None:
    """``numbers[j]``: how many distinct values are less than ``values[j]``; the tables are those of :func:`count_marked`."""
    for j in range(low, high):
        numbers[j] = count_less(values[j], marks, before)


@kernel(writes=("order",))
def order_distinct(low: int, high: int, values: Any, marks: Any, before: Any, order: Any) -> None:
    """``order``: the places of the values by value, of which no two are the same; the tables are those of :func:`count_marked`."""
    for j in range(low, high):
        order[count_less(values[j], marks, before)] = j

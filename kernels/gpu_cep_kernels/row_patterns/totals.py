"""Aggregate over the rows of matches: segment m is ``values[offsets[m]:offsets[m + 1]]``, and `nulls` is empty where nothing is NULL.

With `every`, the result at each place of a segment covers the values up to there; else there is one for each segment.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import kernel
from gpu_cep_kernels.compile.operations import exact_product
from gpu_cep_kernels.rules.running import SUM_OVERFLOWED, Aggregation
from gpu_cep_kernels.rules.scalars import add_ints


@kernel(writes=("counts", "totals"))
def total_ints(low: int, high: int, offsets: Any, values: Any, nulls: Any, step: int, every: bool, counts: Any, totals: Any) -> None:
    """``totals[…]``: the sum, the least or the greatest (`step`) of int64.

    ``counts[…]`` says of how many, and SUM_OVERFLOWED if it does not fit.
    """
    for m in range(low, high):
        count, total = 0, 0
        for e in range(offsets[m], offsets[m + 1]):
            if count >= 0 and (nulls.size == 0 or not nulls[e]):
                value = values[e]
                if step == Aggregation.SUM_INTS:
                    total, wrapped = add_ints(total, value)
                    count = SUM_OVERFLOWED if wrapped else count + 1
                else:
                    if count == 0 or (value < total if step == Aggregation.MIN_INTS else value > total):
                        total = value
                    count += 1
            if every:
                counts[e] = count
                totals[e] = total
        if not every:
            counts[m] = count
            totals[m] = total


@kernel(writes=("counts", "totals"))
def total_floats(low: int, high: int, offsets: Any, values: Any, nulls: Any, step: int, every: bool, counts: Any, totals: Any) -> None:
    """As :func:`total_ints`, for float64 in their order; a total with NaN is NaN."""
    for m in range(low, high):
        count, total = 0, 0.0
        for e in range(offsets[m], offsets[m + 1]):
            if nulls.size == 0 or not nulls[e]:
                value = values[e]
                lesser = value < total if step == Aggregation.MIN_FLOATS else value > total
                if step == Aggregation.SUM_FLOATS:
                    total += value
                elif count == 0 or value != value or lesser:
                    total = value
                count += 1
            if every:
                counts[e] = count
                totals[e] = total
        if not every:
            counts[m] = count
            totals[m] = total


@kernel(writes=("counts", "totals"), scratch=("room",))
def running_medians(low: int, high: int, offsets: Any, values: Any, nulls: Any, room: Any, counts: Any, totals: Any) -> None:
    """``totals[e]``: the middle of the float64 of a segment up to place e, or the mean of the two middle ones; NaN if one value is.

    ``counts[e]`` says of how many. `room` is as long as `values`: the values of a segment are kept in order there.
    """
    for m in range(low, high):
        begin = offsets[m]
        end, broken = begin, False
        for e in range(begin, offsets[m + 1]):
            if nulls.size == 0 or not nulls[e]:
                value = values[e]
                broken = broken or value != value
                place = end
                while place > begin and room[place - 1] > value:
                    room[place] = room[place - 1]
                    place -= 1
                room[place] = value
                end += 1
            counts[e] = end - begin
            middle = (begin + end) // 2
            totals[e] = 0.0
            if end > begin:
                # the sum of one value with itself may be infinite
                totals[e] = room[middle] if (end - begin) % 2 == 1 else exact_product(room[middle - 1] + room[middle], 0.5)
            if broken:
                totals[e] = np.nan

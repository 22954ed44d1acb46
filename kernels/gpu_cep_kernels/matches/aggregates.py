"""Aggregate over bindings: each is a segment of a flat array of values, in event order.

Segment m is ``values[places[m]:places[m + 1]]``; ``nulls`` tells which of them are NULL.
"""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.compile.jit import kernel
from gpu_cep_kernels.rules.scalars import add_ints


@kernel(writes=("counts",))
def count_present(low: int, high: int, places: Any, nulls: Any, counts: Any) -> None:
    """``counts[m]``: how many values of segment m are not NULL."""
    for m in range(low, high):
        count = 0
        for k in range(places[m], places[m + 1]):
            count += not nulls[k]
        counts[m] = count


@kernel(writes=("sums",))
def sum_floats(low: int, high: int, places: Any, values: Any, nulls: Any, sums: Any) -> None:
    """``sums[m]``: the sum of segment m, in event order; NULLs are skipped, NaN is kept."""
    for m in range(low, high):
        total = 0.0
        for k in range(places[m], places[m + 1]):
            if not nulls[k]:
                total += values[k]
        sums[m] = total


@kernel(writes=("sums", "overflowed"))
def sum_ints(low: int, high: int, places: Any, values: Any, nulls: Any, sums: Any, overflowed: Any) -> None:
    """``sums[m]``: the sum of segment m in int64; ``overflowed[m]``: whether it overflowed on the way."""
    for m in range(low, high):
        total, failed = 0, False
        for k in range(places[m], places[m + 1]):
            if not nulls[k]:
                total, wrapped = add_ints(total, values[k])
                failed |= wrapped
        sums[m] = total
        overflowed[m] = failed


@kernel(writes=("found",))
def extreme_places(low: int, high: int, places: Any, values: Any, nulls: Any, sign: int, found: Any) -> None:
    """``found[m]``: the place of the least (`sign` 1) or greatest (−1) value of segment m.

    If there is a NaN, it is the place of the first one. It is −1 if all values are NULL.
    """
    for m in range(low, high):
        best = -1
        for k in range(places[m], places[m + 1]):
            if nulls[k]:
                continue
            better = best < 0 or (values[k] < values[best] if sign > 0 else values[k] > values[best])
            if best >= 0 and values[best] != values[best]:
                better = False
            elif values[k] != values[k]:
                better = True
            if better:
                best = k
        found[m] = best

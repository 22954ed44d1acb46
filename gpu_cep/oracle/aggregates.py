"""Compute aggregates over the values of a binding, as docs/language.md says.

NULLs are skipped; over no value the result is NULL, and the count 0. Sums and averages add in event
order and propagate NaN. An extreme is NaN if one value is. An average is a float: the sum by the
count. For decimals the unscaled sum is divided by the count, then by the power of ten. A median is a
float, too: the middle value or the mean of the two middle ones, and NaN if one value is. In counts of
distinct values every NaN is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import reduce

from gpu_cep.oracle.values import ARITHMETIC, Value

Values = Sequence[Value]


def _present(values: Values) -> list[Value]:
    return [value for value in values if value is not None]


def _count(values: Values) -> int:
    return len(_present(values))


def _sum(values: Values) -> Value:
    present = _present(values)
    total = reduce(ARITHMETIC["+"], present) if present else None
    # it is added to 0.0, so that it is never -0.0
    return total + 0.0 if isinstance(total, float) else total


def _average(values: Values) -> float | None:
    total, count = _sum(values), _count(values)
    if total is None:
        return None
    unit = _unit(total)
    return float(total * unit) / count / float(unit)


def _unit(value: Value) -> int:
    """Return the power of ten that makes a decimal whole; 1 for other numbers."""
    exponent = value.as_tuple().exponent if isinstance(value, Decimal) else 0
    assert isinstance(exponent, int)
    return int(10**-exponent)


def _median(values: Values) -> float | None:
    present = _present(values)
    if not present or any(value != value for value in present):
        return math.nan if present else None
    unit = _unit(present[0])
    ascending = sorted(float(value * unit) for value in present)
    middle = len(ascending) // 2
    whole = ascending[middle] if len(ascending) % 2 else (ascending[middle - 1] + ascending[middle]) / 2
    return whole / unit


def _distinct(values: Values) -> int:
    present = _present(values)
    return len({"NaN" if value != value else value for value in present})


def _extreme(best: Callable[[Values], Value]) -> Callable[[Values], Value]:
    def choose(values: Values) -> Value:
        present = _present(values)
        if any(value != value for value in present):
            return math.nan
        return best(present) if present else None

    return choose


AGGREGATES: Mapping[str, Callable[[Values], Value]] = {
    "avg": _average,
    "sum": _sum,
    "min": _extreme(min),
    "max": _extreme(max),
    "count": _count,
    "first": lambda values: values[0] if values else None,
    "last": lambda values: values[-1] if values else None,
    "median": _median,
    "count_distinct": _distinct,
}

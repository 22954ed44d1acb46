"""Compute aggregates over the values of a binding, as SPEC section 2 says.

NULLs are skipped; over no value the result is NULL, and the count 0. Sums and averages add in event
order and propagate NaN. An extreme is NaN if one value is. An average is a float: the sum by the
count. For decimals the unscaled sum is divided by the count, then by the power of ten.
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
    return reduce(ARITHMETIC["+"], present) if present else None


def _average(values: Values) -> float | None:
    total, count = _sum(values), _count(values)
    if total is None:
        return None
    if isinstance(total, Decimal):
        exponent = total.as_tuple().exponent
        assert isinstance(exponent, int)
        return float(total.scaleb(-exponent)) / count / float(10**-exponent)
    return float(total) / count


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
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
}

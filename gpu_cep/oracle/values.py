"""Operate on plain values: three-valued logic, exact integers and decimals, IEEE floats (docs/language.md)."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import localcontext
from functools import reduce
from typing import Any

from gpu_cep.errors import EventError, PatternError

Value = Any  # bool, int, float, Decimal, Fraction, str or None


def negation(value: bool | None) -> bool | None:
    """Return NOT of a truth value; None is NULL."""
    return None if value is None else not value


def conjunction(left: bool | None, right: bool | None) -> bool | None:
    """Return AND of two truth values; None is NULL."""
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def disjunction(left: bool | None, right: bool | None) -> bool | None:
    """Return OR of two truth values; None is NULL."""
    return negation(conjunction(negation(left), negation(right)))


def is_like(text: str, pattern: str) -> bool:
    """Return whether a whole text fits a pattern of LIKE, in which a backslash makes the character behind it plain."""
    wildcards = {"%": ".*", "_": "."}
    pieces = re.findall(r"\\.|.", pattern, flags=re.DOTALL)
    expression = "".join(wildcards.get(piece, re.escape(piece[-1])) for piece in pieces)
    return re.fullmatch(expression, text, flags=re.DOTALL) is not None


def has_match(text: str, pattern: str) -> bool:
    """Return whether a part of the text fits a regular expression of the forms that Python and RE2 share."""
    return re.search(pattern, text) is not None


def checked(value: Value) -> Value:
    """Return the value; raise EventError if it is a whole number beyond 64 bits."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise EventError(f"integer overflow in a condition: {value} does not fit in 64 bits")
    return value


def _exact(function: Callable[[Any, Any], Value]) -> Callable[[Any, Any], Value]:
    def apply(left: Value, right: Value) -> Value:
        with localcontext() as context:
            context.prec = 100
            return checked(function(left, right))

    return apply


def _quotient(left: float, right: float) -> float | None:
    return None if right == 0 else left / right


def _remainder(left: Value, right: Value) -> Value:
    if right == 0:
        return None
    if isinstance(left, int):
        return int(math.copysign(1, left)) * (abs(left) % abs(right))
    if isinstance(left, float):
        return math.nan if math.isinf(left) else math.fmod(left, right)
    return left % right  # Decimal: the sign of the dividend


ARITHMETIC: Mapping[str, Callable[[Any, Any], Value]] = {
    "+": _exact(operator.add),
    "-": _exact(operator.sub),
    "*": _exact(operator.mul),
    "/": _quotient,
    "%": _exact(_remainder),
}


def correlation(left: Sequence[Value], right: Sequence[Value]) -> float | None:
    """Return Pearson's correlation of two lists, summed in the order of positions.

    It is NULL if a number is NULL or all numbers of a list are equal.
    """
    if len(left) != len(right):
        raise PatternError(f"corr takes lists of one length, not of {len(left)} and {len(right)}")
    if None in (*left, *right) or _are_equal(left) or _are_equal(right):
        return None
    one, other = _differences(left), _differences(right)
    scale = math.sqrt(_inner_product(one, one) * _inner_product(other, other))
    return _quotient(_inner_product(one, other), scale)


def _are_equal(values: Sequence[Value]) -> bool:
    return all(value == values[0] for value in values)


def _differences(values: Sequence[Value]) -> list[float]:
    numbers = [float(value) for value in values]
    mean = _in_order(numbers) / len(numbers)
    return [number - mean for number in numbers]


def _inner_product(left: Sequence[float], right: Sequence[float]) -> float:
    return _in_order(x * y for x, y in zip(left, right, strict=True))


def _in_order(values: Iterable[float]) -> float:
    """Return the sum, rounded after each term; sum() does not promise that."""
    return reduce(operator.add, values, 0.0)


def _on_finite(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: float(function(value)) if math.isfinite(value) else value


def _half_away_from_zero(value: float) -> float:
    whole = math.trunc(value)
    return whole + math.copysign(1, value) if abs(value - whole) >= 0.5 else whole


def _sign(value: Value) -> Value:
    if value != value:
        return value
    return type(value)((value > 0) - (value < 0))


def _extreme(best: Callable[..., Value]) -> Callable[[list[Value]], Value]:
    def choose(values: list[Value]) -> Value:
        present = [value for value in values if value is not None]
        return best(present, key=lambda value: (value != value, value)) if present else None

    return choose


def _nullif(values: list[Value]) -> Value:
    value, other = values
    return None if value is not None and value == other else value


CHOICES: Mapping[str, Callable[[list[Value]], Value]] = {
    "least": _extreme(min),
    "greatest": _extreme(max),
    "coalesce": lambda values: next((value for value in values if value is not None), None),
    "nullif": _nullif,
}
FLOAT_FUNCTIONS: Mapping[str, Callable[[float], float]] = {
    "floor": _on_finite(math.floor),
    "ceil": _on_finite(math.ceil),
    "round": _on_finite(_half_away_from_zero),
    "sqrt": lambda value: math.nan if value < 0 else math.sqrt(value),
}
NUMBER_FUNCTIONS: Mapping[str, Callable[[Any], Value]] = {"abs": lambda value: checked(abs(value)), "sign": _sign}
STRING_FUNCTIONS: Mapping[str, Callable[[str], Value]] = {"length": len, "lower": str.lower, "upper": str.upper}

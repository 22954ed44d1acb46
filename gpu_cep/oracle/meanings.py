"""Combine what expressions mean: comparisons, arithmetic, connectives and functions of values, by kind.

The logic is three-valued: NULL is None, and most operations on it are NULL.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any

from gpu_cep.errors import PatternError
from gpu_cep.oracle.values import ARITHMETIC, Value, conjunction, disjunction, negation


class Kind(enum.Enum):
    """The kind of a value."""

    NULL = "null"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    FRACTION = "fraction"  # a literal such as 0.5: a decimal beside decimals, else a float
    STRING = "string"
    TIME = "time"
    ZONED_TIME = "time with zone"
    DURATION = "duration"
    LIST = "fixed-size list of numbers"
    OTHER = "other"


NUMBERS = (Kind.INTEGER, Kind.FRACTION, Kind.DECIMAL, Kind.FLOAT)


@dataclass(frozen=True, slots=True)
class Meaning:
    """The kind of an expression, and the function that computes its value.

    It is given an :class:`Assignment`, or in row patterns a place in a match.
    """

    kind: Kind
    value: Callable[[Any], Value]


CONNECTIVES = {"AND": conjunction, "OR": disjunction}
COMPARISONS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def aggregate_kind(function: str, kind: Kind) -> Kind:
    """Return the kind of an aggregate over values of `kind`; PatternError if there is none."""
    if function in ("count", "count_distinct"):
        return Kind.INTEGER
    summable = {"avg": NUMBERS, "median": NUMBERS, "sum": (*NUMBERS, Kind.DURATION)}.get(function)
    if summable is not None and kind not in (*summable, Kind.NULL):
        raise PatternError(f"{function} does not take a {kind.value}")
    return Kind.FLOAT if function in ("avg", "median") else kind


def common(kinds: Iterable[Kind]) -> Kind:
    """Return the kind in which values of `kinds` are compared, or in which one of them is chosen."""
    present = {kind for kind in kinds if kind is not Kind.NULL}
    if len(present) <= 1:
        return Kind.FLOAT if present == {Kind.FRACTION} else next(iter(present), Kind.NULL)
    if not present <= set(NUMBERS):
        raise PatternError(f"{' and '.join(sorted(kind.value for kind in present))} do not compare")
    return Kind.FLOAT if Kind.FLOAT in present or Kind.DECIMAL not in present else Kind.DECIMAL


def cast_to(kind: Kind, operand: Meaning) -> Meaning:
    """Return the operand as a float or a decimal, where `kind` is one of these; else as it is."""
    cast = {Kind.FLOAT: float, Kind.DECIMAL: Decimal}.get(kind)
    return operand if cast is None else strict(kind, cast, operand)


def strict(kind: Kind, function: Callable[..., Value], *operands: Meaning) -> Meaning:
    """Return the operation `function` on the operands' values, which is NULL if one of them is."""

    def value(assignment: Any) -> Value:
        values = [operand.value(assignment) for operand in operands]
        return None if any(value is None for value in values) else function(*values)

    return Meaning(kind, value)


def require(operands: Iterable[Meaning], kinds: tuple[Kind, ...], name: str) -> None:
    """Raise PatternError if an operand of `name` is of none of these kinds, and not NULL."""
    for operand in operands:
        if operand.kind is not Kind.NULL and operand.kind not in kinds:
            raise PatternError(f"{name} does not take a {operand.kind.value}")


def combine(connective: Callable[..., bool | None], parts: Iterable[Meaning], *, negated: bool) -> Meaning:
    """Return the connective of all parts, or its negation."""
    parts = tuple(parts)

    def value(assignment: Any) -> bool | None:
        result = reduce(connective, (part.value(assignment) for part in parts))
        return negation(result) if negated else result

    return Meaning(Kind.BOOLEAN, value)


def comparison(name: str, left: Meaning, right: Meaning) -> Meaning:
    """Return a comparison in the kind that both sides have in common."""
    kind = common((left.kind, right.kind))
    return strict(Kind.BOOLEAN, COMPARISONS[name], cast_to(kind, left), cast_to(kind, right))


def arithmetic(name: str, left: Meaning, right: Meaning) -> Meaning:
    """Return an operation on two numbers, or on times and lengths of time."""
    times = (Kind.TIME, Kind.ZONED_TIME, Kind.DURATION)
    if left.kind in times or right.kind in times:
        return _time_arithmetic(name, left, right)
    require((left, right), NUMBERS, name)
    kind = Kind.FLOAT if name == "/" else common((left.kind, right.kind))
    return strict(kind, ARITHMETIC[name], cast_to(kind, left), cast_to(kind, right))


def _time_arithmetic(name: str, left: Meaning, right: Meaning) -> Meaning:
    kinds = (left.kind, name, right.kind)
    if Kind.NULL in kinds:
        return Meaning(Kind.NULL, lambda assignment: None)
    if kinds == (Kind.DURATION, "/", Kind.DURATION):
        return strict(Kind.FLOAT, ARITHMETIC["/"], cast_to(Kind.FLOAT, left), cast_to(Kind.FLOAT, right))
    for time in (Kind.TIME, Kind.ZONED_TIME):
        results = {
            (time, "-", time): Kind.DURATION,
            (time, "+", Kind.DURATION): time,
            (time, "-", Kind.DURATION): time,
            (Kind.DURATION, "+", time): time,
            (Kind.DURATION, "+", Kind.DURATION): Kind.DURATION,
            (Kind.DURATION, "-", Kind.DURATION): Kind.DURATION,
            (Kind.DURATION, "*", Kind.INTEGER): Kind.DURATION,
            (Kind.INTEGER, "*", Kind.DURATION): Kind.DURATION,
        }
        if kinds in results:
            return strict(results[kinds], {"+": operator.add, "-": operator.sub, "*": operator.mul}[name], left, right)
    raise PatternError(f"{left.kind.value} {name} {right.kind.value} has no meaning")

"""Build aggregates over the events of a binding, and calls of scalar functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gpu_cep.errors import PatternError
from gpu_cep.lang import ast as tree
from gpu_cep.lang.builder.constants import name
from gpu_cep.lang.builder.expressions import Expression, Value, condition, operand
from gpu_cep.lang.builder.patterns import Variable, name_of
from gpu_cep.lang.builder.references import BoundEvent, EarlierEvents, EarlierValues, public

Values = Expression | EarlierValues


def prev(attribute: Expression) -> Expression:
    """Return ``prev(v.x)``: x of the event bound to v just before the current one.

    >>> from gpu_cep.lang.builder import prev, var
    >>> p = var("p").plus()
    >>> p.x > 0.8 * prev(p.x)
    p.x > 0.8 * prev(p.x)
    """
    match attribute:
        case Expression(ast=tree.Reference(variable=str(variable), attribute=str(read), index=None)):
            return Expression(tree.PrevBound(variable, read))
    raise TypeError("prev takes one attribute of a variable: prev(v.x)")


def first(attribute: Values) -> Expression:
    """Return the attribute of the first event bound."""
    return _aggregate("first", attribute)


def last(attribute: Values) -> Expression:
    """Return the attribute of the last event bound."""
    return _aggregate("last", attribute)


def avg(attribute: Values) -> Expression:
    """Return the mean over all events bound, or over those before the current one.

    >>> from gpu_cep.lang.builder import avg, i, var
    >>> p = var("p").plus()
    >>> p[i].x > avg(p[: i - 1].x)
    p[i].x > avg(p[..i-1].x)
    """
    return _aggregate("avg", attribute)


def median(attribute: Values) -> Expression:
    """Return the middle value of all events bound, in RETURN."""
    return _aggregate("median", attribute)


def count_distinct(attribute: Values) -> Expression:
    """Return ``count(DISTINCT v.x)``: how many values of the attribute differ, in RETURN.

    >>> from gpu_cep.lang.builder import count_distinct, var
    >>> p = var("p").plus()
    >>> count_distinct(p.x)
    count(DISTINCT p.x)
    """
    return _aggregate("count_distinct", attribute)


def sum(attribute: Values) -> Expression:
    """Return the sum over all events bound, or over those before the current one."""
    return _aggregate("sum", attribute)


def min(attribute: Values) -> Expression:
    """Return the least value of all events bound, or of those before the current one.

    ``fn.least`` compares several values.
    """
    return _aggregate("min", attribute)


def max(attribute: Values) -> Expression:
    """Return the greatest value of all events bound, or of those before the current one.

    ``fn.greatest`` compares several values.
    """
    return _aggregate("max", attribute)


def count(counted: Values | Variable | BoundEvent | EarlierEvents) -> Expression:
    """Return the number of events bound, or of those where the attribute is not NULL.

    >>> from gpu_cep.lang.builder import count, var
    >>> p = var("p").plus()
    >>> (count(p) >= 2) & (count(p.x) == count(p))
    count(p) >= 2 AND count(p.x) = count(p)
    """
    match counted:
        case Variable():
            return Expression(tree.Aggregate("count", name_of(counted), None))
        case BoundEvent(ast=tree.Reference(variable=str(variable), index=tree.EachIndex())):
            return Expression(tree.Aggregate("count", variable, None))
        case EarlierEvents():
            return Expression(tree.Aggregate("count", counted.variable, None, running=True))
    return _aggregate("count", counted)


def case(*branches: tuple[Expression, Value], otherwise: Value = None) -> Expression:
    """Return ``CASE WHEN … END``: the value of the first condition that is true, else `otherwise`.

    >>> from gpu_cep.lang.builder import case, var
    >>> p = var("p")
    >>> case((p.x > 9, "high"), (p.x > 5, "middle"), otherwise="low")
    CASE WHEN p.x > 9 THEN 'high' WHEN p.x > 5 THEN 'middle' ELSE 'low' END
    """
    if not branches or not all(isinstance(branch, tuple) and len(branch) == 2 for branch in branches):
        raise TypeError("case takes pairs of a condition and a value: case((v.x > 1, 'high'), otherwise='low')")
    conditions, values = zip(*branches, strict=True)
    last_value = None if otherwise is None else operand(otherwise)
    return Expression(tree.Case(tuple(map(condition, conditions)), tuple(map(operand, values)), last_value))


@dataclass(frozen=True, slots=True)
class Functions:
    """A namespace of scalar functions: ``fn.lower(v.x)``, or ``fn("lower", v.x)``."""

    def __call__(self, function: str, *arguments: Value) -> Expression:
        called = name(function, "a function").lower()
        if called in (*tree.AGGREGATES, "prev"):
            raise PatternError(f"{called} is no scalar function: write {called}(v.x), imported from gpu_cep")
        return Expression(tree.Call(called, tuple(map(operand, arguments))))

    def __getattr__(self, function: str) -> Callable[..., Expression]:
        return partial(self, public(function))


fn = Functions()
"""The scalar functions of conditions, by their names: ``fn.lower(v.x) == "a"``, ``fn.least(v.x, v.y)``."""


def _aggregate(function: str, values: object) -> Expression:
    match values:
        case EarlierValues():
            return Expression(tree.Aggregate(function, values.variable, values.attribute, running=True))
        case Expression(ast=tree.Reference(variable=str(variable), attribute=str(read), index=None | tree.EachIndex())):
            return Expression(tree.Aggregate(function, variable, read))
    own = "a variable or one of its attributes: count(v), count(v.x)"
    raise TypeError(f"{function} takes {own if function == 'count' else f'one attribute of a variable: {function}(v.x)'}")

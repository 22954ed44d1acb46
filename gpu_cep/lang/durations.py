"""Read BETWEEN behind a boolean condition in DEFINE as the duration of the situation (docs/intervals.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from gpu_cep.lang import ast
from gpu_cep.lang.ast_intervals import IntervalQuery, Situation

# Tells whether an expression in the condition of the situation with a name is a truth value.
IsBoolean = Callable[[str, ast.Expression], bool]


class _Lasting(NamedTuple):
    """A condition, and the shortest and the longest duration that were written behind it."""

    condition: ast.Expression
    low: ast.Window
    high: ast.Window


def with_durations(query: IntervalQuery, is_boolean: IsBoolean) -> IntervalQuery:
    """Return the query with each ``f BETWEEN 2 AND 5`` that ends a situation's condition as its duration.

    The parser takes BETWEEN behind a single operand for the operator. That has no
    meaning for truth values.

    Parameters
    ----------
    query
        What the parser gives.
    is_boolean
        Tells whether an expression is a truth value, which its types decide.
    """
    return replace(query, situations=tuple(_with_duration(situation, is_boolean) for situation in query.situations))


def _with_duration(situation: Situation, is_boolean: IsBoolean) -> Situation:
    bounded = situation.at_least is not None or situation.at_most is not None
    lasting = None if bounded else _split(situation.condition, partial(is_boolean, situation.name))
    return situation if lasting is None else replace(situation, condition=lasting.condition, at_least=lasting.low, at_most=lasting.high)


def _split(condition: ast.Expression, is_boolean: Callable[[ast.Expression], bool]) -> _Lasting | None:
    """Return the condition without the duration at its end; None if there is none."""
    match condition:
        case ast.Between(operand, low, high, negated=False):
            shortest, longest = _length(low), _length(high)
            return None if shortest is None or longest is None or not is_boolean(operand) else _Lasting(operand, shortest, longest)
        case ast.Connective(_, (*others, last_operand)) if last := _split(last_operand, is_boolean):
            return last._replace(condition=ast.connect(condition.operator, (*others, last.condition), condition.span))
        case ast.Unary("NOT", operand) if last := _split(operand, is_boolean):
            return last._replace(condition=replace(condition, operand=last.condition))
    return None


def _length(expression: ast.Expression) -> ast.Window | None:
    """Return the length of time that a constant stands for; None if it stands for none."""
    match expression:
        case ast.DurationLiteral(amount, unit):
            return ast.Window(amount, unit, span=expression.span)
        case ast.Literal(int() | Decimal() as amount) if not isinstance(amount, bool) and amount >= 0:
            return ast.Window(amount, None, span=expression.span)
    return None

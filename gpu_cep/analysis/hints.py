"""Say what may have been meant where operands do not fit together."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta

from gpu_cep.analysis.bound_expressions import Bound, Constant
from gpu_cep.analysis.coercion import INSTANT, NUMERIC
from gpu_cep.analysis.scope import Scope
from gpu_cep.analysis.types import DataType, Kind
from gpu_cep.lang.ast import Aggregate, Between, Binary, Call, DurationLiteral, Expression, In, Literal, PrevBound, Reference
from gpu_cep.lang.format import format_expression
from gpu_cep.lang.literals import write_text

# The operands of an operator as they are written.
Written = tuple[Expression, Expression]

_NUMBER = re.compile(r"\s*([-+]?\d+(?:\.\d+)?)\s*", re.ASCII)
_ARITHMETIC = frozenset("+-*/%")
_FALSE = frozenset({"0", "false", "f", "no", "n"})
_ZONES = "only one of them has a time zone: write the literal with an offset if the attribute has a zone, without if not"
NOW = "a query means the same whenever it runs: write the time as a literal, TIMESTAMP '2026-01-31 10:00:00'"
CLOCKS = frozenset({"now", "current_timestamp", "current_date", "getdate"})
"""What other languages call the time at which a query runs, with brackets or without."""


def text_hint(text: str) -> str:
    """Return how `text` is written in quotes."""
    return f"a text stands in single quotes: {write_text(text)}"


def name_hint(name: str, scope: Scope) -> str | None:
    """Return what an unknown name that stands alone may mean: the time of now or, where a text may stand, a text; None otherwise."""
    if name.lower() in CLOCKS:
        return NOW
    return None if scope.no_text else text_hint(name)


def beside(node: Expression, scope: Scope) -> Scope:
    """Return the scope of the operands of `node`, which says whether a text may stand among them."""
    operands: tuple[Expression, ...]
    match node:
        case Binary(left=left, right=right):
            operands = (left, right)
        case Between(operand=operand, low=low, high=high):
            operands = (operand, low, high)
        case In(operand=operand, items=items):
            operands = (operand, *items[:1])
        case Call():
            operands = ()
        case _:
            return scope
    no_text = any(_is_no_text(each, scope) for each in operands)
    return scope if no_text == scope.no_text else replace(scope, no_text=no_text)


def _is_no_text(node: Expression, scope: Scope) -> bool:
    """Return whether the values of an expression are certainly other than text."""
    match node:
        case Literal(value=value):
            return value is not None and not isinstance(value, str)
        case Binary(operator=operator):
            return operator in _ARITHMETIC
        case Aggregate(function="count" | "avg" | "sum") | DurationLiteral():
            return True
        case Reference(attribute=str(name)) | Reference(variable=str(name)) | PrevBound(attribute=name) | Aggregate(attribute=str(name)):
            return name in scope.schema.names and scope.column(scope.schema.index(name)).type.kind is not Kind.STRING
    return False


def comparison_hint(name: str, left: Bound, right: Bound, written: Written | None) -> str | None:
    """Return how the comparison `name` of operands that do not compare may have been meant; None if nothing is known of such a pair."""
    kinds = {left.type.kind, right.type.kind}
    if Kind.BOOLEAN in kinds:
        return _truth_value(name, left, right, written)
    if kinds & INSTANT and kinds & (NUMERIC | {Kind.STRING}):
        return "write DATE '…' or TIMESTAMP '…'"
    if Kind.STRING in kinds and kinds & NUMERIC:
        return _quotes(left) or _quotes(right)
    if kinds <= INSTANT:
        return _zones(left, right)
    if Kind.DURATION in kinds and kinds & NUMERIC:
        return "a duration compares with a duration such as 15 days; the difference of two number attributes is a number"
    return None


def _truth_value(name: str, left: Bound, right: Bound, written: Written | None) -> str:
    if written is None or name not in ("eq", "ne"):
        return "a truth value is a condition by itself, or compares with TRUE and FALSE"
    boolean, other = (written[0], right) if left.type.kind is Kind.BOOLEAN else (written[1], left)
    text, is_false = format_expression(boolean), isinstance(other, Constant) and str(other.value).lower() in _FALSE
    return f"write {text}, or {text} = TRUE" if is_false == (name == "ne") else f"write NOT {text}, or {text} = FALSE"


def _quotes(constant: Bound) -> str | None:
    """Return a hint to take a number out of quotes, or to put one in."""
    match constant:
        case Constant(value=str(text)) if number := _NUMBER.fullmatch(text):
            return f"leave the quotes out: {number[1]}"
        case Constant(value=int(value), type=DataType(kind=Kind.INTEGER)):
            return text_hint(str(value))
    return None


def _zones(left: Bound, right: Bound) -> str:
    dates = [each for each in (left, right) if each.type.kind is Kind.DATE]
    if not dates:
        return _ZONES
    if isinstance(dates[0], Constant) and isinstance(dates[0].value, int):
        day = date(1970, 1, 1) + timedelta(days=dates[0].value)
        return f"a DATE has no time zone: write TIMESTAMP '{day} 00:00:00+00:00'"
    return "a date has no time zone: cast one of the columns before they are matched"


def shift_hint(operator: str, left: Bound, right: Bound, written: Written | None) -> str | None:
    """Return how a number without a unit is added to a time, or taken from it; None for other operands."""
    kinds = left.type.kind, right.type.kind
    if written is None or operator not in ("+", "-"):
        return None
    if kinds[0] in INSTANT and (length := _with_unit(written[1], kinds[0])):
        return f"a length of time has a unit: {format_expression(Binary(operator, written[0], length))}"
    if kinds[1] in INSTANT and operator == "+" and (length := _with_unit(written[0], kinds[1])):
        return f"a length of time has a unit: {format_expression(Binary(operator, length, written[1]))}"
    return None


def _with_unit(number: Expression, shifted: Kind) -> Expression | None:
    """Return a number that is written without a unit as a length of time; None if it is no such number."""
    match number:
        case Literal(value=int(amount)) if not isinstance(amount, bool):
            return DurationLiteral(amount, "days" if shifted is Kind.DATE else "seconds", span=number.span)
    return None

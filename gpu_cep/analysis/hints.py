"""Say what may have been meant where operands do not fit together."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, timedelta

from gpu_cep.analysis.bound_expressions import Bound, Constant
from gpu_cep.analysis.coercion import INSTANT, NUMERIC
from gpu_cep.analysis.scope import Scope
from gpu_cep.analysis.types import DataType, Kind
from gpu_cep.lang.ast import Aggregate, Between, Binary, Call, DurationLiteral, Expression, In, Literal, PrevBound, Reference, Span
from gpu_cep.lang.format import format_expression
from gpu_cep.lang.hints import LISTS, NESTED
from gpu_cep.lang.literals import read_timestamp, write_attribute, write_literal, write_text
from gpu_cep.lang.row_patterns.ast import Column, Navigation, RowAggregate
from gpu_cep.lang.row_patterns.names import column_named

# The operands of an operator as they are written.
Written = tuple[Expression, Expression]

_NUMBER = re.compile(r"\s*([-+]?\d+(?:\.\d+)?)\s*", re.ASCII)
_ARITHMETIC = frozenset("+-*/%")
_NO_TEXT = DataType(Kind.OTHER)
_SHOWN = {Kind.STRING: "'…'", Kind.DATE: "DATE '…'", Kind.TIMESTAMP: "TIMESTAMP '…'"} | dict.fromkeys(NUMERIC, "1")
_UUID = "cast a UUID to text before it is matched: df['id'].astype(str) in pandas, CAST(id AS VARCHAR) in SQL"
_FALSE = frozenset({"0", "false", "f", "no", "n"})
_TIMES = "write DATE '…' or TIMESTAMP '…'"
_ZONES = "only one of them has a time zone: write the literal with an offset if the attribute has a zone, without if not"
NOW = "a query means the same whenever it runs: write the time as a literal, TIMESTAMP '2026-01-31 10:00:00'"
CLOCKS = frozenset({"now", "current_timestamp", "current_date", "getdate"})
"""What other languages call the time at which a query runs, with brackets or without."""


def text_hint(text: str) -> str:
    """Return how `text` is written in quotes."""
    return f"a text stands in single quotes: {write_text(text)}"


def name_hint(name: str, span: Span | None, scope: Scope) -> str | None:
    """Return what an unknown name that stands alone may mean: the time of now, or a text; None if it is neither.

    What is written in quotes is meant as a text or as a time.
    """
    if name.lower() in CLOCKS:
        return NOW
    if _in_quotes(name, span):
        return quoted_hint(name, scope)
    return text_hint(name) if scope.beside is None else None


def quoted_hint(name: str, scope: Scope) -> str:
    """Return what an unknown name in double quotes may mean, by what stands beside it."""
    if scope.beside is None:
        return text_hint(name)
    if scope.beside.kind in INSTANT:
        return _time_hint(name, scope.beside)
    return (scope.beside.kind in NUMERIC and _unquoted(name)) or text_hint(name)


def _time_hint(text: str | None, beside: DataType) -> str:
    """Return how the time that `text` names is written beside another time.

    It has a zone if that has one. If the text names no time, both literals are shown.
    """
    try:
        time = read_timestamp(text or "")
    except ValueError:
        return _TIMES
    if (beside.zone is None) != (time.tzinfo is None):
        time = time.replace(tzinfo=None if beside.zone is None else UTC)
    is_day = text == str(time.date()) and time.tzinfo is None
    return f"write {write_literal(Literal(time.date() if is_day else time))}"


def _in_quotes(name: str, span: Span | None) -> bool:
    """Return whether a name is written in quotes, or must be."""
    if span is None or span.line != span.end_line:
        return write_attribute(name) != name
    return span.end_column - span.column != len(name)


def beside(node: Expression, scope: Scope) -> Scope:
    """Return the scope of the operands of `node`: hints there tell which type other than text stands among them."""
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
    found = next(filter(None, (_other_than_text(each, scope) for each in operands)), None)
    return scope if found == scope.beside else replace(scope, beside=found)


def _other_than_text(node: Expression, scope: Scope) -> DataType | None:
    """Return the type of an expression's values, OTHER where more would have to be bound; None if they may be text."""
    match node:
        case Literal(value=value):
            return None if value is None or isinstance(value, str) else _NO_TEXT
        case Binary(operator=operator):
            return _NO_TEXT if operator in _ARITHMETIC else None
        case Aggregate(function="count" | "avg" | "sum") | RowAggregate(function="count" | "avg" | "sum") | DurationLiteral():
            return _NO_TEXT
        case Reference(attribute=str(name)) | Reference(variable=str(name)) | PrevBound(attribute=name) | Aggregate(attribute=str(name)):
            return _type_of_column(name if name in scope.schema.names else None, scope)
        case Column(name=name):
            return _type_of_column(column_named(name, scope.schema.names), scope)
        case Navigation(argument=argument) | RowAggregate(argument=Expression() as argument):
            return _other_than_text(argument, scope)
    return None


def _type_of_column(name: str | None, scope: Scope) -> DataType | None:
    if name is None:
        return None
    found = scope.column(scope.schema.index(name)).type
    return None if found.kind is Kind.STRING else found


def comparison_hint(name: str, left: Bound, right: Bound, written: Written | None) -> str | None:
    """Return how the comparison `name` of operands that do not compare may have been meant; None if nothing is known of such a pair."""
    kinds = {left.type.kind, right.type.kind}
    if Kind.BOOLEAN in kinds:
        return _truth_value(name, left, right, written)
    if kinds & INSTANT and kinds & (NUMERIC | {Kind.STRING}):
        return _time_hint(_written_text(left) or _written_text(right), left.type if left.type.kind in INSTANT else right.type)
    if Kind.STRING in kinds and kinds & NUMERIC:
        return _quotes(left) or _quotes(right) or _one_kind(left, right)
    if kinds <= INSTANT:
        return _zones(left, right)
    if Kind.DURATION in kinds and kinds & NUMERIC:
        return "a duration compares with a duration such as 15 days; the difference of two number attributes is a number"
    return None


def _written_text(bound: Bound) -> str | None:
    """Return the text of a literal; None for what is no literal of text."""
    return bound.value if isinstance(bound, Constant) and isinstance(bound.value, str) else None


def _truth_value(name: str, left: Bound, right: Bound, written: Written | None) -> str:
    if written is None or name not in ("eq", "ne"):
        return "a truth value is a condition by itself, or compares with TRUE and FALSE"
    boolean, other = (written[0], right) if left.type.kind is Kind.BOOLEAN else (written[1], left)
    if isinstance(boolean, Literal):
        return _as_truth_value(other, written[1] if boolean is written[0] else written[0], holds=boolean.value == (name == "eq"))
    text, is_false = format_expression(boolean), isinstance(other, Constant) and str(other.value).lower() in _FALSE
    return f"write {text}, or {text} = TRUE" if is_false == (name == "ne") else f"write NOT {text}, or {text} = FALSE"


def _as_truth_value(value: Bound, written: Expression, *, holds: bool) -> str:
    """Return how a value that is no truth value compares where TRUE or FALSE stands beside it."""
    text = format_expression(written)
    if value.type.kind in NUMERIC:
        return f"a number compares with a number: {text} {'<>' if holds else '='} 0"
    constant = str(holds).lower()
    return f"a text compares with a text: {text} = '{constant}'" if value.type.kind is Kind.STRING else f"{text} is no truth value"


def condition_hint(written: Expression, type: DataType) -> str | None:
    """Return how a value that stands where a condition should becomes one."""
    if isinstance(written, Literal) or type.kind in (Kind.OTHER, Kind.NULL):
        return None
    text, constant = format_expression(written), _SHOWN.get(type.kind, "…")
    return f"compare it: {text} = {constant}"


def column_hint(type: DataType) -> str:
    """Return what to make of a column of a type that operators and keys do not take, before its events are matched."""
    if type.name.startswith(("struct", "map")):
        return NESTED
    if "list" in type.name:
        return LISTS
    is_uuid = "uuid" in type.name or type.name == "fixed_size_binary[16]"
    return _UUID if is_uuid else "cast the column before it is matched, such as to text"


def key_types(type: DataType) -> str:
    """Return the types that keys may have, and what to make of a column of another `type`."""
    return f"keys are numbers, texts, truth values, dates, timestamps and durations; {column_hint(type)}"


def _quotes(constant: Bound) -> str | None:
    """Return a hint to take a number out of quotes, or to put one in."""
    match constant:
        case Constant(value=str(text)):
            return _unquoted(text)
        case Constant(value=int(value), type=DataType(kind=Kind.INTEGER)):
            return text_hint(str(value))
    return None


def _one_kind(left: Bound, right: Bound) -> str:
    """Return what to do about a text beside a number, neither of which can be written as the other."""
    constant = any(isinstance(each, Constant) for each in (left, right))
    return "a number compares with a number, a text with a text" if constant else "cast one of the columns before they are matched"


def _unquoted(text: str) -> str | None:
    """Return a hint to take the number that a text holds out of its quotes; None if it holds none."""
    number = _NUMBER.fullmatch(text)
    return number and f"leave the quotes out: {number[1]}"


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

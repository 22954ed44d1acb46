"""Compute the value of an expression, as docs/language.md says.

An expression is read once into a :class:`Meaning`: its kind, and a function from events to its
value. NULL is None, and the logic is three-valued throughout. Dates and timestamps are nanoseconds
since the epoch, durations are nanoseconds. These are Python integers, which do not overflow.

Choices that SQL dialects differ in:

* ``round`` rounds half away from zero;
* ``least`` and ``greatest`` skip NULL, and NaN is the greatest of all, as in Spark;
* ``floor``, ``ceil`` and ``round`` leave integers alone and otherwise compute in floats;
* ``sqrt`` always computes in floats, and is NaN for a negative number;
* a number literal with a fraction is a float, unless it meets a decimal.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import reduce, singledispatch
from typing import Any

from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.lang import ast
from gpu_cep.oracle.aggregates import AGGREGATES
from gpu_cep.oracle.values import (
    ARITHMETIC,
    CHOICES,
    FLOAT_FUNCTIONS,
    NUMBER_FUNCTIONS,
    STRING_FUNCTIONS,
    Value,
    checked,
    conjunction,
    correlation,
    disjunction,
    has_match,
    is_like,
    negation,
)

Row = Mapping[str, Value]


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
class Assignment:
    """The events that an expression reads.

    `bound`: the events bound to each variable.
    `index`: the index of the current event of each variable that is read one event at a time.
    """

    bound: Mapping[str, Sequence[Row]]
    index: Mapping[str, int]

    def current(self, variable: str) -> Row:
        return self.bound[variable][self.index[variable]]

    def previous(self, variable: str) -> Row:
        """Return the event bound just before the current one, which must exist."""
        return self.bound[variable][self.index[variable] - 1]

    def earlier(self, variable: str) -> Sequence[Row]:
        """Return all events bound before the current one."""
        return self.bound[variable][: self.index[variable]]


@dataclass(frozen=True, slots=True)
class Meaning:
    """The kind of an expression, and the function that computes its value.

    It is given an :class:`Assignment`, or in row patterns a place in a match.
    """

    kind: Kind
    value: Callable[[Any], Value]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A function that the caller brings, and the kind of its result."""

    body: Callable[..., Value]
    kind: Kind


@dataclass(frozen=True, slots=True)
class Schema:
    """The names that expressions can use.

    `kinds`: the kind of each attribute. `functions`: the caller's functions.
    """

    kinds: Mapping[str, Kind]
    functions: Mapping[str, Scalar] = field(default_factory=dict)


@singledispatch
def meaning(expression: ast.Expression, schema: Schema) -> Meaning:
    """Return the kind of `expression` and how to compute it, over events with attributes `schema`."""
    raise UnsupportedError(f"the oracle does not evaluate {type(expression).__name__} in a condition")


@meaning.register
def _(expression: ast.Literal, schema: Schema) -> Meaning:
    kind, value = _literal(expression.value)
    return Meaning(kind, lambda assignment: value)


def _literal(value: Any) -> tuple[Kind, Value]:
    if value is None:
        return Kind.NULL, None
    if isinstance(value, bool):
        return Kind.BOOLEAN, value
    if isinstance(value, datetime):
        return (Kind.TIME if value.tzinfo is None else Kind.ZONED_TIME), _nanoseconds(value)
    if isinstance(value, date):
        return Kind.TIME, _nanoseconds(datetime(value.year, value.month, value.day))
    kinds = {int: Kind.INTEGER, float: Kind.FLOAT, Decimal: Kind.FRACTION, str: Kind.STRING}
    return kinds[type(value)], value


def _nanoseconds(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1_000


@meaning.register
def _(expression: ast.DurationLiteral, schema: Schema) -> Meaning:
    length = Fraction(expression.amount) * ast.UNITS[expression.unit]
    return Meaning(Kind.DURATION, lambda assignment: length)


@meaning.register
def _(expression: ast.Reference, schema: Schema) -> Meaning:
    variable, attribute = expression.variable, expression.attribute
    if variable is None or attribute is None:
        raise PatternError("a condition reads variable.attribute")
    kind = attribute_kind(attribute, schema)
    match expression.index:
        case None | ast.EachIndex():
            return Meaning(kind, lambda assignment: assignment.current(variable)[attribute])
        case ast.PreviousIndex():
            return Meaning(kind, lambda assignment: assignment.previous(variable)[attribute])
        case ast.NumberIndex(number=1):
            return Meaning(kind, lambda assignment: assignment.bound[variable][0][attribute])
        case ast.LastIndex():
            return Meaning(kind, lambda assignment: assignment.bound[variable][-1][attribute])
    raise UnsupportedError("of a binding's events, the oracle reads [i], [i-1], [1] and [LEN]")


@meaning.register
def _(expression: ast.PrevBound, schema: Schema) -> Meaning:
    kind = attribute_kind(expression.attribute, schema)
    return Meaning(kind, lambda assignment: assignment.previous(expression.variable)[expression.attribute])


@meaning.register
def _(expression: ast.Aggregate, schema: Schema) -> Meaning:
    variable, attribute = expression.variable, expression.attribute

    def events(assignment: Assignment) -> Sequence[Row]:
        return assignment.earlier(variable) if expression.running else assignment.bound[variable]

    if attribute is None:
        return Meaning(Kind.INTEGER, lambda assignment: len(events(assignment)))
    aggregate = AGGREGATES[expression.function]
    kind = aggregate_kind(expression.function, attribute_kind(attribute, schema))
    return Meaning(kind, lambda assignment: aggregate([row[attribute] for row in events(assignment)]))


def aggregate_kind(function: str, kind: Kind) -> Kind:
    """Return the kind of an aggregate over values of `kind`; PatternError if there is none."""
    if function in ("count", "count_distinct"):
        return Kind.INTEGER
    summable = {"avg": NUMBERS, "median": NUMBERS, "sum": (*NUMBERS, Kind.DURATION)}.get(function)
    if summable is not None and kind not in (*summable, Kind.NULL):
        raise PatternError(f"{function} does not take a {kind.value}")
    return Kind.FLOAT if function in ("avg", "median") else kind


def attribute_kind(name: str, schema: Schema) -> Kind:
    """Return the kind of attribute `name`; PatternError if conditions cannot read it."""
    if name not in schema.kinds:
        raise PatternError(f"unknown attribute {name!r}")
    if schema.kinds[name] is Kind.OTHER:
        raise PatternError(f"attribute {name!r} has a type that conditions cannot read")
    return schema.kinds[name]


CONNECTIVES = {"AND": conjunction, "OR": disjunction}
COMPARISONS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@meaning.register
def _(expression: ast.Binary, schema: Schema) -> Meaning:
    left, right = meaning(expression.left, schema), meaning(expression.right, schema)
    if expression.operator in COMPARISONS:
        return _comparison(expression.operator, left, right)
    return _arithmetic(expression.operator, left, right)


@meaning.register
def _(expression: ast.Connective, schema: Schema) -> Meaning:
    operands = [meaning(operand, schema) for operand in expression.operands]
    _require(operands, (Kind.BOOLEAN,), expression.operator)
    return _combine(CONNECTIVES[expression.operator], operands, negated=False)


@meaning.register
def _(expression: ast.Unary, schema: Schema) -> Meaning:
    operand = meaning(expression.operand, schema)
    if expression.operator == "NOT":
        _require((operand,), (Kind.BOOLEAN,), "NOT")
        return Meaning(Kind.BOOLEAN, lambda assignment: negation(operand.value(assignment)))
    _require((operand,), (*NUMBERS, Kind.DURATION), "-")
    return _strict(operand.kind, lambda value: checked(-value), operand)


@meaning.register
def _(expression: ast.IsNull, schema: Schema) -> Meaning:
    operand, negated = meaning(expression.operand, schema), expression.negated
    return Meaning(Kind.BOOLEAN, lambda assignment: (operand.value(assignment) is None) != negated)


@meaning.register
def _(expression: ast.Between, schema: Schema) -> Meaning:
    operand, low, high = (meaning(part, schema) for part in (expression.operand, expression.low, expression.high))
    return _combine(conjunction, (_comparison(">=", operand, low), _comparison("<=", operand, high)), expression.negated)


@meaning.register
def _(expression: ast.In, schema: Schema) -> Meaning:
    operand = meaning(expression.operand, schema)
    equal = [_comparison("=", operand, meaning(item, schema)) for item in expression.items]
    return _combine(disjunction, equal, expression.negated)


@meaning.register
def _(expression: ast.Like, schema: Schema) -> Meaning:
    operand, pattern = meaning(expression.operand, schema), meaning(expression.pattern, schema)
    _require((operand, pattern), (Kind.STRING,), "LIKE")
    like = _strict(Kind.BOOLEAN, is_like, operand, pattern)
    return _combine(conjunction, (like,), expression.negated)


def _combine(connective: Callable[..., bool | None], parts: Iterable[Meaning], negated: bool) -> Meaning:
    parts = tuple(parts)

    def value(assignment: Assignment) -> bool | None:
        result = reduce(connective, (part.value(assignment) for part in parts))
        return negation(result) if negated else result

    return Meaning(Kind.BOOLEAN, value)


def _comparison(name: str, left: Meaning, right: Meaning) -> Meaning:
    kind = common((left.kind, right.kind))
    return _strict(Kind.BOOLEAN, COMPARISONS[name], _as(kind, left), _as(kind, right))


def _arithmetic(name: str, left: Meaning, right: Meaning) -> Meaning:
    times = (Kind.TIME, Kind.ZONED_TIME, Kind.DURATION)
    if left.kind in times or right.kind in times:
        return _time_arithmetic(name, left, right)
    _require((left, right), NUMBERS, name)
    kind = Kind.FLOAT if name == "/" else common((left.kind, right.kind))
    return _strict(kind, ARITHMETIC[name], _as(kind, left), _as(kind, right))


def _time_arithmetic(name: str, left: Meaning, right: Meaning) -> Meaning:
    kinds = (left.kind, name, right.kind)
    if Kind.NULL in kinds:
        return Meaning(Kind.NULL, lambda assignment: None)
    if kinds == (Kind.DURATION, "/", Kind.DURATION):
        return _strict(Kind.FLOAT, ARITHMETIC["/"], _as(Kind.FLOAT, left), _as(Kind.FLOAT, right))
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
            return _strict(results[kinds], {"+": operator.add, "-": operator.sub, "*": operator.mul}[name], left, right)
    raise PatternError(f"{left.kind.value} {name} {right.kind.value} has no meaning")


@meaning.register
def _(expression: ast.Case, schema: Schema) -> Meaning:
    conditions = [meaning(condition, schema) for condition in expression.conditions]
    _require(conditions, (Kind.BOOLEAN,), "CASE")
    chosen = [meaning(value, schema) for value in (*expression.values, expression.otherwise or ast.Literal(None))]
    kind = common(value.kind for value in chosen)
    *values, otherwise = (_as(kind, value) for value in chosen)

    def value(assignment: Assignment) -> Value:
        tried = zip(conditions, values, strict=True)
        return next((each for condition, each in tried if condition.value(assignment) is True), otherwise).value(assignment)

    return Meaning(kind, value)


@meaning.register
def _(expression: ast.Call, schema: Schema) -> Meaning:
    arguments = [meaning(argument, schema) for argument in expression.arguments]
    name = expression.function
    if name in schema.functions:
        return _call_meaning(schema.functions[name], arguments)
    if name == "corr" and len(arguments) == 2:
        _require(arguments, (Kind.LIST,), name)
        return _strict(Kind.FLOAT, correlation, *arguments)
    if name in CHOICES and len(arguments) >= 1 and (name != "nullif" or len(arguments) == 2):
        kind = common(argument.kind for argument in arguments)
        cast = [_as(kind, argument) for argument in arguments]
        return Meaning(kind, lambda assignment: CHOICES[name]([argument.value(assignment) for argument in cast]))
    if name in FLOAT_FUNCTIONS and len(arguments) == 1:
        _require(arguments, NUMBERS, name)
        if arguments[0].kind is Kind.INTEGER and name != "sqrt":
            return arguments[0]
        return _strict(Kind.FLOAT, FLOAT_FUNCTIONS[name], _as(Kind.FLOAT, arguments[0]))
    if name in NUMBER_FUNCTIONS and len(arguments) == 1:
        _require(arguments, (*NUMBERS, Kind.DURATION), name)
        return _strict(arguments[0].kind, NUMBER_FUNCTIONS[name], arguments[0])
    if name in STRING_FUNCTIONS and len(arguments) == 1:
        _require(arguments, (Kind.STRING,), name)
        kind = Kind.INTEGER if name == "length" else Kind.STRING
        return _strict(kind, STRING_FUNCTIONS[name], arguments[0])
    if name == "regexp_like" and len(arguments) == 2:
        _require(arguments, (Kind.STRING,), name)
        return _strict(Kind.BOOLEAN, has_match, *arguments)
    raise UnsupportedError(f"the oracle does not compute {name}() of {len(arguments)} arguments")


def _call_meaning(function: Scalar, arguments: Sequence[Meaning]) -> Meaning:
    _require(arguments, (Kind.INTEGER, Kind.FRACTION, Kind.FLOAT, Kind.BOOLEAN), "a function")
    given = [_as(Kind.FLOAT, argument) if argument.kind is Kind.FRACTION else argument for argument in arguments]
    result = _strict(function.kind, function.body, *given)
    return _as(function.kind, result)


def common(kinds: Iterable[Kind]) -> Kind:
    """Return the kind in which values of `kinds` are compared, or in which one of them is chosen."""
    present = {kind for kind in kinds if kind is not Kind.NULL}
    if len(present) <= 1:
        return Kind.FLOAT if present == {Kind.FRACTION} else next(iter(present), Kind.NULL)
    if not present <= set(NUMBERS):
        raise PatternError(f"{' and '.join(sorted(kind.value for kind in present))} do not compare")
    return Kind.FLOAT if Kind.FLOAT in present or Kind.DECIMAL not in present else Kind.DECIMAL


def _as(kind: Kind, operand: Meaning) -> Meaning:
    cast = {Kind.FLOAT: float, Kind.DECIMAL: Decimal}.get(kind)
    return operand if cast is None else _strict(kind, cast, operand)


def _strict(kind: Kind, function: Callable[..., Value], *operands: Meaning) -> Meaning:
    """Return the operation `function` on the operands' values, which is NULL if one of them is."""

    def value(assignment: Assignment) -> Value:
        values = [operand.value(assignment) for operand in operands]
        return None if any(value is None for value in values) else function(*values)

    return Meaning(kind, value)


def _require(operands: Iterable[Meaning], kinds: tuple[Kind, ...], name: str) -> None:
    for operand in operands:
        if operand.kind is not Kind.NULL and operand.kind not in kinds:
            raise PatternError(f"{name} does not take a {operand.kind.value}")

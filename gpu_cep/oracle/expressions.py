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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import singledispatch
from typing import Any

from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.lang import ast
from gpu_cep.oracle.aggregates import AGGREGATES
from gpu_cep.oracle.meanings import (
    COMPARISONS,
    CONNECTIVES,
    NUMBERS,
    Kind,
    Meaning,
    aggregate_kind,
    arithmetic,
    cast_to,
    combine,
    common,
    comparison,
    require,
    strict,
)
from gpu_cep.oracle.values import (
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


@dataclass(frozen=True, slots=True)
class Assignment:
    """The events that an expression reads.

    `bound`: the events bound to each variable.
    `index`: the index of the current event of each variable that is read one event at a time.
    """

    bound: Mapping[str, Sequence[Row]]
    index: Mapping[str, int]

    def current(self, variable: str) -> Row:
        """Return the event at which a variable is read."""
        return self.bound[variable][self.index[variable]]

    def previous(self, variable: str) -> Row:
        """Return the event bound just before the current one, which must exist."""
        return self.bound[variable][self.index[variable] - 1]

    def earlier(self, variable: str) -> Sequence[Row]:
        """Return all events bound before the current one."""
        return self.bound[variable][: self.index[variable]]


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


def attribute_kind(name: str, schema: Schema) -> Kind:
    """Return the kind of attribute `name`; PatternError if conditions cannot read it."""
    if name not in schema.kinds:
        raise PatternError(f"unknown attribute {name!r}")
    if schema.kinds[name] is Kind.OTHER:
        raise PatternError(f"attribute {name!r} has a type that conditions cannot read")
    return schema.kinds[name]


@meaning.register
def _(expression: ast.Binary, schema: Schema) -> Meaning:
    left, right = meaning(expression.left, schema), meaning(expression.right, schema)
    if expression.operator in COMPARISONS:
        return comparison(expression.operator, left, right)
    return arithmetic(expression.operator, left, right)


@meaning.register
def _(expression: ast.Connective, schema: Schema) -> Meaning:
    operands = [meaning(operand, schema) for operand in expression.operands]
    require(operands, (Kind.BOOLEAN,), expression.operator)
    return combine(CONNECTIVES[expression.operator], operands, negated=False)


@meaning.register
def _(expression: ast.Unary, schema: Schema) -> Meaning:
    operand = meaning(expression.operand, schema)
    if expression.operator == "NOT":
        require((operand,), (Kind.BOOLEAN,), "NOT")
        return Meaning(Kind.BOOLEAN, lambda assignment: negation(operand.value(assignment)))
    require((operand,), (*NUMBERS, Kind.DURATION), "-")
    return strict(operand.kind, lambda value: checked(-value), operand)


@meaning.register
def _(expression: ast.IsNull, schema: Schema) -> Meaning:
    operand, negated = meaning(expression.operand, schema), expression.negated
    return Meaning(Kind.BOOLEAN, lambda assignment: (operand.value(assignment) is None) != negated)


@meaning.register
def _(expression: ast.Between, schema: Schema) -> Meaning:
    operand, low, high = (meaning(part, schema) for part in (expression.operand, expression.low, expression.high))
    return combine(conjunction, (comparison(">=", operand, low), comparison("<=", operand, high)), negated=expression.negated)


@meaning.register
def _(expression: ast.In, schema: Schema) -> Meaning:
    operand = meaning(expression.operand, schema)
    equal = [comparison("=", operand, meaning(item, schema)) for item in expression.items]
    return combine(disjunction, equal, negated=expression.negated)


@meaning.register
def _(expression: ast.Like, schema: Schema) -> Meaning:
    operand, pattern = meaning(expression.operand, schema), meaning(expression.pattern, schema)
    require((operand, pattern), (Kind.STRING,), "LIKE")
    like = strict(Kind.BOOLEAN, is_like, operand, pattern)
    return combine(conjunction, (like,), negated=expression.negated)


@meaning.register
def _(expression: ast.Case, schema: Schema) -> Meaning:
    conditions = [meaning(condition, schema) for condition in expression.conditions]
    require(conditions, (Kind.BOOLEAN,), "CASE")
    chosen = [meaning(value, schema) for value in (*expression.values, expression.otherwise or ast.Literal(None))]
    kind = common(value.kind for value in chosen)
    *values, otherwise = (cast_to(kind, value) for value in chosen)

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
        require(arguments, (Kind.LIST,), name)
        return strict(Kind.FLOAT, correlation, *arguments)
    if name in CHOICES and len(arguments) >= 1 and (name != "nullif" or len(arguments) == 2):
        kind = common(argument.kind for argument in arguments)
        cast = [cast_to(kind, argument) for argument in arguments]
        return Meaning(kind, lambda assignment: CHOICES[name]([argument.value(assignment) for argument in cast]))
    if name in FLOAT_FUNCTIONS and len(arguments) == 1:
        require(arguments, NUMBERS, name)
        if arguments[0].kind is Kind.INTEGER and name != "sqrt":
            return arguments[0]
        return strict(Kind.FLOAT, FLOAT_FUNCTIONS[name], cast_to(Kind.FLOAT, arguments[0]))
    if name in NUMBER_FUNCTIONS and len(arguments) == 1:
        require(arguments, (*NUMBERS, Kind.DURATION), name)
        return strict(arguments[0].kind, NUMBER_FUNCTIONS[name], arguments[0])
    if name in STRING_FUNCTIONS and len(arguments) == 1:
        require(arguments, (Kind.STRING,), name)
        kind = Kind.INTEGER if name == "length" else Kind.STRING
        return strict(kind, STRING_FUNCTIONS[name], arguments[0])
    if name == "regexp_like" and len(arguments) == 2:
        require(arguments, (Kind.STRING,), name)
        return strict(Kind.BOOLEAN, has_match, *arguments)
    raise UnsupportedError(f"the oracle does not compute {name}() of {len(arguments)} arguments")


def _call_meaning(function: Scalar, arguments: Sequence[Meaning]) -> Meaning:
    require(arguments, (Kind.INTEGER, Kind.FRACTION, Kind.FLOAT, Kind.BOOLEAN), "a function")
    given = [cast_to(Kind.FLOAT, argument) if argument.kind is Kind.FRACTION else argument for argument in arguments]
    result = strict(function.kind, function.body, *given)
    return cast_to(function.kind, result)

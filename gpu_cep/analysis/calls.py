"""Bind calls of the caller's functions, and turn expressions over one event into computed columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpu_cep.analysis.bound_expressions import Aggregation, Bound, Field, Operation, Place, ScalarFunction
from gpu_cep.analysis.coercion import FAULTY, cast, is_fraction, is_written_null
from gpu_cep.analysis.computed_columns import ComputedExpression
from gpu_cep.analysis.operators import describe, without_value
from gpu_cep.analysis.scope import Scope
from gpu_cep.analysis.types import FLOAT, Kind
from gpu_cep.lang.ast import Call, Expression
from gpu_cep.lang.format import format_expression

PARAMETERS = frozenset({Kind.INTEGER, Kind.FLOAT, Kind.BOOLEAN})
# How the names of operations begin that only row patterns have.
_OF_OTHER_ROWS = ("prev", "next", "running ", "final ", "classifier")


def called(function: ScalarFunction, call: Call, arguments: tuple[Bound, ...], scope: Scope) -> Bound:
    """Return a call of the caller's function; the number of arguments has been checked."""
    if FAULTY in arguments:
        return FAULTY
    arguments = tuple(cast(argument, FLOAT) if is_fraction(argument) else argument for argument in arguments)
    for argument in arguments:
        if argument.type.kind not in PARAMETERS and not is_written_null(argument):
            construct = f"{call.function}() of {describe(argument)}"
            scope.faults.refuse(construct, "functions take integers, floats and truth values", call.span)
            return FAULTY
    if (valueless := without_value(arguments)) is not None:
        return valueless
    if not any(_leaves(Operation("call", arguments, FLOAT))):
        scope.faults.refuse(f"{call.function}() of constants alone", "its arguments must read an attribute", call.span)
        return FAULTY
    types = tuple(argument.type for argument in arguments)
    try:
        result = scope.result_type(function, types)
    except TypeError as fault:
        given = ", ".join(map(str, types))
        scope.faults.error(f"{call.function}() cannot be compiled for {given}: {fault}", call.span)
        return FAULTY
    return computed_once(Operation("call", arguments, result, function), call, scope)


def computed_once(expression: Operation, written: Expression, scope: Scope) -> Bound:
    """Return `expression` as a computed column if it reads only the current event of one variable.

    Otherwise return it as it is. `written` is how the query writes it.
    """
    fields = tuple(_leaves(expression))
    if _navigates(expression) or any(not isinstance(field, Field) or field.place is not Place.EACH for field in fields):
        return expression
    variables = {field.variable for field in fields}
    if len(variables) != 1:
        return expression
    columns = tuple(dict.fromkeys(field.column for field in fields if field.column is not None))
    column = scope.compute(ComputedExpression(_of_one_event(expression), columns, format_expression(written)))
    return Field(variables.pop(), column, expression.type)


def _navigates(expression: Bound) -> bool:
    """Return whether an expression of a row pattern reads another row than the one for which it is computed."""
    if not isinstance(expression, Operation):
        return False
    return expression.name.startswith(_OF_OTHER_ROWS) or any(map(_navigates, expression.arguments))


def _of_one_event(expression: Operation) -> Operation:
    return replace(expression, arguments=tuple(_anonymous(argument) for argument in expression.arguments))


def _anonymous(expression: Bound) -> Bound:
    match expression:
        case Operation():
            return _of_one_event(expression)
        case Field():
            return replace(expression, variable=0)
    return expression


def _leaves(expression: Bound) -> Iterator[Field | Aggregation]:
    match expression:
        case Field() | Aggregation():
            yield expression
        case Operation(arguments=arguments):
            for argument in arguments:
                yield from _leaves(argument)

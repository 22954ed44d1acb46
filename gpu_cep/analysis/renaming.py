"""Put a variable in place of another in conditions."""

from __future__ import annotations

from dataclasses import replace

from gpu_cep.analysis.bound import Condition
from gpu_cep.analysis.bound_expressions import Aggregation, Bound, Field, Operation


def renamed(condition: Condition, old: int, new: int) -> Condition:
    """Return the condition with a variable in place of another."""
    variables = tuple(sorted(new if number == old else number for number in condition.variables))
    return replace(condition, expression=with_variable(condition.expression, old, new), variables=variables)


def with_variable(expression: Bound, old: int, new: int) -> Bound:
    """Return the expression with a variable in place of another."""
    match expression:
        case Operation(arguments=arguments):
            return replace(expression, arguments=tuple(with_variable(each, old, new) for each in arguments))
        case Field(variable=variable) | Aggregation(variable=variable) if variable == old:
            return replace(expression, variable=new)
    return expression

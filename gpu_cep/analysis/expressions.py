"""Bind expressions: names become numbers, types become explicit, literals become machine constants."""

from __future__ import annotations

from functools import singledispatch

from gpu_cep.analysis import functions, operators, references
from gpu_cep.analysis.bound_expressions import Bound, Constant, Endpoint, Operation
from gpu_cep.analysis.cases import apply_to_branches, is_null
from gpu_cep.analysis.coercion import FAULTY, cast
from gpu_cep.analysis.hints import beside, condition_hint
from gpu_cep.analysis.literals import constant, span_of_time
from gpu_cep.analysis.memberships import membership
from gpu_cep.analysis.scope import Scope
from gpu_cep.analysis.types import BOOLEAN, NULL, DataType, Kind
from gpu_cep.lang.ast import (
    Aggregate,
    Between,
    Binary,
    Call,
    Case,
    Connective,
    DurationLiteral,
    Equivalence,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    PrevBound,
    Reference,
    Unary,
)
from gpu_cep.lang.limits import fault_of_like


@singledispatch
def bind_expression(node: Expression, scope: Scope) -> Bound:
    """Return `node` with its names and types resolved.

    A fault is recorded in the scope, and NULL stands in its place, so that one pass finds all faults.
    """
    raise TypeError(f"no rule binds {type(node).__name__}")


def bind_operand(node: Expression, scope: Scope) -> Bound:
    """Return the bound `node`; record a fault unless it has one value that operators can take."""
    return references.operand(bind_expression(node, scope), node, scope)


def bind_list(node: Expression, scope: Scope) -> Bound:
    """Return the bound `node`; record a fault unless it is a list of numbers of fixed length."""
    return references.fixed_list(bind_expression(node, scope), node, scope)


def bind_condition(node: Expression, scope: Scope) -> Bound:
    """Return the bound `node`; record a fault unless it is a truth value."""
    condition = bind_operand(node, scope)
    if condition.type.kind not in (Kind.BOOLEAN, Kind.NULL):
        message = f"a condition is true or false; this one is {operators.describe(condition)}"
        scope.faults.error(message, node.span, condition_hint(node, condition.type))
        return FAULTY
    return cast(condition, BOOLEAN)


@bind_expression.register
def _(node: Literal, scope: Scope) -> Bound:
    return constant(node.value)


@bind_expression.register
def _(node: DurationLiteral, scope: Scope) -> Bound:
    literal = span_of_time(node.amount, node.unit)
    if literal is not None:
        return literal
    scope.faults.error(f"{node.amount} {node.unit} is no whole number of nanoseconds", node.span)
    return FAULTY


@bind_expression.register
def _(node: Reference, scope: Scope) -> Bound:
    return references.reference(node, scope)


@bind_expression.register
def _(node: PrevBound, scope: Scope) -> Bound:
    return references.previous(node, scope)


@bind_expression.register
def _(node: Aggregate, scope: Scope) -> Bound:
    return references.aggregate(node, scope)


@bind_expression.register
def _(node: Call, scope: Scope) -> Bound:
    if scope.time is not None and node.function in references.ENDPOINTS:
        return _endpoint(node, scope.time, scope)
    if functions.refuse_whole(node, scope):
        return FAULTY
    bind_argument = bind_list if node.function == "corr" else bind_operand
    return functions.apply(node, tuple(bind_argument(argument, beside(node, scope)) for argument in node.arguments), scope)


@bind_expression.register
def _(node: Case, scope: Scope) -> Bound:
    conditions = tuple(bind_condition(condition, scope) for condition in node.conditions)
    values = tuple(bind_operand(value, scope) for value in node.values)
    otherwise = Constant(None, NULL) if node.otherwise is None else bind_operand(node.otherwise, scope)
    return functions.choose_case(conditions, (*values, otherwise), scope, node.span)


@bind_expression.register
def _(node: Unary, scope: Scope) -> Bound:
    if node.operator == "NOT":
        return Operation("not", (bind_condition(node.operand, scope),), BOOLEAN)
    return operators.negative(bind_operand(node.operand, scope), scope, node.span)


@bind_expression.register
def _(node: Binary, scope: Scope) -> Bound:
    written, inside = (node.left, node.right), beside(node, scope)
    left, right = bind_operand(node.left, inside), bind_operand(node.right, inside)
    if node.operator in operators.COMPARISONS:
        return operators.compare(operators.COMPARISONS[node.operator], left, right, scope, node.span, written)
    return operators.arithmetic(node.operator, left, right, scope, node.span, written)


@bind_expression.register
def _(node: Connective, scope: Scope) -> Bound:
    return Operation(node.operator.lower(), tuple(bind_condition(operand, scope) for operand in node.operands), BOOLEAN)


@bind_expression.register
def _(node: Between, scope: Scope) -> Bound:
    inside = beside(node, scope)
    value, low, high = (bind_operand(each, inside) for each in (node.operand, node.low, node.high))
    bounds = (operators.compare("ge", value, low, scope, node.span), operators.compare("le", value, high, scope, node.span))
    return _unless(node.negated, Operation("and", bounds, BOOLEAN))


@bind_expression.register
def _(node: In, scope: Scope) -> Bound:
    inside = beside(node, scope)
    value = bind_operand(node.operand, inside)
    items = [constant(item.value) if isinstance(item, Literal) else bind_operand(item, inside) for item in node.items]
    return _unless(node.negated, apply_to_branches(value, lambda branch: membership(node, branch, items, scope)))


@bind_expression.register
def _(node: Like, scope: Scope) -> Bound:
    value, pattern = bind_operand(node.operand, scope), bind_operand(node.pattern, scope)
    if not isinstance(pattern, Constant):
        scope.faults.refuse("LIKE with a pattern that is not constant", "the pattern of LIKE must be a string literal", node.span)
        return FAULTY
    if not {value.type.kind, pattern.type.kind} <= {Kind.STRING, Kind.NULL}:
        scope.faults.error(f"cannot apply LIKE to {operators.describe(value)} and {operators.describe(pattern)}", node.span)
        return FAULTY
    if Kind.NULL in (value.type.kind, pattern.type.kind):
        # as NULL as a comparison with NULL, which says of which variable it speaks
        return operators.compare("eq", value, Constant(None, NULL), scope, node.span)
    fault = fault_of_like(str(pattern.value))
    if fault is not None:
        scope.faults.error(fault, node.pattern.span or node.span)
        return FAULTY
    return _unless(node.negated, apply_to_branches(value, lambda branch: _like(node, branch, pattern, scope)))


@bind_expression.register
def _(node: IsNull, scope: Scope) -> Bound:
    value = references.single_value(bind_expression(node.operand, scope), node.operand, scope)
    return _unless(node.negated, apply_to_branches(value, is_null))


@bind_expression.register
def _(node: Equivalence, scope: Scope) -> Bound:
    scope.attribute(node.attribute, node.span)
    supported = f"write [{node.attribute}] as a condition of its own, joined to the others by AND"
    scope.faults.refuse(f"[{node.attribute}] inside another expression", supported, node.span)
    return FAULTY


def _endpoint(node: Call, time: DataType, scope: Scope) -> Bound:
    """Return ``start(A)`` or ``end(A)``; ``duration(A)`` is returned as the difference of the two."""
    variable = references.situation(node, scope)
    if variable is None:
        return FAULTY
    if node.function != "duration":
        return Endpoint(node.function, variable, time)
    start, end = (Endpoint(name, variable, time) for name in ("start", "end"))
    return operators.arithmetic("-", end, start, scope, node.span)


def _like(node: Like, value: Bound, pattern: Constant, scope: Scope) -> Bound:
    if not isinstance(value, Constant):
        return Operation("like", (value, pattern), BOOLEAN)
    if value.value is not None:
        supported = "LIKE tests the text of an attribute; in a CASE, move it into the branches"
        scope.faults.refuse(f"{value.value!r} LIKE a pattern", supported, node.span)
    return Constant(None, BOOLEAN)


def _unless(negated: bool, condition: Bound) -> Bound:
    return Operation("not", (condition,), BOOLEAN) if negated else condition

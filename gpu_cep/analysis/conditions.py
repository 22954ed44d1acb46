"""WHERE, split into conditions: what each relates, and when it can be checked.

A condition is a top-level conjunct. Its kind follows from the events it reads:
one event of one variable is a property, two or more variables a pair, the
event bound before the current one a consecutive condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from gpu_cep.analysis.bound import Bound, Condition, ConditionKind, Constant, Field, Operation, Place
from gpu_cep.analysis.coercion import FAULTY
from gpu_cep.analysis.expressions import bind_condition
from gpu_cep.analysis.literals import INT64_MAX
from gpu_cep.analysis.normalize import Primitive
from gpu_cep.analysis.references import operand
from gpu_cep.analysis.scope import Scope
from gpu_cep.analysis.types import BOOLEAN, INTEGER, STRING, Kind
from gpu_cep.errors import nearest
from gpu_cep.lang.ast import Binary, Equivalence, Expression, Literal, Reference, Span
from gpu_cep.lang.format import format_expression


def bind_where(where: Expression | None, scope: Scope) -> Iterator[Condition]:
    """The conditions of WHERE, in the order in which they are written."""
    for conjunct in _conjuncts(where):
        if isinstance(conjunct, Equivalence):
            yield from _equivalence(conjunct, scope)
        else:
            yield from _condition(conjunct, scope)


def event_types(primitives: Sequence[Primitive], type_column: str, scope: Scope) -> Iterator[Condition]:
    """``EventType v`` as the property ``v.<type_column> = 'EventType'``."""
    typed = [primitive for primitive in primitives if primitive.event_type is not None]
    if not typed:
        return
    if type_column not in scope.schema.names:
        message = f"event types are read from the column that type_column= names, and there is no {type_column!r}"
        scope.faults.error(message, typed[0].span, nearest(type_column, scope.schema.names))
        return
    column = scope.schema.index(type_column)
    for primitive in typed:
        literal = _type_literal(primitive, column, scope)
        if literal is not None:
            variable = scope.names.index(primitive.variable.name)
            field = Field(variable, column, scope.column(column).type)
            text = format_expression(Binary("=", Reference(primitive.variable.name, type_column), Literal(literal.value)))
            yield Condition(Operation("eq", (field, literal), BOOLEAN), ConditionKind.PROPERTY, (variable,), text, span=primitive.span)


def equality(column: int, left: int, right: int, span: Span | None, scope: Scope) -> Condition:
    """``v.A = w.A``: every two events of two variables agree on a column; of one variable, if `left` is `right`."""
    attribute = scope.column(column)
    first, second = (format_expression(Reference(scope.names[variable], attribute.name)) for variable in (left, right))
    if left == right:
        sides = (Field(left, column, attribute.type), Field(left, column, attribute.type, Place.PREVIOUS))
        return Condition(Operation("eq", sides, BOOLEAN), ConditionKind.WITHIN, (left,), f"every {first} equal", span=span)
    sides = (Field(left, column, attribute.type), Field(right, column, attribute.type))
    return Condition(Operation("eq", sides, BOOLEAN), ConditionKind.PAIR, (left, right), f"{first} = {second}", span=span)


def equalities(column: int, span: Span | None, scope: Scope) -> Iterator[Condition]:
    """All events of a match agree on a column: a pair for every two variables, a WITHIN for every quantified one."""
    for left, right in combinations(range(len(scope.variables)), 2):
        yield equality(column, left, right, span, scope)
    for number, variable in enumerate(scope.variables):
        if variable.quantified:
            yield equality(column, number, number, span, scope)


def fields(expression: Bound) -> Iterator[Field]:
    """The fields that `expression` reads, from left to right."""
    if isinstance(expression, Field):
        yield expression
    elif isinstance(expression, Operation):
        for argument in expression.arguments:
            yield from fields(argument)


def _conjuncts(where: Expression | None) -> Iterator[Expression]:
    if isinstance(where, Binary) and where.operator == "AND":
        yield from _conjuncts(where.left)
        yield from _conjuncts(where.right)
    elif where is not None:
        yield where


def _condition(conjunct: Expression, scope: Scope) -> Iterator[Condition]:
    faults = scope.faults.count
    expression = bind_condition(conjunct, scope)
    if scope.faults.count > faults:
        return
    read = tuple(fields(expression))
    previous = sorted({field.variable for field in read if field.place is Place.PREVIOUS})
    if len(previous) > 1:
        construct = f"a condition on the previous events of {' and '.join(scope.names[variable] for variable in previous)}"
        scope.faults.refuse(construct, "a condition reads the previous event of one variable", conjunct.span)
        return
    variables = tuple(sorted({field.variable for field in read}))
    kind = _kind(len(variables), bool(previous))
    yield Condition(expression, kind, variables, format_expression(conjunct), span=conjunct.span)


def _kind(variables: int, previous: bool) -> ConditionKind:
    if previous:
        return ConditionKind.CONSECUTIVE
    return ConditionKind.PAIR if variables > 1 else ConditionKind.PROPERTY


def _equivalence(node: Equivalence, scope: Scope) -> Iterator[Condition]:
    column = scope.attribute(node.attribute, node.span)
    if column is None:
        return
    if operand(Field(0, column, scope.column(column).type), node, scope) is not FAULTY:
        yield from equalities(column, node.span, scope)


def _type_literal(primitive: Primitive, column: int, scope: Scope) -> Constant | None:
    """The event type as a constant of the type column's type; None, and a fault, if it is none."""
    written = primitive.event_type or ""
    attribute = scope.column(column)
    if attribute.type.kind is Kind.STRING:
        return Constant(written, STRING)
    if attribute.type.kind is Kind.INTEGER and written.isascii() and written.isdigit() and int(written) <= INT64_MAX:
        return Constant(int(written), INTEGER)
    if attribute.type.kind is Kind.NULL:
        return Constant(None, attribute.type)
    scope.faults.error(f"event type {written!r} is no value of the column {attribute.name!r} ({attribute.type})", primitive.span)
    return None

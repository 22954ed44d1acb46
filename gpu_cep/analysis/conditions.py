"""Split WHERE into conditions, and say which events each relates.

A condition is a top-level conjunct. Its kind follows from the events that it reads. One event of one
variable makes a property, two or more variables a pair. Earlier events of the same binding make a
consecutive condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from gpu_cep.analysis.bound import Condition, ConditionKind
from gpu_cep.analysis.bound_expressions import Aggregation, Bound, Constant, Field, Operation, Place
from gpu_cep.analysis.coercion import FAULTY
from gpu_cep.analysis.expressions import bind_condition
from gpu_cep.analysis.literals import INT64_MAX
from gpu_cep.analysis.normalize import Primitive
from gpu_cep.analysis.references import operand
from gpu_cep.analysis.scope import Scope
from gpu_cep.analysis.types import BOOLEAN, INTEGER, STRING, Kind
from gpu_cep.errors import list_choices, nearest
from gpu_cep.lang.ast import Binary, Connective, Equivalence, Expression, Literal, Reference, Span
from gpu_cep.lang.format import format_expression


def bind_where(where: Expression | None, scope: Scope) -> Iterator[Condition]:
    """Yield the conditions of WHERE, in the order in which they are written."""
    for conjunct in _conjuncts(where):
        if isinstance(conjunct, Equivalence):
            yield from _equivalence(conjunct, scope)
        else:
            yield from _condition(conjunct, scope)


def equivalence_columns(where: Expression | None, scope: Scope) -> tuple[int, ...]:
    """Return the columns of all ``[attr]`` in WHERE; unknown ones are left out."""
    named = [conjunct.attribute for conjunct in _conjuncts(where) if isinstance(conjunct, Equivalence)]
    return tuple(dict.fromkeys(scope.schema.index(name) for name in named if name in scope.schema.names))


def event_types(primitives: Sequence[Primitive], type_column: str, scope: Scope) -> Iterator[Condition]:
    """Yield ``EventType v`` as the property ``v.<type_column> = 'EventType'``."""
    typed = [primitive for primitive in primitives if primitive.event_type is not None]
    if not typed:
        return
    if type_column not in scope.schema.names:
        message = f"event types are read from the column that type_column= names, and there is no {type_column!r}"
        texts = [attribute.name for attribute in scope.schema.attributes if attribute.type.kind is Kind.STRING]
        near, columns = nearest(type_column, texts or scope.schema.names), f"columns of text are {list_choices(type_column, texts)}"
        scope.faults.error(message, typed[0].span, f"{near} {columns}" if near else columns)
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
    """Return the condition ``v.A = w.A`` for all events of two variables.

    If `left` is `right`, it holds for every two events of that variable.
    """
    attribute = scope.column(column)
    first, second = (format_expression(Reference(scope.names[variable], attribute.name)) for variable in (left, right))
    if left == right:
        sides = (Field(left, column, attribute.type), Field(left, column, attribute.type, Place.PREVIOUS))
        return Condition(Operation("eq", sides, BOOLEAN), ConditionKind.WITHIN, (left,), f"every {first} equal", span=span)
    sides = (Field(left, column, attribute.type), Field(right, column, attribute.type))
    return Condition(Operation("eq", sides, BOOLEAN), ConditionKind.PAIR, (left, right), f"{first} = {second}", span=span)


def equalities(column: int, variables: Sequence[int], span: Span | None, scope: Scope) -> Iterator[Condition]:
    """Yield conditions that all events of `variables` agree on a column.

    They are a PAIR for every two variables, and a WITHIN for every quantified one.
    """
    for left, right in combinations(variables, 2):
        yield equality(column, left, right, span, scope)
    for number in variables:
        if scope.variables[number].quantified:
            yield equality(column, number, number, span, scope)


def reads(expression: Bound) -> Iterator[Field | Aggregation]:
    """Yield the fields and aggregates that `expression` reads, from left to right."""
    if isinstance(expression, Field | Aggregation):
        yield expression
    elif isinstance(expression, Operation):
        for argument in expression.arguments:
            yield from reads(argument)


def _conjuncts(where: Expression | None) -> Iterator[Expression]:
    match where:
        case None:
            return
        case Connective("AND", operands):
            yield from operands
        case _:
            yield where


def _condition(conjunct: Expression, scope: Scope) -> Iterator[Condition]:
    faults = scope.faults.count
    expression = bind_condition(conjunct, scope)
    if scope.faults.count > faults:
        return
    read = tuple(reads(expression))
    variables = tuple(sorted({each.variable for each in read}))
    negated = [scope.names[variable] for variable in variables if scope.variables[variable].negated]
    if len(negated) > 1:
        hint = "a negated event is compared with the match's events only"
        scope.faults.error(f"a condition on two negated variables, {' and '.join(negated)}", conjunct.span, hint)
        return
    closing = tuple(sorted({each.variable for each in read if _is_closing(each)}))
    yield Condition(expression, _kind(read, len(variables)), variables, format_expression(conjunct), closing, span=conjunct.span)


def _kind(read: Sequence[Field | Aggregation], variables: int) -> ConditionKind:
    if any(_is_consecutive(each) for each in read):
        return ConditionKind.CONSECUTIVE
    if variables > 1:
        return ConditionKind.PAIR
    is_property = all(isinstance(each, Field) and each.place is Place.EACH for each in read)
    return ConditionKind.PROPERTY if is_property else ConditionKind.BINDING


def _is_consecutive(read: Field | Aggregation) -> bool:
    """Return whether the field or aggregate `read` reads an event before the current one."""
    return read.running if isinstance(read, Aggregation) else read.place in (Place.PREVIOUS, Place.FIRST_BEFORE)


def _is_closing(read: Field | Aggregation) -> bool:
    """Return whether the value of `read` can change with every further event of the binding."""
    return not read.running if isinstance(read, Aggregation) else read.place is Place.LAST


def _equivalence(node: Equivalence, scope: Scope) -> Iterator[Condition]:
    column = scope.attribute(node.attribute, node.span)
    if column is None or operand(Field(0, column, scope.column(column).type), node, scope) is FAULTY:
        return
    positives = [number for number, variable in enumerate(scope.variables) if not variable.negated]
    yield from equalities(column, positives, node.span, scope)
    for number, variable in enumerate(scope.variables):
        if variable.negated:
            yield from (equality(column, positive, number, node.span, scope) for positive in positives)


def _type_literal(primitive: Primitive, column: int, scope: Scope) -> Constant | None:
    """Return the event type as a constant of the type column's type.

    Record a fault and return None if the column's type has no such constant.
    """
    written = primitive.event_type or ""
    attribute = scope.column(column)
    if attribute.type.kind is Kind.STRING:
        return Constant(written, STRING)
    if attribute.type.kind is Kind.INTEGER and written.isascii() and written.isdigit() and int(written) <= INT64_MAX:
        return Constant(int(written), INTEGER)
    if attribute.type.kind is Kind.NULL:
        return Constant(None, attribute.type)
    message = f"event type {written!r} is no value of the column {attribute.name!r} ({attribute.type})"
    scope.faults.error(message, primitive.span, "type_column= says which column holds the event types")
    return None

"""Bind references to attributes and aggregates, as far as WHERE and RETURN may read them."""

from __future__ import annotations

from dataclasses import replace

from gpu_cep.analysis.bound_expressions import Aggregation, Binding, Bound, Constant, Field, Operation, Place
from gpu_cep.analysis.cases import as_cell
from gpu_cep.analysis.coercion import FAULTY, MAX_DIGITS, NUMERIC, cast, exact_decimals, is_written_null
from gpu_cep.analysis.hints import NOW, column_hint, name_hint
from gpu_cep.analysis.scope import Clause, Scope
from gpu_cep.analysis.types import FLOAT, INTEGER, DataType, Kind, decimal
from gpu_cep.errors import list_choices, similar_choice
from gpu_cep.lang.ast import Aggregate, Call, EachIndex, Expression, LastIndex, NumberIndex, PrevBound, PreviousIndex, Reference, Span
from gpu_cep.lang.format import format_expression
from gpu_cep.lang.row_patterns.ast import RowAggregate

# Functions of a situation as a whole.
ENDPOINTS = frozenset({"start", "end", "duration"})

EVENT = DataType(Kind.OTHER, name="event")

_OF_ANY_LENGTH = "cast the column to a fixed-size list; under Spark, which has none, give the length in the column's metadata"

_NAMED = "SEQ(v){3} names its events v1, v2, v3"
_READABLE = {
    Clause.WHERE: f"WHERE reads v.attr, v[i].attr, v[i-1].attr, v[1].attr, v[v.LEN].attr and aggregates; {_NAMED}",
    Clause.RETURN: f"RETURN reads v.attr, v[1].attr, v[v.LEN].attr and aggregates; {_NAMED}",
}


def reference(node: Reference, scope: Scope) -> Bound:
    """Return the bound ``v.attr``, ``v[…].attr`` or, in RETURN, ``v``."""
    if node.variable is None or node.attribute is None:
        return _bare(node, scope)
    match node.index:
        case None:
            return _attribute(node, node.variable, node.attribute, scope)
        case EachIndex() | PreviousIndex() if scope.clause is Clause.RETURN:
            return _refuse_place(node, scope)
        case EachIndex():
            return _field(node.variable, node.attribute, Place.EACH, scope, node.span)
        case PreviousIndex():
            return _previous(node, node.variable, node.attribute, scope)
        case NumberIndex(number=1):
            return aggregate(Aggregate("first", node.variable, node.attribute, span=node.span), scope, format_expression(node))
        case LastIndex():
            return aggregate(Aggregate("last", node.variable, node.attribute, span=node.span), scope, format_expression(node))
    return _unsupported_index(node, node.variable, node.attribute, scope)


def previous(node: PrevBound, scope: Scope) -> Bound:
    """Return the bound ``prev(v.attr)``: the attribute of the event bound to v just before the current one."""
    if scope.clause is Clause.RETURN:
        return _refuse_place(node, scope)
    return _previous(node, node.variable, node.attribute, scope)


def aggregate(node: Aggregate, scope: Scope, written: str | None = None) -> Bound:
    """Return the bound aggregate.

    `written` is how the query writes it, if that is no aggregate (``v[1].attr`` is first).
    """
    variable = scope.variable(node.variable, node.span)
    column = None if node.attribute is None else scope.attribute(node.attribute, node.span)
    if variable is None or (column is None and node.attribute is not None):
        return FAULTY
    if node.running and scope.clause is Clause.RETURN:
        return _refuse_place(node, scope)
    if scope.variables[variable].negated and scope.clause is Clause.RETURN:
        return _refuse_unbound(node, variable, scope)
    result = INTEGER if column is None else aggregate_type(node, scope.column(column).type, scope)
    if result is None:
        return FAULTY
    if scope.clause is Clause.RETURN:
        return Aggregation(node.function, variable, column, result)
    return _in_condition(node, variable, column, result, scope, written or format_expression(node))


# Aggregates that no running value can be kept for.
_OF_ALL_VALUES = ("median", "count_distinct")

# (function, whether it is over the events before the current one) -> where that event is read.
_PLACES = {
    ("first", False): Place.FIRST,
    ("last", False): Place.LAST,
    ("first", True): Place.FIRST_BEFORE,
    ("last", True): Place.PREVIOUS,
}


def _in_condition(node: Aggregate, variable: int, column: int | None, result: DataType, scope: Scope, written: str) -> Bound:
    """Return an aggregate in WHERE; of a single variable it is the value of the one event."""
    if scope.variables[variable].maximum != 1 or (node.running and scope.variables[variable].quantified):
        if node.function in _OF_ALL_VALUES:
            return _refuse_in_condition(node, scope)
        if column is not None and (node.function, node.running) in _PLACES:
            return Field(variable, column, result, _PLACES[node.function, node.running])
        return Aggregation(node.function, variable, column, result, node.running)
    if node.running:
        message = f"{written}: {scope.names[variable]} is bound to one event, which has none before it"
        scope.faults.error(message, node.span, f"{scope.names[variable]}+ is bound to several")
        return FAULTY
    # every event has a time; a constant would not say of which variable it speaks, and branches without it drop what speaks of it
    column = scope.timestamp if column is None else column
    if column is None:
        return FAULTY
    value = Field(variable, column, scope.column(column).type)
    if node.function in ("count", "count_distinct"):
        return Operation("sub", (Constant(1, INTEGER), Operation("is_null", (as_cell(value),), INTEGER)), INTEGER)
    return cast(value, result)


def situation(node: Call, scope: Scope) -> int | None:
    """Return the number of the situation in ``start``, ``end`` or ``duration``.

    Record a fault and return None if the argument is no situation.
    """
    match node.arguments:
        case (Reference(variable=str(name), attribute=None),):
            return scope.variable(name, node.span)
    shown = format_expression(Reference(scope.names[0], None))
    scope.faults.error(f"{node.function} takes a situation: {node.function}({shown})", node.span)
    return None


def single_value(bound: Bound, node: Expression, scope: Scope) -> Bound:
    """Return `bound`; record a fault unless it is one value, neither an event nor a list."""
    if not isinstance(bound, Binding):
        return bound
    variable = scope.variables[bound.variable]
    if bound.column is None:
        other = "" if variable.quantified else " or another attribute"
        hint = f"write {_value(bound.variable, _shown_attribute(scope), scope)}{other}"
        message = f"{variable.name} is {'a list of events' if variable.quantified else 'an event'}, not a value"
    else:
        hint = f"write {_aggregates(format_expression(node))}"
        message = f"{format_expression(node)} is a list: {variable.name} is bound to several events"
    scope.faults.error(message, node.span, hint)
    return FAULTY


def _aggregates(written: str) -> str:
    """Return what makes one value of the list `written`."""
    return f"first({written}), last({written}) or another aggregate"


def _value(variable: int, attribute: str, scope: Scope) -> str:
    """Return how one value of an attribute of a variable is written."""
    written = format_expression(Reference(scope.names[variable], attribute))
    return _aggregates(written) if scope.clause is Clause.RETURN and scope.variables[variable].quantified else written


def _shown_variable(scope: Scope) -> int:
    """Return the variable that a hint shows: the first one that the query writes and the clause may read."""
    written = (v for v, each in enumerate(scope.variables) if each.name not in scope.hidden)
    return next((v for v in written if scope.clause is Clause.WHERE or not scope.variables[v].negated), 0)


def _shown_attribute(scope: Scope) -> str:
    """Return the attribute that a hint shows: one of the type of what stands beside it, else a number if there is one."""
    comparable = [each for each in scope.schema.attributes if each.type.kind is not Kind.OTHER and each.type.precision <= MAX_DIGITS]
    fitting = [each.name for each in comparable if scope.beside is not None and each.type.kind is scope.beside.kind]
    numbers = [each.name for each in comparable if each.type.kind in NUMERIC]
    return next(iter((*fitting, *numbers, *scope.schema.names)), "attribute")


def operand(bound: Bound, node: Expression, scope: Scope) -> Bound:
    """Return `bound`; record a fault unless it is one value of a type that operators can take."""
    bound = single_value(bound, node, scope)
    if bound.type.kind is Kind.OTHER:
        message = f"{format_expression(node)} is of type {bound.type}, which cannot be compared or computed with"
        scope.faults.error(message, node.span, column_hint(bound.type))
        return FAULTY
    if isinstance(bound, Field | Aggregation) and bound.type.precision > MAX_DIGITS:
        construct = f"{format_expression(node)}, a column of type {bound.type},"
        scope.faults.refuse(construct, exact_decimals(bound.type), node.span)
        return FAULTY
    return bound


def fixed_list(bound: Bound, node: Expression, scope: Scope) -> Bound:
    """Return `bound`; record a fault unless it is NULL, or a list of numbers whose type tells its length."""
    bound = single_value(bound, node, scope)
    if is_written_null(bound) or bound.type.length:
        return bound
    hint = _OF_ANY_LENGTH if str(bound.type).startswith(("list", "large_list")) else None
    scope.faults.error(f"{format_expression(node)} is of type {bound.type}, not a fixed-size list of numbers", node.span, hint)
    return FAULTY


def _refuse_in_condition(node: Aggregate, scope: Scope) -> Bound:
    hint = "return it and filter the result; conditions read count, sum, avg, min, max, first and last"
    scope.faults.error(f"{format_expression(node)} stands in RETURN only, since it needs all values at once", node.span, hint)
    return FAULTY


def _refuse_place(node: Expression, scope: Scope, hint: str = "return the whole binding or an aggregate of it") -> Bound:
    scope.faults.error(f"{format_expression(node)} has no place in RETURN", node.span, hint)
    return FAULTY


def _bare(node: Reference, scope: Scope) -> Bound:
    name, written = node.variable or node.attribute or "", format_expression(node)
    if scope.clause is Clause.RETURN and name in scope.names:
        return _returned(node, scope.names.index(name), scope)
    if name in scope.names:
        hint = _one_event(node, scope)
    elif name in scope.schema.names:
        hint = f"write {_value(_shown_variable(scope), name, scope)}"
    elif node.index is not None:
        scope.variable(name, node.span)
        return FAULTY
    else:
        hint = _of_unknown(name, node.span, scope)
    shown = repr(name) if node.index is None else written
    return _refuse_alone(node, shown, hint, scope)


def _of_unknown(name: str, span: Span | None, scope: Scope) -> str:
    """Return what an unknown name that stands alone may mean."""
    other = name_hint(name, span, scope)
    if other == NOW:
        return NOW
    variables = scope.names if scope.clause is Clause.RETURN else ()  # a condition reads no variable by itself
    near = similar_choice(name, (*(each for each in variables if each not in scope.hidden), *scope.schema.names))
    if near is not None:
        meant = _value(_shown_variable(scope), near, scope) if near in scope.schema.names else repr(near)
        return " ".join(filter(None, (f"did you mean {meant}?", other)))
    if other is not None and scope.clause is Clause.WHERE:
        return other
    written = f"write {_value(_shown_variable(scope), _shown_attribute(scope), scope)}"
    return "; ".join(filter(None, (written, f"the attributes are {list_choices(name, scope.schema.names)}", other)))


def _returned(node: Reference, variable: int, scope: Scope) -> Bound:
    """Return the events bound to a variable; without an attribute there is no single one of them."""
    if scope.variables[variable].negated:
        return _refuse_unbound(node, variable, scope)
    match node.index:
        case None:
            return Binding(variable, None, EVENT)
        case EachIndex() | PreviousIndex():
            return _refuse_place(node, scope, f"write {format_expression(replace(node, index=None))}")
    return _refuse_alone(node, format_expression(node), _one_event(node, scope), scope)


def _one_event(node: Reference, scope: Scope) -> str:
    """Return how an attribute of one event of a binding is written."""
    match node.index:
        case NumberIndex(number=number) if number > 1:
            return _READABLE[scope.clause]
    return f"write {format_expression(replace(node, attribute=_shown_attribute(scope)))} or another attribute"


def _refuse_alone(node: Reference, shown: str, hint: str, scope: Scope) -> Bound:
    scope.faults.error(f"{shown} stands alone: an attribute belongs to a variable", node.span, hint)
    return FAULTY


def _attribute(node: Reference, variable_name: str, attribute: str, scope: Scope) -> Bound:
    field = _field(variable_name, attribute, Place.EACH, scope, node.span)
    if scope.clause is Clause.RETURN and isinstance(field, Field):
        if scope.variables[field.variable].negated:
            return _refuse_unbound(node, field.variable, scope)
        if scope.variables[field.variable].quantified:
            return Binding(field.variable, field.column, field.type)
    return field


def _refuse_unbound(node: Expression, variable: int, scope: Scope) -> Bound:
    message = f"{format_expression(node)} has no value: {scope.names[variable]} is negated, and no event is bound to it"
    scope.faults.error(message, node.span)
    return FAULTY


def _field(variable_name: str, attribute: str, place: Place, scope: Scope, span: Span | None) -> Bound:
    variable, column = scope.variable(variable_name, span), scope.attribute(attribute, span)
    if variable is None or column is None:
        return FAULTY
    return Field(variable, column, scope.column(column).type, place)


def _previous(node: Expression, variable: str, attribute: str, scope: Scope) -> Bound:
    field = _field(variable, attribute, Place.PREVIOUS, scope, node.span)
    if isinstance(field, Field) and not scope.variables[field.variable].quantified:
        message = f"{format_expression(node)}: {variable} is bound to one event, which has none before it"
        scope.faults.error(message, node.span, f"{variable}+ is bound to several")
        return FAULTY
    return field


def _unsupported_index(node: Reference, variable: str, attribute: str, scope: Scope) -> Bound:
    if isinstance(_field(variable, attribute, Place.EACH, scope, node.span), Field):
        scope.faults.refuse(f"{format_expression(node)} in {scope.clause.value}", _READABLE[scope.clause], node.span)
    return FAULTY


def aggregate_type(node: Aggregate | RowAggregate, type: DataType, scope: Scope) -> DataType | None:
    """Return the type of an aggregate over values of `type`; record a fault and return None if it has none."""
    if node.function == "count":
        return INTEGER
    if node.function in ("first", "last"):
        return type
    if type.kind is Kind.DECIMAL and type.precision > MAX_DIGITS:
        construct = f"{format_expression(node)} over a column of type {type}"
        scope.faults.refuse(construct, exact_decimals(type), node.span)
        return None
    if node.function in ("min", "max", "count_distinct") and type.kind is not Kind.OTHER:
        return INTEGER if node.function == "count_distinct" else type
    if node.function == "sum" and type.kind in NUMERIC | {Kind.DURATION, Kind.NULL}:
        return decimal(MAX_DIGITS, type.scale) if type.kind is Kind.DECIMAL else type
    if node.function in ("avg", "median") and type.kind in NUMERIC | {Kind.NULL}:
        return FLOAT
    if node.function in ("avg", "median") and type.kind is Kind.DURATION:
        scope.faults.refuse(format_expression(node), f"{node.function} takes numbers; sum and count take durations", node.span)
        return None
    applied = "count(DISTINCT …)" if node.function == "count_distinct" else f"{node.function}()"
    scope.faults.error(f"cannot apply {applied} to {type}", node.span)
    return None

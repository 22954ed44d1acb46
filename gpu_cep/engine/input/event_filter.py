"""Turn the properties of a plan into a filter by which a source may leave out events.

Like every push-down, the filter keeps a superset of the events that some variable may bind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from itertools import chain
from operator import and_, or_
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import pyarrow as pa

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.analysis.bound_expressions import Bound, Constant, Constants, Field, Operation
from gpu_cep.analysis.computed_columns import ComputedMembership
from gpu_cep.analysis.operators import MIRRORED
from gpu_cep.analysis.types import Kind
from gpu_cep.engine.input.encodings import is_text
from gpu_cep.engine.input.wanted_events import Near, Wanted
from gpu_cep.plan.columns_read import columns_read
from gpu_cep.plan.event_plan import EventPlan, Plan
from gpu_cep.plan.programs import string_predicate_column
from gpu_cep.plan.properties import property_conjuncts

if TYPE_CHECKING:
    from pyarrow.dataset import Expression

# The comparison that is true where another is false and no operand is NULL or NaN.
_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
# Operations that give a result for any operands. Those that give a float do, too, unless the caller brings them.
_TOTAL = {"and", "or", "not", "in", "like", "is_null", *_OPPOSITE}


def wanted_events(plan: Plan, schema: pa.Schema) -> Wanted | None:
    """Return which events a source must give; None for all.

    Events without a timestamp are among those that are wanted if the query takes them for an error.
    """
    condition = event_filter(plan, schema)
    if condition is None:
        return None
    timed = None if plan.query.drops_untimed else schema.names[plan.query.timestamp]
    return Wanted(condition, timed, _text_filters(plan, schema), _near(plan, schema))


def _near(plan: Plan, schema: pa.Schema) -> Near | None:
    """Return near which events others matter; None if all do, or if that would leave out nothing more."""
    window = plan.query.window
    if not (isinstance(plan, EventPlan) and isinstance(window, TimeWindow) and "reach" in plan.pruning):
        return None
    known = {number: each for number, each in enumerate(variable_filters(plan, schema)) if each is not None}
    branches = tuple(tuple(number for number in branch.positives if number in known) for branch in plan.branches)
    if all(len(own) < 2 for own in branches):
        return None
    conditions = {number: known[number] for number in sorted(set(chain.from_iterable(branches)))}
    # a variable that is negated has events that matter, too
    return Near(schema.names[plan.query.timestamp], window.length, conditions, branches, len(conditions) == len(plan.query.variables))


def event_filter(plan: Plan, schema: pa.Schema) -> Expression | None:
    """Return an Arrow expression that is true for every event that a variable of the plan may bind.

    The result is None if no useful one is known. So it is, too, if the events that no variable binds
    matter: where the plan does not filter, and where reading or testing an event may be an error.

    Parameters
    ----------
    plan
        The plan over the events.
    schema
        The Arrow schema of the events, for which the plan was made.
    """
    return _any(variable_filters(plan, schema)) if may_leave_out(plan, schema) else None


def variable_filters(plan: Plan, schema: pa.Schema) -> list[Expression | None]:
    """Return for each variable an Arrow expression that is true for every event that it may bind; None if no useful one is known."""
    return _filters_of(plan, schema, [(conjunct, bits) for _, conjunct, bits in property_conjuncts(plan.query)])


def _text_filters(plan: Plan, schema: pa.Schema) -> dict[str, Expression]:
    """Return, for each text column, a filter that reads it alone and is true for every event that a variable may bind."""
    found: dict[int, list[tuple[Bound, int]]] = {}
    for _, conjunct, bits in property_conjuncts(plan.query):
        column = string_predicate_column(conjunct)
        if column is not None and column < len(schema):
            found.setdefault(column, []).append((conjunct, bits))
    filters = {schema.names[column]: _any(_filters_of(plan, schema, conjuncts)) for column, conjuncts in found.items()}
    return {name: condition for name, condition in filters.items() if condition is not None}


def _filters_of(plan: Plan, schema: pa.Schema, conjuncts: Sequence[tuple[Bound, int]]) -> list[Expression | None]:
    """Return for each variable a filter that is true wherever its conjuncts are; bits say which variables a conjunct is of."""
    of_variables = (
        [conjunct for conjunct, bits in conjuncts if bits >> number & 1] for number in range(len(plan.query.variables))
    )  # fmt: skip
    return [_all_known(own, schema) for own in of_variables]


def may_leave_out(plan: Plan, schema: pa.Schema) -> TypeGuard[EventPlan]:
    """Return whether the events that no variable may bind have no effect: neither on matches, nor by an error.

    Their timestamps are left to the caller: one that is missing is an error, unless the query drops such events.
    """
    # the nodes of a graph number all streams, also those without an event that counts
    keeps_none = isinstance(plan, EventPlan) and "filter" in plan.pruning and plan.settings.output != "compressed"
    return keeps_none and isinstance(plan, EventPlan) and _never_fails(plan, schema)


def _never_fails(plan: EventPlan, schema: pa.Schema) -> bool:
    """Return whether no event that is filtered out can be the cause of an error."""
    query = plan.query
    # columns that only the output carries are not converted
    read = columns_read(query, replace(plan.settings, columns=()))
    return (
        all(isinstance(computed, ComputedMembership) for computed in query.computed)
        and all(_is_total(conjunct) for _, conjunct, _ in property_conjuncts(query))
        and not any(pa.types.is_uint64(schema.field(column).type) or pa.types.is_date64(schema.field(column).type) for column in read)
    )


def _is_total(expression: Bound) -> bool:
    """Return whether a test has a result for every event."""
    if not isinstance(expression, Operation):
        return True
    total = expression.name in _TOTAL or (expression.type.kind is Kind.FLOAT and expression.name not in ("call", "dot"))
    return total and all(_is_total(argument) for argument in expression.arguments)


def _implied(expression: Bound, schema: pa.Schema) -> Expression | None:
    """Return a filter that is true wherever a test is; None if no useful one is known."""
    match expression:
        case Operation(name="and", arguments=arguments):
            return _all_known(arguments, schema)
        case Operation(name="or", arguments=arguments):
            return _any([_implied(argument, schema) for argument in arguments])
        case Operation(name="not", arguments=(operand,)):
            return _implied_by_falsehood(operand, schema)
        case Operation(name="is_null", arguments=(Field() as field,)):
            return None if (column := _column(field, schema)) is None else column.is_null()
        case Operation(name="in", arguments=(Field() as field, Constants(values=values))):
            return _among(field, values, schema)
        case Operation(name=name, arguments=(Field() as field, Constant() as constant)) if name in _OPPOSITE:
            return _comparison(name, field, constant, schema)
        case Operation(name=name, arguments=(Constant() as constant, Field() as field)) if name in _OPPOSITE:
            return _comparison(MIRRORED[name], field, constant, schema)
        case Field() if expression.type.kind is Kind.BOOLEAN:
            return _comparison("eq", expression, Constant(True, expression.type), schema)
    return None


def _implied_by_falsehood(operand: Bound, schema: pa.Schema) -> Expression | None:
    """Return a filter that is true wherever `operand` is false; None if no useful one is known."""
    match operand:
        case Operation(name="not", arguments=(inner,)):
            return _implied(inner, schema)
        case Operation(name="and" | "or" as name, arguments=arguments):
            falsehoods = [_implied_by_falsehood(argument, schema) for argument in arguments]
            return _any(falsehoods) if name == "and" else _all(falsehoods)
        case Operation(name="is_null", arguments=(Field() as field,)):
            return None if (column := _column(field, schema)) is None else column.is_valid()
        case Operation(name=name, arguments=arguments) if name in _OPPOSITE and not any(map(_is_float, arguments)):
            # a comparison with NaN is false, and so is its opposite
            return _implied(replace(operand, name=_OPPOSITE[name]), schema)
        case Field() if operand.type.kind is Kind.BOOLEAN:
            return _comparison("eq", operand, Constant(False, operand.type), schema)
    return None


def _comparison(name: str, field: Field, constant: Constant, schema: pa.Schema) -> Expression | None:
    column = _column(field, schema)
    if column is None or (name == "ne" and _is_float(field)):
        # statistics leave NaN out, which differs from all numbers
        return None
    literal = _literal(constant.value, _value_type(schema, field), name)
    if literal is None:
        return None
    compared: dict[str, Any] = {
        "eq": column.__eq__, "ne": column.__ne__, "lt": column.__lt__, "le": column.__le__, "gt": column.__gt__, "ge": column.__ge__,
    }  # fmt: skip
    found: Expression = compared[name](literal)
    return found


def _among(field: Field, values: Sequence[int | float | bool | str | None], schema: pa.Schema) -> Expression | None:
    column = _column(field, schema)
    if column is None or not _is_plain(kind := _value_type(schema, field)):
        return None
    literals = [_literal(value, kind, "eq") for value in values if value is not None]
    known = [literal.as_py() for literal in literals if literal is not None]
    return column.isin(pa.array(known, kind)) if known and len(known) == len(literals) else None


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether Python holds all values of the type exactly."""
    return bool(is_text(kind) or pa.types.is_integer(kind) or pa.types.is_date32(kind))


def _column(field: Field, schema: pa.Schema) -> Expression | None:
    """Return an attribute as a column of the source; None for a computed one, and for one whose statistics Arrow cannot compare."""
    from pyarrow.dataset import field as column

    if field.column >= len(schema) or isinstance(schema.field(field.column).type, pa.BaseExtensionType):
        return None
    found: Expression = column(schema.names[field.column])
    return found


def _value_type(schema: pa.Schema, field: Field) -> pa.DataType:
    """Return the type of the attribute's values, also of those in a dictionary."""
    kind = schema.field(field.column).type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_float(expression: Bound) -> bool:
    return expression.type.kind is Kind.FLOAT


def _literal(value: int | float | bool | str | None, kind: pa.DataType, comparison: str) -> pa.Scalar | None:
    """Return a constant in its machine representation as a scalar of the column's type; None if that has no such value."""
    if value is None:
        return None
    try:
        if pa.types.is_float32(kind):
            return _rounded(float(value), comparison)
        if pa.types.is_timestamp(kind):
            return pa.scalar(value, pa.int64()).cast(kind)
        if pa.types.is_date32(kind):
            return pa.scalar(value, pa.int32()).cast(kind)
        if pa.types.is_decimal128(kind):
            return pa.scalar(Decimal(int(value)).scaleb(-kind.scale), kind)
        known = pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_float64(kind)
        return pa.scalar(value, kind) if known or is_text(kind) else None
    except (pa.ArrowInvalid, OverflowError):
        return None


def _rounded(value: float, comparison: str) -> pa.Scalar | None:
    """Return a bound of 32 bits that no float of 32 bits fails if it passes one of 64 bits; None if none is known."""
    with np.errstate(over="ignore"):
        near = np.float32(value)
    if float(near) != value:
        if comparison not in ("lt", "le", "gt", "ge"):
            return None
        near = np.nextafter(near, np.float32(np.inf if comparison in ("lt", "le") else -np.inf))
    return pa.scalar(near, pa.float32())


def _all_known(tests: Iterable[Bound], schema: pa.Schema) -> Expression | None:
    return _all([_implied(test, schema) for test in tests])


def _all(filters: Iterable[Expression | None]) -> Expression | None:
    """Return the conjunction of the filters that are known; None if none is."""
    known = [each for each in filters if each is not None]
    return reduce(and_, known) if known else None


def _any(filters: Sequence[Expression | None]) -> Expression | None:
    """Return the disjunction of the filters; None if one is not known."""
    known = [each for each in filters if each is not None]
    return reduce(or_, known) if known and len(known) == len(filters) else None

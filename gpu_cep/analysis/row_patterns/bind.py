"""Bind MATCH_RECOGNIZE to a schema: turn its AST into a bound row pattern.

Faults are collected, and one error names all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from gpu_cep.analysis.bound import CountWindow, EventVariable, TimeWindow
from gpu_cep.analysis.bound_expressions import Bound, Constant, Field, Operation
from gpu_cep.analysis.coercion import MAX_DIGITS, cast, common_type, exact_decimals
from gpu_cep.analysis.expressions import bind_condition, bind_operand
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.hints import key_types
from gpu_cep.analysis.options import Options
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern, MeasureColumn, SortColumn
from gpu_cep.analysis.row_patterns.expressions import ANY_ROW, column_number, names_beside_texts, variable_number
from gpu_cep.analysis.row_patterns.rules import check_expression
from gpu_cep.analysis.row_patterns.variables import check_names
from gpu_cep.analysis.scope import Scope
from gpu_cep.analysis.types import Kind, Schema
from gpu_cep.analysis.windows import bind_window, check_time_unit
from gpu_cep.lang.literals import write_text
from gpu_cep.lang.row_patterns.ast import Column, Measure, RowPatternQuery, SortKey
from gpu_cep.lang.row_patterns.expressions import OWN_FUNCTIONS
from gpu_cep.lang.row_patterns.names import column_named, folded, spelling, spellings, variables_of

_TIMES = frozenset({Kind.INTEGER, Kind.FLOAT, Kind.DATE, Kind.TIMESTAMP})
# Keywords of calls that mean nothing to row patterns, and their values where they are not given.
_OF_EVENTS = {"strategy": None, "ties": "strict", "nulls": "error", "allen": "paper", "detect": "final", "gap": None}


def bind_row_pattern(query: RowPatternQuery, schema: Schema, options: Options, text: str | None = None) -> BoundRowPattern:
    """Return `query` over rows of `schema`, with names resolved and types explicit.

    Parameters and errors are those of :func:`gpu_cep.analysis.bind.bind`.
    """
    faults = Faults()
    query = _with_keywords(query, schema, options, faults)
    declared = spellings(query.pattern)
    check_names(query, faults)
    scope = _with_texts(Scope.of_query(schema, _variables(query), options, faults), query)
    partition_by = _partition_columns(query.partition_by, scope)
    order_by = tuple(filter(None, (_sort_column(key, scope) for key in query.order_by)))
    measures = tuple(_measure(each, scope) for each in query.measures)
    conditions = {}
    for definition in query.definitions:
        check_expression(definition.condition, "DEFINE", faults)
        conditions[folded(definition.name)] = bind_condition(definition.condition, scope)
    skip = None if query.skip is None or query.skip.variable is None else variable_number(query.skip.variable, query.skip.span, scope)
    window = _window(query, order_by, options, scope)
    order = list(declared)
    bound = BoundRowPattern(
        query=query,
        schema=schema,
        computed=tuple(scope.computed),
        variables=(*declared.values(), *(spelling(each.name) for each in query.subsets), ANY_ROW),
        subsets=tuple(tuple(order.index(folded(each)) for each in subset.members if folded(each) in order) for subset in query.subsets),
        conditions=tuple((order.index(name), condition) for name, condition in conditions.items() if name in order),
        measures=measures,
        partition_by=partition_by,
        order_by=order_by,
        window=window,
        skip=skip,
    )
    _check_result(bound, faults)
    faults.raise_any(text)
    return bound


def _with_keywords(query: RowPatternQuery, schema: Schema, options: Options, faults: Faults) -> RowPatternQuery:
    """Return the query with the clauses that the caller supplies; record keywords that contradict it or mean nothing to it."""
    for name, plain in _OF_EVENTS.items():
        if getattr(options, name) != plain:
            faults.error(f"{name}={getattr(options, name)!r} is not for row patterns")
    for function in options.functions:
        if function.name in OWN_FUNCTIONS:
            faults.error(f"functions: {function.name!r} is the name of a function of row patterns", hint="give it another name")
    check_time_unit(options.time_unit, faults)
    keys, order = (tuple(_exactly(name) for name in names or ()) for names in (options.partition_by, options.order_by))
    sort = tuple(map(SortKey, order))
    if query.partition_by and keys and {_place(each, schema) for each in query.partition_by} != {_place(each, schema) for each in keys}:
        hint = "leave one of them out"
        faults.error(f"partition_by={list(options.partition_by or ())} contradicts PARTITION BY", query.partition_by[0].span, hint)
    if query.order_by and sort and [_sorted(each, schema) for each in query.order_by] != [_sorted(each, schema) for each in sort]:
        faults.error(f"order_by={list(options.order_by)} contradicts ORDER BY", query.order_by[0].span, "leave one of them out")
    return replace(query, partition_by=query.partition_by or keys, order_by=query.order_by or sort)


def _with_texts(scope: Scope, query: RowPatternQuery) -> Scope:
    """Return `scope` as that of a row pattern, with the names in the query's expressions that may be texts."""
    expressions = (*(each.expression for each in query.measures), *(each.condition for each in query.definitions))
    return replace(scope, of_rows=True, texts=frozenset(chain.from_iterable(names_beside_texts(each, scope) for each in expressions)))


def _place(column: Column, schema: Schema) -> str | None:
    return column_named(column.name, schema.names)


def _sorted(key: SortKey, schema: Schema) -> tuple[str | None, bool, bool]:
    return _place(key.column, schema), key.descending, bool(key.nulls_first)


def _exactly(name: str) -> Column:
    return Column(None, write_text(name, '"'))


def _variables(query: RowPatternQuery) -> tuple[EventVariable, ...]:
    """Return the variables, the subsets and the variable for any row; names are identifiers, each as it is first written."""
    first: dict[str, str] = {}
    for name in (*(each.name for each in variables_of(query.pattern)), *(each.name for each in query.subsets)):
        first.setdefault(folded(name), name)
    return tuple(EventVariable(name, 1, None, quantified=True) for name in (*first.values(), ANY_ROW))


def _key_column(column: Column, clause: str, scope: Scope) -> int | None:
    """Return the column of a key; record a fault for one of a variable, or of a type that cannot be compared."""
    if column.variable is not None:
        message = f"{column.variable}.{column.name} has no place in {clause}: rows are mapped to variables later"
        scope.faults.error(message, column.span, f"write {column.name}")
        return None
    number = column_number(column.name, column.span, scope)
    if number is None:
        return None
    type = scope.column(number).type
    if type.kind is Kind.OTHER or type.precision > MAX_DIGITS:
        supported = key_types(type) if type.kind is Kind.OTHER else exact_decimals(type)
        scope.faults.refuse(f"{clause} {column.name} of type {type}", supported, column.span)
    return number


def _partition_columns(keys: Sequence[Column], scope: Scope) -> tuple[int, ...]:
    columns: list[int] = []
    for key in keys:
        number = _key_column(key, "PARTITION BY", scope)
        if number in columns:
            scope.faults.error(f"PARTITION BY names {key.name} twice", key.span)
        elif number is not None:
            columns.append(number)
    return tuple(columns)


def _sort_column(key: SortKey, scope: Scope) -> SortColumn | None:
    number = _key_column(key.column, "ORDER BY", scope)
    return None if number is None else SortColumn(number, key.descending, bool(key.nulls_first))


def _measure(measure: Measure, scope: Scope) -> MeasureColumn:
    check_expression(measure.expression, "MEASURES", scope.faults)
    value = bind_operand(measure.expression, scope)
    if isinstance(value, Constant):
        meeting = common_type((value,))
        value = value if meeting is None else cast(value, meeting)
    return MeasureColumn(spelling(measure.name), value, _column_of(value, scope))


def _column_of(value: Bound, scope: Scope) -> int | None:
    """Return the input column whose values an expression navigates to, None if it computes."""
    match value:
        case Field(column=column) if column < len(scope.schema.attributes):
            return column
        case Operation(name="prev" | "next" | "running first" | "running last" | "final first" | "final last", arguments=(inner, _)):
            return _column_of(inner, scope)
    return None


def _window(query: RowPatternQuery, order_by: Sequence[SortColumn], options: Options, scope: Scope) -> TimeWindow | CountWindow | None:
    """Return the window, whose time is the first column of ORDER BY."""
    within = query.within
    if within is None or (query.order_by and not order_by):
        return None
    if not order_by and within.unit != "events":
        scope.faults.error("WITHIN is a length of time, and there is no ORDER BY", within.span, "ORDER BY a column of times")
        return None
    time = scope.schema.attributes[order_by[0].column] if order_by else scope.schema.attributes[0]
    if within.unit != "events" and (order_by[0].descending or time.type.kind not in _TIMES):
        message = f"WITHIN takes the first column of ORDER BY for the time, and that is {time.name}"
        fault = "in descending order" if order_by[0].descending else f"of type {time.type}"
        scope.faults.error(f"{message} {fault}", within.span, "ORDER BY a column of times, ascending, first")
        return None
    return bind_window(within, time, options.time_unit, scope.faults)


def _check_result(bound: BoundRowPattern, faults: Faults) -> None:
    """Record measures that have the name of another column of the result, and a result without any column."""
    names = bound.schema.names
    columns = {names[column] for column in (*bound.key_columns, *bound.returned_columns)}
    for written, measure in zip(bound.query.measures, bound.measures, strict=True):
        if measure.name in columns:
            faults.error(f"two columns of the result are called {measure.name!r}", written.span, "give the measure another name")
    if bound.query.rows == "one" and not bound.query.partition_by and not bound.measures:
        faults.error("the result has no column: ONE ROW PER MATCH returns PARTITION BY and MEASURES", hint="add MEASURES count(*) AS n")

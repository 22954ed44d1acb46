"""List the columns that a query reads.

The others need not be read from the file, or copied out of the JVM.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from gpu_cep.analysis.bound import BoundQuery
from gpu_cep.analysis.bound_expressions import Aggregation, Binding, Bound, Constant, Constants, Endpoint, Field, Operation
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern
from gpu_cep.plan.programs import leaves
from gpu_cep.plan.settings import Settings


def columns_read(query: BoundQuery, settings: Settings) -> tuple[int, ...]:
    """Return the columns that conditions, keys, order or output read, in the order of the schema.

    With them the query can be bound anew: what it names is among them, even if nothing reads it. A
    ranking that a plan leaves out is not of its query, nor of its settings.
    """
    named = (query.timestamp, *query.partition_by, *query.order_by, *query.derived_keys, *query.equivalences)
    expressions = (*(condition.expression for condition in query.conditions), *(item.expression for item in query.returns), *query.ranked)
    found = {column for expression in expressions for read in _columns(expression) for column in query.input_columns(read)}
    return tuple(sorted(found.union(named) | _output_columns(query, settings)))


def row_columns_read(bound: BoundRowPattern) -> tuple[int, ...]:
    """Return the columns that a row pattern reads or returns, in the order of the schema."""
    expressions = (*(condition for _, condition in bound.conditions), *(measure.expression for measure in bound.measures))
    found = {column for expression in expressions for read in _columns(expression) for column in _sources(bound, read)}
    return tuple(sorted({*found, *bound.key_columns, *bound.returned_columns, *(each.column for each in bound.order_by)}))


def _sources(bound: BoundRowPattern, column: int) -> Iterator[int]:
    """Yield the columns of the schema from which a column of a row pattern is computed; itself if it is one of them."""
    width = len(bound.schema.attributes)
    if column < width:
        yield column
    else:
        for each in bound.computed[column - width].columns:
            yield from _sources(bound, each)


def condition_readers(query: BoundQuery) -> dict[int, dict[int, None]]:
    """Return the columns of the schema that conditions read, in order, each with the variables whose conditions read it."""
    readers: dict[int, dict[int, None]] = {}
    for condition in query.conditions:
        for leaf in leaves(condition.expression):
            for column in () if leaf.column is None else query.input_columns(leaf.column):
                readers.setdefault(column, {})[leaf.variable] = None
    return readers


def narrow_settings(settings: Settings, schema: Collection[str]) -> Settings:
    """Return the settings of a plan for events that have only the columns `schema`."""
    return replace(settings, columns=None if settings.columns is None else tuple(name for name in settings.columns if name in schema))


def _output_columns(query: BoundQuery, settings: Settings) -> set[int]:
    """Return the columns that the output carries of whole events."""
    bare = any(isinstance(item.expression, Binding) and item.expression.column is None for item in query.returns)
    whole = settings.output in ("events", "compressed") or (settings.output == "matches" and not query.returns) or bare
    if not whole:
        return set()
    names = query.schema.names
    return set(range(len(names))) if settings.columns is None else {names.index(name) for name in settings.columns if name in names}


def _columns(expression: Bound) -> Iterator[int]:
    match expression:
        case Operation(arguments=arguments):
            for argument in arguments:
                yield from _columns(argument)
        case Field(column=column):
            yield column
        case Aggregation(column=int(column)) | Binding(column=int(column)):
            yield column
        case Constant() | Constants() | Aggregation() | Binding() | Endpoint():
            return

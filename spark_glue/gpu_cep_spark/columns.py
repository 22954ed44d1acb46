"""Which columns of the events a query reads: the others need not leave the JVM."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_cep.analysis.bound import Aggregation, Binding, Bound, BoundQuery, Constant, Endpoint, Field, Operation
from gpu_cep.analysis.coercion import MAX_DIGITS
from gpu_cep.analysis.types import DataType, Kind
from gpu_cep.plan.settings import Settings


def columns_read(query: BoundQuery, settings: Settings) -> tuple[int, ...]:
    """The columns that conditions, keys, order and output of `query` read, in the order of its schema."""
    named = (query.timestamp, *query.partition_by, *query.order_by, *query.derived_keys)
    expressions = (*(condition.expression for condition in query.conditions), *(item.expression for item in query.returns))
    found = {column for expression in expressions for read in _columns(expression) for column in query.input_columns(read)}
    return tuple(sorted(found.union(named) | _shown(query, settings)))


def tie_breakers(query: BoundQuery, read: tuple[int, ...]) -> tuple[int, ...]:
    """The columns that give the events of a stream one order under any partitioning: `order_by`, then the others that are read."""
    settled = {query.timestamp, *query.partition_by, *query.order_by}
    rest = tuple(column for column in read if column not in settled and _has_order(query.schema.attributes[column].type))
    return query.order_by + rest


def _shown(query: BoundQuery, settings: Settings) -> set[int]:
    """The columns of whole events in the output."""
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
        case Constant() | Aggregation() | Binding() | Endpoint():
            return


def _has_order(data_type: DataType) -> bool:
    return data_type.kind not in (Kind.OTHER, Kind.NULL) and data_type.precision <= MAX_DIGITS

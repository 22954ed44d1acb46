"""Find the columns that make streams of events: time, keys, and the order of ties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, get_args

from gpu_cep.analysis.coercion import MAX_DIGITS, exact_decimals
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.hints import key_types
from gpu_cep.analysis.options import Options
from gpu_cep.analysis.scope import Scope
from gpu_cep.analysis.types import DataType, Kind
from gpu_cep.choices import Nulls
from gpu_cep.errors import nearest
from gpu_cep.lang.ast import Query
from gpu_cep.lang.ast_intervals import IntervalQuery

NULLS = get_args(Nulls)

_TIMESTAMP_KINDS = frozenset({Kind.INTEGER, Kind.FLOAT, Kind.DATE, Kind.TIMESTAMP})

# How a column of text becomes one of timestamps in Arrow, pandas and Spark.
_CAST = (
    "cast it: table.set_column({column}, {name!r}, table[{name!r}].cast('timestamp[us]')), "
    "df[{name!r}] = pandas.to_datetime(df[{name!r}], format='ISO8601') or df.withColumn({name!r}, to_timestamp({name!r})); "
    "for text with a zone write pyarrow.timestamp('us', 'UTC') in place of 'timestamp[us]', and format='ISO8601', utc=True; "
    "gpu-cep reads ISO 8601, and other forms by --timestamp-format"
)


# The same of a column of times of day.
_OF_DAY = (
    "a time of day tells no day: combine it with a column of days, such as "
    "df[{name!r}] = pandas.to_datetime(df['day'].astype(str) + ' ' + df[{name!r}].astype(str))"
)


def _is_of_day(type: DataType) -> bool:
    return type.kind is Kind.OTHER and str(type).startswith(("time32", "time64"))


class StreamColumns(NamedTuple):
    """The columns that make streams, by number, and whether events without a time are left out.

    There is no `timestamp` if no column of that name has a fit type, which is a fault.
    """

    timestamp: int | None
    drops_untimed: bool
    partition_by: tuple[int, ...]
    order_by: tuple[int, ...]


def stream_columns(query: Query | IntervalQuery, options: Options, scope: Scope) -> StreamColumns:
    """Return the columns that make streams; record a fault for each that cannot."""
    return StreamColumns(
        timestamp=_timestamp_column(options.timestamp, scope),
        drops_untimed=_drops_untimed(options.nulls, scope.faults),
        partition_by=_key_columns(_partition_names(query, options, scope.faults), "partition_by", scope),
        order_by=_key_columns(options.order_by, "order_by", scope),
    )


def _timestamp_column(name: str, scope: Scope) -> int | None:
    """Return the column of the events' time; record a fault and return None if there is none of a fit type."""
    if name not in scope.schema.names:
        times = [attribute.name for attribute in scope.schema.attributes if attribute.type.kind in _TIMESTAMP_KINDS]
        index = any(column.startswith("__index_level_") for column in scope.schema.names)
        known = times or scope.schema.names
        also = [] if nearest(name, known) or not times else ["timestamp= says which of them it is"]
        also += ["df.reset_index() makes a column of a DataFrame's index"] if index else []
        scope.faults.unknown("timestamp column", name, known, also="; ".join(also))
        return None
    column = scope.schema.index(name)
    type = scope.schema.attributes[column].type
    if type.kind in _TIMESTAMP_KINDS:
        return column
    if type.kind is Kind.DECIMAL:
        scope.faults.refuse(f"the timestamp {name!r} of type {type}", "a timestamp is an integer, a float, a date or a timestamp")
    else:
        hint = (
            _CAST.format(name=name, column=column) if type.kind is Kind.STRING else _OF_DAY.format(name=name) if _is_of_day(type) else None
        )
        scope.faults.error(f"the timestamp {name!r} is of type {type}; it must be an integer, a float, a date or a timestamp", hint=hint)
    return None


def _drops_untimed(nulls: str, faults: Faults) -> bool:
    """Return whether events without a timestamp are left out; record a fault for an unknown choice."""
    if nulls not in NULLS:
        faults.unknown("value of nulls", nulls, NULLS)
    return nulls == "drop"


def _partition_names(query: Query | IntervalQuery, options: Options, faults: Faults) -> tuple[str, ...]:
    """Return the names of the stream keys, from the text or the caller."""
    if options.partition_by is None:
        return query.partition_by
    if query.partition_by and set(query.partition_by) != set(options.partition_by):
        message = f"partition_by={list(options.partition_by)} contradicts PARTITION BY {', '.join(query.partition_by)}"
        faults.error(message, query.span, "leave one of them out")
    return query.partition_by or options.partition_by


def _key_columns(names: Sequence[str], role: str, scope: Scope) -> tuple[int, ...]:
    """Return the columns called `names`.

    Record a fault for a type that cannot be ordered or compared; messages call the columns `role`.
    """
    columns: list[int] = []
    for name in names:
        if name not in scope.schema.names:
            parts = [part.strip() for part in name.split(",")]
            several = set(parts) <= set(scope.schema.names)
            also = f"several columns are a list, {parts}; on the command line the option is repeated" if several else None
            scope.faults.unknown(f"attribute in {role}", name, scope.schema.names, also=also)
            continue
        column = scope.schema.index(name)
        type = scope.schema.attributes[column].type
        if type.precision > MAX_DIGITS:
            scope.faults.refuse(f"{role} {name!r} of type {type}", exact_decimals(type))
        elif type.kind is Kind.OTHER:
            scope.faults.refuse(f"{role} {name!r} of type {type}", key_types(type))
        if column in columns:
            scope.faults.error(f"{role} names {name!r} twice")
        columns.append(column)
    return tuple(columns)

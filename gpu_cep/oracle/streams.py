"""Read event tables as streams of plain Python rows in stream order (docs/language.md, Ties)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.errors import EventError, PatternError
from gpu_cep.oracle.expressions import Row, Scalar, Schema
from gpu_cep.oracle.meanings import Kind

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
DAY = 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class Stream:
    """The events of one stream, in stream order.

    `rows`: their values by column.
    `times`: their timestamps in ticks.
    `numbers`: their row numbers in the input.
    """

    rows: tuple[Row, ...]
    times: tuple[int | float, ...]
    numbers: tuple[int, ...]


def schema_of(events: pa.Table, functions: Mapping[str, Scalar]) -> Schema:
    """Return the kinds of the attributes of `events`, with the caller's functions."""
    return Schema({field.name: kind_of(field.type) for field in events.schema}, functions)


def streams(events: pa.Table, timestamp: str, partition_by: Sequence[str], order_by: Sequence[str]) -> list[Stream]:
    """Return the streams of `events`, ordered by key with NULL first."""
    for name in (timestamp, *partition_by, *order_by):
        if name not in events.column_names:
            raise PatternError(f"unknown attribute {name!r}")
    times = _times(events, timestamp)
    columns = {name: values(events[name]) for name in events.column_names if kind_of(events.schema.field(name).type) is not Kind.OTHER}
    rows = [{name: column[number] for name, column in columns.items()} for number in range(events.num_rows)]
    members: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        members[sort_key(row, partition_by)].append(number)
    for numbers in members.values():
        numbers.sort(key=lambda number: (times[number], sort_key(rows[number], order_by), number))
    return [_stream(rows, times, members[key]) for key in sorted(members)]


def _stream(rows: Sequence[Row], times: Sequence[int | float], numbers: Sequence[int]) -> Stream:
    return Stream(tuple(rows[n] for n in numbers), tuple(times[n] for n in numbers), tuple(numbers))


def sort_key(row: Row, names: Iterable[str]) -> tuple[Any, ...]:
    """Return a sort key by the columns `names`: NULL first, NaN last, and both equal to themselves."""
    return tuple(_rank(row[name]) for name in names)


def _rank(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (1, value)


def _times(events: pa.Table, timestamp: str) -> list[int | float]:
    column = events[timestamp]
    if column.null_count:
        raise EventError(f"timestamp column {timestamp!r} holds {column.null_count} NULLs")
    if pa.types.is_floating(column.type):
        times: list[int | float] = column.cast(pa.float64()).to_pylist()
        if any(math.isnan(time) for time in times):
            raise EventError(f"timestamp column {timestamp!r} holds NaN")
        return times
    if not (pa.types.is_integer(column.type) or pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)):
        raise PatternError(f"{timestamp!r} is a {column.type}, not a time")
    return _integers(column)


def _integers(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    numbers: list[Any] = (column if pa.types.is_integer(column.type) else column.cast(pa.int64())).to_pylist()
    return numbers


def tick(type_: pa.DataType) -> int | None:
    """Return the nanoseconds of one tick of a time column; None for a bare number."""
    if pa.types.is_date32(type_):
        return DAY
    if pa.types.is_date64(type_):
        return NANOSECONDS["ms"]
    return NANOSECONDS[type_.unit] if pa.types.is_timestamp(type_) or pa.types.is_duration(type_) else None


def kind_of(type_: pa.DataType) -> Kind:
    """Return the kind of an Arrow type."""
    if pa.types.is_dictionary(type_):
        return kind_of(type_.value_type)
    if pa.types.is_fixed_size_list(type_) and type_.list_size and kind_of(type_.value_type) in (Kind.INTEGER, Kind.FLOAT):
        return Kind.LIST
    if pa.types.is_timestamp(type_):
        return Kind.TIME if type_.tz is None else Kind.ZONED_TIME
    for belongs, kind in KINDS.items():
        if belongs(type_):
            return kind
    return Kind.OTHER


KINDS: Mapping[Any, Kind] = {
    pa.types.is_null: Kind.NULL,
    pa.types.is_boolean: Kind.BOOLEAN,
    pa.types.is_integer: Kind.INTEGER,
    pa.types.is_floating: Kind.FLOAT,
    pa.types.is_decimal: Kind.DECIMAL,
    pa.types.is_string: Kind.STRING,
    pa.types.is_large_string: Kind.STRING,
    pa.types.is_string_view: Kind.STRING,
    pa.types.is_date: Kind.TIME,
    pa.types.is_duration: Kind.DURATION,
}


def values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column as the oracle computes with them; times are in nanoseconds since the epoch."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    length = tick(column.type)
    if length is None:
        plain: list[Any] = column.to_pylist()
        return plain
    return [None if ticks is None else ticks * length for ticks in _integers(column)]

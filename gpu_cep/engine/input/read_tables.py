"""Read events of any kind as one Arrow table, and Arrow types as data types."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

import pyarrow as pa

from gpu_cep.analysis.types import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    NULL,
    STRING,
    Attribute,
    DataType,
    Kind,
    Schema,
    decimal,
    duration,
    timestamp,
)
from gpu_cep.engine.input.device.cudf import is_frame
from gpu_cep.engine.input.device.read_frames import are_arrays, read_arrays, read_frame
from gpu_cep.engine.input.device.resident import ResidentTable
from gpu_cep.engine.input.encodings import decode_table, widen_codes
from gpu_cep.engine.input.event_files import reading
from gpu_cep.engine.input.file_systems import locations_of
from gpu_cep.engine.input.formats import read_files
from gpu_cep.engine.input.picked_rows import PickedRows
from gpu_cep.engine.input.sources import source_of
from gpu_cep.errors import CepError, Diagnostic, EventError, PatternError


def schema_of(schema: pa.Schema) -> Schema:
    """Return the schema of the event relation; types that conditions cannot read are OTHER.

    Raises
    ------
    PatternError
        Two columns have one name.
    """
    twice = sorted(name for name, count in Counter(schema.names).items() if count > 1)
    if twice:
        raise PatternError([Diagnostic(f"the events have more than one column {name!r}") for name in twice])
    return Schema(tuple(Attribute(field.name, type_of(field.type)) for field in schema))


def type_of(arrow: pa.DataType) -> DataType:
    """Return the data type of an Arrow type."""
    if pa.types.is_dictionary(arrow):
        inner = type_of(arrow.value_type)
        return inner if inner.kind is Kind.STRING else DataType(Kind.OTHER, name=str(arrow))
    for test, data_type in _PLAIN:
        if test(arrow):
            return data_type
    if pa.types.is_decimal(arrow):
        return decimal(arrow.precision, arrow.scale)
    if pa.types.is_timestamp(arrow):
        return timestamp(arrow.unit, arrow.tz)
    if pa.types.is_duration(arrow):
        return duration(arrow.unit)
    return DataType(Kind.OTHER, name=str(arrow), length=_length(arrow))


def _length(arrow: pa.DataType) -> int:
    """Return the length of a fixed-size list of integers or floats, 0 for other types."""
    if not pa.types.is_fixed_size_list(arrow):
        return 0
    numeric = pa.types.is_integer(arrow.value_type) or pa.types.is_floating(arrow.value_type)
    return int(arrow.list_size) if numeric else 0


_PLAIN = (
    (pa.types.is_null, NULL),
    (pa.types.is_boolean, BOOLEAN),
    (pa.types.is_integer, INTEGER),
    (pa.types.is_floating, FLOAT),
    (pa.types.is_string, STRING),
    (pa.types.is_large_string, STRING),
    (pa.types.is_date, DATE),
)


# What makes a table of things that are none, by the name of their type.
_TABLES_OF = {
    "list": "give pyarrow.Table.from_pylist(events)",
    "dict": "give pyarrow.table(events)",
    **dict.fromkeys(("ndarray", "recarray"), "give pandas.DataFrame(events), with a name for each column"),
    "Series": "one column is no table: give the whole DataFrame",
    "GpuFiles": "match and explain take it, for one pattern of events or of situations; else give the path itself",
    "DuckDBPyConnection": "give one of its relations, connection.table('events') or connection.sql('SELECT …')",
    "DataFrameGroupBy": "give the DataFrame itself, and partition_by= for its keys",
}


# The same of what a list or a tuple holds.
_TABLES_OF_PARTS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (pa.RecordBatch, "give pyarrow.Table.from_batches(events)"),
    (pa.Table, "give pyarrow.concat_tables(events)"),
    ((str, PathLike), "all of a list must be paths, which may be globs or folders"),
)
# What pyarrow says of a pandas column that it cannot convert.
_COLUMN = re.compile(r"Conversion failed for column (.*) with type (\w+)")


def read_events(events: Any) -> pa.Table | ResidentTable:
    """Return `events` as a table.

    They are one of the following:

    * an Arrow table or batch, or any other object with the Arrow C stream interface;
    * a source of columns (:mod:`gpu_cep.engine.input.sources`);
    * a path, a glob, a URI or a UPath of files of CSV, lines of JSON or Arrow IPC, or a list of them;
    * a cudf DataFrame, or arrays on the device by name, which stay on the device.

    Raises
    ------
    EventError
        The events cannot be read, are an Arrow stream without its end, or none of these.
    PatternError
        The events are a Spark DataFrame, which :func:`gpu_cep.gpu_match` takes.
    EngineUnavailable
        The events are arrays on a device, but there is none.
    """
    if isinstance(events, pa.Table):
        return widen_codes(decode_table(events))
    source = source_of(events)
    if source is not None:
        return source.read(source.schema.names)
    if locations_of(events):
        return widen_codes(decode_table(read_files(events)))
    if isinstance(events, pa.RecordBatch):
        return decode_table(pa.Table.from_batches([events]))
    if is_frame(events):
        return read_frame(events)
    if are_arrays(events):
        return read_arrays(events)
    if _gives_table(events):
        with reading(type(events).__name__), _naming_a_column():
            return widen_codes(decode_table(pa.table(events)))
    raise _unreadable(events)


def _gives_table(events: Any) -> bool:
    """Return whether Arrow's C stream interface of `events` gives the table that is meant, in this process."""
    return hasattr(events, "__arrow_c_stream__") and type(events).__name__ not in _TABLES_OF and not hasattr(events, "toArrow")


def _unreadable(events: Any) -> CepError:
    """Return the error that says what to give in place of `events`."""
    if hasattr(events, "toArrow"):
        return PatternError(
            "events: a Spark DataFrame would be collected to this process; gpu_match(df, pattern) matches where its rows are, "
            "events(df).explain(pattern) says how, and df.toArrow() collects them for match, plot and report"
        )
    instead = _table_of(events)
    if instead is not None:
        return EventError(f"events: cannot read {type(events).__name__}; {instead}")
    return EventError(
        f"events: cannot read {type(events).__name__}; expected a table with the Arrow C stream interface "
        "(pyarrow, pandas, polars, duckdb …), a data set or lazy frame, a path to .parquet, .csv, .jsonl or .arrow files, "
        "or, on a device, a cudf DataFrame or arrays by name"
    )


def _table_of(events: Any) -> str | None:
    """Return how to make a table of objects that are none; None if that is not known."""
    parts = events[:1] if isinstance(events, (list, tuple)) else ()
    known = [instead for part in parts for kinds, instead in _TABLES_OF_PARTS if isinstance(part, kinds)]
    return known[0] if known else _TABLES_OF.get(type(events).__name__)


@contextmanager
def _naming_a_column() -> Iterator[None]:
    """Raise an EventError that names the column which pyarrow cannot convert, and says what to do with it."""
    try:
        yield
    except pa.ArrowException as fault:
        found = _COLUMN.search(str(fault))
        if found is None:
            raise
        column, reason = found[1], str(fault.args[0])
        remedy = f"give df[{column!r}].astype(str) in its place, or leave it out: df.drop(columns={column!r})"
        raise EventError(f"events: cannot read column {column!r} of type {found[2]}: {reason}; {remedy}") from fault


def is_resident(table: pa.Table | ResidentTable | PickedRows) -> bool:
    """Return whether a table of events lies on a device."""
    return isinstance(table, ResidentTable)


def to_host(table: pa.Table | ResidentTable | PickedRows) -> pa.Table:
    """Return a table of events, downloaded if it lies on a device, or with its rows gathered."""
    return table if isinstance(table, pa.Table) else table.to_arrow()

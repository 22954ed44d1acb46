"""Open sources of events that are read column by column; a query reads only the columns it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from gpu_cep.engine.input.encodings import decode_table, plain_type
from gpu_cep.errors import EventError

PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, slots=True)
class Source:
    """The schema of events that have not been read, and a function that reads some of their columns."""

    schema: pa.Schema
    _read: Callable[[list[str]], pa.Table]

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return these columns of all events, in this order.

        Another library may compute them, and raise its own errors.

        Raises
        ------
        EventError
            The path of a Parquet file cannot be read.
        """
        return decode_table(self._read(list(columns))).select(list(columns))


def source_of(events: Any) -> Source | None:
    """Return the events as a source of columns; None for tables and for what is read as a whole.

    Sources are Parquet files and data sets, Arrow's data sets, lazy frames of polars, and relations
    of DuckDB.

    Raises
    ------
    EventError
        The path of a Parquet file cannot be read.
    """
    if isinstance(events, (str, Path)):
        path = Path(events)
        return _parquet(path) if path.is_dir() or path.suffix.lower() in PARQUET else None
    for (library, name), opened in _LAZY.items():
        # a library that has not been imported made no object
        kind = getattr(sys.modules.get(library), name, None)
        if kind is not None and isinstance(events, kind):
            return opened(events)
    return None


def read_checked(reader: Callable[[Path], Any], path: Path) -> Any:
    """Return the result of a reader of a file, or raise an error that names the file."""
    try:
        return reader(path)
    except FileNotFoundError as fault:
        raise EventError(f"events: cannot read {path}: there is no such file or folder") from fault
    except (OSError, pa.ArrowInvalid) as fault:
        raise EventError(f"events: cannot read {path}: {fault}") from fault


def _parquet(path: Path) -> Source:
    """Return a Parquet file or data set as a source."""
    from pyarrow import parquet

    schema = read_checked(lambda where: parquet.ParquetDataset(where).schema, path)
    return _source(schema, lambda columns: read_checked(partial(parquet.read_table, columns=columns), path))


def _data_set(data_set: Any) -> Source:
    """Return Arrow's data set as a source."""
    return _source(data_set.schema, lambda columns: data_set.to_table(columns=columns))


def _lazy_frame(frame: Any) -> Source:
    """Return a lazy frame of polars as a source."""
    polars = sys.modules["polars"]
    # a frame without rows has the schema that one with rows has
    schema = pa.table(polars.DataFrame(schema=frame.collect_schema())).schema
    # plain names may be read as patterns
    return _source(schema, lambda columns: pa.table(frame.select(polars.selectors.by_name(*columns)).collect()))


def _relation(relation: Any) -> Source:
    """Return a relation of DuckDB as a source."""

    def picked(columns: list[str]) -> pa.Table:
        quoted = ['"' + name.replace('"', '""') + '"' for name in columns]
        return relation.project(", ".join(quoted)).to_arrow_table()

    return _source(relation.limit(0).to_arrow_table().schema, picked)


# The types of other libraries, by the module that has them.
_LAZY: dict[tuple[str, str], Callable[[Any], Source]] = {
    ("pyarrow.dataset", "Dataset"): _data_set,
    ("polars", "LazyFrame"): _lazy_frame,
    ("duckdb", "DuckDBPyRelation"): _relation,
}


def _source(schema: pa.Schema, read: Callable[[list[str]], pa.Table]) -> Source:
    """Return a source whose schema has the types in which columns are read."""
    return Source(pa.schema([field.with_type(plain_type(field.type)) for field in schema], schema.metadata), read)

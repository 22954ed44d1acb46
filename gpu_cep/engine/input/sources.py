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
from gpu_cep.engine.input.event_files import EventFiles, find_files, is_folder, read_checked, split_suffix
from gpu_cep.engine.input.formats import PARQUET, READERS

# Parquet compresses its pages itself.
_PARQUET = {(suffix, None) for suffix in PARQUET}


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

    Sources are Parquet files and folders of them, Arrow's data sets, lazy frames of polars, and
    relations of DuckDB.

    Raises
    ------
    EventError
        The path of a Parquet file cannot be read.
    """
    if isinstance(events, Source):
        return events
    if isinstance(events, (str, Path)):
        return None if split_suffix(str(events))[0] in READERS else _parquet_source(events)
    for (library, name), opened in _LAZY.items():
        # a library that has not been imported made no object
        kind = getattr(sys.modules.get(library), name, None)
        if kind is not None and isinstance(events, kind):
            return opened(events)
    return None


def _parquet_source(name: str | Path) -> Source | None:
    """Return the Parquet file or files that a path, a glob or a URI names; None if it is of no known format."""
    found = find_files(name)
    if split_suffix(found.paths[0]) in _PARQUET or is_folder(found):
        return _parquet(found)
    return None


def _parquet(found: EventFiles) -> Source:
    """Return a Parquet file, a folder of such files, or several files as a source."""
    if len(found.paths) > 1:
        return _parquet_files(found)
    from pyarrow import parquet

    path, system = found.paths[0], found.system
    schema = read_checked(lambda: parquet.ParquetDataset(path, filesystem=system).schema, found.name)
    read = partial(parquet.read_table, path, filesystem=system)
    return _source(schema, lambda columns: read_checked(partial(read, columns=columns), found.name))


def _parquet_files(found: EventFiles) -> Source:
    """Return several Parquet files as a source; a column that a file lacks is NULL there."""
    from pyarrow import dataset, parquet

    paths, system = list(found.paths), found.system
    schemas = read_checked(lambda: [parquet.read_schema(path, filesystem=system) for path in paths], found.name)
    schema = read_checked(lambda: pa.unify_schemas(schemas, promote_options="permissive"), found.name)
    files = dataset.dataset(paths, schema, "parquet", system)
    return _source(schema, lambda columns: read_checked(partial(files.to_table, columns=columns), found.name))


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

"""Open sources of events that are read column by column; a query reads only the columns it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from gpu_cep.engine.input.encodings import decode_table, plain_type
from gpu_cep.engine.input.event_files import EventFiles, find_files, is_folder, reading, split_suffix
from gpu_cep.engine.input.file_systems import location_of
from gpu_cep.engine.input.formats import PARQUET, READERS
from gpu_cep.engine.input.grouped_files import GroupedFiles, group_files
from gpu_cep.engine.input.parquet_files import ParquetFiles, PartOfFiles, Wanted, find_parquet, parquet_of, unite_parquet

# Parquet compresses its pages itself.
_PARQUET = {(suffix, None) for suffix in PARQUET}


@dataclass(frozen=True, slots=True)
class Source:
    """The schema of events that have not been read, and a function that reads some of their columns; errors say `name`.

    `_files` are the Parquet files that hold them, if some of these may be left out.
    """

    schema: pa.Schema
    _read: Callable[[list[str]], pa.Table]
    name: str
    _files: ParquetFiles | None = None

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return these columns of all events, in this order.

        Raises
        ------
        EventError
            They cannot be read; its cause is the error of the library that reads or computes them.
        """
        with reading(self.name):
            return decode_table(self._read(list(columns))).select(list(columns))

    def read_part(self, columns: Sequence[str], wanted: Wanted | None) -> PartOfFiles:
        """Return these columns of the events that are wanted (None: of all), and of others that come with them.

        Text may come as dictionaries. Raises as :meth:`read`.
        """
        if self._files is None:
            table = self.read(columns)
            return PartOfFiles(table, table.schema)
        with reading(self.name):
            part = self._files.read_part(list(columns), None if self._decodes(self._files, columns) else wanted)
            return replace(part, table=decode_table(part.table), schema=pa.schema([self.schema.field(name) for name in columns]))

    def count_rows(self) -> int | None:
        """Return the number of events; None if it is not known before they are read. Raises as :meth:`read`."""
        if self._files is None:
            return None
        with reading(self.name):
            return self._files.count_rows()

    def group(self, columns: Sequence[str], timestamp: str, wanted: Wanted | None) -> GroupedFiles | None:
        """Return these columns row group by row group, of groups with an event that is wanted (None: of all).

        Return None if the events are not in Parquet files, or if values must be decoded. Raises as :meth:`read`.
        """
        if self._files is None or self._decodes(self._files, columns):
            return None
        with reading(self.name):
            return group_files(self.name, self._files, self.schema, columns, timestamp, wanted)

    def _decodes(self, files: ParquetFiles, columns: Sequence[str]) -> bool:
        """Return whether some columns are decoded; filters and statistics are for the types that they have in the files."""
        return any(files.schema.field(name).type != self.schema.field(name).type for name in columns)


def source_of(events: Any) -> Source | None:
    """Return the events as a source of columns; None for tables and for what is read as a whole.

    Sources are Parquet files and folders of them, Arrow's data sets, lazy frames of polars, and
    relations of DuckDB.

    Raises
    ------
    EventError
        The source cannot be opened.
    """
    if isinstance(events, Source):
        return events
    location = location_of(events)
    if location is not None:
        return None if split_suffix(str(location))[0] in READERS else _parquet_source(location)
    for (library, name), opened in _LAZY.items():
        # a library that has not been imported made no object
        kind = getattr(sys.modules.get(library), name, None)
        if kind is not None and isinstance(events, kind):
            with reading(type(events).__name__):
                return opened(events)
    return None


def _parquet_source(location: Any) -> Source | None:
    """Return the Parquet file or files that a path, a glob, a URI or a UPath names; None if it is of no known format."""
    found = find_files(location)
    if split_suffix(found.paths[0]) not in _PARQUET and not is_folder(found):
        return None
    with reading(found.name):
        return _parquet(found) if len(found.paths) == 1 else _of_files(found.name, unite_parquet(found))


def _parquet(found: EventFiles) -> Source:
    """Return a Parquet file or a folder of such files as a source."""
    if Path(found.paths[0]).is_fifo():
        # what can be read only once is read as a whole
        from pyarrow import parquet

        held = parquet.read_table(found.files[0].open())
        return _source(found.name, held.schema, held.select)
    return _of_files(found.name, find_parquet(found))


def _data_set(data_set: Any) -> Source:
    """Return Arrow's data set as a source."""
    files = parquet_of(data_set)
    if files is not None:
        return _of_files("Dataset", files)
    return _source("Dataset", data_set.schema, lambda columns: data_set.to_table(columns=columns))


def _lazy_frame(frame: Any) -> Source:
    """Return a lazy frame of polars as a source."""
    polars = sys.modules["polars"]
    # a frame without rows has the schema that one with rows has
    schema = pa.table(polars.DataFrame(schema=frame.collect_schema())).schema
    # plain names may be read as patterns
    return _source("LazyFrame", schema, lambda columns: pa.table(frame.select(polars.selectors.by_name(*columns)).collect()))


def _relation(relation: Any) -> Source:
    """Return a relation of DuckDB as a source."""

    def picked(columns: list[str]) -> pa.Table:
        quoted = ['"' + name.replace('"', '""') + '"' for name in columns]
        return relation.project(", ".join(quoted)).to_arrow_table()

    return _source("DuckDBPyRelation", relation.limit(0).to_arrow_table().schema, picked)


# The types of other libraries, by the module that has them.
_LAZY: dict[tuple[str, str], Callable[[Any], Source]] = {
    ("pyarrow.dataset", "Dataset"): _data_set,
    ("polars", "LazyFrame"): _lazy_frame,
    ("duckdb", "DuckDBPyRelation"): _relation,
}


def _of_files(name: str, files: ParquetFiles) -> Source:
    return replace(_source(name, files.schema, files.read), _files=files)


def _source(name: str, schema: pa.Schema, read: Callable[[list[str]], pa.Table]) -> Source:
    """Return a source whose schema has the types in which columns are read; errors name it `name`."""
    return Source(pa.schema([field.with_type(plain_type(field.type)) for field in schema], schema.metadata), read, name)

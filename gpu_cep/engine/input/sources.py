"""Open sources of events that are read column by column; a query reads only the columns it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from gpu_cep.engine.input.encodings import decode_table, plain_type, widen_schema, widen_table
from gpu_cep.engine.input.event_files import EventFiles, find_files, folders_of, name_of_all, reading, shorten_name, split_suffix
from gpu_cep.engine.input.file_systems import locations_of
from gpu_cep.engine.input.formats import PARQUET, READERS
from gpu_cep.engine.input.grouped_files import GroupedFiles, group_files
from gpu_cep.engine.input.parquet_files import ParquetFiles, PartOfFiles, find_parquet, parquet_of, unite_parquet
from gpu_cep.engine.input.readers import BY_ARROW, Reader, read_part
from gpu_cep.engine.input.wanted_events import Wanted
from gpu_cep.errors import EventError

# Parquet compresses its pages itself.
_PARQUET = {(suffix, None) for suffix in PARQUET}


@dataclass(frozen=True, slots=True)
class Source:
    """The schema of events that have not been read, and a function that reads some of their columns; errors say `name`.

    `files` are the Parquet files that hold them, if some of these may be left out, and `reader` reads their row groups.
    """

    schema: pa.Schema
    _read: Callable[[list[str]], pa.Table]
    name: str
    files: ParquetFiles | None = None
    reader: Reader = BY_ARROW

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return these columns of all events, in this order.

        Raises
        ------
        EventError
            They cannot be read; its cause is the error of the library that reads or computes them.
        """
        with reading(self.name):
            return decode_table(self._read(list(columns))).select(list(columns))

    def read_part(self, columns: Sequence[str], wanted: Wanted | None, gpu_memory: int | None = None) -> PartOfFiles:
        """Return these columns of the events that are wanted (None: of all), and of others that come with them.

        Text may come as dictionaries. On a card they take at most `gpu_memory` bytes (None: what is free).

        Raises
        ------
        EventError
            They cannot be read.
        UnsupportedError
            They do not fit the card's memory, or `gpu_memory`.
        """
        if self.files is None:
            table = self.read(columns)
            return PartOfFiles(table, table.schema)
        with reading(self.name):
            part = read_part(self.reader, self.files, list(columns), None if self.decodes(columns) else wanted, gpu_memory)
            return replace(part, schema=pa.schema([self.schema.field(name) for name in columns]))

    def is_large(self, gpu_memory: int | None) -> bool:
        """Return whether these are files that may hold more than is read at once without a look at what a query needs of them.

        Raises as :meth:`read`.
        """
        if self.files is None:
            return False
        with reading(self.name):
            return self.reader.is_large(self.files, gpu_memory)

    def group(self, columns: Sequence[str], timestamp: str, wanted: Wanted | None) -> GroupedFiles | None:
        """Return these columns row group by row group, of groups with an event that is wanted (None: of all).

        Return None if the events are not in Parquet files, or if values must be decoded. Raises as :meth:`read`.
        """
        if self.files is None or self.decodes(columns):
            return None
        with reading(self.name):
            return group_files(self.name, self.files, self.reader, self.schema, columns, timestamp, wanted)

    def decodes(self, columns: Sequence[str]) -> bool:
        """Return whether some columns of files are decoded; filters and statistics are for the types that they have in the files."""
        files = self.files
        return files is not None and any(files.schema.field(name).type != self.schema.field(name).type for name in columns)


def source_of(events: Any) -> Source | None:
    """Return the events as a source of columns; None for tables and for what is read as a whole.

    Sources are Parquet files and folders of them, Arrow's data sets, lazy frames of polars, and
    relations of DuckDB.

    Raises
    ------
    EventError
        The source cannot be opened.
    """
    if isinstance(events, pa.Table):
        return None
    if isinstance(events, Source):
        return events
    locations = locations_of(events)
    if locations:
        return None if all(split_suffix(str(each))[0] in READERS for each in locations) else _parquet_source(locations)
    for (library, name), opened in _LAZY.items():
        # a library that has not been imported made no object
        kind = getattr(sys.modules.get(library), name, None)
        if kind is not None and isinstance(events, kind):
            with reading(type(events).__name__):
                return opened(events)
    return None


def _parquet_source(locations: Sequence[Any]) -> Source | None:
    """Return the Parquet files that locations name; None if they are of no known format.

    Raises
    ------
    EventError
        Only some of them are Parquet files or folders, or they cannot be opened.
    """
    found = [find_files(location) for location in locations]
    folders = [folders_of(each) if _may_be_folders(each) else frozenset[str]() for each in found]
    known = [_is_parquet(each) or each.paths[0] in own for each, own in zip(found, folders, strict=True)]
    if not any(known):
        return None
    if not all(known):
        other = shorten_name(found[known.index(False)].name)
        raise EventError(f"events: cannot read {other}: in a list, all are of Parquet (files or folders), or none is")
    name = name_of_all(found)
    with reading(name):
        if len(found) == 1 and Path(found[0].paths[0]).is_fifo():
            return _pipe(found[0])
        return _of_files(name, unite_parquet(list(map(_open, found, folders))))


def _open(found: EventFiles, folders: frozenset[str]) -> ParquetFiles:
    with reading(found.name):
        return find_parquet(found, folders)


def _is_parquet(found: EventFiles) -> bool:
    return split_suffix(found.paths[0]) in _PARQUET


def _may_be_folders(found: EventFiles) -> bool:
    """Return whether it is worth a question which paths are folders; elsewhere than on this machine each answer takes a while."""
    return isinstance(found.system, fs.LocalFileSystem) or not _is_parquet(found)


def _pipe(found: EventFiles) -> Source:
    """Return what can be read only once, and so is read as a whole."""
    from pyarrow import parquet

    held = widen_table(parquet.read_table(found.files[0].open()))
    return _source(found.name, held.schema, held.select)


def _data_set(data_set: Any) -> Source:
    """Return Arrow's data set as a source."""
    files = parquet_of(data_set)
    if files is not None:
        return _of_files("Dataset", files)
    schema = widen_schema(data_set.schema)

    def read(columns: list[str]) -> pa.Table:
        return widen_table(data_set.to_table(columns=columns))

    return _source("Dataset", schema, read)


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
    """Return files as a source; each row group may have a dictionary of its own, and their texts together get codes."""
    files = replace(files, schema=widen_schema(files.schema))
    return replace(_source(name, files.schema, files.read), files=files)


def _source(name: str, schema: pa.Schema, read: Callable[[list[str]], pa.Table]) -> Source:
    """Return a source whose schema has the types in which columns are read; errors name it `name`."""
    return Source(pa.schema([field.with_type(plain_type(field.type)) for field in schema], schema.metadata), read, name)

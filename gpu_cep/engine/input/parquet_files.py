"""Read Parquet files as one table: text as dictionaries, and only row groups that may hold an event that counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import fs

from gpu_cep.engine.input.at_once import each_at_once
from gpu_cep.engine.input.empty_tables import no_rows
from gpu_cep.engine.input.encodings import check_codes, hold_nulls, inspect_dictionaries, is_text, unite_schemas
from gpu_cep.engine.input.event_files import EventFiles, shorten_name
from gpu_cep.engine.input.file_changes import FileState, reading_files, states_of
from gpu_cep.engine.input.judged_groups import is_never_null, unite_holds, wanted_groups
from gpu_cep.engine.input.machine_values import Flags
from gpu_cep.engine.input.near_groups import near_groups
from gpu_cep.engine.input.row_groups import read_row_groups
from gpu_cep.engine.input.row_numbers import RowNumbers
from gpu_cep.engine.input.wanted_events import Near, Wanted
from gpu_cep.errors import EventError

if TYPE_CHECKING:
    from pyarrow import dataset, parquet

# The row groups of each fragment that are read; None for all.
Kept = Sequence[list[int] | None]

# Bytes of a text column in a row group that a dictionary makes smaller: for each value, and for a few distinct ones.
_MOST_BYTES, _FEW_VALUES = 8, 1 << 16
# Rows of the first file from which dictionaries are worth opening files once more.
_SOME_ROWS = 1 << 16
# Rows, and bytes of all columns, that are read in one turn, from several row groups if these are small: a turn takes about a
# millisecond by itself.
_TOGETHER, _BYTES_TOGETHER = 1 << 19, 1 << 26
# Rows from which columns are read one by one: of fewer, chunks beside joined columns take little memory.
_MANY_ROWS = 1 << 20
# Bytes that an array with offsets of 32 bits surely takes.
_MOST_JOINED = (1 << 31) - 1


class GroupCounts(NamedTuple):
    """The numbers of row groups that were read, and that there are."""

    read: int
    all: int


class Turn(NamedTuple):
    """Columns of row groups that are read together, and how many row groups these are."""

    table: pa.Table
    groups: int


@dataclass(frozen=True, slots=True)
class PartOfFiles:
    """Columns of the row groups that were read; `schema` has the types that they have without dictionaries of texts.

    `numbers` are the numbers of the rows among all rows of the files (None: all rows are there).
    `groups` counts the row groups (None: none could be left out). `told` says in words who read the columns, if not Arrow all.
    """

    table: pa.Table
    schema: pa.Schema
    numbers: RowNumbers | None = None
    groups: GroupCounts | None = None
    told: str = ""


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """The fragments of a data set of Parquet files, in the order of rows; a fragment is a file, or some row groups of one.

    `states`: what the files were when they were found; reading raises EventError for one that has changed (none: for none).
    """

    schema: pa.Schema
    fragments: tuple[dataset.ParquetFileFragment, ...]
    states: Mapping[str, FileState] = field(default_factory=dict)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return these columns of all rows, in the types of the schema."""
        return self._table(self.fragments, self.schema, columns)

    def read_kept(self, columns: Sequence[str], kept: Kept) -> pa.Table:
        """Return these columns of the row groups that are kept; text may come as dictionaries."""
        encoded = self._compact_texts(columns)
        if encoded:
            return self._encoded_table(kept, columns, encoded)
        return self._table(self.subset(kept), self.schema, columns)

    def subset(self, kept: Kept) -> tuple[dataset.ParquetFileFragment, ...]:
        """Return the fragments with the row groups that are kept; none that keeps none."""
        return tuple(_subset(self.fragments, kept))

    def rows_of(self, kept: Kept) -> tuple[RowNumbers | None, GroupCounts]:
        """Return the numbers of the rows in the row groups that are kept (None: all rows), and how many groups these are."""
        sizes = np.array([group.num_rows for fragment in self.fragments for group in fragment.row_groups], np.int64)
        marks = self.marks(kept)
        numbers = None if marks.all() else np.flatnonzero(np.repeat(marks, sizes))
        return numbers, GroupCounts(int(marks.sum()), len(marks))

    def read_in_turns(self, columns: Sequence[str], wanted: Wanted | None) -> Iterator[Turn]:
        """Yield these columns of all rows that are wanted, and of few others, some row groups at a time, the next when asked for."""
        compact = self.compact(columns)
        for fragment in _subset(compact.fragments, self.kept_groups(columns, wanted)):
            for groups in _turns(fragment.row_groups):
                yield Turn(compact._table([fragment.subset(row_group_ids=groups)], compact.schema, columns), len(groups))

    def all_timed(self, wanted: Wanted) -> bool:
        """Return whether statistics say that no event has to be read for want of a time."""
        return wanted.timed is None or all(is_never_null(fragment, wanted.timed) for fragment in self.fragments)

    def compact(self, columns: Sequence[str]) -> ParquetFiles:
        """Return the same files, of which those of the columns come as dictionaries that are text which dictionaries make smaller."""
        encoded = list(self._compact_texts(columns))
        while encoded:
            reading = tuple(_encoding(fragment, encoded) for fragment in self.fragments)
            odd = _odd_columns(reading, encoded)
            if not odd:
                return replace(self, schema=_encoded_schema(self.schema, encoded), fragments=reading)
            encoded = [name for name in encoded if name not in odd]
        return self

    def read_groups(self, columns: Sequence[str], chosen: Sequence[tuple[int, list[int]]]) -> pa.Table:
        """Return these columns of some row groups: of each number of a fragment, those with the numbers in its list.

        Their chunks are not joined, so that what is kept of the table keeps no other row group.
        """
        fragments = self.pick(chosen)
        with reading_files(self.states, fragments, self.schema, columns):
            return _chunks(fragments, self.schema, columns)

    def pick(self, chosen: Sequence[tuple[int, list[int]]]) -> list[dataset.ParquetFileFragment]:
        """Return some row groups: of each number of a fragment, those with the numbers in its list."""
        return [self.fragments[number].subset(row_group_ids=own) for number, own in chosen]

    def count_rows(self) -> int:
        """Return the number of rows, which the footers tell."""
        return sum(each_at_once(_rows_of, self.fragments))

    def marks(self, kept: Kept) -> Flags:
        """Return for each row group whether it is kept."""
        return np.concatenate([np.empty(0, np.bool_), *map(_marks, self.fragments, kept)])

    def kept_groups(self, columns: Sequence[str], wanted: Wanted | None) -> Kept:
        """Return for each fragment the row groups that may have a wanted row; None for all."""
        if wanted is None or not self.fragments:
            return [None] * len(self.fragments)
        each_at_once(lambda fragment: fragment.ensure_complete_metadata(), self.fragments)
        if not self.all_timed(wanted):
            return [None] * len(self.fragments)
        found = each_at_once(lambda fragment: wanted_groups(fragment, self.schema, columns, wanted), self.fragments)
        kept, holds = [own.numbers for own in found], unite_holds([own.holds for own in found])
        return kept if wanted.near is None or holds is None else self._kept_near(self.marks(kept), holds, wanted.near)

    def _kept_near(self, kept: Flags, holds: Mapping[int, Flags], near: Near) -> Kept:
        """Return for each fragment those of the `kept` row groups that may have an event which bears on a match."""
        groups = read_row_groups(self.fragments, self.schema, near.timestamp, ()).take(np.flatnonzero(kept))
        marks = near_groups(groups, near.length, [[holds[number] for number in branch] for branch in near.branches])
        near_ones = groups.take(np.flatnonzero(marks))
        return [own.tolist() for own in np.split(near_ones.group, np.searchsorted(near_ones.file, range(1, len(self.fragments))))]

    def _table(self, fragments: Sequence[dataset.ParquetFileFragment], schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
        """Return columns of all rows of some fragments, none of which has changed."""
        with reading_files(self.states, fragments, schema, columns):
            table = _table(fragments, schema, columns)
        # Arrow reads the codes of a damaged page as they are
        inspect_dictionaries(table)
        return table

    def _encoded_table(self, kept: Kept, columns: Sequence[str], encoded: Sequence[str]) -> pa.Table:
        """Return columns of the row groups that are kept, the `encoded` ones as dictionaries."""
        reading = tuple(_encoding(fragment, encoded) for fragment in _subset(self.fragments, kept))
        odd = _odd_columns(reading, encoded)
        if odd:
            # a file has another type there, which Arrow casts to that of the schema
            return self._encoded_table(kept, columns, [name for name in encoded if name not in odd])
        return self._table(reading, _encoded_schema(self.schema, encoded), columns)

    def _compact_texts(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return those of the columns that are text and that dictionaries make smaller, as the first row group tells."""
        texts = [name for name in columns if is_text(self.schema.field(name).type)]
        first = next((fragment for fragment in self.fragments if fragment.num_row_groups), None)
        if not texts or first is None or sum(group.num_rows for group in first.row_groups) < _SOME_ROWS:
            return ()
        if not all(map(_can_encode, self.fragments)):
            return ()
        group = first.metadata.row_group(first.row_groups[0].id)
        chunks = {chunk.path_in_schema: chunk for chunk in map(group.column, range(group.num_columns))}
        return tuple(name for name in texts if name in chunks and "." not in name and _is_compact(chunks[name]))


def _turns(groups: Sequence[dataset.RowGroupInfo]) -> Iterator[list[int]]:
    """Yield the numbers of row groups in lists of at most so many rows and bytes as are read together; a group of more is alone."""
    together, rows, size = list[int](), 0, 0
    for group in groups:
        if together and (rows + group.num_rows > _TOGETHER or size + group.total_byte_size > _BYTES_TOGETHER):
            yield together
            together, rows, size = [], 0, 0
        together.append(group.id)
        rows, size = rows + group.num_rows, size + group.total_byte_size
    if together:
        yield together


def find_parquet(found: EventFiles, folders: Collection[str]) -> ParquetFiles:
    """Return Parquet files, of folders all that they hold; subfolders may be named ``column=value``.

    Raises
    ------
    EventError
        A folder holds no Parquet file.
    """
    if len(found.paths) == 1:
        return _of_path(found, found.paths[0])
    if folders:
        return unite_parquet([_of_path(found, path) for path in found.paths])
    from pyarrow import dataset

    fragments = tuple(dataset.ParquetFileFormat().make_fragment(path, found.system) for path in found.paths)
    states = states_of(fragments)
    schemas = each_at_once(lambda fragment: fragment.physical_schema, fragments)
    return ParquetFiles(unite_schemas(schemas), fragments, states)


def _of_path(found: EventFiles, path: str) -> ParquetFiles:
    """Return a Parquet file, or all those of a folder."""
    from pyarrow import parquet

    data_set = parquet.ParquetDataset(path, filesystem=found.system)
    if not data_set.files:
        name = found.name if len(found.paths) == 1 else path
        raise EventError(f"events: cannot read {shorten_name(name)}: the folder holds no Parquet file")
    fragments = tuple(data_set.fragments)
    return ParquetFiles(data_set.schema, fragments, states_of(fragments))


def unite_parquet(parts: Sequence[ParquetFiles]) -> ParquetFiles:
    """Return several sets of files as one, in the order given; a column that a file lacks is NULL there."""
    if len(parts) == 1:
        return parts[0]
    schema = unite_schemas([part.schema for part in parts])
    states = {path: state for part in parts for path, state in part.states.items()}
    return ParquetFiles(schema, tuple(fragment for part in parts for fragment in part.fragments), states)


def parquet_of(data_set: Any) -> ParquetFiles | None:
    """Return the files of Arrow's data set; None if it is not of Parquet files in order, or has a filter of its own."""
    from pyarrow import dataset

    if not isinstance(data_set, dataset.FileSystemDataset) or not isinstance(data_set.format, dataset.ParquetFileFormat):
        return None
    try:
        fragments = tuple(data_set.get_fragments())
    except ValueError:
        # it has a filter, and does not tell its fragments
        return None
    states = states_of(fragments)
    # a fragment may have been made of row groups in another order than that of its file
    return ParquetFiles(data_set.schema, fragments, states) if all(each_at_once(_in_file_order, fragments)) else None


def _in_file_order(fragment: dataset.ParquetFileFragment) -> bool:
    groups = [group.id for group in fragment.row_groups]
    return groups == sorted(set(groups))


def _rows_of(fragment: dataset.ParquetFileFragment) -> int:
    """Return the number of rows of a file, or of some row groups of one."""
    # count_rows() counts those of the whole file
    return sum(int(group.num_rows) for group in fragment.row_groups)


def _table(fragments: Sequence[dataset.ParquetFileFragment], schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
    """Return columns of all rows of the fragments; the chunks of many rows are joined."""
    if not fragments:
        return _chunks(fragments, schema, columns)
    if not isinstance(fragments[0].filesystem, fs.LocalFileSystem) or sum(map(_rows_of, fragments)) < _MANY_ROWS:
        return _chunks(fragments, schema, columns)
    whole = _data_set(fragments, schema)
    # of one column alone, chunks lie in memory beside what the engine reads: joined columns
    joined = [_joined(_checked(whole.to_table(columns=[name]).column(0), name)) for name in columns]
    return pa.table(joined, pa.schema([schema.field(name) for name in columns], schema.metadata))


def _chunks(fragments: Sequence[dataset.ParquetFileFragment], schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
    """Return columns of all rows of the fragments, in the chunks in which they are read."""
    if not fragments:
        return no_rows(pa.schema([schema.field(name) for name in columns]))
    return _data_set(fragments, schema).to_table(columns=list(columns))


def _data_set(fragments: Sequence[dataset.ParquetFileFragment], schema: pa.Schema) -> dataset.FileSystemDataset:
    """Return some fragments, of which there is one at least, as a data set."""
    from pyarrow import dataset

    first = fragments[0]
    return dataset.FileSystemDataset(list(fragments), schema, first.format, first.filesystem)


def _checked(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return a column of which each code is that of a value: to join unlike dictionaries, Arrow reads by all codes as they are."""
    if pa.types.is_dictionary(column.type) and column.num_chunks > 1:
        check_codes(column, name)
    return column


def _joined(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in one chunk, or as it is if it holds more text, or longer lists, than one takes."""
    if not pa.types.is_primitive(column.type) and column.nbytes > _MOST_JOINED:
        return column
    if not _has_dictionaries_of_text(column):
        return pa.chunked_array([column.combine_chunks()])
    # the compiler is loaded only for files that are read
    from gpu_cep.engine.input.joined_texts import join_texts

    return pa.chunked_array([join_texts(column)])


def _has_dictionaries_of_text(column: pa.ChunkedArray) -> bool:
    """Return whether a column has several chunks with dictionaries of text, none of whose values is NULL."""
    return column.num_chunks > 1 and pa.types.is_dictionary(column.type) and is_text(column.type.value_type) and not hold_nulls(column)


_ENCODED = pa.dictionary(pa.int32(), pa.string())


def _encoded_schema(schema: pa.Schema, encoded: Sequence[str]) -> pa.Schema:
    """Return the schema with dictionaries for the `encoded` columns."""
    return pa.schema([field.with_type(_ENCODED) if field.name in encoded else field for field in schema], schema.metadata)


def _odd_columns(reading: Sequence[dataset.ParquetFileFragment], encoded: Sequence[str]) -> set[str]:
    """Return those of the columns that do not come as dictionaries from some file."""
    return {name for own in each_at_once(lambda fragment: fragment.physical_schema, reading) for name in _not_encoded(own, encoded)}


def _not_encoded(schema: pa.Schema, encoded: Sequence[str]) -> list[str]:
    """Return the columns that do not come as the dictionaries that were asked for."""
    return [name for name in encoded if name in schema.names and schema.field(name).type != _ENCODED]


def _can_encode(fragment: dataset.ParquetFileFragment) -> bool:
    """Return whether the file can be opened once more, by the same rules but for dictionaries."""
    from pyarrow import dataset

    own = fragment.format.read_options
    known = dataset.ParquetReadOptions(own.dictionary_columns, own.coerce_int96_timestamp_unit)
    return fragment.buffer is None and bool(own.equals(known))


def _encoding(fragment: dataset.ParquetFileFragment, encoded: Sequence[str]) -> dataset.ParquetFileFragment:
    """Return the same row groups, of which columns are read as dictionaries."""
    from pyarrow import dataset

    own = fragment.format
    names = {*own.read_options.dictionary_columns, *encoded}
    options = dataset.ParquetReadOptions(names, own.read_options.coerce_int96_timestamp_unit)
    encoding = dataset.ParquetFileFormat(read_options=options, default_fragment_scan_options=own.default_fragment_scan_options)
    again = encoding.make_fragment(fragment.path, fragment.filesystem, fragment.partition_expression)
    return pick_groups(again, [group.id for group in fragment.row_groups])


def pick_groups(fragment: dataset.ParquetFileFragment, groups: Sequence[int]) -> dataset.ParquetFileFragment:
    """Return the row groups of a file that have these numbers, in the order of the file."""
    # make_fragment() puts the numbers that it is given in the order of a set
    return fragment if len(groups) == fragment.num_row_groups else fragment.subset(row_group_ids=groups)


def _subset(fragments: Iterable[dataset.ParquetFileFragment], kept: Kept) -> Iterator[dataset.ParquetFileFragment]:
    """Yield the fragments with the row groups that are kept, but none that keeps none."""
    for fragment, own in zip(fragments, kept, strict=True):
        if own is None:
            yield fragment
        elif own:
            yield fragment.subset(row_group_ids=own)


def _marks(fragment: dataset.ParquetFileFragment, kept: list[int] | None) -> Flags:
    """Return for each row group of a fragment whether it was read."""
    groups = [group.id for group in fragment.row_groups]
    return np.ones(len(groups), np.bool_) if kept is None else np.isin(groups, kept)


def _is_compact(chunk: parquet.ColumnChunkMetaData) -> bool:
    """Return whether the values of a row group stand in a dictionary that is worth it."""
    return bool(chunk.has_dictionary_page) and bool(chunk.total_uncompressed_size <= _MOST_BYTES * chunk.num_values + _FEW_VALUES)

"""Read Parquet files some row groups at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.input.encodings import decode_table
from gpu_cep.engine.input.event_files import reading
from gpu_cep.engine.input.parquet_files import GroupCounts, ParquetFiles, PartOfFiles
from gpu_cep.engine.input.readers import BY_ARROW, ChosenGroups, Reader
from gpu_cep.engine.input.row_groups import Numbers, RowGroups, read_row_groups
from gpu_cep.engine.input.row_numbers import RowRuns
from gpu_cep.engine.input.wanted_events import Wanted

# Rows of a part if all rows are read part by part.
_ROWS = 1 << 23


class Closeable(Protocol):
    """What is needed as long as files are read."""

    def close(self) -> None:
        """Let go of it."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupedFiles:
    """Columns of Parquet files whose row groups are read apart; errors name the files `name`.

    `schema`: the columns with the types that they have without dictionaries of texts.
    `all`: all row groups. `groups`: those that may have an event that counts.
    `first_rows`: the numbers of their first rows.
    `counts`: how many these are of all (None: none could be left out). `reader`: who reads them.
    """

    name: str
    schema: pa.Schema
    all: RowGroups
    groups: RowGroups
    first_rows: Numbers
    counts: GroupCounts | None
    reader: Reader
    _given: ParquetFiles
    # the same as Arrow reads them
    _files: ParquetFiles
    # the column that holds the numbers of rows, if these are not in the order of the files
    _numbers: str | None = None
    # what is needed as long as the files are read
    _held: Closeable | None = None

    @property
    def told(self) -> str:
        """Return who reads which columns, in words; nothing if Arrow reads all."""
        with reading(self.name):
            return self.reader.tell(self._given, self.schema.names)

    def close(self) -> None:
        """Remove the files if they are temporary."""
        if self._held is not None:
            self._held.close()

    def compact(self) -> GroupedFiles:
        """Return the same files, of which text comes as dictionaries where these are smaller; raises as :meth:`read`."""
        with reading(self.name):
            return replace(self, _files=self._files.compact(self.schema.names))

    def read(self, places: Numbers, gpu_memory: int | None = None) -> PartOfFiles:
        """Return the columns of the row groups at these ascending places.

        On a card they take at most `gpu_memory` bytes (None: what is free).

        Raises
        ------
        EventError
            They cannot be read; its cause is the error of the library that reads them.
        UnsupportedError
            They do not fit the card's memory, or `gpu_memory`.
        """
        chosen = self.groups.take(places)
        if self._numbers is None:
            groups = ChosenGroups(self._given, partial(self._given.pick, _by_file(chosen)), partial(self._table, chosen))
            with reading(self.name):
                table = self.reader.read(groups, self.schema.names, gpu_memory).table
            return PartOfFiles(table, self.schema, self.numbers_of(places), self.counts)
        table = self._table(chosen, [*self.schema.names, self._numbers])
        held = table.column(self._numbers).to_numpy()
        return PartOfFiles(table.select(self.schema.names), self.schema, held, self.counts)

    def numbers_of(self, places: Numbers) -> RowRuns:
        """Return the numbers of the rows in the row groups at these ascending places of files whose rows are in order."""
        return RowRuns.of(self.first_rows[places], self.groups.rows[places])

    def parts(self, groups: RowGroups, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield columns of all or of some row groups, some at a time; raises as :meth:`read`."""
        parts = (np.cumsum(groups.rows) - groups.rows) // _ROWS
        for part in np.unique(parts).tolist():
            yield self._table(groups.take(np.flatnonzero(parts == part)), columns)

    def count_missing(self, timestamp: str) -> tuple[int, int, int]:
        """Return how many times are NULL, how many are NaN, and how many there are; raises as :meth:`read`."""
        nulls = nans = events = 0
        for part in self.parts(self.all, [timestamp]):
            times = part.column(0)
            events += len(times)
            nulls += times.null_count
            nans += pc.sum(pc.is_nan(times)).as_py() or 0 if pa.types.is_floating(times.type) else 0
        return nulls, nans, events

    def _table(self, chosen: RowGroups, columns: Sequence[str]) -> pa.Table:
        with reading(self.name):
            return decode_table(self._files.read_groups(columns, _by_file(chosen)))


def _by_file(chosen: RowGroups) -> list[tuple[int, list[int]]]:
    """Return the number of each file of some row groups, with the numbers that these have in it."""
    files, begins = np.unique(chosen.file, return_index=True)
    of_files = zip(files.tolist(), np.split(chosen.group, begins[1:]), strict=True) if len(files) else ()
    return [(file, own.tolist()) for file, own in of_files]


def group_files(
    name: str, files: ParquetFiles, reader: Reader, schema: pa.Schema, columns: Sequence[str], timestamp: str, wanted: Wanted | None
) -> GroupedFiles:
    """Return columns of the row groups that may have a wanted event; `schema` has the types of all columns, decoded."""
    groups = read_row_groups(files.fragments, files.schema, timestamp, columns)
    marks = files.marks(files.kept_groups(columns, wanted))
    counts = None if wanted is None else GroupCounts(int(marks.sum()), len(marks))
    typed = pa.schema([schema.field(column) for column in columns])
    kept = groups.take(np.flatnonzero(marks))
    return GroupedFiles(name, typed, groups, kept, groups.first_rows[marks], counts, reader, files, files)


def open_numbered(path: str, given: GroupedFiles, timestamp: str, numbers: str, held: Closeable) -> GroupedFiles:
    """Return the rows of `given` as a folder of Parquet files holds them, whose column `numbers` has their numbers.

    `held` is kept as long as the files are read, and closed with them.
    """
    from pyarrow import parquet

    with reading(given.name):
        data_set = parquet.ParquetDataset(path)
        files = ParquetFiles(data_set.schema, tuple(sorted(data_set.fragments, key=lambda fragment: str(fragment.path))))
        groups = read_row_groups(files.fragments, files.schema, timestamp, [*given.schema.names, numbers])
    return GroupedFiles(given.name, given.schema, groups, groups, groups.first_rows, given.counts, BY_ARROW, files, files, numbers, held)

"""Read the footers of Parquet files as one table of row groups, with the times between which the events of each lie."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.input.at_once import each_at_once
from gpu_cep.engine.input.machine_values import Array, Flags, machine_values
from gpu_cep.errors import EventError

if TYPE_CHECKING:
    from pyarrow import dataset, parquet

Numbers = npt.NDArray[np.int64]

# Not counted.
UNCOUNTED = -1
# Bytes of a value in memory that has no fixed width, beside those that it takes in the file: offsets or codes.
_OFFSETS = 8
_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_INTEGERS = {
    **{(kind.bit_width, True): kind for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{(kind.bit_width, False): kind for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
}


@dataclass(frozen=True, slots=True, eq=False)
class RowGroups:
    """The row groups of some Parquet files in the order of their rows, as one array for each thing that footers say.

    `file`: the number of the file. `group`: the number of the row group in its file.
    `rows`: the number of rows. `size`: the bytes that the columns which are read take in memory, roughly.
    `earliest`, `latest`: bounds of the times that are not NULL or NaN, in ticks (int64 or float64).
    `known`: whether these bounds are known; if not, they are the lowest and the highest number of the type.
    `missing`: how many times are NULL or NaN (:data:`UNCOUNTED`: the footer does not say).

    A row group without any time has the lowest number as both bounds.
    """

    file: Numbers
    group: Numbers
    rows: Numbers
    size: Numbers
    earliest: Array
    latest: Array
    known: Flags
    missing: Numbers

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: Numbers) -> RowGroups:
        """Return some of the row groups."""
        return RowGroups(*(getattr(self, each.name)[places] for each in fields(self)))

    @property
    def first_rows(self) -> Numbers:
        """Return the number of each row group's first row among all rows."""
        return np.cumsum(self.rows) - self.rows


def read_row_groups(
    fragments: Sequence[dataset.ParquetFileFragment], schema: pa.Schema, timestamp: str, columns: Collection[str], first: int = 0
) -> RowGroups:
    """Return the row groups of some files, several footers being read at a time.

    Parameters
    ----------
    fragments
        The files, or some row groups of each.
    schema
        The schema of all files, in whose types columns are read.
    timestamp
        The column of times.
    columns
        The columns that are read, of which `size` tells.
    first
        The number of the first file. The row groups of files that are read apart are put together by :func:`unite_row_groups`.

    Raises
    ------
    OSError
        A file cannot be read, or is no Parquet file.
    """
    kind = schema.field(timestamp).type

    def of_file(number: int) -> RowGroups:
        return _of_file(fragments[number], first + number, timestamp, kind, {name: schema.field(name).type for name in columns})

    return unite_row_groups([_none(kind), *each_at_once(of_file, range(len(fragments)))])


def unite_row_groups(parts: Sequence[RowGroups]) -> RowGroups:
    """Return the row groups of several sets of files as those of one, in the order given."""
    return RowGroups(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(RowGroups)))


def limits_of(times: Array) -> tuple[int, int] | tuple[float, float]:
    """Return the lowest and the highest number that times of this type can be."""
    if times.dtype.kind == "f":
        return -np.inf, np.inf
    return int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)


def _of_file(
    fragment: dataset.ParquetFileFragment, file: int, timestamp: str, kind: pa.DataType, read: dict[str, pa.DataType]
) -> RowGroups:
    """Return the row groups of one file."""
    fragment.ensure_complete_metadata()
    footer, numbers = fragment.metadata, [group.id for group in fragment.row_groups]
    held = [footer.row_group(number) for number in numbers]
    rows = np.array([group.num_rows for group in held], np.int64)
    size = np.zeros(len(rows), np.int64)
    for place, width in _leaves(footer.schema, read):
        flat = footer.schema.column(place).max_repetition_level == 0
        # each row has one value, which chunks would tell more slowly
        size += width * rows if flat and width is not None else np.array([_size(group.column(place), width) for group in held], np.int64)
    earliest, latest, known, missing = _bounds(footer, held, rows, timestamp, kind)
    return RowGroups(np.full(len(rows), file), np.array(numbers, np.int64), rows, size, earliest, latest, known, missing)


def _leaves(schema: parquet.ParquetSchema, read: dict[str, pa.DataType]) -> Iterator[tuple[int, int | None]]:
    """Yield the places of the columns of a file that are read, each with the bytes of a value (None: they have no fixed width)."""
    for place in range(len(schema)):
        path = schema.column(place).path
        kind = read.get(path.partition(".")[0])
        if kind is not None:
            yield place, _width(kind) if path in read else _OFFSETS


def _width(kind: pa.DataType) -> int | None:
    """Return the bytes that a value of a type takes in memory; None if that depends on the value."""
    try:
        return -(-int(kind.bit_width) // 8)
    except ValueError:
        return None


def _size(chunk: parquet.ColumnChunkMetaData, width: int | None) -> int:
    """Return roughly the bytes that a column of a row group takes in memory."""
    if width is None:
        return int(chunk.total_uncompressed_size) + _OFFSETS * int(chunk.num_values)
    return width * int(chunk.num_values)


def _bounds(
    footer: parquet.FileMetaData, held: Sequence[parquet.RowGroupMetaData], rows: Numbers, timestamp: str, kind: pa.DataType
) -> tuple[Array, Array, Flags, Numbers]:
    """Return the bounds of the times of each row group, whether they are known, and how many times are missing."""
    place = next((number for number in range(len(footer.schema)) if footer.schema.column(number).path == timestamp), None)
    lowest, highest = limits_of(_no_ticks(kind))
    unknown = np.full(len(held), lowest, _no_ticks(kind).dtype), np.full(len(held), highest, _no_ticks(kind).dtype)
    if place is None:
        return *unknown, np.zeros(len(held), np.bool_), np.full(len(held), UNCOUNTED)
    told = [group.column(place).statistics for group in held]
    missing = np.array([_missing(each) for each in told], np.int64)
    bounded = np.array([each is not None and bool(each.has_min_max) for each in told], np.bool_)
    at = np.flatnonzero(bounded)
    ends = [(told[number].min_raw, told[number].max_raw) for number in at.tolist()]
    ticks = _ticks(ends, footer.schema.column(place), kind)
    if ticks is None:
        bounded[:] = False
    else:
        unknown[0][at], unknown[1][at] = ticks
    timeless = (missing == rows) & ~bounded
    unknown[1][timeless] = lowest
    if _no_ticks(kind).dtype.kind == "f":
        # statistics pass over NaN
        missing[missing == 0] = UNCOUNTED
    return *unknown, bounded | timeless, missing


def _missing(told: parquet.Statistics | None) -> int:
    return int(told.null_count) if told is not None and told.has_null_count else UNCOUNTED


def _ticks(ends: list[tuple[Any, Any]], column: parquet.ColumnSchema, kind: pa.DataType) -> tuple[Array, Array] | None:
    """Return the lowest and highest times of statistics in ticks of the type `kind`; None if they cannot be read as such."""
    stored = stored_type(column)
    if stored is None or not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)):
        return None
    try:
        arrays = [_stored_values([end[side] for end in ends], stored).cast(kind) for side in (0, 1)]
        low, high = (machine_values(array, column.path).astype(_no_ticks(kind).dtype) for array in arrays)
    except (pa.ArrowException, EventError, OverflowError):
        return None
    # some writers take NaN for a bound
    return None if np.isnan(low).any() or np.isnan(high).any() else (low, high)


def _stored_values(values: list[Any], stored: pa.DataType) -> pa.Array:
    """Return what statistics hold as values of the column's type; those without a sign come as if they had one."""
    if pa.types.is_unsigned_integer(stored):
        return pa.array([value % (1 << stored.bit_width) for value in values], stored)
    return pa.array(values, stored)


def stored_type(column: parquet.ColumnSchema) -> pa.DataType | None:
    """Return the type of a column of numbers or times in a file; None if it is of another type, or if its statistics are no numbers."""
    if column.physical_type in ("FLOAT", "DOUBLE"):
        return pa.float32() if column.physical_type == "FLOAT" else pa.float64()
    if column.physical_type not in ("INT32", "INT64"):
        return None
    told = json.loads(column.logical_type.to_json())
    match told["Type"]:
        case "None":
            return pa.int32() if column.physical_type == "INT32" else pa.int64()
        case "Int":
            return _INTEGERS.get((told["bitWidth"], told["isSigned"]))
        case "Date":
            return pa.date32()
        case "Timestamp":
            return pa.timestamp(_UNITS[told["timeUnit"]], "UTC" if told["isAdjustedToUTC"] else None)
    return None


def _no_ticks(kind: pa.DataType) -> Array:
    """Return an empty array of the type that ticks of a column have."""
    return np.empty(0, np.float64 if pa.types.is_floating(kind) else np.int64)


def _none(kind: pa.DataType) -> RowGroups:
    """Return no row group."""
    number, time = np.empty(0, np.int64), _no_ticks(kind)
    return RowGroups(number, number, number, number, time, time, np.empty(0, np.bool_), number)

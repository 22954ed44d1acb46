"""Keep the dictionaries of tables in step with their rows: to join or to look through them takes time for each value.

A push may be a slice of events whose dictionary has the keys of all, and of what is kept each chunk has a dictionary of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.input.chunks import texts_at
from gpu_cep.engine.input.text_codes import memory_of

Rows = npt.NDArray[np.integer[Any]]


def without_others(table: pa.Table, most: float = 1) -> pa.Table:
    """Return the same events with dictionaries of their own values where others have more than `most` values for each event."""
    for number in _encoded(table):
        column = table.column(number)
        if count_values(column) > most * len(column):
            table = table.set_column(number, table.schema.field(number), _encode(column.cast(column.type.value_type), column.type))
    return table


def take_events(table: pa.Table, rows: Rows) -> pa.Table:
    """Return the events at ascending `rows`, with dictionaries of their own values where others are many."""
    places = pa.array(rows)
    columns = [_take(column, rows, places) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def join_chunks(table: pa.Table) -> pa.Table:
    """Return a copy of the table in one chunk, with dictionaries that have few values of other events."""
    columns = [_copied(column) for column in without_others(table).columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def most_values(*tables: pa.Table) -> int:
    """Return how many values the dictionaries of a column have in all tables, of the column with the most."""
    return max((count_values(*(table.column(number) for table in tables)) for number in _encoded(tables[0])), default=0)


def count_values(*columns: pa.ChunkedArray) -> int:
    """Return how many values the dictionaries of columns have; one that chunks share counts once."""
    dictionaries = [chunk.dictionary for column in columns for chunk in column.chunks]
    return sum({memory_of(values): len(values) for values in dictionaries}.values())


def _encoded(table: pa.Table) -> list[int]:
    """Return the numbers of the columns with dictionaries."""
    return [number for number, kind in enumerate(table.schema.types) if pa.types.is_dictionary(kind)]


def _take(column: pa.ChunkedArray, rows: Rows, places: pa.Array) -> pa.ChunkedArray:
    """Return the values of a column at ascending `rows`, which are `places`, too."""
    if not pa.types.is_dictionary(column.type) or not _are_many(column, len(rows)):
        return column.take(places)
    # Arrow would join all dictionaries first
    return _encode(pa.chunked_array([texts_at(column, rows)]), column.type)


def _are_many(column: pa.ChunkedArray, rows: int) -> bool:
    """Return whether a column has different dictionaries, which have more values than so many rows."""
    if column.num_chunks == 1:
        return False
    values = count_values(column)
    return values > rows and values > len(column.chunk(0).dictionary)


def _encode(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return values as one chunk of a type with dictionaries."""
    return pa.chunked_array([values.combine_chunks().dictionary_encode().cast(kind)], kind)


def _copied(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return a copy of a column as one array, or as few as can hold it."""
    # Arrow joins no single chunk with others, and so would return it as it is
    return pa.concat_arrays(column.chunks) if column.num_chunks == 1 else column.combine_chunks()

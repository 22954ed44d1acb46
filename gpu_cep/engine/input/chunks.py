"""Join the chunks of a column, or say that they are long enough to be read one by one; take some of its rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.input.buffers import buffer_values
from gpu_cep.engine.input.pieces import FEWEST_ROWS

Rows = npt.NDArray[np.integer[Any]]

# Bytes of text that an array with offsets of 32 bits holds.
MOST_TEXT = (1 << 31) - 1
# Types of text with offsets of 32 bits, and the same with larger ones.
LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def is_long(column: pa.ChunkedArray) -> bool:
    """Return whether to read a column chunk by chunk, not joined: its chunks are long, or there is one."""
    chunks = column.num_chunks
    return bool(chunks == 1 or 0 < chunks * FEWEST_ROWS <= len(column))


def chunks_of(column: pa.ChunkedArray) -> list[pa.Array]:
    """Return the chunks of a column; a single one is asked for alone, in a third of the time."""
    return [column.chunk(0)] if column.num_chunks == 1 else column.chunks


def combine_chunks(column: pa.ChunkedArray) -> pa.Array:
    """Return all chunks as one array.

    Text of more than 2 GiB gets larger offsets, and dictionaries of which the codes are too narrow for all values get wider ones.
    """
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.type in LARGE and column.nbytes > MOST_TEXT:
        column = column.cast(LARGE[column.type])
    try:
        joined = column.combine_chunks()
    except pa.ArrowInvalid:
        if not pa.types.is_dictionary(column.type):
            raise
        joined = column.cast(pa.dictionary(pa.int32(), column.type.value_type, column.type.ordered)).combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def take_rows(column: pa.ChunkedArray, rows: pa.Array) -> pa.Array:
    """Return the values of a column at `rows` as one array, in the type of the column.

    Raises
    ------
    pa.ArrowInvalid
        These rows have more values than the column's codes number.
    """
    if not pa.types.is_dictionary(column.type):
        return combine_chunks(column.take(rows))
    taken = combine_chunks(column).take(rows)
    return taken if taken.type == column.type else taken.dictionary_decode().dictionary_encode().cast(column.type)


def take_few(column: pa.ChunkedArray, rows: pa.Array) -> pa.Array:
    """Return the values of a column at few `rows`, NULL for a NULL row; chunks are not joined, and have one dictionary if any."""
    return _take_in_any_order(rows, lambda ascending: pa.concat_arrays(_parts_at(column, ascending)))


def take_few_texts(column: pa.ChunkedArray, rows: pa.Array) -> pa.Array:
    """Return what :func:`take_few` does, of a column whose chunks have dictionaries of their own; these are not joined.

    The dictionary of the result holds the values at these rows alone.

    Raises
    ------
    pa.ArrowInvalid
        These rows have more values than the column's codes number.
    """
    return _take_in_any_order(rows, partial(texts_at, column)).dictionary_encode().cast(column.type)


def texts_at(column: pa.ChunkedArray, rows: Rows) -> pa.Array:
    """Return the text of a column at ascending `rows` without a dictionary; of those of its chunks no other values are read."""
    if not pa.types.is_dictionary(column.type):
        return combine_chunks(pa.chunked_array(_parts_at(column, rows), column.type))
    return combine_chunks(pa.chunked_array([part.dictionary_decode() for part in _parts_at(column, rows)], column.type.value_type))


def _parts_at(column: pa.ChunkedArray, rows: Rows) -> list[pa.Array]:
    """Return the values of a column at ascending `rows`, those of each chunk with some of them apart; there is one part at least."""
    chunks, begins = column.chunks, np.cumsum([0, *map(len, column.chunks)])
    cuts = rows.searchsorted(begins.astype(rows.dtype))
    inside = pa.array(rows - begins[:-1].repeat(np.diff(cuts)))
    # the first part is there for no rows, too
    return [chunks[0].slice(0, 0)] + [
        chunk.take(inside.slice(low, high - low)) for chunk, (low, high) in zip(chunks, pairwise(cuts.tolist()), strict=True) if low < high
    ]


def _take_in_any_order(rows: pa.Array, taken: Callable[[Rows], pa.Array]) -> pa.Array:
    """Return the values at `rows`, NULL for a NULL row, where `taken` gives those at ascending ones."""
    numbers = (rows.fill_null(0) if rows.null_count else rows).to_numpy()
    order = numbers.argsort()
    places = np.empty(len(rows), np.int64)
    places[order] = np.arange(len(rows))
    nulls = rows.is_null().to_numpy(zero_copy_only=False) if rows.null_count else None
    return taken(numbers[order]).take(pa.array(places, mask=nulls))


def take_present(array: pa.Array, rows: pa.Array) -> pa.Array:
    """Return ``array.take(rows)``: the values at `rows`, NULL for a NULL row.

    Arrow looks rows up in twice the time where some are NULL. Row 0 is looked up in their place, and then hidden.
    """
    if not rows.null_count or rows.offset or array.null_count or not len(array) or not _has_one_buffer(array.type):
        return array.take(rows)
    validity, numbers = rows.buffers()
    present = np.unpackbits(np.frombuffer(validity, np.uint8), count=len(rows), bitorder="little")
    taken = array.take(pa.array(buffer_values(numbers, str(rows.type), len(rows)) * present))
    buffers = [validity, taken.buffers()[1]]
    if pa.types.is_dictionary(array.type):
        return pa.DictionaryArray.from_buffers(array.type, len(rows), buffers, array.dictionary, rows.null_count)
    return pa.Array.from_buffers(array.type, len(rows), buffers, rows.null_count)


def _has_one_buffer(kind: pa.DataType) -> bool:
    """Return whether the values of a type lie in one buffer; those of a dictionary are its codes."""
    return pa.types.is_dictionary(kind) or (pa.types.is_primitive(kind) and not pa.types.is_null(kind))

"""Join the chunks of a column, or say that they are long enough to be read one by one."""

from __future__ import annotations

import pyarrow as pa

from gpu_cep.engine.input.pieces import FEWEST_ROWS
from gpu_cep.engine.input.text_codes import plain_dictionary

# Types of text with offsets of 32 bits, and the same with larger ones.
LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
# Bytes of text that an array with offsets of 32 bits holds.
_MOST_TEXT = (1 << 31) - 1


def is_long(column: pa.ChunkedArray) -> bool:
    """Return whether the chunks of a column are so long that reading them one by one costs less than joining them."""
    return bool(column.num_chunks > 0 and column.num_chunks * FEWEST_ROWS <= len(column))


def combine_chunks(column: pa.ChunkedArray) -> pa.Array:
    """Return all chunks as one array.

    Text of more than 2 GiB gets larger offsets, and dictionaries of which the codes are too narrow for all values get wider ones.
    """
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.type in LARGE and column.nbytes > _MOST_TEXT:
        column = column.cast(LARGE[column.type])
    try:
        joined = column.combine_chunks()
    except pa.ArrowInvalid:
        if not pa.types.is_dictionary(column.type):
            raise
        joined = column.cast(pa.dictionary(pa.int32(), column.type.value_type, column.type.ordered)).combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; if that has a dictionary, it has no NULLs or repeated values."""
    array = combine_chunks(column)
    return plain_dictionary(array) if pa.types.is_dictionary(array.type) else array


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

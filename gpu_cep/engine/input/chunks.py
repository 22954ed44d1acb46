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
    """Return all chunks as one array; text of more than 2 GiB gets larger offsets."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.type in LARGE and column.nbytes > _MOST_TEXT:
        column = column.cast(LARGE[column.type])
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; if that has a dictionary, it has no NULLs or repeated values."""
    array = combine_chunks(column)
    return plain_dictionary(array) if pa.types.is_dictionary(array.type) else array

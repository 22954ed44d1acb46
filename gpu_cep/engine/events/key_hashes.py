"""Hash stream keys: events of one stream have one hash, whichever other events stand beside them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.input.buffers import text_buffers
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep_kernels.phase_one.text import hash_texts
from gpu_cep_kernels.rules.scalars import SPREAD

Hashes = npt.NDArray[np.uint64]

# hardly the bits of a key
_NULL = ~SPREAD
_HALF = np.uint64(32)


def hash_keys(columns: EventColumns, keys: tuple[int, ...]) -> Hashes:
    """Return a hash of each event's values in the columns `keys`, uint64.

    Equal keys have equal hashes, in every table. NULLs are one value, and so are NaNs.
    """
    found = np.zeros(len(columns), np.uint64)
    for column in keys:
        found = (found ^ _hash_column(columns, column)) * SPREAD
        found ^= found >> _HALF
    return found


def _hash_column(columns: EventColumns, column: int) -> Hashes:
    """Return a hash of each value of one column."""
    if columns.type(column).kind is Kind.STRING:
        return _hash_text(columns.arrow(column))
    bits, nulls = _bits(columns.key_values(column)), columns.null_mask(column)
    return bits if nulls is None else np.where(nulls, _NULL, bits)


def _bits(values: Array) -> Hashes:
    """Return 64 bits for each number: the same for equal ones, and for all NaNs."""
    if values.dtype.kind != "f":
        return values.astype(np.int64).view(np.uint64)
    return np.where(np.isnan(values), np.nan, values).astype(np.float64).view(np.uint64)


def _hash_text(array: pa.Array) -> Hashes:
    """Return a hash of each text."""
    plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    text, hashes = text_buffers(plain), np.empty(len(plain), np.uint64)
    hash_texts(0, len(plain), text.offsets, text.bytes, hashes)
    return np.where(plain.is_null().to_numpy(zero_copy_only=False), _NULL, hashes) if plain.null_count else hashes

"""Hash stream keys: events of one stream have one hash, whichever other events stand beside them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.text_codes import hash_text
from gpu_cep_kernels.rules.scalars import SPREAD

Hashes = npt.NDArray[np.uint64]

# What NULL is hashed as: a constant that no likely value of a key has as its bits.
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
        return hash_text(columns.arrow(column), _NULL)
    bits, nulls = _bits(columns.key_values(column)), columns.null_mask(column)
    return bits if nulls is None else np.where(nulls, _NULL, bits)


def _bits(values: Array) -> Hashes:
    """Return 64 bits for each number: the same for equal ones, and for all NaNs."""
    if values.dtype.kind != "f":
        return values.astype(np.int64).view(np.uint64)
    return np.where(np.isnan(values), np.nan, values).astype(np.float64).view(np.uint64)

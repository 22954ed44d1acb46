"""Hash stream keys: events of one stream have one hash, whichever other events stand beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
# Events of a block: their hashes, and what is made on the way, stay in the cache.
BLOCK = 1 << 15


def hash_keys(columns: EventColumns, keys: tuple[int, ...]) -> Hashes:
    """Return a hash of each event's values in the columns `keys`, uint64.

    Equal keys have equal hashes, in every table. NULLs are one value, and so are NaNs.
    """
    found = np.empty(len(columns), np.uint64)
    for low, hashes in hash_blocks(columns, keys):
        found[low : low + len(hashes)] = hashes
    return found


def hash_blocks(columns: EventColumns, keys: tuple[int, ...]) -> Iterator[tuple[int, Hashes]]:
    """Give the hashes of :func:`hash_keys` for one block of events after the other, each with the number of its first event.

    A block fits the cache, so that work on it does not wait for memory. Its array is the caller's.
    """
    of_columns = [_hashes_of_column(columns, column) for column in keys]
    for low in range(0, len(columns), BLOCK):
        found = np.zeros(min(BLOCK, len(columns) - low), np.uint64)
        for hashes_of in of_columns:
            found ^= hashes_of(low, low + BLOCK)
            found *= SPREAD
            found ^= found >> _HALF
        yield low, found


def _hashes_of_column(columns: EventColumns, column: int) -> Callable[[int, int], Hashes]:
    """Return a function that gives a hash of each value of one column in some rows."""
    if columns.type(column).kind is Kind.STRING:
        hashes = hash_text(columns.arrow(column), _NULL)
        return lambda low, high: hashes[low:high]
    values, nulls = columns.key_values(column), columns.null_mask(column)
    if nulls is None:
        return lambda low, high: _bits(values[low:high])
    return lambda low, high: np.where(nulls[low:high], _NULL, _bits(values[low:high]))


def _bits(values: Array) -> Hashes:
    """Return 64 bits for each number: the same for equal ones, and for all NaNs."""
    if values.dtype.kind != "f":
        return values.astype(np.int64).view(np.uint64)
    return np.where(np.isnan(values), np.nan, values).astype(np.float64).view(np.uint64)

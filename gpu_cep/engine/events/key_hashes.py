"""Hash stream keys: events of one stream have one hash, whichever other events stand beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.events.matches import Flags
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.text_codes import hash_text
from gpu_cep_kernels.rules.scalars import SPREAD

Hashes = npt.NDArray[np.uint64]
# The highest bits of a hash, which depend on all of a key; what stands in the lower ones of 32 is not read.
KeyBits = npt.NDArray[np.uint32]
HASH_BITS = 30

# What NULL is hashed as: a constant that no likely value of a key has as its bits.
_NULL = ~SPREAD
_HALF = np.uint64(32)
# Events of a block: their hashes, and what is made on the way, stay in the cache.
BLOCK = 1 << 15
# How many cells the table of marked hashes has for each one that is looked for. So of this many other keys at most about one shares a
# cell with one of these.
_ROOM = 64


def hash_keys(columns: EventColumns, keys: tuple[int, ...]) -> Hashes:
    """Return a hash of each event's values in the columns `keys`, uint64.

    Equal keys have equal hashes, in every table. NULLs are one value, and so are NaNs.
    """
    found = np.empty(len(columns), np.uint64)
    for low, hashes in hash_blocks(columns, keys):
        found[low : low + len(hashes)] = hashes
    return found


def highest_bits(hashes: Hashes) -> KeyBits:
    """Return the highest 32 bits of each hash."""
    return (hashes >> _HALF).astype(np.uint32)


def are_among(bits: KeyBits, wanted: KeyBits) -> Flags:
    """Return which keys are among those wanted, by the highest bits of their hashes; a few others may seem to be.

    Examples
    --------
    >>> bits = np.array([1 << 31, 1 << 30, 1 << 31], np.uint32)
    >>> are_among(bits, bits[:1]).tolist()
    [True, False, True]
    """
    length = min(HASH_BITS, max(1, (_ROOM * len(wanted)).bit_length()))
    marked, others = np.zeros(1 << length, np.bool_), np.uint32(32 - length)
    marked[wanted >> others] = True
    return marked.take(bits >> others)


def hash_blocks(columns: EventColumns, keys: tuple[int, ...]) -> Iterator[tuple[int, Hashes]]:
    """Yield the hashes of :func:`hash_keys` for one block of events after the other, each with the number of its first event.

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

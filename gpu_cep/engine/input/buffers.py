"""Read Arrow's buffers as NumPy arrays."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep_kernels.compile.launch import slices, spread, threads_for


class _Memory:
    """A range of a buffer, exported by the array interface; arrays over it keep the buffer alive."""

    def __init__(self, buffer: pa.Buffer, kind: np.dtype[Any], count: int, first: int) -> None:
        self.buffer = buffer
        where = buffer.address + first * kind.itemsize, False
        self.__array_interface__ = {"version": 3, "typestr": kind.str, "shape": (count,), "data": where}


def buffer_values(buffer: pa.Buffer | None, kind: npt.DTypeLike, count: int | None = None, first: int = 0) -> npt.NDArray[Any]:
    """Return `count` values of a buffer, from value number `first` on; all of them if `count` is None.

    If `buffer` is None, it counts as empty. The values must not be written to. The arrays are not
    marked read-only: numba would compile each kernel again for read-only arrays.

    Raises
    ------
    ValueError
        The buffer ends before the values do.
    """
    dtype, length = np.dtype(kind), 0 if buffer is None else buffer.size
    most = length // dtype.itemsize
    size = most - first if count is None else count
    # a buffer without values may have no address
    if not size:
        return np.empty(0, dtype)
    if buffer is None or not 0 <= first <= first + size <= most:
        raise ValueError(f"values {first:,} to {first + size:,} of {dtype} are not in a buffer of {length:,} bytes")
    if buffer.is_mutable:
        values = np.frombuffer(buffer, dtype, size, first * dtype.itemsize)
    else:
        # NumPy would mark an array over a buffer that must not change as read-only
        values = np.asarray(_Memory(buffer, dtype, size, first))
    return values if values.flags.aligned else values.copy()


class TextBuffers(NamedTuple):
    """The buffers of plain text; row e is ``bytes[offsets[e]:offsets[e + 1]]``.

    `validity` is the whole bitmap, however the array is sliced; it is empty without NULLs.
    """

    validity: npt.NDArray[np.uint8]
    offsets: npt.NDArray[Any]
    bytes: npt.NDArray[np.uint8]


def text_buffers(array: pa.Array) -> TextBuffers:
    """Return the buffers of plain text."""
    validity, offsets, text = array.buffers()
    kind = np.int32 if pa.types.is_string(array.type) else np.int64
    # a column without rows may have no offsets
    bounds = buffer_values(offsets, kind, len(array) + 1, array.offset) if len(array) else np.zeros(1, kind)
    return TextBuffers(buffer_values(validity if array.null_count else None, np.uint8), bounds, buffer_values(text, np.uint8))


# Values from which an array lies in Arrow's memory.
_MANY = 1 << 14


def new_values(shape: int | tuple[int, ...], kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array with arbitrary values.

    A large one lies in memory of Arrow's pool, which keeps what is freed for a while for the next one. Else its
    pages would be new to the process each time, and these cost more than most that is done with them.
    """
    length = math.prod(shape) if isinstance(shape, tuple) else shape
    if length < _MANY:
        return np.empty(shape, kind)
    dtype = np.dtype(kind)
    return np.frombuffer(pa.allocate_buffer(dtype.itemsize * length), dtype).reshape(shape)


def values_at(values: npt.NDArray[Any], rows: npt.NDArray[Any], threads: int) -> npt.NDArray[Any]:
    """Return the values at some rows, of any order; `threads` threads gather them."""
    threads = threads_for(len(rows), threads)
    if threads == 1:
        found: npt.NDArray[Any] = values[rows]
        return found
    picked = new_values(len(rows), values.dtype)

    def gather(span: tuple[int, int]) -> None:
        # rows are in range: with another mode NumPy would gather to memory of its own first
        np.take(values, rows[slice(*span)], out=picked[slice(*span)], mode="clip")

    spread(gather, slices(len(rows), threads), threads)
    return picked

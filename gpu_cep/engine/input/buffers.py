"""Read Arrow's buffers as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


class _Memory:
    """A part of a buffer, kept alive by the arrays over it."""

    def __init__(self, buffer: pa.Buffer, kind: np.dtype[Any], count: int, first: int) -> None:
        if not 0 <= first <= first + count <= buffer.size // kind.itemsize:
            raise ValueError(f"values {first:,} to {first + count:,} of {kind} are not in a buffer of {buffer.size:,} bytes")
        self.buffer = buffer
        where = buffer.address + first * kind.itemsize, False
        self.__array_interface__ = {"version": 3, "typestr": kind.str, "shape": (count,), "data": where}


def buffer_values(buffer: pa.Buffer | None, kind: npt.DTypeLike, count: int | None = None, first: int = 0) -> npt.NDArray[Any]:
    """Return the `count` values (None: all) of a buffer from number `first` on; None is an empty buffer.

    The values must not be written to. The arrays are not marked read-only, as
    kernels would be compiled once more for that type: for the buffers of pandas,
    polars, DuckDB and messages.

    Raises
    ------
    ValueError
        The buffer ends before the values do.
    """
    dtype, held = np.dtype(kind), pa.py_buffer(b"") if buffer is None else buffer
    size = held.size // dtype.itemsize - first if count is None else count
    # a buffer without values may have no address
    return np.require(_Memory(held, dtype, size, first), requirements="A") if size else np.empty(0, dtype)

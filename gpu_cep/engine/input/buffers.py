"""Arrow's buffers as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


class _Memory:
    """Part of a buffer, which lives as long as an array over this does."""

    def __init__(self, buffer: pa.Buffer, kind: np.dtype[Any], count: int, first: int) -> None:
        if not 0 <= first <= first + count <= buffer.size // kind.itemsize:
            raise ValueError(f"values {first:,} to {first + count:,} of {kind} are not in a buffer of {buffer.size:,} bytes")
        self.buffer = buffer
        where = buffer.address + first * kind.itemsize, False
        self.__array_interface__ = {"version": 3, "typestr": kind.str, "shape": (count,), "data": where}


def buffer_values(buffer: pa.Buffer | None, kind: npt.DTypeLike, count: int | None = None, first: int = 0) -> npt.NDArray[Any]:
    """The `count` values (None: all) of a buffer from number `first` on; None is an empty buffer.

    Nobody is to write to them. Arrays that say so are another type to
    kernels, which would be compiled once more for the buffers of pandas,
    polars, DuckDB and messages; so these do not.

    Raises
    ------
    ValueError
        The buffer ends before the values do.
    """
    dtype, held = np.dtype(kind), pa.py_buffer(b"") if buffer is None else buffer
    size = held.size // dtype.itemsize - first if count is None else count
    # of no values there may be no place
    return np.require(_Memory(held, dtype, size, first), requirements="A") if size else np.empty(0, dtype)

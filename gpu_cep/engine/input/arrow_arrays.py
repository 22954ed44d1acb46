"""Write machine arrays as Arrow arrays of their data types."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.types import DataType, Kind
from gpu_cep_kernels.device.interface import HostArray

_PLAIN = {
    Kind.NULL: pa.null(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.DATE: pa.date32(),
}


_OF_NUMBERS = {
    np.dtype(kind): pa.from_numpy_dtype(kind)
    for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float32, np.float64)
}


def arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type of results of a data type."""
    match data_type.kind:
        case Kind.DECIMAL:
            return pa.decimal128(data_type.precision, data_type.scale)
        case Kind.TIMESTAMP:
            return pa.timestamp(data_type.unit, data_type.zone)
        case Kind.DURATION:
            return pa.duration(data_type.unit)
    return _PLAIN[data_type.kind]


def arrow_array(values: HostArray, nulls: npt.NDArray[np.bool_], data_type: DataType) -> pa.Array:
    """Return machine values as an Arrow array of their data type."""
    mask = nulls if nulls.any() else None
    match data_type.kind:
        case Kind.DECIMAL:
            return _decimals(values, mask, arrow_type(data_type))
        case Kind.BOOLEAN:
            return pa.array(values.astype(np.bool_), mask=mask)
        case Kind.DATE:
            return pa.array(values.astype(np.int32), mask=mask).view(pa.date32())
        case Kind.NULL:
            return pa.nulls(len(values))
    plain = masked_array(values, mask)
    return plain.view(arrow_type(data_type)) if data_type.kind in (Kind.TIMESTAMP, Kind.DURATION) else plain


def masked_array(values: npt.NDArray[np.number[Any]], missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return numbers as an Arrow array in the same memory, NULL where they are `missing` (None: nowhere)."""
    # from a mask, Arrow would copy the numbers one by one; from an array alone, it would first ask pandas what that is
    buffers = [_validity(missing), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(_OF_NUMBERS[values.dtype], len(values), buffers)


def list_array(offsets: npt.NDArray[np.int32], values: pa.Array, missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return the values [``offsets[k]``, ``offsets[k + 1]``) as list k, in the same memory, NULL where lists are `missing`."""
    buffers = [_validity(missing), pa.py_buffer(np.ascontiguousarray(offsets))]
    kind = _ROWS if values.type == _ROW else pa.list_(values.type)
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers, children=[values])


# What most lists hold: to make their type takes a fifth of the time.
_ROW = pa.int64()
_ROWS = pa.list_(_ROW)


def _validity(missing: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    """Return Arrow's bitmap of the values that are not missing; None if none is."""
    return None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))


def _decimals(values: HostArray, mask: npt.NDArray[np.bool_] | None, target: pa.DataType) -> pa.Array:
    """Return 128-bit decimals of int64 unscaled values: the high word repeats the sign."""
    words = np.empty((len(values), 2), np.int64)
    words[:, 0] = values
    words[:, 1] = values >> 63
    validity = None if mask is None else pa.array(~mask).buffers()[1]
    return pa.Array.from_buffers(target, len(values), [validity, pa.py_buffer(words)])

"""Turn Arrow arrays that are not text into the numbers that kernels read, and into ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.analysis.types import DataType, Kind
from gpu_cep.engine.input.buffers import buffer_values
from gpu_cep.errors import EventError

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]

# Decimals of so many digits are exact in an int64.
EXACT_DIGITS = 18

_DAY_IN_MS = 86_400_000
# What to do about an unsigned integer that no signed one of 64 bits is.
BEYOND_INT64 = "cast the column to text, which may be a key, or to float64"

# Arrow types whose buffers kernels read as they are.
_NATIVE: dict[pa.DataType, np.dtype[Any]] = {
    pa.int32(): np.dtype(np.int32), pa.int64(): np.dtype(np.int64), pa.float32(): np.dtype(np.float32), pa.float64(): np.dtype(np.float64)
}  # fmt: skip


def is_opaque(data_type: DataType) -> bool:
    """Return whether nothing is asked of values of a type but whether they are NULL, so that no machine value stands for them."""
    return data_type.kind is Kind.OTHER or data_type.precision > EXACT_DIGITS


def machine_values(array: pa.Array, name: str) -> Array:
    """Return an Arrow array that is not text as int32, int64, float32 or float64 values."""
    arrow = array.type
    native = _NATIVE.get(arrow)
    if native is not None:
        return native_values(array, native)
    if pa.types.is_decimal(arrow):
        return _unscaled_values(array, name)
    if pa.types.is_timestamp(arrow) or pa.types.is_duration(arrow):
        array = array.view(pa.int64())
    elif pa.types.is_date(arrow):
        array = _days(array, name).view(pa.int32())
    elif pa.types.is_boolean(arrow):
        array = array.cast(pa.int32())
    elif pa.types.is_null(arrow) or not pa.types.is_primitive(arrow):
        return np.zeros(len(array), np.int64)  # conditions ask such cells only whether they are NULL
    native = _NATIVE.get(array.type)
    if native is None:
        target = pa.float64() if pa.types.is_floating(array.type) else pa.int64()
        try:
            array = array.cast(target)
        except pa.ArrowInvalid as fault:
            raise EventError(f"column {name!r}: {fault}; {BEYOND_INT64}") from fault
        native = _NATIVE[target]
    return native_values(array, native)


def native_values(array: pa.Array, native: npt.DTypeLike) -> Array:
    """Return the values of a fixed-width array as they stand in its buffer, which kernels read as it is."""
    return buffer_values(array.buffers()[1], native, len(array), array.offset)


def _days(array: pa.Array, name: str) -> pa.Array:
    try:
        return array.cast(pa.date32())
    except pa.ArrowInvalid as fault:
        of_day = array.view(pa.int64()).drop_null().to_numpy() % _DAY_IN_MS
        held = "a time that is not midnight" if of_day.any() else "a day that date32 does not reach"
        raise EventError(f"column {name!r} of type date64 holds {held}: cast it to timestamps") from fault


def _unscaled_values(array: pa.Array, name: str) -> npt.NDArray[np.int64]:
    """Return the unscaled values of decimals of at most 18 digits."""
    if array.type.precision > EXACT_DIGITS:
        raise EventError(f"column {name!r}: {array.type} is wider than {EXACT_DIGITS} digits")
    wide = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    if not len(wide):
        return np.empty(0, np.int64)
    # the low word of a two's complement 128-bit number that fits 64 bits is the number
    words = buffer_values(wide.buffers()[1], np.int64).reshape(-1, 2)
    return words[wide.offset : wide.offset + len(wide), 0].copy()


def distinct_codes(values: Array, nulls: npt.NDArray[np.bool_] | None) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Return a code for each of some numbers, and the distinct values that codes stand for; NULL is one value, and so is NaN."""
    encoded = pa.array(values, mask=nulls).dictionary_encode(null_encoding="encode")
    return native_values(encoded.indices, _NATIVE[pa.int32()]), encoded.dictionary


def dense_rank(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return the rank of each value, from 0; equal values have one rank. NULL comes first, NaN last."""
    source = rankable(array)
    places = pc.rank(source, sort_keys=[("", "ascending", "at_start")], tiebreaker="dense")
    ranks: npt.NDArray[np.int64] = places.to_numpy().astype(np.int64)
    if pa.types.is_floating(source.type):
        ranks[pc.fill_null(pc.is_nan(source), False).to_numpy(zero_copy_only=False)] = len(ranks) + 1
    return ranks - 1


def rankable(array: pa.Array) -> pa.Array:
    """Return the same values in a type that Arrow can rank."""
    arrow = array.type
    if pa.types.is_dictionary(arrow):
        return array.dictionary_decode()
    if pa.types.is_float16(arrow):
        return array.cast(pa.float32())
    if pa.types.is_decimal32(arrow) or pa.types.is_decimal64(arrow):
        return array.cast(pa.decimal128(arrow.precision, arrow.scale))
    return array.cast(pa.int8()) if pa.types.is_null(arrow) else array

"""Stream keys: one small integer per event for the values of its key columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.columns import Array, EventColumns

# A direct code (value − smallest) may take this many times as many streams as there are events.
SPARSE = 4
_ROOM = 1 << 16


@dataclass(frozen=True, slots=True)
class StreamKeys:
    """``codes[row]`` in ``[0, count)`` (some may be unused); None where all events are one stream.

    `ordered`: ascending codes are ascending key values, NULL first.
    """

    codes: Array | None
    count: int
    ordered: bool


def encode_keys(columns: EventColumns, keys: tuple[int, ...]) -> StreamKeys:
    """Codes for the combination of the key columns; NULLs are one key value, and so are NaNs."""
    encoded = StreamKeys(None, 1, ordered=True)
    for column in keys:
        encoded = _combine(encoded, _encode_column(columns, column), len(columns))
    return encoded


def _encode_column(columns: EventColumns, column: int) -> StreamKeys:
    nulls = columns.null_mask(column)
    values = columns.key_values(column)
    if values.dtype.kind == "f" or not len(values):
        return _by_dictionary(columns, column)
    low, high = int(values.min()), int(values.max())
    if high - low >= SPARSE * len(values) + _ROOM:
        return _by_dictionary(columns, column)
    direct = _narrow(values, low, high)
    if nulls is None:
        return StreamKeys(direct, high - low + 1, columns.orders_codes(column))
    direct = direct + 1
    direct[nulls] = 0
    return StreamKeys(direct, high - low + 2, columns.orders_codes(column))


def _narrow(values: Array, low: int, high: int) -> npt.NDArray[np.int32]:
    if low == 0 and values.dtype == np.int32:
        return values
    return np.subtract(values, low, dtype=np.int64 if high > 2**31 - 1 or low < -(2**31) else values.dtype).astype(np.int32)


def _by_dictionary(columns: EventColumns, column: int) -> StreamKeys:
    codes, count = columns.distinct_codes(column)
    return StreamKeys(codes, count, ordered=False)


def _combine(left: StreamKeys, right: StreamKeys, length: int) -> StreamKeys:
    if left.codes is None or right.codes is None:
        return right if left.codes is None else left
    count = left.count * right.count
    codes = left.codes.astype(np.int64) * right.count + right.codes
    if count < SPARSE * length + _ROOM:
        return StreamKeys(codes.astype(np.int32), count, left.ordered and right.ordered)
    distinct, dense = np.unique(codes, return_inverse=True)
    return StreamKeys(dense.astype(np.int32), len(distinct), left.ordered and right.ordered)

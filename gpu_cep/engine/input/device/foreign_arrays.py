"""Read arrays of other libraries that lie on a device, without a copy.

They are found by ``__cuda_array_interface__``. On the simulator, whose device is the host, they are
found by ``__array_interface__``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from gpu_cep.engine.input.device.uploads import DeviceBits, DeviceFlags, DType
from gpu_cep.errors import EventError
from gpu_cep_kernels.device.interface import Array, Device

Mask: TypeAlias = DeviceBits | DeviceFlags

_BYTE = np.dtype(np.uint8)
_TIME = np.dtype(np.int64)


@dataclass(frozen=True, slots=True)
class ForeignArray:
    """A column in an array of another library.

    `values` are that array, with times as int64. `dtype` is its own type. `mask` says where the
    column is not NULL; None if it never is.
    """

    values: Array
    dtype: DType
    mask: Mask | None


@dataclass(frozen=True, slots=True)
class _Described:
    """The memory of `owner` with another array interface; it keeps `owner` alive."""

    owner: Any
    interface: Mapping[str, Any]

    @property
    def __cuda_array_interface__(self) -> Mapping[str, Any]:
        return self.interface

    @property
    def __array_interface__(self) -> Mapping[str, Any]:
        return self.interface


def is_array(device: Device, value: Any) -> bool:
    """Return whether `value` is an array on the device."""
    return hasattr(value, _protocol(device))


def open_array(device: Device, value: Any, name: str) -> ForeignArray:
    """Return the array `value` on the device as the column `name`; nothing is copied.

    Raises
    ------
    EventError
        It has not one dimension, or is of a type that columns cannot have.
    """
    opened, mask = open_values(device, value, name), getattr(value, _protocol(device)).get("mask")
    return opened if mask is None else replace(opened, mask=_open_mask(device, mask, len(opened.values), name))


def open_values(device: Device, value: Any, name: str) -> ForeignArray:
    """Return the array `value` as :func:`open_array` does, but without the mask that it may have."""
    interface = getattr(value, _protocol(device))
    if len(interface["shape"]) != 1:
        raise EventError(f"column {name!r}: an array of {len(interface['shape'])} dimensions is no column")
    dtype = _checked_type(interface["typestr"], name)
    rows = int(interface["shape"][0])
    return ForeignArray(_seen_as(device, value, interface, _TIME if dtype.kind in "mM" else dtype, rows), dtype, None)


def open_bits(device: Device, bitmap: Any, first: int, rows: int) -> DeviceBits:
    """Return so many bits of a bitmap on the device, from bit number `first` on; nothing is copied."""
    interface = {**getattr(bitmap, _protocol(device)), "strides": None}
    return DeviceBits(device, _seen_as(device, bitmap, interface, _BYTE, -(-(first + rows) // 8)), first)


def _protocol(device: Device) -> str:
    """Return the name of the array interface of the device."""
    return "__array_interface__" if device.simulated else "__cuda_array_interface__"


def _checked_type(typestr: str, name: str) -> DType:
    """Return the type of a column's values; raise EventError if that cannot be read."""
    dtype = np.dtype(typestr)
    timed = dtype.kind in "mM" and np.datetime_data(dtype) in [(unit, 1) for unit in ("s", "ms", "us", "ns")]
    numeric = dtype.kind in "biu" or dtype in (np.float32, np.float64)
    if not (timed or numeric) or not dtype.isnative:
        raise EventError(
            f"column {name!r}: an array of {dtype} on the device cannot be read; supported are bool, int8 to int64, uint8 to uint64, "
            "float32, float64, datetime64 and timedelta64 in s, ms, us or ns; text as a cudf or Arrow column"
        )
    return dtype


def _open_mask(device: Device, mask: Any, rows: int, name: str) -> Mask:
    """Return the mask of a column: bits or flags that are set where it is not NULL."""
    interface = getattr(mask, _protocol(device))
    if tuple(interface["shape"]) != (rows,):
        raise EventError(f"column {name!r}: a mask of shape {tuple(interface['shape'])} for {rows:,} rows")
    typestr = interface["typestr"]
    if typestr[1:] == "t1":
        # one bit per row
        return open_bits(device, mask, 0, rows)
    return DeviceFlags(device, _seen_as(device, mask, interface, np.dtype(typestr), rows))


def _seen_as(device: Device, owner: Any, interface: Mapping[str, Any], dtype: DType, length: int) -> Array:
    """Return the memory of an array as `length` values of another type of the same width."""
    if length == 0:
        return device.xp.empty(0, dtype)
    described = {key: value for key, value in interface.items() if key not in ("descr", "mask")}
    return device.xp.asarray(_Described(owner, {**described, "shape": (length,), "typestr": dtype.str}))

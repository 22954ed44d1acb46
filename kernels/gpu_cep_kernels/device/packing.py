"""Move arrays between host and device; several lie in one, so that one transfer takes all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.device.interface import HOST, Array, Backend, Device, HostArray

# Bytes of an array up to which its copy beside others takes less time than a transfer of its own.
_SMALL = 1 << 16
# Arrays begin at multiples of so many bytes, which is enough for every type.
_ALIGNED = 8


class Layout(NamedTuple):
    """Say what one of the arrays is: its shape and the type of its elements."""

    shape: tuple[int, ...]
    kind: npt.DTypeLike


def pack(xp: Any, layouts: Sequence[Layout]) -> tuple[Array, list[Array]]:
    """Return a new array of bytes of the module `xp`, and the arrays that lie in it, of arbitrary content."""
    buffer = xp.empty(sum(_room(layout) for layout in layouts), np.uint8)
    return buffer, _views(buffer, layouts)


def download_packed(device: Device, buffer: Array, layouts: Sequence[Layout]) -> list[HostArray]:
    """Return the arrays that lie in `buffer` on the host, after one transfer."""
    return _views(device.download(buffer), layouts)


def upload_packed(device: Backend, arrays: Sequence[HostArray]) -> list[Array]:
    """Return copies of host arrays on the device; the small ones, if there are several, lie in one array and travel in one transfer."""
    small = [place for place, array in enumerate(arrays) if array.nbytes <= _SMALL]
    if len(small) < 2:
        return [device.upload(array) for array in arrays]
    buffer, held = pack(np, [Layout(arrays[place].shape, arrays[place].dtype) for place in small])
    for target, place in zip(held, small, strict=True):
        target[...] = arrays[place]
    copies = dict(zip(small, _views(device.upload(buffer), [Layout(each.shape, each.dtype) for each in held]), strict=True))
    return [copies[place] if place in copies else device.upload(array) for place, array in enumerate(arrays)]


def to_device(device: Backend, value: Any) -> Any:
    """Return `value` with its host arrays, alone or in (named) tuples, moved to the device; the host has them.

    Small ones travel together.
    """
    return value if device is HOST else _with_arrays(value, iter(upload_packed(device, [*_host_arrays(value)])))


def _host_arrays(value: Any) -> Iterator[HostArray]:
    """Yield the host arrays of a value, in its order."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _host_arrays(part)


def _with_arrays(value: Any, copies: Iterator[Array]) -> Any:
    """Return `value` with the next of the copies in the place of each host array."""
    if isinstance(value, np.ndarray):
        return next(copies)
    if isinstance(value, tuple):
        parts = [_with_arrays(part, copies) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _size(layout: Layout) -> int:
    """Return the bytes of an array."""
    return math.prod(layout.shape) * np.dtype(layout.kind).itemsize


def _room(layout: Layout) -> int:
    """Return the bytes from the beginning of an array to that of the next."""
    return -(-_size(layout) // _ALIGNED) * _ALIGNED


def _views(buffer: Any, layouts: Sequence[Layout]) -> list[Any]:
    """Return the arrays that lie in a buffer of bytes."""
    found, begin = [], 0
    for layout in layouts:
        found.append(buffer[begin : begin + _size(layout)].view(layout.kind).reshape(layout.shape))
        begin += _room(layout)
    return found

"""Copy arrays between host and card by way of pinned memory, which a card reads and writes at its link's speed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from gpu_cep_kernels.compile.launch import available_threads, slices, spread
from gpu_cep_kernels.device.interface import Array, HostArray

# Arrays of fewer bytes are copied by the driver alone: it stages them itself, and no other thread is waited for.
_STAGED = 1 << 20
# Bytes of one of the two pinned buffers.
_BUFFER = 1 << 26
# Bytes that come back at a time: while one part is copied out of its buffer, the next one comes.
_PART = 1 << 24
# Bytes per thread when a buffer is filled or emptied, as far as there are threads.
_FILLED = 1 << 20


@dataclass(frozen=True, slots=True)
class _Buffer:
    """Hold a pinned buffer (uint8), and the event after which it may be used again."""

    held: HostArray
    copied: Any


class Staging:
    """Copy arrays through two pinned buffers by turns; calls of several threads wait for each other."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._copying = Lock()
        self._buffers: list[_Buffer] = []

    def upload(self, source: HostArray, target: Array) -> None:
        """Copy a host array to one on the card, in the order of the current stream's work.

        Values are converted to the target's type, in which they fit, while buffers are filled.
        """
        runtime, stream = self._cupy.cuda.runtime, self._cupy.cuda.get_current_stream()
        if target.nbytes < _STAGED:
            given = np.ascontiguousarray(source, target.dtype)
            runtime.memcpyAsync(target.data.ptr, given.ctypes.data, given.nbytes, runtime.memcpyHostToDevice, stream.ptr)
            return
        flat, width = np.ascontiguousarray(source).reshape(-1), target.dtype.itemsize
        held = _BUFFER // width
        with self._copying:
            turns = self._turns()
            for low in range(0, flat.size, held):
                buffer, part = next(turns), flat[low : low + held]
                size = part.size * width
                buffer.copied.synchronize()
                _fill(buffer.held[:size].view(target.dtype), part)
                runtime.memcpyAsync(target.data.ptr + low * width, buffer.held.ctypes.data, size, runtime.memcpyHostToDevice, stream.ptr)
                buffer.copied.record(stream)

    def download(self, source: Array) -> HostArray:
        """Return a copy of an array on the card, once the current stream has computed it."""
        if source.nbytes < _STAGED:
            host: HostArray = self._cupy.asnumpy(source)
            return host
        runtime, stream = self._cupy.cuda.runtime, self._cupy.cuda.get_current_stream()
        given = self._cupy.ascontiguousarray(source)
        target: HostArray = np.empty(given.shape, given.dtype)
        flat = target.reshape(-1).view(np.uint8)
        with self._copying:
            turns, coming = self._turns(), list[tuple[_Buffer, HostArray]]()
            for low in range(0, flat.size, _PART):
                buffer, part = next(turns), flat[low : low + _PART]
                buffer.copied.synchronize()
                runtime.memcpyAsync(buffer.held.ctypes.data, given.data.ptr + low, part.size, runtime.memcpyDeviceToHost, stream.ptr)
                buffer.copied.record(stream)
                coming.append((buffer, part))
                if len(coming) > 1:
                    _empty(*coming.pop(0))
            for buffer, part in coming:
                _empty(buffer, part)
        return target

    def _turns(self) -> Iterator[_Buffer]:
        """Yield the two buffers by turns, the one that was used longest ago first."""
        cupy = self._cupy
        while len(self._buffers) < 2:
            pinned = cupy.cuda.alloc_pinned_memory(_BUFFER)
            self._buffers.append(_Buffer(np.frombuffer(pinned, np.uint8, _BUFFER), cupy.cuda.Event(disable_timing=True)))
        while True:
            # the one yielded goes to the end
            self._buffers.append(self._buffers.pop(0))
            yield self._buffers[-1]


def _empty(buffer: _Buffer, target: HostArray) -> None:
    """Copy what has come into a buffer to where it belongs."""
    buffer.copied.synchronize()
    _fill(target, buffer.held[: target.size])


def _fill(target: HostArray, source: HostArray) -> None:
    """Copy between host arrays, large ones in threads: one thread is slower than a transfer."""
    threads = min(available_threads(), -(-source.nbytes // _FILLED))

    def copy(span: tuple[int, int]) -> None:
        np.copyto(target[slice(*span)], source[slice(*span)], casting="unsafe")

    spread(copy, slices(source.size, threads), threads)

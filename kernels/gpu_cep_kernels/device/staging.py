"""Copy arrays between host and card by way of pinned memory, which a card reads and writes at its link's speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Lock
from typing import Any

import numpy as np

from gpu_cep_kernels.compile.launch import available_threads, blocks, spread
from gpu_cep_kernels.device.interface import Array, Block, HostArray

# Arrays of fewer bytes are copied by the driver alone: it stages them itself, and no other thread is waited for.
_STAGED = 1 << 20
# Values that one thread copies at a time, by way of one pinned buffer.
_PART = 1 << 19
# Bytes of a pinned buffer: a value has at most eight.
_BUFFER = 8 * _PART
# Buffers that the card may still be copying while each thread fills or empties one.
_SPARE = 8


@dataclass(frozen=True, slots=True)
class _Buffer:
    """Hold a pinned buffer (uint8), and the event after which it may be used again."""

    held: HostArray
    copied: Any


class Staging:
    """Copy arrays to and from one card: while it copies some pinned buffers, threads fill and empty others."""

    def __init__(self, cupy: Any, number: int) -> None:
        self._cupy, self._number = cupy, number
        self._threads = available_threads()
        self._opening = Lock()
        self._opened: SimpleQueue[_Buffer] | None = None

    def upload(self, block: Block, target: Array) -> None:
        """Copy values to a C-contiguous array on the card, in the order of the current stream's work.

        ``block(low, high)`` gives the values [low, high) of the target, which has one axis here. Threads call it for parts,
        in any order. Values are converted to the target's type, in which they fit. An error of `block` is raised.
        """
        runtime, stream = self._cupy.cuda.runtime, self._cupy.cuda.get_current_stream()
        kind, begin = target.dtype, target.data.ptr
        if target.nbytes < _STAGED:
            given = np.ascontiguousarray(block(0, target.size), kind)
            runtime.memcpyAsync(begin, given.ctypes.data, given.nbytes, runtime.memcpyHostToDevice, stream.ptr)
            return

        def copy(span: tuple[int, int]) -> None:
            low, high = span
            with self._buffer() as buffer:
                part = buffer.held[: (high - low) * kind.itemsize]
                np.copyto(part.view(kind), block(low, high), casting="unsafe")
                runtime.memcpyAsync(begin + low * kind.itemsize, part.ctypes.data, part.size, runtime.memcpyHostToDevice, stream.ptr)
                buffer.copied.record(stream)

        self._spread(copy, target.size)

    def download(self, source: Array) -> HostArray:
        """Return a copy of an array on the card, once the current stream has computed it."""
        if source.nbytes < _STAGED:
            host: HostArray = self._cupy.asnumpy(source)
            return host
        runtime, stream = self._cupy.cuda.runtime, self._cupy.cuda.get_current_stream()
        given = self._cupy.ascontiguousarray(source)
        target: HostArray = np.empty(given.shape, given.dtype)
        flat, width, begin = target.reshape(-1), given.dtype.itemsize, given.data.ptr

        def copy(span: tuple[int, int]) -> None:
            low, high = span
            with self._buffer() as buffer:
                part = buffer.held[: (high - low) * width]
                runtime.memcpyAsync(part.ctypes.data, begin + low * width, part.size, runtime.memcpyDeviceToHost, stream.ptr)
                buffer.copied.record(stream)
                buffer.copied.synchronize()
                np.copyto(flat[low:high], part.view(flat.dtype))

        self._spread(copy, flat.size)
        return target

    def _spread(self, copy: Callable[[tuple[int, int]], None], size: int) -> None:
        """Call `copy` for the parts of so many values, in threads."""
        parts = [*blocks(0, size, _PART)]

        def copy_part(span: tuple[int, int]) -> None:
            # each thread has a current device of its own
            self._cupy.cuda.Device(self._number).use()
            copy(span)

        spread(copy_part, parts, min(self._threads, len(parts)))

    @contextmanager
    def _buffer(self) -> Iterator[_Buffer]:
        """Lend the buffer that was used longest ago, once the card has copied it."""
        buffers = self._buffers()
        buffer = buffers.get()
        try:
            buffer.copied.synchronize()
            yield buffer
        finally:
            buffers.put(buffer)

    def _buffers(self) -> SimpleQueue[_Buffer]:
        """Return the buffers that no thread has; all of them are made in the first call."""
        with self._opening:
            if self._opened is None:
                self._opened = self._open()
        return self._opened

    def _open(self) -> SimpleQueue[_Buffer]:
        """Return new buffers, one for each thread and some more."""
        cuda, count = self._cupy.cuda, self._threads + _SPARE
        # one allocation: each of them takes milliseconds
        pinned = np.frombuffer(cuda.alloc_pinned_memory(count * _BUFFER), np.uint8, count * _BUFFER)
        opened: SimpleQueue[_Buffer] = SimpleQueue()
        for held in pinned.reshape(count, _BUFFER):
            opened.put(_Buffer(held, cuda.Event(disable_timing=True)))
        return opened

"""Copy arrays between host and card by way of pinned memory, which a card reads and writes at its link's speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, cycle
from queue import SimpleQueue
from threading import Lock
from typing import Any

import numpy as np

from gpu_cep_kernels.compile.launch import available_threads, blocks, spread
from gpu_cep_kernels.device.interface import Array, HostArray, HostRows, written

# Of fewer bytes the driver makes the copies alone: it stages them itself, and no other thread is waited for.
_STAGED = 1 << 20
# Bytes of a pinned buffer. Around each part threads hand on Python's lock several times, so that smaller ones take longer.
_BUFFER = 1 << 22
# Values of a part of narrow numbers: wider ones are read for them.
_MOST_VALUES = _BUFFER // 2
# Buffers of a thread: it fills or empties one while the card copies another. With more they leave the caches.
_EACH = 2
# Threads that copy at most.
_MOST_THREADS = 16


@dataclass(frozen=True, slots=True)
class _Buffer:
    """Hold a pinned buffer (uint8), its address, and the event after which it may be used again."""

    held: HostArray
    place: int
    copied: Any

    def part(self, kind: np.dtype[Any], count: int) -> HostArray:
        """Return the first `count` values that it holds of a type."""
        return self.held[: count * kind.itemsize].view(kind)


# The buffers that a thread uses in turn.
_Ring = tuple[_Buffer, ...]


class Staging:
    """Copy arrays to and from one card: while it copies some pinned buffers, threads fill and empty others."""

    def __init__(self, cupy: Any, number: int) -> None:
        self._cupy, self._number = cupy, number
        # with all cores copying takes longer than with three in four of them, and a dozen keep a link busy
        self._threads = max(1, min(_MOST_THREADS, available_threads() * 3 // 4))
        self._opening = Lock()
        self._opened: SimpleQueue[_Ring] | None = None

    def upload(self, asked: Sequence[HostRows], targets: Sequence[Array]) -> None:
        """Copy rows to arrays on the card, which have as many values, in the order of the current stream's work.

        They are written to where the card reads them.
        """
        runtime, stream = self._cupy.cuda.runtime, self._cupy.cuda.get_current_stream()

        def copy(buffer: _Buffer, rows: HostRows, target: Array, low: int, high: int) -> None:
            part = buffer.part(rows.kind, high - low)
            rows.write(rows.low + low, rows.low + high, part)
            place = target.data.ptr + low * part.itemsize
            runtime.memcpyAsync(place, buffer.place, part.nbytes, runtime.memcpyHostToDevice, stream.ptr)
            buffer.copied.record(stream)

        pairs = [(rows, target) for rows, target in zip(asked, targets, strict=True) if target.size]
        if sum(target.nbytes for target in targets) >= _STAGED:
            self._spread(copy, [(rows, target, *span) for rows, target in pairs for span in _parts(target)])
            return
        for rows, target in pairs:
            given = written(rows)
            runtime.memcpyAsync(target.data.ptr, given.ctypes.data, given.nbytes, runtime.memcpyHostToDevice, stream.ptr)

    def download(self, source: Array) -> HostArray:
        """Return a copy of an array on the card, once the current stream has computed it."""
        if source.nbytes < _STAGED:
            host: HostArray = self._cupy.asnumpy(source)
            return host
        runtime, stream = self._cupy.cuda.runtime, self._cupy.cuda.get_current_stream()
        given = self._cupy.ascontiguousarray(source)
        target: HostArray = np.empty(given.shape, given.dtype)
        flat = target.reshape(-1)

        def copy(buffer: _Buffer, low: int, high: int) -> None:
            part = buffer.part(flat.dtype, high - low)
            place = given.data.ptr + low * part.itemsize
            runtime.memcpyAsync(buffer.place, place, part.nbytes, runtime.memcpyDeviceToHost, stream.ptr)
            buffer.copied.record(stream)
            buffer.copied.synchronize()
            np.copyto(flat[low:high], part)

        self._spread(copy, [*_parts(given)])
        return target

    def _spread(self, copy: Callable[..., None], parts: Sequence[tuple[Any, ...]]) -> None:
        """Call `copy` with a buffer and each part, in threads; if calls fail, raise the error of the first such part."""
        threads = min(self._threads, len(parts))
        # a thread takes its next part sooner than it could be handed one
        left, failed = iter(enumerate(parts)), list[tuple[int, Exception]]()

        def copy_parts(_: int) -> None:
            # each thread has a current device of its own
            self._cupy.cuda.Device(self._number).use()
            own = next(left, None)
            # where others have taken all parts, no buffers are waited for
            if own is None:
                return
            with self._ring() as ring:
                for (number, part), buffer in zip(chain((own,), left), cycle(ring), strict=False):
                    try:
                        # the card may still copy what was put there before
                        buffer.copied.synchronize()
                        copy(buffer, *part)
                    except Exception as fault:
                        failed.append((number, fault))
                    if failed:
                        # parts before the one that failed have been taken
                        return

        # one pool of threads for every number of parts
        spread(copy_parts, range(threads), self._threads)
        if failed:
            fault = min(failed, key=lambda each: each[0])[1]
            # a fault holds this frame, and would hold what the card was to take as long as they hold each other
            failed.clear()
            try:
                raise fault
            finally:
                del fault

    @contextmanager
    def _ring(self) -> Iterator[_Ring]:
        """Lend a thread buffers of its own."""
        rings = self._rings()
        ring = rings.get()
        try:
            yield ring
        finally:
            rings.put(ring)

    def _rings(self) -> SimpleQueue[_Ring]:
        """Return the buffers that no thread has; all of them are made in the first call."""
        with self._opening:
            if self._opened is None:
                self._opened = self._open()
        return self._opened

    def _open(self) -> SimpleQueue[_Ring]:
        """Return new buffers, enough for the threads of one copy and the caller of another."""
        cuda, count = self._cupy.cuda, self._threads + 1
        # one allocation: each of them takes milliseconds
        size = count * _EACH * _BUFFER
        pinned = np.frombuffer(cuda.alloc_pinned_memory(size), np.uint8, size)
        opened: SimpleQueue[_Ring] = SimpleQueue()
        for ring in pinned.reshape(count, _EACH, _BUFFER):
            opened.put(tuple(_Buffer(held, held.ctypes.data, cuda.Event(disable_timing=True)) for held in ring))
        return opened


def _parts(array: Array) -> Iterator[tuple[int, int]]:
    """Yield the parts of an array's values that are copied one by one."""
    return iter(blocks(0, array.size, min(_BUFFER // array.dtype.itemsize, _MOST_VALUES)))

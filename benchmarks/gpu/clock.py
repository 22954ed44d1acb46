"""Time on a device, and the speeds that bound it: copying its memory, copying to it, and copying in the host's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.baselines.floors import best_seconds
from gpu_cep_kernels.compile.launch import available_threads, slices, spread
from gpu_cep_kernels.device.interface import Device

# Bytes that a speed is measured with. Their copy also precedes each timed run: caches hold other data then, and the host
# queues the run meanwhile.
COPIED = 1 << 30
SIMULATED_BYTES = 1 << 16


def device_seconds(device: Device, action: Callable[[], object], repeats: int) -> float:
    """Return the shortest of `repeats` runs of `action`, between two events of the device; the first run, untimed, compiles."""
    action()
    device.synchronize()
    if device.simulated:
        return best_seconds(action, repeats)
    spacer = _copy(device, COPIED)
    return min(_timed(device.xp.cuda, spacer, action) for _ in range(repeats))


def _timed(cuda: Any, spacer: Callable[[], object], action: Callable[[], object]) -> float:
    begin, end = cuda.Event(), cuda.Event()
    spacer()
    begin.record()
    action()
    end.record()
    end.synchronize()
    return float(cuda.get_elapsed_time(begin, end)) / 1000


def copy_bandwidth(device: Device, repeats: int = 5) -> float:
    """Return bytes per second of a copy in the device's memory, those read and those written."""
    size = SIMULATED_BYTES if device.simulated else COPIED
    return 2 * size / device_seconds(device, _copy(device, size), repeats)


def _copy(device: Device, size: int) -> Callable[[], object]:
    source = device.xp.arange(size // 8)
    target = device.xp.empty_like(source)
    return lambda: device.xp.copyto(target, source)


def upload_bandwidth(device: Device, repeats: int = 5) -> float:
    """Return bytes per second from pinned host memory to the device."""
    size = SIMULATED_BYTES if device.simulated else COPIED
    return size / device_seconds(device, _upload(device, size), repeats)


def _upload(device: Device, size: int) -> Callable[[], object]:
    xp = device.xp
    target = xp.empty(size, xp.uint8)
    if device.simulated:
        pageable = np.zeros(size, np.uint8)
        return lambda: np.copyto(target, pageable)
    pinned = np.frombuffer(xp.cuda.alloc_pinned_memory(size), np.uint8, size)
    pinned.view(np.int64)[:] = np.arange(size // 8)
    runtime = xp.cuda.runtime

    def upload() -> None:
        stream = xp.cuda.get_current_stream()
        runtime.memcpyAsync(target.data.ptr, pinned.ctypes.data, size, runtime.memcpyHostToDevice, stream.ptr)

    return upload


def staged_bandwidth(device: Device, repeats: int = 5) -> float:
    """Return bytes per second to the device from an array of the host's ordinary memory, as columns of Arrow lie in."""
    source = np.arange((SIMULATED_BYTES if device.simulated else COPIED) // 8)

    def upload() -> None:
        device.upload(source)
        device.synchronize()

    upload()
    return source.nbytes / best_seconds(upload, repeats)


def host_bandwidth(size: int, repeats: int = 5) -> float:
    """Return bytes per second that threads read while they copy an array of `size` bytes to another one of the host."""
    source, target, threads = np.arange(size // 8), np.zeros(size // 8, np.int64), available_threads()

    def copy(span: tuple[int, int]) -> None:
        target[slice(*span)] = source[slice(*span)]

    return source.nbytes / best_seconds(lambda: spread(copy, slices(len(source), threads), threads), repeats)

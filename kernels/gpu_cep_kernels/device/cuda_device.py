"""Run on a CUDA card: CuPy's arrays and numba-cuda's kernels, both on CuPy's current stream; the only file that imports cupy."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib.metadata import version
from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import Kernel
from gpu_cep_kernels.device.failures import note_kernel
from gpu_cep_kernels.device.interface import Array, DeviceUnavailable, HostArray, HostRows, NoDevice, rows_of
from gpu_cep_kernels.device.launches import Launches
from gpu_cep_kernels.device.rmm_pool import adopt_pool, current_pool, pool_bytes
from gpu_cep_kernels.device.staging import Staging
from gpu_cep_kernels.phase_one.ordering import gather

THREADS_PER_BLOCK = 256
# So many blocks keep a multiprocessor busy; their threads stride over what is left.
_BLOCKS_PER_MULTIPROCESSOR = 32
# Kernels with slots have fewer, since each slot has its own scratch: one full set of resident threads is enough.
_SLOTTED_BLOCKS_PER_MULTIPROCESSOR = 8
# cudaErrorNoDevice.
_NO_DEVICE = 100


class CudaDevice:
    """Stand for one of the CUDA devices that this process sees.

    It is current, in CUDA's sense, in the thread that opened or last used it.
    """

    simulated = False

    def __init__(self, number: int) -> None:
        self.xp, _ = _usable_cupy()
        self._number = number
        self._staging = Staging(self.xp, number)
        try:
            self._open()
            works = self._runs_a_kernel()
        except Exception as fault:
            # whatever a driver, a compiler or an allocator throws
            raise DeviceUnavailable(f"a trial kernel failed ({_versions()}): {type(fault).__name__}: {fault}") from fault
        if not works:
            raise DeviceUnavailable("a trial kernel gave a wrong result")

    def _open(self) -> None:
        """Make the device current, adopt a memory pool, read the card's properties and open the lanes."""
        cupy = self.xp
        self.use()
        self._launches = Launches(cupy.cuda.driver)
        adopt_pool(cupy)
        properties = cupy.cuda.runtime.getDeviceProperties(self._number)
        self.name = properties["name"].decode()
        self._multiprocessors = int(properties["multiProcessorCount"])
        # lanes wait for the default stream, and it for them, but not for each other
        self._lanes = cupy.cuda.Stream(), cupy.cuda.Stream()

    def use(self) -> None:
        """Make it this thread's current device, for CuPy and numba alike."""
        self.xp.cuda.Device(self._number).use()

    def _runs_a_kernel(self) -> bool:
        """Return whether a trial kernel compiles, runs and gives the right result.

        If not, the versions of driver, compiler and libraries do not fit together.
        """
        expected = np.arange(4)
        found = self.xp.zeros(4, np.int64)
        self.launch(gather, 4, self.upload(expected), 0, self.upload(expected), found)
        return np.array_equal(self.download(found), expected)

    def lane(self, number: int | None) -> AbstractContextManager[Any]:
        """Return a context that runs work in the stream of that number, modulo their count; None: the default stream."""
        lane: AbstractContextManager[Any] = self.xp.cuda.Stream.null if number is None else self._lanes[number % len(self._lanes)]
        return lane

    def upload(self, array: HostArray) -> Array:
        """Return a copy of a host array on the card, by way of pinned memory."""
        flat = np.ascontiguousarray(array).reshape(-1)
        (copy,) = self.upload_rows([rows_of(flat, 0, flat.size, flat.dtype)])
        return copy.reshape(array.shape)

    def upload_rows(self, asked: Sequence[HostRows]) -> list[Array]:
        """Return the rows on the card; threads compute, convert and stage parts of them."""
        targets = [self.xp.empty(rows.high - rows.low, rows.kind) for rows in asked]
        self._staging.upload(asked, targets)
        return targets

    def download(self, array: Array) -> HostArray:
        """Return a copy of an array on the host, once it is computed."""
        return self._staging.download(array)

    def launch(self, kernel: Kernel[Any, Any], size: int, *arguments: Any) -> None:
        """Run a parallel kernel with one thread per index, as far as a full card goes."""
        if size:
            stream = self.xp.cuda.get_current_stream().ptr
            try:
                self._launches.launch(kernel, self._blocks(kernel.slotted, size), THREADS_PER_BLOCK, stream, size, arguments)
            except Exception as fault:
                note_kernel(fault, kernel.__name__)
                raise

    def slots(self, size: int) -> int:
        """Return how many slots a launch has: the threads of its grid, without those that have no index."""
        return min(size, self._blocks(True, size) * THREADS_PER_BLOCK)

    def _blocks(self, slotted: bool, size: int) -> int:
        """Return how many blocks a launch has."""
        most = _SLOTTED_BLOCKS_PER_MULTIPROCESSOR if slotted else _BLOCKS_PER_MULTIPROCESSOR
        return min(-(-size // THREADS_PER_BLOCK), most * self._multiprocessors)

    def synchronize(self) -> None:
        """Wait for the current stream."""
        self.xp.cuda.get_current_stream().synchronize()

    def free_memory(self) -> int:
        """Return the bytes that the driver has left, plus those free in the pool that arrays come from: RMM's, or CuPy's own."""
        free = int(self.xp.cuda.runtime.memGetInfo()[0])
        pool = current_pool()
        return pool_bytes(pool, free) if pool is not None else free + int(self.xp.get_default_memory_pool().free_bytes())


def _versions() -> str:
    """Return the versions of what compiles kernels; not all go together."""
    found = {each: version(each) for each in ("numba-cuda", "numba") if importlib.util.find_spec(each.replace("-", "_"))}
    return ", ".join(f"{package} {number}" for package, number in {**found, "numpy": np.__version__}.items())


def count_devices() -> int:
    """Return how many CUDA devices this process sees, at least one; raise as :class:`CudaDevice`."""
    _, count = _usable_cupy()
    return count


def _usable_cupy() -> tuple[Any, int]:
    """Return CuPy and how many cards it sees, at least one; raise DeviceUnavailable if that fails."""
    try:
        # importing CuPy takes a second, which a machine without a driver need not spend
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError as fault:
        raise NoDevice(f"there is no CUDA driver ({fault})") from fault
    missing = [package for package, module in (("cupy", "cupy"), ("numba-cuda", "numba_cuda")) if importlib.util.find_spec(module) is None]
    if missing:
        raise DeviceUnavailable(f"there is no {' and no '.join(missing)} (pip install 'gpu_cep[gpu]')")
    try:
        import cupy
    except ImportError as fault:
        raise DeviceUnavailable(f"CuPy cannot be imported: {fault}") from fault
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as fault:
        unavailable = NoDevice if fault.status == _NO_DEVICE else DeviceUnavailable
        raise unavailable(f"CuPy {cupy.__version__} cannot use the CUDA driver: {fault}") from fault
    if not count:
        raise NoDevice("the CUDA driver sees no device (CUDA_VISIBLE_DEVICES may hide it)")
    return cupy, int(count)

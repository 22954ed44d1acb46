"""The devices there are: a CUDA card, with CuPy's arrays, and numba's CUDA simulator, with NumPy's in their place."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from gpu_cep_kernels.cuda_device import CudaDevice
from gpu_cep_kernels.device import Array, Device, DeviceUnavailable, HostArray
from gpu_cep_kernels.jit import Kernel, simulated


def open_device() -> Device:
    """The device of this process.

    Raises
    ------
    DeviceUnavailable
        No driver, no card, a package is missing, or versions do not fit together.
    """
    found = _find_device()
    if isinstance(found, DeviceUnavailable):
        raise found.anew()
    return found


@cache
def _find_device() -> Device | DeviceUnavailable:
    if simulated():
        return SimulatedDevice()
    try:
        return CudaDevice()
    except DeviceUnavailable as fault:
        return fault.anew()


class SimulatedDevice:
    """numba's CUDA simulator: for small input, to prove what would run on a card."""

    name = "CUDA simulator"
    simulated = True
    # each simulated thread is a thread of Python's: a grid strides with few
    _BLOCKS, _THREADS = 2, 4
    # so much is taken at once, as if it were a card's memory
    _MEMORY = 1 << 32

    # the simulator runs one kernel at a time
    _RUNNING = Lock()

    def __init__(self, xp: Any = np) -> None:
        self.xp = xp

    def upload(self, array: HostArray) -> Array:
        """A copy, so that host and device cannot be confused."""
        return self.xp.array(array)

    def upload_slices(self, arrays: Sequence[HostArray], low: int, high: int) -> list[Array]:
        """Copies."""
        return [self.upload(array[low:high]) for array in arrays]

    def lane(self, number: int | None) -> AbstractContextManager[Any]:
        """Nothing overlaps."""
        return nullcontext()

    def download(self, array: Array) -> HostArray:
        """A copy."""
        return np.array(array)

    def launch(self, kernel: Kernel[Any, Any], size: int, *arguments: Any) -> None:
        """Run the uncompiled body, in few threads."""
        with self._RUNNING, warnings.catch_warnings():
            # numpy.errstate would not reach the simulator's threads
            warnings.simplefilter("ignore", RuntimeWarning)
            kernel.cuda[self._BLOCKS, self._THREADS](size, arguments)

    def slots(self, size: int) -> int:
        """The threads of every grid."""
        return self._BLOCKS * self._THREADS

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    def free_memory(self) -> int:
        """As of a small card."""
        return self._MEMORY

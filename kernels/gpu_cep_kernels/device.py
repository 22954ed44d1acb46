"""Devices: where parallel kernels run in bulk, and arrays live beside them.

There are two: a CUDA card, with CuPy's arrays, and numba's CUDA simulator,
with NumPy's in their place.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import Lock
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.jit import Kernel, simulated

Array = Any  # of the device: numpy.ndarray or cupy.ndarray
HostArray = npt.NDArray[Any]


class DeviceUnavailable(Exception):
    """There is no device that can run kernels; the message says why."""

    def anew(self) -> Self:
        """The same, not raised yet: one that was keeps its callers' variables, whole tables of events among them, as long as it is kept."""
        return type(self)(*self.args)


class NoDevice(DeviceUnavailable):
    """The machine has none: no driver, or no card that the driver sees."""


class Device(Protocol):
    """Arrays and kernels of one device; in one lane everything runs in the order of the calls.

    `xp` is the array module, `name` the card's, `simulated` whether it is numba's simulator.
    """

    xp: Any
    name: str
    simulated: bool

    def upload(self, array: HostArray) -> Array:
        """A copy of a host array on the device; the host array may be reused at once."""

    def upload_slices(self, arrays: Sequence[HostArray], low: int, high: int) -> list[Array]:
        """Copies of the rows [low, high) of each array; the host arrays may be reused at once."""

    def lane(self, number: int | None) -> AbstractContextManager[Any]:
        """What is called within runs in this lane: lanes of different numbers may overlap, and None, the default, overlaps with none."""

    def download(self, array: Array) -> HostArray:
        """A copy on the host."""

    def launch(self, kernel: Kernel[Any, Any], size: int, *arguments: Any) -> None:
        """Run a parallel kernel over [0, size); `arguments` are all but low, high and slot."""

    def slots(self, size: int) -> int:
        """How many slots a launch over [0, size) has."""

    def synchronize(self) -> None:
        """Wait until all that was started is done."""

    def free_memory(self) -> int:
        """Bytes that can be allocated."""


def to_device(device: Device, value: Any) -> Any:
    """Host arrays, alone or in (named) tuples, on the device; all else as it is."""
    if isinstance(value, np.ndarray):
        return device.upload(value)
    if isinstance(value, tuple):
        parts = [to_device(device, part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


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
    from gpu_cep_kernels.cuda_device import CudaDevice

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
        return np.array(array, subok=False)

    def launch(self, kernel: Kernel[Any, Any], size: int, *arguments: Any) -> None:
        """Run the uncompiled body, in few threads."""
        with self._RUNNING, warnings.catch_warnings():
            # numpy.errstate would not reach the simulator's threads
            warnings.simplefilter("ignore", RuntimeWarning)
            kernel.cuda[self._BLOCKS, self._THREADS](size, _host_views(arguments))

    def slots(self, size: int) -> int:
        """The threads of every grid."""
        return self._BLOCKS * self._THREADS

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    def free_memory(self) -> int:
        """As of a small card."""
        return self._MEMORY


def _host_views(value: Any) -> Any:
    """Array arguments as plain NumPy arrays."""
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if isinstance(value, tuple):
        parts = [_host_views(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value

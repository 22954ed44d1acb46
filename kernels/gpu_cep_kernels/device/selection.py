"""Open this process's device: a CUDA card with CuPy's arrays, or numba's CUDA simulator with NumPy's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import Kernel, simulated
from gpu_cep_kernels.device.cuda_device import CudaDevice, count_devices
from gpu_cep_kernels.device.failures import DeviceLost
from gpu_cep_kernels.device.interface import Array, Device, DeviceUnavailable, HostArray, HostRows, written


@dataclass(frozen=True, slots=True)
class _Selection:
    """Say which device is used, and whether there ought to be one.

    - number: gives for a count of devices the one to use; raises ValueError if that is none.
    - promised: whether the process was given a device.
    """

    number: Callable[[int], int] = lambda count: 0
    promised: bool = False


_selections = [_Selection()]
# Why the process can use no device any more; empty while it can.
_lost: list[str] = []


def select_device(number: Callable[[int], int], promised: bool) -> None:
    """Let this process use device ``number(count)`` of those that CUDA sees, from the next :func:`open_device` on.

    CUDA is asked nothing before. `number` raises ValueError with the reason if none
    of them is to be used. Where a device was `promised`, its absence is a fault of
    the machine and raises no :class:`NoDevice`.
    """
    _selections[0] = _Selection(number, promised)


def give_up_device(reason: str) -> None:
    """Let no later :func:`open_device` of this process succeed: CUDA failed, for `reason`, and cannot be used any more."""
    _lost.append(reason)


def open_device() -> Device:
    """Return the device of this process, current in this thread.

    Raises
    ------
    DeviceUnavailable
        No driver, no card, a package is missing, versions do not fit together, or an earlier failure made CUDA unusable.
    """
    if _lost:
        raise DeviceUnavailable(f"CUDA failed before in this process ({_lost[0]})") from DeviceLost(_lost[0])
    found = _find_device()
    if isinstance(found, DeviceUnavailable):
        raise found.anew()
    return found


def _find_device() -> Device | DeviceUnavailable:
    """Return the device of this process, current in this thread, or the exception that says why there is none."""
    if simulated():
        return _simulated_device()
    selection, count = _selections[0], _count_cards()
    if isinstance(count, DeviceUnavailable):
        return DeviceUnavailable(f"{count}, though the task was given one") if selection.promised else count
    try:
        card = _open_card(selection.number(count))
    except ValueError as fault:
        return DeviceUnavailable(str(fault))
    if isinstance(card, CudaDevice):
        card.use()
    return card


@cache
def _simulated_device() -> Device:
    """Return the simulator, the same one in every call."""
    return SimulatedDevice()


@cache
def _count_cards() -> int | DeviceUnavailable:
    """Return how many cards there are, or the exception that says why there is none; asked once."""
    try:
        return count_devices()
    except DeviceUnavailable as fault:
        return fault.anew()


@cache
def _open_card(number: int) -> CudaDevice | DeviceUnavailable:
    """Return the card of that number, or the exception that says why it cannot be used; opened once."""
    try:
        return CudaDevice(number)
    except DeviceUnavailable as fault:
        return fault.anew()


class SimulatedDevice:
    """Use numba's CUDA simulator: for small input, to prove what would run on a card."""

    name = "CUDA simulator"
    simulated = True
    # each simulated thread is a Python thread, so a grid has few
    _BLOCKS, _THREADS = 2, 4
    # work is divided as if a card had so much memory
    _MEMORY = 1 << 32

    # the simulator runs one kernel at a time
    _RUNNING = Lock()

    def __init__(self, xp: Any = np) -> None:
        self.xp = xp

    def upload(self, array: HostArray) -> Array:
        """Return a copy, so that host and device cannot be confused."""
        return self.xp.array(array)

    def upload_rows(self, asked: Sequence[HostRows]) -> list[Array]:
        """Return copies, each made at once."""
        return [self.upload(written(rows)) for rows in asked]

    def lane(self, number: int | None) -> AbstractContextManager[Any]:
        """Do nothing: in the simulator lanes never overlap."""
        return nullcontext()

    def use(self) -> None:
        """Do nothing: every thread may use it."""

    def download(self, array: Array) -> HostArray:
        """Return a copy."""
        return np.array(array)

    def launch(self, kernel: Kernel[Any, Any], size: int, *arguments: Any) -> None:
        """Run the uncompiled body, in few threads."""
        with self._RUNNING, warnings.catch_warnings():
            # numpy.errstate would not reach the simulator's threads
            warnings.simplefilter("ignore", RuntimeWarning)
            kernel.cuda[self._BLOCKS, self._THREADS](size, arguments)

    def slots(self, size: int) -> int:
        """Return the threads of every grid."""
        return self._BLOCKS * self._THREADS

    def synchronize(self) -> None:
        """Do nothing: every call has finished when it returns."""

    def free_memory(self) -> int:
        """Return the memory of a small card."""
        return self._MEMORY

"""Define what a device is: it runs parallel kernels on its own arrays (:mod:`gpu_cep_kernels.device.selection` opens one).

The host can take its place where the same steps run on both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.compile.jit import Kernel

Array = Any  # of the device: numpy.ndarray or cupy.ndarray
HostArray = npt.NDArray[Any]
# Gives the rows [low, high) of a column on the host; any thread may call it.
Block = Callable[[int, int], HostArray]
# Writes the rows [low, high) of a column to a host array of as many values; any thread may call it.
Write = Callable[[int, int, HostArray], None]


class HostRows(NamedTuple):
    """Describe what is copied to a device: the rows [low, high) of what `write` writes, as an array of type `kind`.

    They are written part by part, in any order, to where the device reads them.
    """

    write: Write
    low: int
    high: int
    kind: np.dtype[Any]


def write_block(block: Block) -> Write:
    """Return a function that copies what `block` gives, converted to the type of the array that it is written to."""

    def write(low: int, high: int, into: HostArray) -> None:
        np.copyto(into, block(low, high), casting="unsafe")

    return write


def rows_of(column: HostArray, low: int, high: int, kind: np.dtype[Any]) -> HostRows:
    """Return the rows [low, high) of a host array as what is copied to a device."""
    return HostRows(write_block(lambda begin, end: column[begin:end]), low, high, kind)


def written(rows: HostRows) -> HostArray:
    """Return the rows as an array on the host."""
    found: HostArray = np.empty(rows.high - rows.low, rows.kind)
    rows.write(rows.low, rows.high, found)
    return found


class DeviceUnavailable(Exception):
    """Say that there is no device that can run kernels; the message says why."""

    def anew(self) -> Self:
        """Return an equal exception that was not raised.

        One that was raised keeps its callers' variables alive, whole tables among them.
        """
        return type(self)(*self.args)


class NoDevice(DeviceUnavailable):
    """Say that the machine has no device: no driver, or no card that the driver sees."""


class Backend(Protocol):
    """Hold arrays and run kernels on them: a device, or the host; `xp` is the array module."""

    xp: Any

    def upload(self, array: HostArray) -> Array:
        """Return a host array at this place; on a device it is a copy, and the host array may be reused at once."""

    def download(self, array: Array) -> HostArray:
        """Return an array of this place on the host."""

    def launch(self, kernel: Kernel[Any, Any], size: int, *arguments: Any) -> None:
        """Run a parallel kernel over [0, size); `arguments` are all but low, high and slot."""

    def slots(self, size: int) -> int:
        """Return how many slots a launch over [0, size) has."""


class Host:
    """Use the CPU in a device's place: NumPy arrays, which are not copied.

    Kernels run in the calling thread, in one slot.
    """

    xp: Any = np

    def upload(self, array: HostArray) -> Array:
        """Return the array itself."""
        return array

    def download(self, array: Array) -> HostArray:
        """Return the array itself."""
        host: HostArray = array
        return host

    def launch(self, kernel: Kernel[Any, Any], size: int, *arguments: Any) -> None:
        """Call the kernel once, in this thread."""
        kernel(0, size, *((0,) if kernel.slotted else ()), *arguments)

    def slots(self, size: int) -> int:
        """Return one."""
        return 1


HOST = Host()


class Device(Backend, Protocol):
    """Hold arrays and run kernels on one device; in one lane everything runs in the order of the calls.

    - name: the card's name.
    - simulated: whether it is numba's simulator.
    """

    name: str
    simulated: bool

    def upload_rows(self, asked: Sequence[HostRows]) -> list[Array]:
        """Return rows of several columns, copied together; an error that is raised while they are written is raised here."""

    def lane(self, number: int | None) -> AbstractContextManager[Any]:
        """Return a context: calls in it run in this lane.

        Lanes of different numbers may overlap. None, the default lane, overlaps with none.
        """

    def use(self) -> None:
        """Make it this thread's current device."""

    def synchronize(self) -> None:
        """Wait until all that was started is done."""

    def free_memory(self) -> int:
        """Return the number of bytes that can be allocated."""

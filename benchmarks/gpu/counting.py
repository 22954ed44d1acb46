"""A device that the CPU plays, which counts what a card would do: launches, waits of the host, bytes that its memory reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import Kernel
from gpu_cep_kernels.device.interface import HostArray
from tests.gpu.strict_arrays import Ledger, StrictArray, StrictDevice, opened

# The size of their results is known only once the device has found it.
SIZED = frozenset(("flatnonzero", "nonzero", "unique", "argwhere"))
# They give memory, or describe it anew, and start nothing.
IDLE = frozenset(("empty", "empty_like", "view", "reshape", "ravel"))
# They read no more of their first argument than they give.
PICKING = frozenset(("getitem", "take"))


class Counts(Ledger):
    """Launches, and bytes read and written: each array function, operator and kernel is one launch and passes once over its arrays.

    CuPy's sorts, scans and compactions take several launches and passes. So these are the least, not what a card would show.
    """

    def __init__(self) -> None:
        super().__init__()
        self.launches = self.waits = self.moved = 0

    def called(self, name: str, given: Any, result: Any) -> None:
        """Count a launch, unless the result is a view of what was given."""
        arrays, found = [*_arrays(given)], [*_arrays(np.asarray(result) if isinstance(result, np.generic) else result)]
        if name in IDLE or (name != "setitem" and found and all(any(np.may_share_memory(new, old) for old in arrays) for new in found)):
            return
        # an empty view shares no memory with anything
        if name == "getitem" and len(arrays) == 1 and not any(array.size for array in found):
            return
        by_flags = name == "getitem" and any(array.dtype == np.bool_ for array in arrays[1:])
        self.waits += name in SIZED or by_flags
        read = sum(array.nbytes for array in found) + sum(array.nbytes for array in arrays[1:]) if name in PICKING else None
        self.launches += 1
        self.moved += sum(array.nbytes for array in arrays) if read is None else read
        self.moved += sum(array.nbytes for array in found)

    def waited(self) -> None:
        """Count a wait."""
        self.waits += 1


def _arrays(value: Any) -> Iterator[HostArray]:
    """Yield the arrays among arguments or results."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _arrays(part)


class CountingDevice(StrictDevice):
    """A device with a large card's memory whose kernels run compiled on the CPU; it counts what is copied to it and from it, too."""

    name = "the CPU in a device's place"
    # the memory of a card that takes a million events whole
    _MEMORY = 1 << 36

    def __init__(self) -> None:
        self.counts = Counts()
        super().__init__(import_module("cupy") if find_spec("cupy") else None, self.counts)
        self.up = self.down = self.launches = self.uploads = 0

    def upload(self, array: HostArray) -> StrictArray:
        """Return a copy, counted."""
        self.up += array.nbytes
        self.uploads += 1
        return super().upload(array)

    def download(self, array: StrictArray) -> HostArray:
        """Return a copy, counted."""
        host = super().download(array)
        self.down += host.nbytes
        return host

    def launch(self, kernel: Kernel[..., Any], size: int, *arguments: Any) -> None:
        """Call the CPU's kernel once; one that has slots has the first."""
        given = opened(arguments)
        self.launches += 1
        self.counts.launches += 1
        self.counts.moved += sum(array.nbytes for array in _arrays(given))
        kernel(0, int(size), *((0,) if kernel.slotted else ()), *given)

    def synchronize(self) -> None:
        """Count a wait of the host."""
        self.counts.waited()

    def slots(self, size: int) -> int:
        """Return the slots of one thread."""
        return 1

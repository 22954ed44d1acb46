"""A device on which whatever a kernel or the host forgets to write shows: memory holds any bits, and indices run in no order.

Kernels run compiled on the CPU, slice by slice. Like a card's threads, slices come in any order and in any slot. A kernel that reads
what another index writes, or an array that nothing has filled, gives another result.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import Kernel
from gpu_cep_kernels.device.interface import HostArray
from tests.gpu.strict_arrays import StrictArray, StrictDevice, StrictModule, opened
from tests.kernel_cases.calls import Call, arrays_in, selected
from tests.kernels.runs import spoil

SLOTS, MOST_SLICES = 3, 5


def cupy_if_installed() -> Any:
    """CuPy, which says which functions a device has, or None."""
    return importlib.import_module("cupy") if importlib.util.find_spec("cupy") else None


class SpoiltModule(StrictModule):
    """As strict arrays, with any bits in arrays that are made empty."""

    def __init__(self, reference: Any, random: np.random.Generator) -> None:
        super().__init__(reference)
        self.random = random

    def empty(self, shape: Any, dtype: Any = float) -> StrictArray:
        """An array of any bits."""
        return self._spoilt(np.empty(shape, dtype))

    def empty_like(self, other: StrictArray) -> StrictArray:
        """An array of any bits, of another's shape and type."""
        return self._spoilt(np.empty(other.shape, other.dtype))

    def _spoilt(self, array: HostArray) -> StrictArray:
        spoil(array, self.random)
        return StrictArray(array, self)


class SpoiltDevice(StrictDevice):
    """The device; `seed` says which bits, slices and orders."""

    name = "the CPU with spoilt memory"

    def __init__(self, reference: Any, seed: int) -> None:
        super().__init__(reference)
        self.random = np.random.default_rng(seed)
        self.xp = SpoiltModule(reference, self.random)

    def launch(self, kernel: Kernel[..., Any], size: int, *arguments: Any) -> None:
        """Run the kernel slice by slice, in no order."""
        size, given = int(size), opened(arguments)
        scratch = [*arrays_in(tuple(selected(kernel, kernel.scratch, Call(size, given))))]
        cuts = [0, *sorted(self.random.integers(0, size + 1, MOST_SLICES - 1).tolist()), size]
        for k in self.random.permutation(MOST_SLICES).tolist():
            for array in scratch:
                spoil(array, self.random)
            slot = [int(self.random.integers(self.slots(size)))] if kernel.slotted else []
            kernel(cuts[k], cuts[k + 1], *slot, *given)

    def slots(self, size: int) -> int:
        """Few, which slices share."""
        return SLOTS

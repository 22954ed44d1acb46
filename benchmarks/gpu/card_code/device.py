"""A device whose kernels run by the code that numba-cuda generates for a card, in this CPU's memory, which holds any bits at first."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numba

from benchmarks.gpu.card_code.launch import LANES, CardForm, card_form, generated
from gpu_cep_kernels.compile.jit import Kernel
from tests.gpu.spoilt_device import SpoiltDevice
from tests.gpu.strict_arrays import opened
from tests.kernel_cases.calls import Call, arrays_in, selected
from tests.kernels.runs import spoil

_OPTIMISED = 2


class CardCodeDevice(SpoiltDevice):
    """The device; `seed` says which bits memory holds, and in which order lanes run; `launches` counts those of each kernel."""

    name = "the CPU with a card's code"

    def __init__(self, reference: Any, seed: int) -> None:
        super().__init__(reference, seed)
        self.launches = Counter[str]()
        self._forms: dict[tuple[Kernel[..., Any], str], CardForm] = {}

    def launch(self, kernel: Kernel[..., Any], size: int, *arguments: Any) -> None:
        """Run all lanes of a small grid, one after another."""
        size, given = int(size), opened(arguments)
        if not size:
            return
        for array in arrays_in(tuple(selected(kernel, kernel.scratch, Call(size, given)))):
            spoil(array, self.random)
        self.launches[kernel.__name__] += 1
        self._form(kernel, given).launch(size, given, self.random, at_end=bool(self.random.integers(2)))

    def slots(self, size: int) -> int:
        """Return the lanes of the grid."""
        return LANES

    def _form(self, kernel: Kernel[..., Any], given: tuple[Any, ...]) -> CardForm:
        """Return the form of a kernel for arguments of such types, compiled when it is first asked for."""
        asked = kernel, str(numba.typeof(given))
        if asked not in self._forms:
            self._forms[asked] = card_form(kernel, generated(kernel, given), _OPTIMISED)
        return self._forms[asked]

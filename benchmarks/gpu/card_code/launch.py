"""Run the CUDA form of kernels on this CPU, lane by lane, as a card is handed it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np

from benchmarks.gpu.card_code.memory import guarded, misaligned
from benchmarks.gpu.card_code.native import compiled
from benchmarks.gpu.device_code import CAPABILITIES, llvm_code_of
from gpu_cep_kernels.compile.jit import Kernel
from gpu_cep_kernels.device.interface import HostArray
from gpu_cep_kernels.device.launches import lay_out
from tests.kernel_cases.calls import Call, arrays_in, selected

THREADS, BLOCKS = 8, 3
LANES = THREADS * BLOCKS


class Misplaced(Exception):
    """Say that a launch is handed what a card refuses, or that a kernel writes what it does not declare."""


@dataclass(frozen=True, slots=True)
class CardForm:
    """Hold what numba-cuda generates for a kernel and arguments of certain types, compiled for this CPU."""

    kernel: Kernel[..., Any]
    run: Callable[..., None]

    def launch(self, size: int, arguments: tuple[Any, ...], random: np.random.Generator, at_end: bool = True) -> int:
        """Run the lanes of a small grid in random order, and return what the kernel returns, or 0.

        Every array lies beside memory without access: the page after it if `at_end`, or else the one before.

        Raises
        ------
        Misplaced
            An array is not aligned, or the kernel writes to one that it does not declare.
        """
        arrays = [*arrays_in(arguments)]
        if faults := misaligned(arrays):
            raise Misplaced(f"{self.kernel.__name__} is handed arrays that are not aligned: {', '.join(faults)}")
        copies = {_place(each): guarded(each, at_end) for each in arrays}
        result = np.zeros(1, np.int64)
        words = list[int]()
        lay_out((_on_card(result) if self.kernel.returns else size, _moved(arguments, copies)), words, [])
        lanes = random.permutation(LANES).astype(np.uint32)
        held = np.array(words, np.int64)
        self.run(held.ctypes.data, lanes.ctypes.data, LANES, THREADS, BLOCKS, int(random.integers(1, 256)))
        self._take_back(arrays, copies, Call(size, arguments))
        return int(result[0])

    def _take_back(self, arrays: list[HostArray], copies: dict[Any, HostArray], call: Call) -> None:
        """Copy what the kernel may write from the card's arrays; check that nothing else is written."""
        may_write = {_place(each) for each in arrays_in(tuple(selected(self.kernel, (*self.kernel.writes, *self.kernel.scratch), call)))}
        for each in arrays:
            copy = copies[_place(each)]
            if _place(each) in may_write:
                each[...] = copy
            elif each.tobytes() != copy.tobytes():
                raise Misplaced(f"{self.kernel.__name__} writes to an array {each.dtype}{list(each.shape)} that it does not declare")


def generated(kernel: Kernel[..., Any], arguments: tuple[Any, ...]) -> list[str]:
    """Return the modules that numba-cuda generates for a kernel and arguments of such types."""
    types = numba.void(numba.int64[::1] if kernel.returns else numba.int64, numba.typeof(arguments))
    return llvm_code_of(kernel, types, CAPABILITIES[-1])


def card_form(kernel: Kernel[..., Any], texts: list[str], level: int) -> CardForm:
    """Return a kernel's generated modules, compiled at a level of optimisation."""
    return CardForm(kernel, compiled(texts, f"compile7entries{_mangled(kernel)}", level))


def _mangled(kernel: Kernel[..., Any]) -> str:
    """Return how the names of generated functions spell the kernel's entry, which is named after its module and itself."""
    return "".join(f"{len(part)}{part}" for part in kernel.cuda.__name__.split("."))


def _place(array: HostArray) -> tuple[Any, ...]:
    """Return what identifies an array: two arguments with the same memory are one array."""
    return array.ctypes.data, array.shape, array.strides, array.dtype.str


def _moved(value: Any, copies: dict[Any, HostArray]) -> Any:
    """Return an argument with its arrays as a card's."""
    if isinstance(value, np.ndarray):
        return _on_card(copies[_place(value)])
    if isinstance(value, tuple):
        parts = [_moved(part, copies) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _on_card(array: HostArray) -> Any:
    """Return an array as CuPy describes it."""
    return SimpleNamespace(
        dtype=array.dtype, ndim=array.ndim, shape=array.shape, strides=array.strides, size=array.size, itemsize=array.itemsize,
        flags=array.flags, data=SimpleNamespace(ptr=array.ctypes.data),
    )  # fmt: skip

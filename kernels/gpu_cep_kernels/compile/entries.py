"""Define what one CUDA thread does, for each way in which kernels are declared.

:mod:`gpu_cep_kernels.compile.jit` binds `body`, `cuda`, `uint32` and `by_address` for each kernel. The
loops are not over ranges, since a range with a step begins with a 64-bit division.
"""

from __future__ import annotations

from typing import Any

body: Any = None
cuda: Any = None
uint32: Any = None
by_address: Any = None


def for_each(size: int, arguments: Any) -> None:
    """Run the kernel's body on all indices below `size`, one at a time, thread by thread of the grid."""
    index, given = cuda.grid(1), by_address(arguments)
    while index < size:
        body(index, index + 1, *given)
        index += cuda.gridsize(1)


def for_each_slotted(size: int, arguments: Any) -> None:
    """As :func:`for_each`, with the thread's number as its slot."""
    index, given = cuda.grid(1), by_address(arguments)
    while index < size:
        # with 64 bits the compiler keeps an address for each row of scratch in registers
        body(index, index + 1, uint32(cuda.grid(1)), *given)
        index += cuda.gridsize(1)


def once(size: int, arguments: Any) -> None:
    """Run the kernel's body once, in the grid's first thread; `size` is 1.

    The body is handed all by value: NVVM does not inline every search, and memory would stay in the thread's stack.
    """
    if cuda.grid(1) < size:
        body(*arguments)


def once_with_result(result: Any, arguments: Any) -> None:
    """As :func:`once`, and write to ``result[0]`` what the body returns."""
    if cuda.grid(1) == 0:
        result[0] = body(*arguments)

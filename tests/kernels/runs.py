"""Kernel cases, run in each way that the host has, and what they gave."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_cep_kernels.compile.jit import plain
from tests.kernel_cases import CASES
from tests.kernel_cases.calls import arrays_in, selected, written

SIZES = (0, 1, 40, 200)
# Hands on registers of both kinds of numbers, of which a program sets one: the other is whatever scratch held.
HANDS_ON_SCRATCH = {"evaluate_rows"}


def each_call(wanted=lambda case: True, fast_sizes=SIZES):
    """Parametrise a test by case and size; other sizes than `fast_sizes` are for the full suite."""
    calls = [
        pytest.param(case, size, id=f"{case.name}-{size}", marks=() if size in fast_sizes else pytest.mark.full)
        for case in CASES
        if wanted(case)
        for size in SIZES
    ]
    return pytest.mark.parametrize(("case", "size"), calls)


def made(case, size, slots=1):
    """The call of a case; the same each time."""
    return case.make(size, np.random.default_rng([size, len(case.name)]), slots)


def image(values):
    """Type, shape and bits of the arrays in `values`; all NaN are one."""
    return [
        (array.dtype, array.shape, np.where(array == array, array, array.dtype.type(1)).tobytes(), (array == array).tobytes())
        for value in values
        for array in arrays_in(value)
    ]


def leading(case, low, high, slot):
    """The first arguments: which indices, and in which slot."""
    return (low, high, slot)[: 2 + case.kernel.slotted] if case.kernel.parallel else ()


class FromStart(np.ndarray):
    """An array that no index counts from its end, as none does in a compiled kernel: it would read memory before the array."""

    def __getitem__(self, index):
        check_index(index)
        return super().__getitem__(index)

    def __setitem__(self, index, value):
        check_index(index)
        super().__setitem__(index, value)


def check_index(index):
    """Raise IndexError if a number of an index is negative."""
    for number in index if isinstance(index, tuple) else (index,):
        if not isinstance(number, slice) and number < 0:
            raise IndexError(f"{number} counts from no array's end")


def from_start(argument):
    """An argument of a kernel with all its arrays as such."""
    if isinstance(argument, tuple):
        parts = map(from_start, argument)
        return argument._make(parts) if hasattr(argument, "_make") else tuple(parts)
    return argument.view(FromStart) if isinstance(argument, np.ndarray) else argument


def in_python(case, size):
    """What the kernel returns and writes, uncompiled."""
    call = made(case, size)
    with np.errstate(all="ignore"):
        returned = plain(case.kernel)(*leading(case, 0, call.size, 0), *map(from_start, call.arguments))
    return returned, image(written(case, call))


def compiled(case, size):
    """What the compiled kernel returns and writes."""
    call = made(case, size)
    returned = case.kernel(*leading(case, 0, call.size, 0), *call.arguments)
    return returned, image(written(case, call))


def in_slices(case, size, parts):
    """The same for a parallel kernel, slice by slice of its indices in no order, with scratch that holds anything at first."""
    call, random = made(case, size, parts), np.random.default_rng([size, parts])
    spoilt = () if case.kernel.__name__ in HANDS_ON_SCRATCH else case.kernel.scratch
    for slot in random.permutation(parts).tolist():
        for scratch in arrays_in(tuple(selected(case.kernel, spoilt, call))):
            spoil(scratch, random)
        case.kernel(*leading(case, call.size * slot // parts, call.size * (slot + 1) // parts, slot), *call.arguments)
    return None, image(written(case, call))


def spoil(array, random):
    """Leave any bits in an array, as freed memory has them; flags stay flags."""
    bits = random.integers(0, 2 if array.dtype == np.bool_ else 256, array.nbytes, np.uint8)
    array[...] = bits.view(array.dtype).reshape(array.shape)

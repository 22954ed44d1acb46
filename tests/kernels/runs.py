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


def in_python(case, size):
    """What the kernel returns and writes, uncompiled."""
    call = made(case, size)
    with np.errstate(all="ignore"):
        returned = plain(case.kernel)(*leading(case, 0, call.size, 0), *call.arguments)
    return returned, image(written(case, call))


class FromStart(np.ndarray):
    """An array whose elements and rows are counted from its start: no index of one is negative."""

    def __getitem__(self, index):
        refuse_negative(index)
        return super().__getitem__(index)

    def __setitem__(self, index, value):
        refuse_negative(index)
        super().__setitem__(index, value)


def refuse_negative(index):
    """Fail on an index that counts from an array's end."""
    numbers = index if isinstance(index, tuple) else (index,)
    assert not any(isinstance(each, int | np.integer) and each < 0 for each in numbers), f"index {index}"


def counted_from_start(value):
    """The same arguments with arrays that refuse negative indexes."""
    if isinstance(value, np.ndarray):
        return value.view(FromStart)
    if not isinstance(value, tuple):
        return value
    parts = map(counted_from_start, value)
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


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

"""Every kernel gives the same in Python, compiled, and cut into slices, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_cep.testing.kernel_cases import CASES, KernelCase, kernels
from gpu_cep.testing.kernel_cases.calls import arrays_in, written
from gpu_cep_kernels.jit import plain

SIZES = (0, 1, 40, 200)
CALLS = [pytest.param(case, size, id=f"{case.name}-{size}") for case in CASES for size in SIZES]


def made(case: KernelCase, size: int, slots: int = 1):
    return case.make(size, np.random.default_rng([size, len(case.name)]), slots)


def image(arrays):
    """Type, shape and bits of arrays; all NaN are one."""
    return [
        (array.dtype, array.shape, np.where(array == array, array, array.dtype.type(1)).tobytes(), (array != array).tobytes())
        for array in arrays
    ]


def outcome(case, call, returned=None):
    """What a call returned and wrote."""
    return returned, image(array for value in written(case, call) for array in arrays_in(value))


def in_python(case, size):
    call = made(case, size)
    span = (0, call.size, 0)[: 2 + case.kernel.slotted] if case.kernel.parallel else ()
    with np.errstate(all="ignore"):
        return outcome(case, call, plain(case.kernel)(*span, *call.arguments))


def compiled(case, size, parts=1):
    call = made(case, size, parts)
    if not case.kernel.parallel:
        return outcome(case, call, case.kernel(*call.arguments))
    for slot in range(parts):
        low, high = call.size * slot // parts, call.size * (slot + 1) // parts
        case.kernel(*(low, high, slot)[: 2 + case.kernel.slotted], *call.arguments)
    return outcome(case, call)


def test_every_kernel_has_a_case():
    assert {case.kernel.__name__ for case in CASES} == kernels().keys()
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize(("case", "size"), CALLS)
def test_compiled_kernels_do_what_python_does(case, size):
    expected = in_python(case, size)
    assert compiled(case, size) == expected

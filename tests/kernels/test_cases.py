"""Every kernel does the same in Python, compiled, and a slice at a time, bit for bit; tests/gpu adds devices."""

from __future__ import annotations

from gpu_cep.testing.kernel_cases import CASES, kernels
from tests.kernels.runs import compiled, each_call, in_python, in_slices


def test_every_kernel_has_a_case():
    assert {case.kernel.__name__ for case in CASES} == kernels().keys()
    assert len({case.name for case in CASES}) == len(CASES)


@each_call()
def test_compiled_kernels_do_what_python_does(case, size):
    assert compiled(case, size) == in_python(case, size)


@each_call(lambda case: case.kernel.parallel)
def test_slices_make_the_whole(case, size):
    assert in_slices(case, size, 3) == compiled(case, size)

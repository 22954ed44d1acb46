"""Every kernel does the same in Python, compiled, and a slice at a time, bit for bit; tests/gpu adds devices."""

from __future__ import annotations

from tests.kernels.runs import compiled, each_call, in_python, in_slices


@each_call()
def test_compiled_kernels_do_what_python_does(case, size):
    assert compiled(case, size) == in_python(case, size)


@each_call(lambda case: case.kernel.parallel)
def test_slices_make_the_whole(case, size):
    assert in_slices(case, size, 3) == compiled(case, size)

"""Every kernel does the same in Python, compiled and slice by slice, bit for bit, and writes what it declares; tests/gpu adds devices."""

from __future__ import annotations

from tests.kernel_cases.calls import arrays_in, may_write
from tests.kernels.runs import compiled, each_call, in_python, in_slices, leading, made


@each_call()
def test_compiled_kernels_do_what_python_does(case, size):
    assert compiled(case, size) == in_python(case, size)


@each_call(fast_sizes=(40,))
def test_kernels_write_nothing_but_what_they_declare(case, size):
    call = made(case, size)
    allowed = may_write(case, call)
    others = [array for array in arrays_in(call.arguments) if id(array) not in allowed and array.size]
    before = [array.copy() for array in others]
    case.kernel(*leading(case, 0, call.size, 0), *call.arguments)
    assert all(array.tobytes() == copy.tobytes() for array, copy in zip(others, before, strict=True))


@each_call(lambda case: case.kernel.parallel)
def test_slices_make_the_whole(case, size):
    assert in_slices(case, size, 3) == compiled(case, size)

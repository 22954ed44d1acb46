"""What numba-cuda makes of arrays on a card: the types that kernels are compiled for, and the words that a launch gets.

CuPy's arrays are stood in for by what describes them, ``__cuda_array_interface__``. Neither a card nor a driver is needed.
"""

from __future__ import annotations

import math
import weakref
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import numba
import numpy as np
import pytest

from benchmarks.gpu.device_code import missing_wheels
from gpu_cep_kernels.compile.jit import Kernel, plain, simulated
from gpu_cep_kernels.device.array_views import ArrayViews
from tests.kernel_cases import CASES
from tests.kernel_cases.calls import arrays_in
from tests.requirements import require

pytestmark = pytest.mark.skipif(simulated(), reason="the simulator prepares no arguments")

STREAM = 7


def parallel_cases():
    """All cases of parallel kernels; the fast suite takes one of each kernel."""
    first = {case.kernel.__name__: case.name for case in reversed(CASES)}
    parallel = [case for case in CASES if case.kernel.parallel]
    return [pytest.param(case, id=case.name, marks=() if case.name in first.values() else pytest.mark.full) for case in parallel]


class OnCard:
    """An array as CuPy describes one of its own, at the address of the host's array; empty ones have no address there."""

    def __init__(self, array, version=3):
        self.held = array
        strides = None if array.flags.c_contiguous else array.strides
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "descr": array.dtype.descr,
            "data": (array.ctypes.data if array.size else 0, False),
            "strides": strides,
            "version": version,
            **({"stream": STREAM} if version == 3 else {}),
        }


@pytest.fixture
def no_driver(monkeypatch):
    """Numba asks no driver for its context."""
    require(missing_wheels())
    from numba.cuda import api
    from numba.cuda.cudadrv import devices

    context = SimpleNamespace(create_external_stream=lambda pointer: pointer)
    monkeypatch.setattr(api, "current_context", lambda: context)
    monkeypatch.setattr(devices, "get_context", lambda: context)
    monkeypatch.setattr(devices._runtime, "ensure_context", nullcontext)


def on_card(value):
    """Arguments with their arrays on the card."""
    if isinstance(value, np.ndarray):
        return OnCard(value)
    if isinstance(value, tuple):
        parts = [on_card(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def prepared(kind, value):
    """The words of a launch for an argument, as numba-cuda's kernels prepare them."""
    from numba.cuda.dispatcher import _Kernel

    unopened = object.__new__(_Kernel)
    unopened.extensions = []
    words, written_back = [], []
    unopened._prepare_args(kind, value, STREAM, written_back, words)
    assert not written_back
    return words


def words_of(array):
    """The words that describe an array to a kernel: neither owner nor parent, elements, their size, address, shape and strides."""
    address = array.ctypes.data if array.size else 0
    # NumPy gives empty arrays strides of its own
    strides = [array.itemsize * math.prod(array.shape[k + 1 :]) for k in range(array.ndim)] if array.flags.c_contiguous else array.strides
    return [0, 0, array.size, array.itemsize, address, *array.shape, *strides]


def made(case, size):
    """A call whose making compiles nothing."""
    with mock.patch.object(Kernel, "__call__", lambda kernel, *given: plain(kernel)(*given)), np.errstate(all="ignore"):
        return case.make(size, np.random.default_rng(size), 2)


@pytest.mark.usefixtures("no_driver")
@pytest.mark.parametrize("case", parallel_cases())
def test_a_launch_gets_what_the_kernel_was_compiled_for(case):
    from numba.cuda.typing.typeof import Purpose, typeof

    for size in (0, 3):
        arguments = made(case, size).arguments
        given = on_card(arguments)
        views = ArrayViews().of(given)
        kind = typeof(views, Purpose.argument)
        assert str(kind) == str(numba.typeof(arguments))
        words = [word for word in prepared(kind, views) if type(word) is int]
        assert words == [word for array in arrays_in(arguments) for word in words_of(array)]


@pytest.mark.usefixtures("no_driver")
@pytest.mark.parametrize("version", [2, 3])
def test_arrays_with_gaps_keep_their_strides(version):
    from numba.cuda.typing.typeof import Purpose, typeof

    array = np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::2]
    given = OnCard(array, version)
    (view,) = ArrayViews().of((given,))
    kind = typeof(view, Purpose.argument)
    assert kind.layout == "A"
    assert prepared(kind, view) == words_of(array)


@pytest.mark.usefixtures("no_driver")
def test_an_array_is_viewed_once_and_not_kept():
    views, array, other = ArrayViews(), OnCard(np.arange(3)), OnCard(np.arange(4))
    table = SimpleTable(array, 5)
    first, again = views.of((table, other)), views.of((table, other))
    assert first[0].column is again[0].column
    assert first[0].number == 5
    assert first[1] is not first[0].column
    assert len(views) == 2
    kept = weakref.ref(array)
    del array, table
    assert kept() is None
    assert len(views) == 1


class SimpleTable(NamedTuple):
    """A table of one column."""

    column: Any
    number: int

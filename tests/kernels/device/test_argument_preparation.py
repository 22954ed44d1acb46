"""What a launch makes of arrays on a card: the types that kernels are compiled for, and the words that they get, as numba-cuda has them.

CuPy's arrays are stood in for by what describes them. Neither a card nor a driver is needed.
"""

from __future__ import annotations

import ctypes
import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Barrier
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import numba
import numpy as np
import pytest

from benchmarks.gpu.device_code import missing_wheels
from gpu_cep_kernels.compile.jit import Kernel, plain, simulated
from gpu_cep_kernels.device.cuda_device import CudaDevice
from gpu_cep_kernels.device.launches import Launches, as_numba_takes, lay_out
from tests.kernel_cases import CASES
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
        self.dtype, self.ndim, self.size, self.itemsize = array.dtype, array.ndim, array.size, array.itemsize
        self.shape, self.strides, self.flags = array.shape, tuple(strides_of(array)), array.flags
        self.data = SimpleNamespace(ptr=array.ctypes.data if array.size else 0)
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


def strides_of(array):
    """The bytes between neighbours along each axis; NumPy gives empty arrays strides of its own."""
    return [array.itemsize * math.prod(array.shape[k + 1 :]) for k in range(array.ndim)] if array.flags.c_contiguous else array.strides


def laid_out(value):
    """The words of a launch for an argument, and what its type depends on."""
    words, types = [], []
    lay_out(value, words, types)
    return words, tuple(types)


def same_parameter(word, expected):
    """Whether a word begins with the bytes that numba-cuda hands over: a ctypes value, or a number for a pointer's place."""
    held = int(word).to_bytes(8, "little", signed=True)
    given = bytes(expected) if isinstance(expected, ctypes._SimpleCData) else int(expected).to_bytes(8, "little", signed=True)
    return held[: len(given)] == given


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
        views = as_numba_takes(given)
        kind = typeof(views, Purpose.argument)
        assert str(kind) == str(numba.typeof(arguments))
        words, expected = laid_out(given)[0], prepared(kind, views)
        assert len(words) == len(expected)
        assert all(map(same_parameter, words, expected))


@pytest.mark.usefixtures("no_driver")
@pytest.mark.parametrize("version", [2, 3])
def test_arrays_with_gaps_keep_their_strides(version):
    from numba.cuda.typing.typeof import Purpose, typeof

    array = np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::2]
    given = OnCard(array, version)
    view = as_numba_takes(given)
    kind = typeof(view, Purpose.argument)
    assert kind.layout == "A"
    assert laid_out(given)[0] == prepared(kind, view) == [0, 0, 6, 4, array.ctypes.data, 3, 2, 16, 8]


NUMBERS = [0, -1, 2**63 - 1, -(2**63), True, False, 0.1, -0.0, math.inf, math.nan, np.uint8(255), np.int32(-2), np.uint64(2**64 - 1),
           np.float32(0.1), np.int64(-3), np.bool_(True)]  # fmt: skip


@pytest.mark.usefixtures("no_driver")
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"{type(number).__name__}-{number}")
def test_numbers_are_laid_out_as_numba_does(number):
    from numba.cuda.typing.typeof import Purpose, typeof

    (word,), (expected,) = laid_out(number)[0], prepared(typeof(number, Purpose.argument), number)
    assert same_parameter(word, expected)


@pytest.mark.usefixtures("no_driver")
def test_types_are_told_apart_where_numba_compiles_anew():
    from numba.cuda.typing.typeof import Purpose, typeof

    matrix = np.zeros((2, 3), np.int32)
    arrays = [np.zeros(3, np.int32), np.zeros(3, np.uint32), np.zeros(3, np.int64), matrix, matrix.T, matrix[:, ::2], matrix[:, :1]]
    values = [1, True, 1.0, np.int32(1), np.float32(1), *map(OnCard, arrays)]
    values += [(value,) for value in values] + [SimpleTable(values[-1], 1), SimpleTable(values[-1], 1.0), (values[-1], 1), ()]
    ours = [laid_out(value)[1] for value in values]
    theirs = [str(typeof(as_numba_takes(value), Purpose.argument)) for value in values]
    for k, one in enumerate(ours):
        for m in range(k):
            assert theirs[k] == theirs[m] or one != ours[m], (theirs[k], theirs[m])


def test_what_no_kernel_takes_is_named():
    with pytest.raises(TypeError, match="arrays, tuples and numbers, and no str"):
        laid_out((1, "a"))


class RecordingDriver:
    """CUDA's driver, which notes the words that a launch points at."""

    def __init__(self):
        self.launched = []

    def launchKernel(self, function, blocks, _y, _z, threads, _by, _bz, _shared, stream, parameters, _extra):  # noqa: N802
        addresses = (ctypes.c_int64 * 9).from_address(parameters)
        words = [ctypes.c_int64.from_address(address).value for address in addresses]
        self.launched.append((function, blocks, threads, stream, words))


def test_a_form_is_compiled_once_and_launched_with_its_own_words(monkeypatch):
    driver, compiled = RecordingDriver(), []
    monkeypatch.setattr("gpu_cep_kernels.device.launches._compiled", lambda *given: compiled.append(given) or 100 + len(compiled))
    launches, array, other = Launches(driver), OnCard(np.arange(3)), OnCard(np.arange(4))
    kernel = CASES[0].kernel
    launches.launch(kernel, 5, 256, STREAM, 1000, (array, 7))
    launches.launch(kernel, 6, 256, STREAM, 1001, (other, 8))
    launches.launch(kernel, 6, 256, STREAM, 1001, (other, 8.0))
    assert len(compiled) == 2
    (first, *_), (second, *_), (third, *_) = driver.launched
    assert (first, second, third) == (101, 101, 102)
    assert driver.launched[0][1:4] == (5, 256, STREAM)
    assert driver.launched[0][4] == [1000, 0, 0, 3, 8, array.data.ptr, 3, 8, 7]
    assert driver.launched[1][4] == [1001, 0, 0, 4, 8, other.data.ptr, 4, 8, 8]


def test_threads_that_launch_at_a_time_have_words_of_their_own(monkeypatch):
    both, driver = Barrier(2), RecordingDriver()

    def launch_kernel(*given):
        # the other thread has laid out its arguments by now
        both.wait(60)
        RecordingDriver.launchKernel(driver, *given)

    monkeypatch.setattr("gpu_cep_kernels.device.launches._compiled", lambda *given: 1)
    launches = Launches(SimpleNamespace(launchKernel=launch_kernel))
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda size: launches.launch(CASES[0].kernel, 1, 256, size, size, (8,) * 8), (3, 4)))
    assert sorted((stream, words[0]) for *_, stream, words in driver.launched) == [(3, 3), (4, 4)]


def idle(low: int, high: int) -> None:
    """Do nothing with a range."""


def test_a_kernel_is_compiled_for_what_it_is_launched_with_in_the_current_stream(monkeypatch):
    """The whole way of a launch, with stand-ins for what asks CUDA: numba's dispatcher and its form."""
    form = SimpleNamespace(bind=lambda: None, _codelibrary=SimpleNamespace(get_cufunc=lambda: SimpleNamespace(handle=42)))
    forms = {("type of 10", "type of (1, 2.5)"): form}
    kernel, driver, card = Kernel(idle, True, (), ()), RecordingDriver(), object.__new__(CudaDevice)
    kernel.cuda = SimpleNamespace(typeof_pyval=lambda value: f"type of {value}", compile=forms.__getitem__)
    card._multiprocessors, card._launches = 132, Launches(driver)
    card.xp = SimpleNamespace(cuda=SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=STREAM)))
    card.launch(kernel, np.int64(10), 1, 2.5)
    ((function, blocks, threads, stream, words),) = driver.launched
    assert (function, blocks, threads, stream) == (42, 1, 256, STREAM)
    assert words[:2] == [10, 1]
    card.launch(kernel, 0, 1, 2.5)
    assert len(driver.launched) == 1


class SimpleTable(NamedTuple):
    """A table of one column."""

    column: Any
    number: int

"""The pipeline that compiles functions of this package for a card, and no others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from benchmarks.gpu.device_code import CAPABILITIES, missing_wheels, ptx_of
from gpu_cep_kernels.compile import jit
from tests.requirements import require, require_modules

pytestmark = pytest.mark.skipif(jit.simulated(), reason="the simulator compiles nothing")


@pytest.fixture(scope="module", autouse=True)
def numba_cuda():
    require_modules("numba_cuda")
    require(missing_wheels())


@jit.rule
def _innermost(value: int, step: int) -> int:
    return value + step


@jit.rule
def _left(value: int) -> int:
    return _innermost(value, 1) * 2


@jit.rule
def _right(value: int) -> int:
    return _innermost(value, 2) * 3


def increment(values: Any) -> None:
    values[0] += 1


def double(low: int, high: int, values: Any) -> None:
    for index in range(low, high):
        values[index] = _left(values[index]) + _right(values[index])


class _Table(NamedTuple):
    """Two columns that travel together."""

    prices: Any
    counts: Any


@jit.rule
def _price(table: _Table, row: int) -> float:
    return table.prices[row]


def price(low: int, high: int, table: _Table, out: Any) -> None:
    for row in range(low, high):
        out[row] = _price(table, row)


@pytest.fixture
def pipelines(monkeypatch):
    """The names of the pipelines that compile something, in order."""
    from numba.cuda import compiler

    used: list[str] = []
    init = compiler.CUDACompiler.__init__

    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        used.append(type(self).__name__)
        init(self, *args, **kwargs)

    monkeypatch.setattr(compiler.CUDACompiler, "__init__", noted)
    return used


@pytest.fixture
def code(monkeypatch):
    """The modules that NVVM compiles."""
    from numba.cuda.cudadrv import nvvm

    given: list[str] = []
    compile_ir = nvvm.compile_ir

    def noted(modules: list[str], **options: Any) -> Any:
        given.extend(modules)
        return compile_ir(modules, **options)

    monkeypatch.setattr(nvvm, "compile_ir", noted)
    return given


@pytest.fixture
def kernel():
    """A kernel of this package that reaches a rule on two ways, with another number on each."""
    for function in (double, _innermost.py_func, _left.py_func, _right.py_func):
        function.__module__ = "gpu_cep_kernels.tried"
    return jit.Kernel(double, True, ("values",), ())


def test_a_rule_that_is_reached_on_two_ways_is_compiled_once_and_held_once(kernel, pipelines, code):
    text = ptx_of(kernel, numba.void(numba.int64, numba.typeof((np.zeros(1, np.int64),))), CAPABILITIES[-1])
    assert ".entry" in text
    assert ".extern" not in text
    assert pipelines == ["CudaKernelCompiler"] * 5
    assert len(code) == len(set(code)) == 5


def test_a_named_tuple_is_handed_on_by_address_and_its_elements_are_read_at_once(code):
    for function in (price, _price.py_func):
        function.__module__ = "gpu_cep_kernels.tried"
    arguments = _Table(np.zeros(1), np.zeros(1, np.int64)), np.zeros(1)
    text = ptx_of(jit.Kernel(price, True, ("out",), ()), numba.void(numba.int64, numba.typeof(arguments)), CAPABILITIES[-1])
    assert "local" not in text
    (rule,) = (module for module in code if "define linkonce_odr" in module and "6_price" in module.split("define", 1)[1].split("(", 1)[0])
    body = rule.split("{\nentry:", 1)[1]
    # the columns are no parameters, and no array is laid out to be indexed
    assert "inserted.meminfo" not in body
    assert "alloca {i8*" not in body


def test_functions_of_others_are_compiled_as_numba_cuda_does(pipelines):
    jit._cuda().compile(increment, (numba.int64[::1],), cc=CAPABILITIES[-1], output="ptx")
    assert pipelines == ["CUDACompiler"]


def test_a_version_that_chooses_its_pipeline_otherwise_keeps_its_own(monkeypatch):
    from numba.cuda import compiler

    from gpu_cep_kernels.compile.cuda_pipelines import compile_kernels_lean

    def compile_extra(context: Any, function: Any) -> None: ...

    monkeypatch.setattr(compiler, "compile_extra", compile_extra)
    compile_kernels_lean()
    assert compiler.compile_extra is compile_extra


def test_equal_flags_are_one_object_and_others_differ():
    from gpu_cep_kernels.compile.cuda_pipelines import SharedCudaFlags

    flags = SharedCudaFlags()
    first = flags.copy()
    flags.error_model = "numpy"
    second = flags.copy()
    assert second is flags.copy()
    assert first != second
    assert second == flags
    assert hash(second) == hash(flags)

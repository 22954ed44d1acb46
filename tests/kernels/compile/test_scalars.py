"""Functions of the caller's, compiled: called by address, from registers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpu_cep_kernels.compile.jit import plain
from gpu_cep_kernels.compile.operations import call_scalar
from gpu_cep_kernels.compile.scalars import CompiledScalar, compile_scalar
from gpu_cep_kernels.rules.interpreter import evaluate_rows
from gpu_cep_kernels.rules.tables import ColumnBank
from tests.kernel_cases.tables import program_registers, program_results, program_table

NO_WORDS = np.empty(0, np.uint64)
NO_LISTS = np.empty((0, 0, 0))


def called(body: Callable[..., Any], kinds: str, *arguments: Any) -> Any:
    """Return what the compiled function makes of these arguments, however far apart registers lie: NULL as None, `raised` if it raised."""
    compiled = compile_scalar(body, kinds)
    found, apart = (_outcome(compiled, kinds, arguments, step) for step in (1, 3))
    assert repr(found) == repr(apart)
    return found


def _outcome(compiled: CompiledScalar, kinds: str, arguments: tuple[Any, ...], step: int) -> Any:
    ints, floats, nulls = (np.zeros((len(kinds) + 3, step), kind)[:, 0] for kind in (np.int64, np.float64, np.bool_))
    for register, (kind, value) in enumerate(zip(kinds, arguments, strict=True), start=2):
        nulls[register] = value is None
        (floats if kind == "f" else ints)[register] = value or 0
    target = len(kinds) + 2
    if call_scalar(compiled.address, ints, floats, nulls, 2, target):
        return "raised"
    return None if nulls[target] else (floats if compiled.result == "f" else ints)[target]


def test_arguments_and_results_of_each_kind() -> None:
    assert called(lambda x, n, f: x * n if f else -x, "fib", 1.5, 4, True) == 6.0
    assert called(lambda x, n, f: x * n if f else -x, "fib", 1.5, 4, False) == -1.5
    assert called(lambda n: n * 2, "i", 2**61) == 2**62
    assert called(lambda x: x > 1, "f", 2.0) == 1
    assert math.isnan(called(lambda x: math.sqrt(x), "f", math.nan))
    assert called(lambda a, b, c, d, e, f: max(a, b, c, d, e, f), "iiiiii", *range(6)) == 5
    assert called(lambda x, y, z=3: x + y * z, "ff", 1.0, 2.0) == 7.0


def test_results_are_of_the_kind_that_numba_infers() -> None:
    assert [compile_scalar(lambda x: x, kind).result for kind in "ifb"] == ["i", "f", "b"]
    assert compile_scalar(lambda n: n / 2, "i").result == "f"
    assert compile_scalar(lambda n: np.int32(n), "i").result == "i"
    assert compile_scalar(lambda x: np.float32(x), "f").result == "f"
    assert compile_scalar(lambda x: None if x < 0 else x, "f").result == "f"


def test_null_in_gives_null_out() -> None:
    assert called(lambda x, y: x + y, "ff", 1.0, None) is None
    assert called(lambda x, y: x + y, "ff", None, 1.0) is None
    assert called(lambda x: None if x < 0 else x, "f", -1.0) is None
    assert called(lambda x: None if x < 0 else x, "f", 1.0) == 1.0


def test_exceptions_are_told() -> None:
    def positive(x: float) -> float:
        if x <= 0:
            raise ValueError("not positive")
        return x

    assert called(positive, "f", -1.0) == "raised"
    assert called(positive, "f", 1.0) == 1.0
    assert called(lambda n: 1 // n, "i", 0) == "raised"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (lambda x: x.missing, "Unknown attribute 'missing' of type float64"),
        (lambda x: input(str(x)), "Untyped global name 'input'"),
        (lambda x: "text", "it returns"),
        (lambda x: (x, x), "it returns"),
        (lambda x: np.uint64(x), "it returns uint64"),
        (lambda x: None, "it returns none"),
    ],
)
def test_what_cannot_be_compiled_says_why_in_one_line(body: Callable[..., Any], reason: str) -> None:
    with pytest.raises(TypeError, match=reason) as fault:
        compile_scalar(body, "f")
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize("run", [evaluate_rows, plain(evaluate_rows)], ids=["compiled", "plain"])
def test_programs_call(run: Callable[..., None]) -> None:
    def ratio(x: float, n: int) -> float:
        return x / n

    compiled = compile_scalar(ratio, "fi")
    code = (("load_float", 0, 0, 0), ("load_int", 1, 0, 0), ("call", 2, 0, 1))
    programs = program_table(code, int_constants=[7, compiled.address])
    bank = ColumnBank(np.array([[2, 0, 4]]), np.array([[3.0, 1.0, 5.0]]), np.array([0, 0, 1], np.uint64), NO_WORDS, NO_LISTS)
    results = program_results(3)
    run(0, 3, 1, 2, programs, bank, program_registers(programs, 2), results)
    _, values, nulls, failed = results
    assert (values[0], nulls.tolist(), failed.tolist()) == (1.5, [False, False, True], [False, True, False])


def test_an_inner_product_is_summed_in_the_order_of_positions() -> None:
    left = np.array([[1e16, 1.0, -1e16, 3.0], [0.5, 2.0, 0.25, 0.0]])
    right = np.array([[1.0, 1.0, 1.0, 1.0], [2.0, math.inf, 4.0, 0.0]])
    programs = program_table((("load_vector", 0, 0, 0), ("load_vector", 1, 1, 0), ("dot", 2, 0, 1)))
    bank = ColumnBank(np.empty((0, 2), np.int64), np.empty((0, 2)), NO_WORDS, NO_WORDS, np.stack([left, right]))
    results = program_results(2)
    evaluate_rows(0, 2, 0, 2, programs, bank, program_registers(programs, 1), results)
    assert results.floats.tolist() == [3.0, math.inf]
    assert not results.nulls.any()

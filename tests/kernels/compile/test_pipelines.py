"""What compiling leaves as it was."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from numba.core.errors import TypingError

from gpu_cep_kernels.compile.jit import apart_rule, inline_rule, rule, sequential


@rule
def _length(values: Any) -> int:
    return values.size


@sequential(writes=("values",))
def compiles(values: Any) -> None:
    values[0] = _length(values)


@sequential(writes=())
def does_not_compile(values: Any) -> int:
    return values.no_such_attribute


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_collected_again_after_compiling_and_after_a_failure(monkeypatch, collects, tmp_path):
    monkeypatch.setattr("gpu_cep_kernels.compile.kernel_cache.cache_folder", lambda: tmp_path)
    values = np.zeros(3, np.int64 if collects else np.int32)
    was = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        compiles(values)
        assert gc.isenabled() == collects
        with pytest.raises(TypingError):
            does_not_compile(values)
        assert gc.isenabled() == collects
    finally:
        (gc.enable if was else gc.disable)()
    assert values[0] == 3


@inline_rule
def _sum_inline(values: Any) -> int:
    total = 0
    for k in range(values.size):
        total += values[k]
    return total


@apart_rule
def _sum_apart(values: Any) -> int:
    total = 0
    for k in range(values.size):
        total += values[k]
    return total


@sequential(writes=("sums",))
def sums_twice(values: Any, sums: Any) -> None:
    sums[0], sums[1] = _sum_inline(values), _sum_inline(values[1:])
    sums[2] = _sum_apart(values)


def test_rules_are_inlined_or_stand_apart_as_declared(monkeypatch, tmp_path):
    monkeypatch.setattr("gpu_cep_kernels.compile.kernel_cache.cache_folder", lambda: tmp_path)
    sums = np.zeros(3, np.int64)
    sums_twice(np.arange(4), sums)
    (code,) = sums_twice.compiled.inspect_llvm().values()
    defined = [line for line in code.splitlines() if line.startswith("define")]
    assert sums.tolist() == [6, 6, 6]
    assert any("_sum_apart" in line for line in defined)
    assert not any("_sum_inline" in line for line in defined)

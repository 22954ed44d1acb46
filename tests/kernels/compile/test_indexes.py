"""Indexes in kernels are compiled as they are; other code that numba compiles counts from the end as before."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from gpu_cep_kernels.compile.jit import rule, sequential


@rule
def _value_at(values: Any, place: int) -> int:
    return values[place]


@sequential(writes=())
def value_behind(values: Any, place: int) -> int:
    """The value one behind a place: a negative place reads what lies in front of the array."""
    return _value_at(values[1:], place)


@sequential(writes=("matrix",))
def write_behind(matrix: Any, row: int, place: int) -> None:
    matrix[1:][row, place] = 7


def test_kernels_and_rules_take_indexes_as_they_are():
    values = np.arange(5)
    assert [value_behind(values, place) for place in (-1, 0, 3)] == [0, 1, 4]
    matrix = np.zeros((3, 2), np.int64)
    write_behind(matrix, -1, 1)
    assert matrix.tolist() == [[0, 7], [0, 0], [0, 0]]


def test_other_code_counts_from_the_end():
    last = numba.njit(lambda values, place: values[place])
    assert last(np.arange(5), -1) == 4

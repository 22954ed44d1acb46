"""Elements of arrays in kernels: of every layout and index, in few instructions; other code is compiled as numba does."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from gpu_cep_kernels.compile.jit import plain, rule, sequential


@rule
def _value_at(values: Any, place: int) -> float:
    return values[place]


@sequential(writes=("values",))
def move_one(values: Any, place: int) -> float:
    """Write an element to the first place, and return it."""
    found = _value_at(values, place)
    values[0] = found
    return found * 1.0


@sequential(writes=("matrix",))
def move_between(matrix: Any, row: int, column: int, given: float) -> float:
    """Write an element to where row and column change places, and to the last place what is given."""
    matrix[column, row] = matrix[row, column]
    matrix[matrix.shape[0] - 1, matrix.shape[1] - 1] = given
    # a whole row is a part of the matrix, and no element
    return float(matrix[row].sum())


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.uint16, np.int64, np.uint64, np.float32, np.float64])
@pytest.mark.parametrize("step", [1, 2, -3])
def test_an_element_of_a_row_is_read_and_written_as_in_python(kind, step):
    found, expected = (np.arange(24).astype(kind)[::step] for _ in range(2))
    for place in (np.uint8(3), np.int32(5), 7):
        assert move_one(found, place) == plain(move_one)(expected, place)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, lambda whole: np.repeat(whole, 2, axis=1)[:, ::2]])
def test_an_element_of_a_matrix_is_read_and_written_as_in_python(layout):
    found, expected = (layout(np.arange(42).reshape(6, 7)) for _ in range(2))
    assert move_between(found, 2, np.uint8(4), 9.0) == plain(move_between)(expected, 2, 4, 9.0)
    np.testing.assert_array_equal(found, expected)


@rule
def _first_of(values: Any) -> float:
    return values[0]


@sequential(writes=())
def read_first(values: Any) -> float:
    return _first_of(values)


def test_an_element_takes_few_instructions(monkeypatch, tmp_path):
    """The array, an argument here, is not laid out in memory, which takes twice as many."""
    monkeypatch.setattr("gpu_cep_kernels.compile.kernel_cache.cache_folder", lambda: tmp_path)
    read_first(np.arange(3.0))
    library = next(iter(_first_of.overloads.values())).library
    (generated,) = (function for function in library._final_module.functions if not function.is_declaration)
    generated_for = [each.opcode for block in generated.blocks for each in block.instructions]
    assert len(generated_for) <= 16, generated_for
    assert "alloca" not in generated_for


def test_other_code_is_compiled_as_numba_does():
    at = numba.njit(lambda values, row, column: (values[row], values[row, column]))
    row, element = at(np.arange(6).reshape(2, 3), -1, -2)
    assert row.tolist() == [3, 4, 5]
    assert element == 4

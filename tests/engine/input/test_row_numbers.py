"""Test that numbers of rows in runs are those of an array."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.input.row_numbers import RowRuns, join_numbers, take_numbers

SIZES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 4)), max_size=6)


def runs_of(pairs: list[tuple[int, int]]) -> tuple[RowRuns, np.ndarray]:
    """Runs of numbers, by their first number and size, and the same numbers one by one."""
    begins, sizes = np.array(pairs, np.int64).reshape(-1, 2).T
    listed = [number for begin, size in pairs for number in range(begin, begin + size)]
    return RowRuns.of(begins, sizes), np.array(listed, np.int64)


@given(SIZES, st.data())
def test_runs_are_read_as_an_array_is(pairs, data):
    runs, numbers = runs_of(pairs)
    assert len(runs) == len(numbers)
    np.testing.assert_array_equal(np.asarray(runs), numbers)
    assert np.asarray(runs).dtype == np.int64
    bound = st.none() | st.integers(-3, len(numbers) + 3)
    near = slice(data.draw(bound), data.draw(bound))
    np.testing.assert_array_equal(np.asarray(runs[near]), numbers[near])
    marks = np.array(data.draw(st.lists(st.booleans(), min_size=len(numbers), max_size=len(numbers))), np.bool_)
    np.testing.assert_array_equal(runs[marks], numbers[marks])
    rows = np.array(data.draw(st.lists(st.integers(0, len(numbers) - 1), max_size=5)) if len(numbers) else [], np.int64)
    np.testing.assert_array_equal(runs[rows], numbers[rows])
    assert [int(runs[row]) for row in rows.tolist()] == numbers[rows].tolist()


@given(st.lists(st.tuples(SIZES, st.booleans()), min_size=1, max_size=4))
def test_joined_numbers_are_those_of_all_parts(parts):
    made = [runs_of(pairs) for pairs, _ in parts]
    given = [runs if keeps else numbers for (runs, numbers), (_, keeps) in zip(made, parts, strict=True)]
    np.testing.assert_array_equal(np.asarray(join_numbers(given)), np.concatenate([numbers for _, numbers in made]))


def test_what_follows_is_one_run():
    assert len(RowRuns.of(np.array([5, 8, 9, 20]), np.array([3, 0, 0, 1])).begins) == 2
    joined = join_numbers([RowRuns.of(np.array([0]), np.array([4])), RowRuns.of(np.array([4]), np.array([2]))])
    assert isinstance(joined, RowRuns)
    assert joined.begins.tolist() == [0]
    assert joined.ends.tolist() == [6]


@pytest.mark.parametrize("rows", [[0, 3, 2], [1, None, 3], [None], [], [[0, 1], None, [3], []]])
def test_missing_rows_have_no_number(rows):
    runs, numbers = runs_of([(7, 2), (20, 2)])
    kind = pa.list_(pa.int64()) if any(isinstance(row, list) for row in rows) else pa.int64()
    taken = take_numbers(runs, pa.array(rows, kind))
    assert taken.equals(take_numbers(numbers, pa.array(rows, kind)))
    assert taken.type == kind

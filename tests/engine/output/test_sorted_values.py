"""Medians and numbers of distinct values of many bindings at once, against the definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.engine.output.sorted_values import count_distinct, medians, sort_values
from gpu_cep.oracle.aggregates import AGGREGATES

FLOATS = st.one_of(st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 1.7e308, 5e-324]), st.floats(width=32))
INTEGERS = st.one_of(st.integers(-2, 2), st.integers(-(2**63), 2**63 - 1))


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_each_binding_has_the_values_of_the_definitions(dtype):
    number = st.none() | (FLOATS if dtype == "float64" else INTEGERS)

    @given(st.lists(st.lists(number, max_size=6), max_size=6))
    def check(bindings):
        flat = [value for binding in bindings for value in binding]
        nulls = np.array([value is None for value in flat], np.bool_)
        values = np.array([0 if value is None else value for value in flat], dtype)
        ordered = sort_values(values, nulls, np.concatenate([[0], np.cumsum([len(binding) for binding in bindings], dtype=np.int64)]))
        assert count_distinct(ordered).tolist() == [AGGREGATES["count_distinct"](binding) for binding in bindings]
        present = np.diff(ordered.offsets) > 0
        wanted = np.array([AGGREGATES["median"](binding) for binding in bindings], np.float64)
        np.testing.assert_array_equal(medians(ordered)[present], wanted[present])

    check()

"""Orders of rows and of groups."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep_kernels.matches import groups
from gpu_cep_kernels.matches.groups import group_begins, order_by_group, order_by_row

ROWS = st.lists(st.integers(0, 199), max_size=60)


@given(ROWS, st.sampled_from((np.int32, np.int64)), st.integers(1, 2), st.sampled_from((0, 30)))
def test_rows_in_order_equal_ones_as_they_come(rows, kind, threads, few):
    for given_rows in (rows, list(dict.fromkeys(rows))):
        with patch.object(groups, "_FEW", few):
            found = order_by_row(np.array(given_rows, kind), 200, threads)
        assert found.tolist() == sorted(range(len(given_rows)), key=given_rows.__getitem__)


@given(ROWS)
def test_groups_in_order(rows):
    order, begins = order_by_group(np.array(rows, np.int64), 200)
    assert order.tolist() == sorted(range(len(rows)), key=rows.__getitem__)
    assert begins.tolist() == [sum(group < number for group in rows) for number in range(201)]


@given(ROWS)
def test_groups_that_stand_together_begin_where_they_change(rows):
    stand = np.array(sorted(rows), np.int64)
    assert group_begins(stand).tolist() == [row for row in range(len(stand)) if row == 0 or stand[row] != stand[row - 1]]

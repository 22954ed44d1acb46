"""What the fast suite leaves out of a grid of values."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from tests.effort import covering, every_pair, every_value


@pytest.mark.parametrize("several", [(3, 3, 2), (2, 2), (5, 4, 2, 2), (1, 3)])
def test_every_pair_of_values_is_covered(several):
    rows = list(product(*map(range, several)))
    found = covering(rows)
    assert {pair for row in found for pair in combinations(enumerate(row), 2)} == {
        pair for row in rows for pair in combinations(enumerate(row), 2)
    }
    assert found <= {*rows}
    largest, next_largest = sorted(several)[:-3:-1]
    assert largest * next_largest <= len(found) <= 1.3 * largest * next_largest


@pytest.mark.parametrize("choose", [every_pair, every_value])
def test_the_full_suite_has_every_combination(choose):
    mark = choose(one="abc", other=[True, False], third=[(1, 2), None])
    names, rows = mark.args
    assert names == ("one", "other", "third")
    assert [row.values for row in rows] == list(product("abc", [True, False], [(1, 2), None]))
    assert sum(not row.marks for row in rows) < len(rows)


def test_every_value_stands_once_beside_the_first_of_the_others():
    _, rows = every_value(one="abc", other=[1, 2]).args
    assert [row.values for row in rows if not row.marks] == [("a", 1), ("a", 2), ("b", 1), ("c", 1)]

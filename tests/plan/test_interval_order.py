"""The order in which situations are joined: the cost model of TPStream section 5.4, Table 3, and when an order is chosen anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.analysis.bound_intervals import BoundConstraint
from gpu_cep.lang.ast_intervals import RELATIONS
from gpu_cep.plan.interval_order import (
    DRIFT,
    SELECTIVITIES,
    WEIGHT,
    OrderChoice,
    Statistics,
    assume_statistics,
    evaluation_order,
    led_by,
    selectivity,
)


def constraint(left: int, right: int, *relations: str) -> BoundConstraint:
    return BoundConstraint(left, right, tuple(relations or ("before",)), f"{left} and {right}")


CHAIN = (constraint(0, 1), constraint(1, 2), constraint(2, 3))
STAR = (constraint(0, 1), constraint(0, 2), constraint(0, 3))
TWO_PAIRS = (constraint(0, 1), constraint(2, 3))


def test_table_3():
    """Mirrored relations are alike; together they are all pairs, but for what the table's rounding leaves."""
    assert SELECTIVITIES == {
        "before": 0.445, "after": 0.445, "during": 0.03, "contains": 0.03, "overlaps": 0.01, "overlapped-by": 0.01,
        "starts": 0.0049, "started-by": 0.0049, "finishes": 0.0049, "finished-by": 0.0049, "meets": 0.0049, "met-by": 0.0049,
        "equals": 0.0006,
    }  # fmt: skip
    assert sum(SELECTIVITIES.values()) == pytest.approx(1.0, abs=1e-3)


def test_alternatives_add_up():
    """Equation 4, for one constraint."""
    assert selectivity(constraint(0, 1, "before", "meets", "equals")) == pytest.approx(0.445 + 0.0049 + 0.0006)
    assert selectivity(constraint(0, 1, *RELATIONS)) <= 1.0


def expected_rows(statistics: Statistics, constraints: Sequence[BoundConstraint], order: Sequence[int]) -> list[float]:
    """Equation 3, after each join, with the product of the constraints that apply there (equation 4)."""
    joined = [set(order[: step + 1]) for step in range(len(order))]
    shares = list(zip(constraints, statistics.selectivities, strict=True))
    return [
        math.prod(statistics.buffers[v] for v in names) * math.prod(share for each, share in shares if {each.left, each.right} <= names)
        for names in joined
    ]


def cost(statistics: Statistics, constraints: Sequence[BoundConstraint], order: Sequence[int]) -> float:
    """Equation 2: the sum of all intermediate results; a search among n candidates costs log n tests for each row."""
    rows = expected_rows(statistics, constraints, order)
    searches = (before * math.log2(2 + statistics.buffers[v]) for before, v in zip(rows, order[1:], strict=False))
    return sum(rows) + sum(searches)


def is_connected(order: tuple[int, ...], constraints: tuple[BoundConstraint, ...]) -> bool:
    pairs = [{each.left, each.right} for each in constraints]
    return all(any(pair == {name, before} for pair in pairs for before in order[:place]) for place, name in enumerate(order) if place)


BUFFERS = st.lists(st.sampled_from((0.0, 0.5, 1.0, 10.0, 1e3, 1e6)), min_size=4, max_size=4)
SHARES = st.lists(st.sampled_from((0.0, 1e-6, 0.01, 0.5, 1.0)), min_size=3, max_size=3)


@given(st.sampled_from((CHAIN, STAR)), BUFFERS, SHARES)
def test_no_order_has_a_cross_product_where_none_must_be(constraints, buffers, shares):
    order = evaluation_order(Statistics(tuple(buffers), tuple(shares)), constraints)
    assert sorted(order) == [0, 1, 2, 3]
    assert is_connected(order, constraints)


@given(BUFFERS, SHARES)
def test_a_cross_product_comes_only_where_no_related_name_is_left(buffers, shares):
    order = evaluation_order(Statistics(tuple(buffers), tuple(shares[:2])), TWO_PAIRS)
    assert {frozenset(order[:2]), frozenset(order[2:])} == {frozenset({0, 1}), frozenset({2, 3})}


@given(st.sampled_from((CHAIN, STAR)), st.permutations((1.0, 40.0, 700.0, 9_000.0)), st.permutations((0.001, 0.03, 0.445)))
def test_no_order_without_a_cross_product_is_cheaper(constraints, buffers, shares):
    statistics = Statistics(tuple(buffers), tuple(shares))
    orders = [order for order in permutations(range(4)) if is_connected(order, constraints)]
    least = min(cost(statistics, constraints, order) for order in orders)
    assert cost(statistics, constraints, evaluation_order(statistics, constraints)) == pytest.approx(least)


def test_rare_situations_come_first():
    assert evaluation_order(assume_statistics(CHAIN, (1_000, 1_000, 1_000, 2)), CHAIN) == (3, 2, 1, 0)
    assert evaluation_order(assume_statistics(STAR, (1_000, 5, 1_000, 50)), STAR)[:3] == (1, 0, 3)


def test_rare_relations_come_first():
    star = (constraint(0, 1, "before"), constraint(0, 2, "equals"), constraint(0, 3, "during"))
    order = evaluation_order(assume_statistics(star, (100, 100, 100, 100)), star)
    assert set(order[:2]) == {0, 2}
    assert order[2:] == (3, 1)


EVEN = (100.0, 100.0, 100.0, 100.0)


def test_what_is_as_expected_changes_nothing():
    choice = OrderChoice(STAR, assume_statistics(STAR, EVEN))
    order = choice.order(EVEN)
    expected = [round(rows) for rows in expected_rows(choice.average, STAR, order)]
    for _ in range(20):
        choice.observe(order, EVEN, expected)
    assert choice.order(EVEN) == order


def test_a_drifting_selectivity_triggers_a_new_order():
    """The constraint that was expected to be rare turns out to hold of all pairs, and comes last."""
    star = (constraint(0, 1, "before"), constraint(0, 2, "equals"), constraint(0, 3, "during"))
    choice = OrderChoice(star, assume_statistics(star, EVEN))
    order = choice.order(EVEN)
    assert 2 in order[:2]
    for _ in range(3):
        order = choice.order(EVEN)
        rows = expected_rows(Statistics(EVEN, (0.445, 1.0, 0.03)), star, order)
        choice.observe(order, EVEN, [round(number) for number in rows])
    assert choice.order(EVEN)[-1] == 2


def test_drifting_buffers_trigger_a_new_order():
    choice = OrderChoice(CHAIN, assume_statistics(CHAIN, (1.0, 100.0, 100.0, 1_000.0)))
    assert choice.order((1.0, 100.0, 100.0, 1_000.0))[0] == 0
    orders = [choice.order((10_000.0, 100.0, 100.0, 1.0)) for _ in range(20)]
    assert orders[-1] == (3, 2, 1, 0)


def test_an_average_moves_by_the_weight_of_a_measurement():
    pair = (constraint(0, 1, "before"),)
    choice = OrderChoice(pair, Statistics((10.0, 10.0), (0.4,)))
    choice.observe((0, 1), (10.0, 10.0), (10, 20))
    assert choice.average.selectivities == pytest.approx(((1 - WEIGHT) * 0.4 + WEIGHT * 0.2,))
    choice.order((20.0, 10.0))
    assert choice.average.buffers == pytest.approx(((1 - WEIGHT) * 10 + WEIGHT * 20, 10.0))


def test_constraints_that_apply_together_share_a_measurement():
    both = (constraint(0, 1), constraint(0, 2), constraint(1, 2))
    choice = OrderChoice(both, Statistics((10.0, 10.0, 10.0), (0.5, 0.1, 0.4)))
    choice.observe((0, 1, 2), (10.0, 10.0, 10.0), (10, 50, 5))
    # 5 of 500 pairs, where 0.1 × 0.4 of them were expected: each is half of what it was taken for
    off = 1 - WEIGHT + WEIGHT * 0.5
    assert choice.average.selectivities == pytest.approx((0.5, 0.1 * off, 0.4 * off))


def test_what_was_never_tried_says_nothing():
    choice = OrderChoice(STAR, assume_statistics(STAR, EVEN))
    before = choice.average
    choice.observe((0, 1, 2, 3), EVEN, (0, 0, 0, 0))
    choice.observe((1, 2, 0, 3), EVEN, (5, 500, 0, 0))
    assert choice.average.selectivities[2] == before.selectivities[2]
    assert choice.average.selectivities[:2] != before.selectivities[:2]


@pytest.mark.parametrize("factor", [DRIFT * 0.95, 1 / (DRIFT * 0.95)])
def test_a_small_drift_is_none(factor):
    """Even where another order would be cheaper by a hair."""
    statistics = Statistics((100.0, 100.0, 100.0), (0.1, 0.1))
    choice = OrderChoice((constraint(0, 1), constraint(1, 2)), statistics)
    order = choice.order((100.0, 100.0, 100.0))
    for _ in range(50):
        choice.observe(order, (100.0, 100.0, 100.0), (100, round(1_000 * factor), round(10_000 * factor * factor)))
    assert choice.order((100.0, 100.0, 100.0)) == order


def test_an_order_that_another_name_leads_stays_connected():
    assert led_by((0, 1, 2, 3), 2, CHAIN) == (2, 1, 0, 3)
    assert led_by((1, 0, 2, 3), 0, STAR) == (0, 1, 2, 3)
    # what no constraint relates comes last
    assert led_by((0, 1, 2, 3), 3, TWO_PAIRS) == (3, 2, 0, 1)

"""The order of joins: what is estimated of a set of variables, and the trees that follow."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.plan.join_trees import (
    MOST_COMPARED,
    EstimatedCondition,
    Join,
    JoinStatistics,
    Single,
    cheapest_tree,
    estimate,
    extend_estimate,
    grow_tree,
    join_cost,
    joined_variables,
    members,
    tree_cost,
)

SEQUENCE, SET, SET_FIRST = (0, 1, 3), (0, 0, 0), (0, 0, 3)


def rows(statistics, variables):
    return 2 ** estimate(statistics, variables).rows


@pytest.mark.parametrize("before", [SEQUENCE, SET, SET_FIRST])
@pytest.mark.parametrize("share", [0.05, 0.4, 1.0])
def test_estimated_rows_are_those_of_random_events(before, share):
    counts = (40, 60, 50)
    random = np.random.default_rng(3)
    a, b, c = (random.random((20, count)) for count in counts)
    times = a[:, :, None, None], b[:, None, :, None], c[:, None, None, :]
    first, last = np.minimum.reduce(np.broadcast_arrays(*times)), np.maximum.reduce(np.broadcast_arrays(*times))
    true = last - first <= share
    for v, mask in enumerate(before):
        for u in range(3):
            true &= times[u] < times[v] if mask >> u & 1 else True
    assert rows(JoinStatistics(counts, before, share, ()), 0b111) == pytest.approx(true.sum() / 20, rel=0.1)


def test_conditions_count_once_their_variables_are_there():
    conditions = (EstimatedCondition(0b011, 0.25, group=0), EstimatedCondition(0b110, 0.5))
    plain, related = (JoinStatistics((8, 8, 8), SET, 1.0, each) for each in ((), conditions))
    assert rows(related, 0b101) == rows(plain, 0b101) == 64
    assert [rows(related, variables) for variables in (0b011, 0b110, 0b111)] == [16, 32, 64]
    assert estimate(related, 0b111).hashed == -2


def test_equalities_that_follow_from_others_count_once():
    chain, ring = (0b0011, 0b0110, 0b1100), (0b0011, 0b0110, 0b1100, 0b1001, 0b0101)

    def related(pairs, group):
        return JoinStatistics((8,) * 4, (0,) * 4, 1.0, tuple(EstimatedCondition(pair, 0.25, group) for pair in pairs))

    assert [rows(related(pairs, group=-1), 0b1111) for pairs in (chain, ring)] == [64, 4]
    assert [rows(related(pairs, group=0), 0b1111) for pairs in (chain, ring)] == [64, 64]
    # b and d are not known to be equal where c is not there
    assert [rows(related(pairs, group=0), 0b1011) for pairs in (chain, ring)] == [128, 32]


@given(st.permutations(range(4)))
def test_what_follows_does_not_depend_on_the_order_of_variables(order):
    pairs = [1 << order[u] | 1 << order[v] for u, v in ((0, 1), (1, 2), (2, 3), (0, 2))]
    assert rows(JoinStatistics((8,) * 4, (0,) * 4, 1.0, tuple(EstimatedCondition(pair, 0.25, 0) for pair in pairs)), 0b1111) == 64


def all_trees(variables):
    if variables & variables - 1 == 0:
        return [Single(variables.bit_length() - 1)]
    parts = [left for left in range(1, variables) if left & variables == left]
    return [Join(one, other) for left in parts for one in all_trees(left) for other in all_trees(variables ^ left)]


def mask(tree):
    return sum(1 << v for v in joined_variables(tree))


def cost(statistics, tree):
    if isinstance(tree, Single):
        return 0.0
    one, other, both = (estimate(statistics, mask(each)) for each in (tree.left, tree.right, tree))
    orders = isinstance(tree.right, Join) or both.hashed < one.hashed + other.hashed
    judged = statistics.count_judged(mask(tree.left), mask(tree.right))
    return cost(statistics, tree.left) + cost(statistics, tree.right) + join_cost(one, other, both, orders, judged)


@st.composite
def statistics(draw, most=4):
    size = draw(st.integers(1, most))
    before = tuple(draw(st.sampled_from([0, (1 << v) - 1])) for v in range(size))
    pairs = [0b11 << v for v in range(size - 1)]
    conditions = [EstimatedCondition(pair, draw(st.sampled_from([1e-4, 0.5])), draw(st.sampled_from([-1, pair]))) for pair in pairs]
    conditions = draw(st.lists(st.sampled_from(conditions), unique=True)) if conditions else []
    counts = draw(st.lists(st.integers(0, 10**6), min_size=size, max_size=size))
    judged = draw(st.lists(st.integers(1, (1 << size) - 1), max_size=2))
    return JoinStatistics(tuple(counts), before, draw(st.sampled_from([1e-5, 0.01, 1.0])), tuple(conditions), tuple(judged))


@given(statistics())
def test_the_cheapest_of_all_trees_is_found(given):
    found = cost(given, cheapest_tree(given))
    assert found == pytest.approx(min(cost(given, tree) for tree in all_trees((1 << len(given.counts)) - 1)))


@given(statistics())
def test_the_cost_of_a_tree_is_that_of_its_joins(given):
    tree = cheapest_tree(given)
    found, pairs, matches = tree_cost(given, tree)
    assert found == pytest.approx(cost(given, tree))
    assert matches == pytest.approx(2.0 ** estimate(given, mask(tree)).rows)
    assert pairs >= matches * (1 - 1e-9) or isinstance(tree, Single)


@given(statistics(40))
def test_many_variables_are_joined_one_after_the_other_from_the_rarest_on(given):
    tree = grow_tree(given)
    assert sorted(joined_variables(tree)) == list(range(len(given.counts)))
    assert given.counts[joined_variables(tree)[0]] == min(given.counts)
    assert math.isfinite(cost(given, tree))


def test_a_negation_is_judged_by_the_join_that_is_the_first_to_bind_all_that_it_needs():
    given = JoinStatistics((10,) * 3, (0,) * 3, 1.0, (), judged=(0b011, 0b001))
    assert [given.count_judged(0b001, 0b010), given.count_judged(0b011, 0b100), given.count_judged(0b101, 0b010)] == [1, 0, 1]


@pytest.mark.parametrize("needed", [0b011, 0b101, 0b110])
def test_many_rows_are_not_judged_where_few_may_be(needed):
    tree = cheapest_tree(JoinStatistics((100,) * 3, (0,) * 3, 1.0, (EstimatedCondition(0b111, 1e-4),), judged=(needed,)))
    assert needed not in (mask(tree.left), mask(tree.right))


def test_of_many_variables_no_trees_are_compared():
    size = 4 * MOST_COMPARED
    many = JoinStatistics(tuple(range(size, 0, -1)), (0,) * size, 0.5, ())
    assert tuple(joined_variables(cheapest_tree(many))) == tuple(range(size))[::-1]


def test_rare_events_are_joined_first():
    for rare in range(3):
        counts = tuple(10 if v == rare else 10_000 for v in range(3))
        tree = cheapest_tree(JoinStatistics(counts, SEQUENCE, 0.001, ()))
        inner = [each for each in (tree.left, tree.right) if isinstance(each, Join)]
        assert [rare in joined_variables(each) for each in inner] == [True]


def test_selective_pairs_are_joined_before_they_meet():
    keyed = tuple(EstimatedCondition(pair, 0.001, group=pair) for pair in (0b0011, 0b1100))
    tree = cheapest_tree(JoinStatistics((1_000,) * 4, (0, 1, 3, 7), 0.1, keyed))
    assert {mask(tree.left), mask(tree.right)} == {0b0011, 0b1100}


def test_statistics_of_one_magnitude_are_rounded_to_one():
    def rounded(count, share, selectivity):
        return JoinStatistics((count, 0), (0, 1), share, (EstimatedCondition(3, selectivity),)).round_down()

    assert rounded(1_024, 0.25, 0.5) == rounded(2_047, 0.3, 0.4)
    assert rounded(1_024, 0.25, 0.5) != rounded(2_048, 0.25, 0.5)
    assert rounded(1, 0.25, 0.5).counts == (1, 1)


@given(statistics(5))
def test_estimates_do_not_depend_on_the_order_in_which_variables_are_added(given):
    for variables in range(1, 1 << len(given.counts)):
        for v in members(variables):
            rest = variables ^ 1 << v
            assert extend_estimate(given, estimate(given, rest), rest, v).rows == pytest.approx(estimate(given, variables).rows, abs=1e-6)

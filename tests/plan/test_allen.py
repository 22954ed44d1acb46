"""Allen's algebra: thirteen relations of which exactly one holds, and networks of constraints that can, or cannot, hold."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_cep.analysis.bound_intervals import BoundConstraint
from gpu_cep.lang.ast_intervals import RELATIONS
from gpu_cep.plan.allen import ORDERS, clash

# Table 1, as printed: the endpoints' order, with = between equal ones.
TABLE_1 = {
    "before": "A.ts < A.te < B.ts < B.te",
    "starts": "A.ts = B.ts < A.te < B.te",
    "meets": "A.ts < A.te = B.ts < B.te",
    "overlaps": "A.ts < B.ts < A.te < B.te",
    "during": "B.ts < A.ts < A.te < B.te",
    "finishes": "A.ts < B.ts < A.te = B.te",
    "equals": "A.ts = B.ts < A.te = B.te",
}
# As many intervals as have their endpoints among so many moments, which is enough to order those of four.
INTERVALS = {moments: tuple(combinations(range(moments), 2)) for moments in (4, 6, 8)}


def holds(relation: str, a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Definition 9."""
    if relation not in TABLE_1:
        return holds(RELATIONS[relation], b, a)
    ends = {"A.ts": a[0], "A.te": a[1], "B.ts": b[0], "B.te": b[1]}
    words = TABLE_1[relation].split()
    pairs = zip(words[::2], words[1::2], words[2::2], strict=False)
    return all(ends[left] < ends[right] if sign == "<" else ends[left] == ends[right] for left, sign, right in pairs)


def constraint(left: int, right: int, relations: set[str]) -> BoundConstraint:
    return BoundConstraint(left, right, tuple(relations), f"{left} {relations} {right}")


def can_hold(constraints: list[BoundConstraint], names: int) -> bool:
    return any(
        all(any(holds(relation, chosen[each.left], chosen[each.right]) for relation in each.relations) for each in constraints)
        for chosen in product(INTERVALS[2 * names], repeat=names)
    )


@pytest.mark.parametrize("relation", RELATIONS)
def test_relations_are_those_of_table_1(relation):
    for a, b in product(INTERVALS[6], repeat=2):
        order = tuple((end > other) - (end < other) for end in a for other in b)
        assert (order == ORDERS[relation]) == holds(relation, a, b)


def test_exactly_one_relation_holds():
    for a, b in product(INTERVALS[6], repeat=2):
        assert sum(holds(relation, a, b) for relation in RELATIONS) == 1


@st.composite
def networks(draw):
    names = draw(st.integers(2, 3))
    pairs = draw(st.lists(st.sampled_from(list(combinations(range(names), 2))), min_size=1, unique=True))
    few = st.sets(st.sampled_from(list(RELATIONS)), min_size=1, max_size=3)
    return names, [constraint(left, right, draw(few)) for left, right in pairs]


@settings(max_examples=200, deadline=None)
@given(networks())
def test_networks_without_a_solution_clash(network):
    names, constraints = network
    clashing = clash(constraints)
    assert bool(clashing) != can_hold(constraints, names)
    for one in clashing:
        assert can_hold([each for each in clashing if each is not one], names)


# Path consistency alone does not tell that these cannot hold together, as every three of the situations can: the search does.
NETWORK = [
    constraint(0, 1, {"started-by", "contains", "equals"}),
    constraint(0, 2, {"started-by", "during", "finishes"}),
    constraint(0, 3, {"after", "contains"}),
    constraint(1, 2, {"met-by", "overlaps", "equals"}),
    constraint(1, 3, {"before", "after"}),
    constraint(2, 3, {"meets", "overlapped-by"}),
]


def test_every_three_may_hold_and_all_four_not():
    for left_out in range(4):
        assert clash([each for each in NETWORK if left_out not in (each.left, each.right)]) == ()
    assert clash(NETWORK) != ()


@pytest.mark.full
def test_all_four_cannot_hold():
    assert not can_hold(NETWORK, 4)


def test_only_what_clashes_is_named():
    cycle = [constraint(0, 1, {"before"}), constraint(1, 2, {"before", "meets"}), constraint(0, 2, {"after"})]
    others = [constraint(2, 3, {"overlaps"}), constraint(3, 4, {"during", "equals"})]
    assert clash([others[0], *cycle, others[1]]) == tuple(cycle)
    assert clash([*cycle[:2], *others]) == ()
    assert clash([]) == ()


def test_ten_situations():
    chain = [constraint(k, k + 1, {"overlaps", "meets", "before"}) for k in range(9)]
    assert clash(chain) == ()
    assert clash([*chain, constraint(0, 9, {"after", "contains"})]) != ()

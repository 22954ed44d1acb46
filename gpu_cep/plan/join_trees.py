"""Choose the order in which the events of single variables are joined, as a tree (ZStream's tree plans).

Precondition: skip_till_any_match of single variables, and statistics of the events.
Result: the cheapest of all trees, by dynamic programming over the sets of variables. Of many
variables, the cheapest next one is joined each time instead.

The papers at hand do not print ZStream's cost model; this one is plain. A set of variables has as
many rows as combinations of their events, times three factors. These are the share in one window,
the share in order, and the selectivities of the conditions on them alone.
Estimates are binary logarithms, since their products may leave the range of floats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from gpu_cep.plan.costs import JUDGED
from gpu_cep.plan.event_plan import PlannedCondition

# With more variables, trees are not compared with each other: for n of them there are about 3^n joins.
MOST_COMPARED = 9

# The cost of a join in nanoseconds, measured on one core: per row of the left side, finding the range of its partners;
# per partner, testing it; per row of the result, writing it; and per row of the right side, sorting it.
LOOKUP, LOOK, WRITE, ORDER = 90.0, 8.0, 9.0, 20.0

# Estimates above this power of two count as this.
_MOST = 500.0


@dataclass(frozen=True, slots=True)
class Single:
    """The events of one variable."""

    variable: int


@dataclass(frozen=True, slots=True)
class Join:
    """Each row of `left`, combined with all its partners among the rows of `right`."""

    left: Tree
    right: Tree


Tree = Single | Join


def joined_variables(tree: Tree) -> list[int]:
    """Return the variables of a tree from left to right."""
    found, pending = [], [tree]
    while pending:
        match pending.pop():
            case Single(variable=v):
                found.append(v)
            case Join(left=left, right=right):
                pending += (right, left)
    return found


def tree_text(tree: Tree, names: Sequence[str]) -> str:
    """Return a tree as text, with parentheses around the two sides of each join."""
    match tree:
        case Single(variable=v):
            return names[v]
        case Join(left=left, right=right):
            return f"({tree_text(left, names)} {tree_text(right, names)})"


def demands_equality(condition: PlannedCondition) -> bool:
    """Return whether a condition compares columns of two events for equality, so that a hash finds partners."""
    operations = [instruction[0] for instruction in condition.program.code]
    by_hash = (["load_int", "load_int", "eq_int"], ["load_float", "load_float", "eq_float"])
    return len(condition.variables) == 2 and operations in by_hash


@dataclass(frozen=True, slots=True)
class EstimatedCondition:
    """A condition, as the cost model sees it.

    `variables`: the mask of its variables.
    `selectivity`: the share of combinations that satisfy it.
    `group`: equalities of one group concern the same column, so that some may follow from others.
    It is −1 for conditions that are no equality, and so are not tested by hashing.
    """

    variables: int
    selectivity: float
    group: int = -1


@dataclass(frozen=True, slots=True)
class JoinStatistics:
    """The statistics that a tree is chosen by.

    `counts`: the number of events of each variable.
    `before`: for each variable the mask of those before it.
    `share`: the share of events in a window.
    `conditions`: the conditions.
    `judged`: for each negation the mask of the variables that must be bound before it is judged.
    """

    counts: tuple[int, ...]
    before: tuple[int, ...]
    share: float
    conditions: tuple[EstimatedCondition, ...]
    judged: tuple[int, ...] = ()

    def round_down(self) -> JoinStatistics:
        """Return the statistics rounded to powers of two, so that trees can be reused within an order of magnitude."""
        return JoinStatistics(
            tuple(1 << max(count, 1).bit_length() - 1 for count in self.counts),
            self.before,
            _power(self.share),
            tuple(EstimatedCondition(each.variables, _power(each.selectivity), each.group) for each in self.conditions),
            self.judged,
        )

    def count_judged(self, left: int, right: int) -> int:
        """Return the number of negations that can be judged after a join, but on neither of its sides.

        `left` and `right` are the masks of the variables of the sides.
        """
        return sum(not mask & ~(left | right) and bool(mask & ~left) and bool(mask & ~right) for mask in self.judged)


def _power(share: float) -> float:
    return math.pow(2.0, round(math.log2(share)))


@lru_cache(maxsize=1 << 10)
def cheapest_tree(statistics: JoinStatistics) -> Tree:
    """Return the cheapest tree by `statistics`; of many variables, a tree grown step by step."""
    return _compare_trees(statistics) if len(statistics.counts) <= MOST_COMPARED else grow_tree(statistics)


@dataclass(frozen=True, slots=True)
class RowEstimate:
    """Estimates for a set of variables, as binary logarithms.

    `rows`: the number of rows.
    `fitting`: the share of combinations in one window and in order.
    `hashed`: the share of combinations that satisfy the equalities, found by a hash.
    """

    rows: float = 0.0
    fitting: float = 0.0
    hashed: float = 0.0


def estimate(statistics: JoinStatistics, variables: int) -> RowEstimate:
    """Return the estimate for a set of variables, given as a mask."""
    found, seen = RowEstimate(), 0
    for v in members(variables):
        found = extend_estimate(statistics, found, seen, v)
        seen |= 1 << v
    return found


def extend_estimate(statistics: JoinStatistics, found: RowEstimate, variables: int, v: int) -> RowEstimate:
    """Return the estimate for `variables` and v; `found` is the one for `variables`."""
    joined = variables | 1 << v
    decided = [each for each in statistics.conditions if each.variables >> v & 1 and not each.variables & ~joined]
    hashed = sum(math.log2(each.selectivity) for each in _independent(statistics, decided, variables, v))
    tested = sum(math.log2(each.selectivity) for each in decided if each.group < 0)
    fitting = _in_window(joined, statistics.share) - _in_window(variables, statistics.share) - _out_of_order(statistics, variables, v)
    return RowEstimate(
        rows=found.rows + math.log2(max(statistics.counts[v], 1)) + fitting + hashed + tested,
        fitting=found.fitting + fitting,
        hashed=found.hashed + hashed,
    )


def _independent(statistics: JoinStatistics, decided: list[EstimatedCondition], variables: int, v: int) -> Iterator[EstimatedCondition]:
    """Yield the equalities that relate v to `variables` and do not follow from one another."""
    implied: dict[int, int] = {}
    for each in decided:
        other = each.variables & ~(1 << v)
        if each.group >= 0 and not other & implied.get(each.group, 0):
            implied[each.group] = implied.get(each.group, 0) | _equal(statistics, each.group, other, variables)
            yield each


def _equal(statistics: JoinStatistics, group: int, found: int, variables: int) -> int:
    """Return the mask of the variables that equalities of one group connect to those of `found`.

    Only equalities among `variables` count.
    """
    edges = [each.variables for each in statistics.conditions if each.group == group and not each.variables & ~variables]
    grown = found
    for _ in edges:
        for edge in edges:
            grown |= edge if edge & grown else 0
    return grown


def _in_window(variables: int, share: float) -> float:
    """Return the share of combinations that fit in a window (a binary logarithm), if events lie at random."""
    size = variables.bit_count()
    return (size - 1) * math.log2(share) + math.log2(size - (size - 1) * share) if size else 0.0


def _out_of_order(statistics: JoinStatistics, variables: int, v: int) -> float:
    """Return by how much v lowers the share of combinations in order, as a binary logarithm (positive).

    That share is 1 over the product of all 1 + p, where p variables precede one.
    This is Knuth's hook length formula, exact if the order is a forest.
    """
    taken = math.log2(1 + (statistics.before[v] & variables).bit_count())
    for u in members(variables):
        if statistics.before[u] >> v & 1:
            preceding = (statistics.before[u] & variables).bit_count()
            taken += math.log2((2 + preceding) / (1 + preceding))
    return taken


def members(variables: int) -> Iterator[int]:
    """Yield the variables of a mask."""
    while variables:
        yield (variables & -variables).bit_length() - 1
        variables &= variables - 1


def join_cost(left: RowEstimate, right: RowEstimate, joined: RowEstimate, orders: bool, judged: int) -> float:
    """Return the cost of a join.

    If `orders`, the right side is sorted first. Each row of the result judges `judged` negations,
    which are assumed to rule out no row.
    """
    ordering = ORDER * _number(right.rows) if orders else 0.0
    writing = (WRITE + JUDGED * judged) * _number(joined.rows)
    return LOOKUP * _number(left.rows) + LOOK * _pairs(left, right, joined) + writing + ordering


def _pairs(left: RowEstimate, right: RowEstimate, joined: RowEstimate) -> float:
    """Return the number of pairs of rows that a join tests."""
    fitting, hashed = joined.fitting - left.fitting - right.fitting, joined.hashed - left.hashed - right.hashed
    return _number(left.rows + right.rows + fitting + hashed)


class TreeCost(NamedTuple):
    """The cost of all joins of a tree, the pairs of rows that they test, and the rows that result."""

    cost: float
    pairs: float
    matches: float


def tree_cost(statistics: JoinStatistics, tree: Tree) -> TreeCost:
    """Return what is expected of a tree of joins."""
    cost, pairs, pending = 0.0, 0.0, [tree]
    while pending:
        match pending.pop():
            case Join(left=left, right=right) as each:
                one, other, both = (estimate(statistics, _mask(side)) for side in (left, right, each))
                judged = statistics.count_judged(_mask(left), _mask(right))
                cost += join_cost(one, other, both, _orders(one, other, both, len(joined_variables(right))), judged)
                pairs += _pairs(one, other, both)
                pending += (left, right)
    return TreeCost(cost, pairs, _number(estimate(statistics, _mask(tree)).rows))


def _mask(tree: Tree) -> int:
    """Return the mask of the variables of a tree."""
    return sum(1 << v for v in joined_variables(tree))


def _number(logarithm: float) -> float:
    return math.pow(2.0, min(logarithm, _MOST))


def _orders(left: RowEstimate, right: RowEstimate, joined: RowEstimate, size: int) -> bool:
    """Return whether the right side of a join, of `size` variables, must be sorted first.

    Events of one variable are in order, but rows of several are not. For a hash even events are sorted.
    """
    return size > 1 or joined.hashed < left.hashed + right.hashed


def _compare_trees(statistics: JoinStatistics) -> Tree:
    """Return the cheapest of all trees."""
    full = (1 << len(statistics.counts)) - 1
    estimates, costs = [RowEstimate()], [0.0]
    trees: list[Tree] = [Single(0)]  # stands for the empty set; never used
    for variables in range(1, full + 1):
        highest = variables.bit_length() - 1
        rest = variables ^ 1 << highest
        estimates.append(extend_estimate(statistics, estimates[rest], rest, highest))
        cost, tree = (math.inf, trees[0]) if rest else (0.0, Single(highest))
        left = variables & variables - 1
        while left:
            right = variables ^ left
            one, other, both = estimates[left], estimates[right], estimates[variables]
            judged = statistics.count_judged(left, right)
            total = costs[left] + costs[right] + join_cost(one, other, both, _orders(one, other, both, right.bit_count()), judged)
            if total < cost:
                cost, tree = total, Join(trees[left], trees[right])
            left = left - 1 & variables
        costs.append(cost)
        trees.append(tree)
    return trees[full]


def grow_tree(statistics: JoinStatistics) -> Tree:
    """Return a tree that starts with the rarest variable and each time joins the cheapest next one."""
    remaining = set(range(len(statistics.counts)))
    first = min(remaining, key=lambda v: statistics.counts[v])
    events = {v: estimate(statistics, 1 << v) for v in remaining}
    tree: Tree = Single(first)
    found, seen = events[first], 1 << first
    remaining.discard(first)
    while remaining:
        grown = {v: extend_estimate(statistics, found, seen, v) for v in remaining}
        costs = {
            v: join_cost(found, events[v], each, _orders(found, events[v], each, 1), statistics.count_judged(seen, 1 << v))
            for v, each in grown.items()
        }
        v = min(remaining, key=lambda u: (costs[u], u))
        tree, found, seen = Join(tree, Single(v)), grown[v], seen | 1 << v
        remaining.discard(v)
    return tree

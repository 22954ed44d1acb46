"""Compute in Allen's interval algebra, and decide whether constraints can hold together.

A relation is an order of the endpoints of two intervals. It has the name of the paper's Table 1
(TPStream), whose ``finishes`` is the reverse of Allen's. Sets of relations are bit masks over
:data:`NAMES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations, permutations

from gpu_cep.analysis.bound_intervals import BoundConstraint
from gpu_cep.lang.ast_intervals import RELATIONS

# The signs (−1, 0, 1) of A.ts − B.ts, A.ts − B.te, A.te − B.ts and A.te − B.te.
Order = tuple[int, int, int, int]

_DEFINED: dict[str, Order] = {
    "before": (-1, -1, -1, -1),
    "meets": (-1, -1, 0, -1),
    "overlaps": (-1, -1, 1, -1),
    "starts": (0, -1, 1, -1),
    "during": (1, -1, 1, -1),
    "finishes": (-1, -1, 1, 0),
    "equals": (0, -1, 1, 0),
}


def _reverse(order: Order) -> Order:
    """Return how the endpoints of B compare with those of A, given how A's compare with B's."""
    starts, start_to_end, end_to_start, ends = order
    return -starts, -end_to_start, -start_to_end, -ends


ORDERS = {name: _DEFINED[name] if name in _DEFINED else _reverse(_DEFINED[RELATIONS[name]]) for name in RELATIONS}
NAMES = tuple(RELATIONS)
ALL = (1 << len(NAMES)) - 1

# ``network[i][j]`` is the mask of the relations that interval i may have to interval j.
Network = list[list[int]]


def mask_of(relations: Iterable[str]) -> int:
    """Return a set of relations as a bit mask over :data:`NAMES`."""
    return sum(1 << NAMES.index(name) for name in set(relations))


def clash(constraints: Sequence[BoundConstraint]) -> tuple[BoundConstraint, ...]:
    """Return constraints that cannot hold together; empty if all can.

    The set is minimal: without any one of them the others can hold.
    """
    if _is_satisfiable(constraints):
        return ()
    left = list(constraints)
    for constraint in constraints:
        fewer = [each for each in left if each is not constraint]
        if not _is_satisfiable(fewer):
            left = fewer
    return tuple(left)


def _is_satisfiable(constraints: Sequence[BoundConstraint]) -> bool:
    """Return whether some intervals satisfy all constraints."""
    names = sorted({number for constraint in constraints for number in (constraint.left, constraint.right)})
    places = {number: place for place, number in enumerate(names)}
    network = [[ALL] * len(names) for _ in names]
    for constraint in constraints:
        _narrow(network, places[constraint.left], places[constraint.right], mask_of(constraint.relations))
    return _has_solution(network)


def _narrow(network: Network, i: int, j: int, mask: int) -> None:
    network[i][j] &= mask
    network[j][i] &= _inverse(mask)


def _has_solution(network: Network) -> bool:
    """Return whether a network of constraints has a solution.

    If path consistency leaves several relations between two intervals, each is tried in turn.
    """
    if not _is_path_consistent(network):
        return False
    undecided = [(i, j) for i, j in combinations(range(len(network)), 2) if network[i][j].bit_count() > 1]
    if not undecided:
        return True
    i, j = min(undecided, key=lambda edge: network[edge[0]][edge[1]].bit_count())
    return any(_has_solution(_decide(network, i, j, bit)) for bit in _bits(network[i][j]))


def _decide(network: Network, i: int, j: int, bit: int) -> Network:
    decided = [row.copy() for row in network]
    _narrow(decided, i, j, bit)
    return decided


def _is_path_consistent(network: Network) -> bool:
    """Narrow each constraint to what every third interval allows, until nothing changes.

    Return False if some pair is left without any relation.
    """
    changed = True
    while changed:
        changed = False
        for i, j, k in permutations(range(len(network)), 3):
            narrowed = network[i][k] & _compose(network[i][j], network[j][k])
            if narrowed != network[i][k]:
                _narrow(network, i, k, narrowed)
                changed = True
    return all(network[i][j] for i, j in combinations(range(len(network)), 2))


def _bits(mask: int) -> Iterator[int]:
    return (1 << place for place in range(len(NAMES)) if mask >> place & 1)


@cache
def _inverse(mask: int) -> int:
    return mask_of(RELATIONS[name] for place, name in enumerate(NAMES) if mask >> place & 1)


@cache
def _compose(first: int, second: int) -> int:
    """Return the relations that A and C can have if A has one of `first` to B, and B one of `second` to C."""
    found = 0
    for one in _bits(first):
        for other in _bits(second):
            found |= _compositions()[one, other]
    return found


@cache
def _compositions() -> dict[tuple[int, int], int]:
    """Return for every two relations the mask of their composition.

    All triples of intervals with endpoints among six points are tried. Three intervals have six
    endpoints, so these are all orders there are.
    """
    intervals = tuple(combinations(range(6), 2))
    relation = {(a, b): _relation(a, b) for a in intervals for b in intervals}
    found: dict[tuple[int, int], int] = {}
    for a in intervals:
        for b in intervals:
            for c in intervals:
                pair = relation[a, b], relation[b, c]
                found[pair] = found.get(pair, 0) | relation[a, c]
    return found


def _relation(a: tuple[int, int], b: tuple[int, int]) -> int:
    """Return the relation of two intervals as a mask of one bit."""
    order = tuple((end > other) - (end < other) for end in a for other in b)
    return next(1 << place for place, name in enumerate(NAMES) if ORDERS[name] == order)

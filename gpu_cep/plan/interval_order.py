"""The order in which situations are joined, by the cost model of ``002_…`` section 5.4 (equations 2 to 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from gpu_cep.analysis.bound_intervals import BoundConstraint
from gpu_cep.lang.ast import RELATIONS

# Table 3: the share of all pairs that a relation holds of, where nothing is known; mirrored relations are alike.
_TABLE_3 = {
    "before": 0.445, "during": 0.03, "overlaps": 0.01, "starts": 0.0049, "finishes": 0.0049, "meets": 0.0049, "equals": 0.0006,
}  # fmt: skip
SELECTIVITIES = {name: _TABLE_3.get(name, _TABLE_3.get(mirrored, 0.0)) for name, mirrored in RELATIONS.items()}

# The weight of a new measurement in a moving average, and by what factor an average must differ from what an order was chosen by
# for a new choice.
WEIGHT, DRIFT = 0.3, 2.0
# A search among candidates, in tests of a pair, for each bit of their number; the least share that is told from none.
_SEARCH, _LEAST = 1.0, 1e-9


@dataclass(frozen=True, slots=True)
class Statistics:
    """What an order is chosen by: situations of each name, the share of a stream that a window holds, selectivity of each constraint."""

    sizes: tuple[float, ...]
    reach: float
    selectivities: tuple[float, ...]


def selectivity(constraint: BoundConstraint) -> float:
    """The expected selectivity of a constraint: the sum of its alternatives' (equation 4)."""
    return min(1.0, sum(SELECTIVITIES[relation] for relation in constraint.relations))


def assumed(constraints: Sequence[BoundConstraint], sizes: Sequence[float], reach: float = 1.0) -> Statistics:
    """Statistics before anything is measured."""
    return Statistics(tuple(sizes), reach, tuple(map(selectivity, constraints)))


def evaluation_order(statistics: Statistics, constraints: Sequence[BoundConstraint], first: int | None = None) -> tuple[int, ...]:
    """The cheapest order of the names, of those that begin with `first` if it is given.

    A name that no constraint relates to those before it is joined only where
    no other is left that one relates.
    """
    names = len(statistics.sizes)
    rows = [_rows(statistics, constraints, members) for members in range(1 << names)]
    best: dict[int, tuple[float, tuple[int, ...]]] = {1 << v: (rows[1 << v], (v,)) for v in range(names) if first in (None, v)}
    for members in range(1, 1 << names):
        if members not in best:
            continue
        cost, order = best[members]
        for v in _next(members, names, constraints):
            joined = members | 1 << v
            total = cost + rows[members] * _SEARCH * math.log2(2 + statistics.sizes[v]) + rows[joined]
            if joined not in best or total < best[joined][0]:
                best[joined] = total, (*order, v)
    return best[(1 << names) - 1][1]


def expected_rows(statistics: Statistics, constraints: Sequence[BoundConstraint], order: Sequence[int]) -> list[float]:
    """The number of partial configurations after each step (equation 3)."""
    return [_rows(statistics, constraints, sum(1 << v for v in order[: step + 1])) for step in range(len(order))]


def _rows(statistics: Statistics, constraints: Sequence[BoundConstraint], members: int) -> float:
    """How many configurations of some names there are: those of their situations that lie in one window, and satisfy all constraints."""
    names = [v for v in range(len(statistics.sizes)) if members >> v & 1]
    combined = math.prod(max(statistics.sizes[v] * statistics.reach, _LEAST) for v in names) / statistics.reach
    inside = (
        share for share, own in zip(statistics.selectivities, constraints, strict=True) if members >> own.left & members >> own.right & 1
    )
    return combined * math.prod(inside)


def _next(members: int, names: int, constraints: Sequence[BoundConstraint]) -> list[int]:
    """The names that may follow."""
    left = [v for v in range(names) if not members >> v & 1]
    related = [v for v in left if any(_relates(constraint, v, members) for constraint in constraints)]
    return related or left


def _relates(constraint: BoundConstraint, name: int, members: int) -> bool:
    other = {constraint.left: constraint.right, constraint.right: constraint.left}.get(name)
    return other is not None and bool(members >> other & 1)


@dataclass
class OrderChoice:
    """The order that the chunks of a run are joined in; chosen anew when what they measure drifts away from what it was chosen by.

    The first name stays: chunks are parts of its situations.
    """

    constraints: tuple[BoundConstraint, ...]
    average: Statistics
    order: tuple[int, ...] = ()
    changes: int = 0
    _chosen_by: Statistics = field(init=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        self.order = self.order or evaluation_order(self.average, self.constraints)
        self._chosen_by = self.average

    def observe(self, order: Sequence[int], rows: Sequence[int]) -> None:
        """A chunk had so many partial configurations after each step of an order."""
        with self._lock:
            for step in range(1, len(order)):
                self._measure(order[:step], order[step], rows[step - 1], rows[step])
            if self._has_drifted():
                changed = evaluation_order(self.average, self.constraints, self.order[0])
                self.changes += changed != self.order
                self.order, self._chosen_by = changed, self.average

    def _measure(self, bound: Sequence[int], name: int, before: int, after: int) -> None:
        """What a step says of the selectivity of its constraints, which share it alike."""
        members = sum(1 << v for v in bound)
        applicable = [k for k, constraint in enumerate(self.constraints) if _relates(constraint, name, members)]
        pairs = before * self.average.sizes[name] * self.average.reach
        if not applicable or not pairs:
            return
        expected = math.prod(self.average.selectivities[k] for k in applicable)
        off = (max(after / pairs, _LEAST) / max(expected, _LEAST)) ** (1 / len(applicable))
        shares = list(self.average.selectivities)
        for k in applicable:
            shares[k] = min(1.0, (1 - WEIGHT) * shares[k] + WEIGHT * shares[k] * off)
        self.average = replace(self.average, selectivities=tuple(shares))

    def _has_drifted(self) -> bool:
        pairs = zip(self.average.selectivities, self._chosen_by.selectivities, strict=True)
        return any(not 1 / DRIFT <= max(new, _LEAST) / max(old, _LEAST) <= DRIFT for new, old in pairs)

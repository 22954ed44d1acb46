"""Choose the order in which situations are joined.

The cost model is that of TPStream, section 5.4 (equations 2 to 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from gpu_cep.analysis.bound_intervals import BoundConstraint
from gpu_cep.lang.ast_intervals import RELATIONS
from gpu_cep.records import record

# Table 3: the share of all pairs that satisfy a relation, assumed where nothing is known; the same for mirrored relations.
_TABLE_3 = {
    "before": 0.445, "during": 0.03, "overlaps": 0.01, "starts": 0.0049, "finishes": 0.0049, "meets": 0.0049, "equals": 0.0006,
}  # fmt: skip
SELECTIVITIES = {name: _TABLE_3.get(name, _TABLE_3.get(mirrored, 0.0)) for name, mirrored in RELATIONS.items()}

# The weight of a new measurement in a moving average.
# An order is chosen anew when an average has drifted by this factor from the value that the order was chosen by.
WEIGHT, DRIFT = 0.3, 1.5
# The cost of a binary search per bit of the number of candidates, in tests of a pair; and what is taken in place of 0.
_SEARCH, _LEAST = 1.0, 1e-9


@record()
class Statistics:
    """What an order of names is chosen by.

    `buffers`: the number of situations of each name that one situation can be in a match with.
    `selectivities`: the share of pairs that satisfy each constraint.
    """

    buffers: tuple[float, ...]
    selectivities: tuple[float, ...]


def selectivity(constraint: BoundConstraint) -> float:
    """Return the expected selectivity of a constraint: the sum over its alternatives (equation 4)."""
    return min(1.0, sum(SELECTIVITIES[relation] for relation in constraint.relations))


def assume_statistics(constraints: Sequence[BoundConstraint], buffers: Sequence[float]) -> Statistics:
    """Return statistics with the selectivities of table 3, where nothing is measured."""
    return Statistics(tuple(buffers), tuple(map(selectivity, constraints)))


def evaluation_order(statistics: Statistics, constraints: Sequence[BoundConstraint]) -> tuple[int, ...]:
    """Return the cheapest order of the names (equation 2).

    Names that constraints relate to earlier ones come before names that none relates.
    """
    names = len(statistics.buffers)
    rows = [_rows(statistics, constraints, members) for members in range(1 << names)]
    searches = [_SEARCH * math.log2(2 + buffer) for buffer in statistics.buffers]
    related = [_related_names(constraints, v) for v in range(names)]
    best: dict[int, tuple[float, tuple[int, ...]]] = {1 << v: (rows[1 << v], (v,)) for v in range(names)}
    for members in range(1, 1 << names):
        if members not in best:
            continue
        cost, order = best[members]
        left = [v for v in range(names) if not members >> v & 1]
        for v in [v for v in left if related[v] & members] or left:
            joined = members | 1 << v
            total = cost + rows[members] * searches[v] + rows[joined]
            if joined not in best or total < best[joined][0]:
                best[joined] = total, (*order, v)
    return best[(1 << names) - 1][1]


def led_by(order: Sequence[int], name: int, constraints: Sequence[BoundConstraint]) -> tuple[int, ...]:
    """Return an order that begins with `name`; the others follow as in `order`, those first that constraints relate to earlier ones."""
    led, left = [name], [v for v in order if v != name]
    while left:
        members = sum(1 << v for v in led)
        following = next((v for v in left if _related_names(constraints, v) & members), left[0])
        left.remove(following)
        led.append(following)
    return tuple(led)


def _rows(statistics: Statistics, constraints: Sequence[BoundConstraint], members: int) -> float:
    """Return the expected number of configurations of some names that satisfy all constraints between them."""
    rows = math.prod(max(buffer, _LEAST) for v, buffer in enumerate(statistics.buffers) if members >> v & 1)
    inside = (
        share for share, own in zip(statistics.selectivities, constraints, strict=True) if members >> own.left & members >> own.right & 1
    )
    return rows * math.prod(inside)


def _related_names(constraints: Sequence[BoundConstraint], name: int) -> int:
    """Return the mask of the names that constraints relate to `name`."""
    pairs = ((each.left, each.right) for each in constraints if name in (each.left, each.right))
    return sum({1 << (left if right == name else right) for left, right in pairs})


@dataclass
class OrderChoice:
    """The current order of joins, which follows what chunks measure (section 5.4.1).

    `constraints`: those of the query.
    `average`: moving averages of the statistics.

    The order is chosen anew when an average drifts from the value that the order was chosen by.
    """

    constraints: tuple[BoundConstraint, ...]
    average: Statistics
    _order: tuple[int, ...] = field(init=False)
    _chosen_by: Statistics = field(init=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        self._choose()

    def order(self, buffers: Sequence[float]) -> tuple[int, ...]:
        """Return the order of names for a chunk with such buffers."""
        with self._lock:
            averages = tuple(_moving_average(old, new) for old, new in zip(self.average.buffers, buffers, strict=True))
            self.average = replace(self.average, buffers=averages)
            self._follow_drift()
            return self._order

    def observe(self, order: Sequence[int], buffers: Sequence[float], rows: Sequence[int]) -> None:
        """Update the averages by a joined chunk.

        `rows` are the numbers of partial configurations after each join of the order.
        """
        with self._lock:
            for step in range(1, len(order)):
                self._measure(order[:step], order[step], rows[step - 1] * buffers[order[step]], rows[step])
            self._follow_drift()

    def _measure(self, bound: Sequence[int], name: int, pairs: float, found: int) -> None:
        """Update the selectivities by one join, which tested `pairs` and `found` so many of them.

        Its constraints share the difference to what was expected equally.
        """
        members = sum(1 << v for v in bound)
        own = {k for k, each in enumerate(self.constraints) if name in (each.left, each.right) and _related_names([each], name) & members}
        if not own or not pairs:
            return
        expected = math.prod(self.average.selectivities[k] for k in own)
        off = (max(found / pairs, _LEAST) / max(expected, _LEAST)) ** (1 / len(own))
        shares = enumerate(self.average.selectivities)
        moved = tuple(min(1.0, _moving_average(share, share * off)) if k in own else share for k, share in shares)
        self.average = replace(self.average, selectivities=moved)

    def _follow_drift(self) -> None:
        before, after = (each.buffers + each.selectivities for each in (self._chosen_by, self.average))
        if not all(1 / DRIFT <= max(new, _LEAST) / max(old, _LEAST) <= DRIFT for old, new in zip(before, after, strict=True)):
            self._choose()

    def _choose(self) -> None:
        self._order, self._chosen_by = evaluation_order(self.average, self.constraints), self.average


def _moving_average(average: float, measured: float) -> float:
    """Return the exponential moving average after one more measurement."""
    return (1 - WEIGHT) * average + WEIGHT * measured

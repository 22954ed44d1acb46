"""Turn an order of names into joins.

A join has the constraints that its name adds, as masks of relations and as zones of candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from gpu_cep.analysis.bound_intervals import BoundConstraint
from gpu_cep.lang.ast_intervals import RELATIONS
from gpu_cep.plan.interval_algorithms import interval_algorithm
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep_kernels.intervals import joins as kernels
from gpu_cep_kernels.intervals.joins import ZONE_COUNT, ZONES, Level

# Relations that are decided when the later situation starts, and groups that are if a constraint allows the whole group.
_APART = frozenset({"before", "meets", "met-by", "after"})
_PREFIX_GROUPS = (
    frozenset({"starts", "equals", "started-by"}),
    frozenset({"overlaps", "finishes", "contains"}),
    frozenset({"overlapped-by", "finished-by", "during"}),
)
# Relations (to a candidate) that all candidates of their zone satisfy. As none of these is both first to start and last to end,
# the window needs no test either.
_WHOLE_ZONES = frozenset({"before", "after", "contains"})


def _kernel_mask(relations: frozenset[str]) -> int:
    """Return a set of relations as the bit mask that kernels read, whose order is not that of :mod:`gpu_cep.plan.allen`."""
    return sum(1 << kernels.RELATIONS.index(name) for name in relations)


def decided_early(relations: frozenset[str]) -> frozenset[str]:
    """Return the relations that are decided when the later situation starts (Table 2, with prefix groups)."""
    grouped = (group for group in _PREFIX_GROUPS if group <= relations)
    return (relations & _APART).union(*grouped)


def levels(order: Sequence[int], constraints: Sequence[BoundConstraint], algorithm: str, *, windowed: bool) -> list[Level]:
    """Return the joins of an order of names: one for each name from the second on; their arrays are shared."""
    return [*_levels(tuple(order), tuple(constraints), algorithm, windowed)]


@lru_cache(maxsize=256)
def _levels(order: tuple[int, ...], constraints: tuple[BoundConstraint, ...], algorithm: str, windowed: bool) -> tuple[Level, ...]:
    """Return the joins as :func:`levels` does; they are asked for once for each chunk of situations."""
    row = interval_algorithm(algorithm)
    return tuple(
        _level(order[:place], order[place], constraints, zones=row.by_zones, windowed=windowed and row.by_window)
        for place in range(1, len(order))
    )


def counts_by_zones(order: Sequence[int], plan: IntervalPlan) -> bool:
    """Return whether zones and window decide the last join, so that matches are counted without a test.

    With early detection ``contains`` needs a test: the inner situation is known before it is decided.
    """
    algorithm, name = interval_algorithm(plan.algorithm), order[-1]
    allowed = [relations for _, relations in _related(plan.query.constraints, name)]
    whole = _WHOLE_ZONES - {"contains"} if plan.query.early else _WHOLE_ZONES
    return bool(allowed) and frozenset().union(*allowed) <= whole and algorithm.by_zones and algorithm.by_window


def _related(constraints: Sequence[BoundConstraint], name: int) -> list[tuple[int, frozenset[str]]]:
    """Return, for each constraint on `name`, the other name and the relations that the other has to `name`."""
    return [_seen_from_bound(constraint, name) for constraint in constraints if name in (constraint.left, constraint.right)]


def _level(bound: Sequence[int], name: int, constraints: Sequence[BoundConstraint], *, zones: bool, windowed: bool) -> Level:
    """Return the join that adds `name` to the `bound` names."""
    applicable = [(bound.index(other), relations) for other, relations in _related(constraints, name) if other in bound]
    runs = [_runs(relations) for _, relations in applicable] if zones else []
    divided = max(range(len(runs)), key=lambda k: len(runs[k]), default=-1)
    if divided >= 0 and len(runs[divided]) == 1:
        divided = -1
    return Level(
        name=name,
        place=np.array([place for place, _ in applicable], np.int64),
        allowed=np.array([_kernel_mask(relations) for _, relations in applicable], np.int64),
        early=np.array([_kernel_mask(decided_early(relations)) for _, relations in applicable], np.int64),
        first_zone=np.array([own[0][0] for own in runs], np.int64),
        last_zone=np.array([own[-1][1] for own in runs], np.int64),
        divided=divided,
        runs=np.array(runs[divided] if divided >= 0 else [(0, ZONE_COUNT - 1)], np.int64),
        windowed=windowed,
    )


def _seen_from_bound(constraint: BoundConstraint, name: int) -> tuple[int, frozenset[str]]:
    """Return the other name of a constraint, and the relations that the other has to `name`."""
    if constraint.right == name:
        return constraint.left, frozenset(constraint.relations)
    return constraint.right, frozenset(RELATIONS[relation] for relation in constraint.relations)


def _runs(relations: frozenset[str]) -> list[tuple[int, int]]:
    """Return the runs of neighbouring zones that the relations allow, each as its first and last zone."""
    zones = sorted({ZONES[kernels.RELATIONS.index(relation)] for relation in relations})
    borders = [place for place, (zone, following) in enumerate(pairwise(zones), 1) if following > zone + 1]
    parts = [zones[begin:end] for begin, end in pairwise([0, *borders, len(zones)])]
    return [(part[0], part[-1]) for part in parts]

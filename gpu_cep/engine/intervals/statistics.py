"""Choose the first order of joins by numbers of situations and sampled selectivities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpu_cep.analysis.bound_intervals import BoundConstraint
from gpu_cep.engine.events.batches import window_length
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.intervals.chunks import window_share
from gpu_cep.engine.intervals.join import leaf_rows
from gpu_cep.engine.intervals.levels import levels
from gpu_cep.engine.intervals.situations import DerivedSituations
from gpu_cep.plan.interval_order import OrderChoice, assume_statistics
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep_kernels.intervals.joins import CandidateRanges, Fitting, Limits, find_candidates, keep_fitting

# The size of a sample, and the most pairs of it that are tested.
_SAMPLE, _TESTED = 256, 1 << 16


def order_choice(plan: IntervalPlan, derived: DerivedSituations) -> OrderChoice:
    """Return the first order of names: from a sample if every name has situations and more than two are joined, else from table 3."""
    constraints = plan.query.constraints
    sizes = np.diff(derived.runs.names)
    buffers = sizes * window_share(derived.runs.start, plan.query.window) / max(1, derived.streams)
    statistics = assume_statistics(constraints, buffers.tolist())
    # the configurations of two names are as many in either order
    if len(sizes) > 2 and sizes.all():
        shares = tuple(_share(constraint, plan, derived, float(buffers[constraint.right])) for constraint in constraints)
        statistics = replace(statistics, selectivities=shares)
    return OrderChoice(constraints, statistics)


class OrderMemory:
    """Chooses the order of joins at the first run over a stream, and lets it follow what later runs measure."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: OrderChoice | None = None

    def __call__(self, plan: IntervalPlan, derived: DerivedSituations) -> OrderChoice:
        """Return the choice of the first run, which has followed those since."""
        if self._known is None:
            self._known = order_choice(plan, derived)
        return self._known


def _share(constraint: BoundConstraint, plan: IntervalPlan, derived: DerivedSituations, buffer: float) -> float:
    """Return the selectivity of a constraint, from a sample of the left name's situations.

    At least half a pair counts as found, so that no selectivity is 0.
    """
    low, high = (int(border) for border in derived.runs.names[constraint.left : constraint.left + 2])
    sample = np.unique(np.linspace(low, high - 1, _SAMPLE).astype(np.int64))
    found = _partners(constraint, sample, plan, derived)
    return min(1.0, max(found, 0.5) / max(len(sample) * buffer, 1.0))


def _partners(constraint: BoundConstraint, sample: Indices, plan: IntervalPlan, derived: DerivedSituations) -> float:
    """Return the number of pairs of sampled situations and partners that satisfy a constraint.

    If there are too many candidates to test, return their number.
    """
    situations, length = derived.situations, window_length(plan, derived.events.times.dtype)
    (level,) = levels((constraint.left, constraint.right), (constraint,), "range_join", windowed=plan.query.window is not None)
    rows = leaf_rows(derived, sample)
    size = len(sample)
    found = CandidateRanges(*(np.empty((len(level.runs), size), np.int64) for _ in range(2)))
    find_candidates(0, size, rows, level, situations, length, found)
    number = found.size.sum(axis=0)
    candidates = int(number.sum())
    if candidates > _TESTED:
        return float(candidates)
    fitting, kept = np.empty(size, np.int64), np.empty(candidates, np.int32)
    place = np.cumsum(number) - number
    limits = Limits(derived.latest, derived.never, length)
    keep_fitting(0, size, 0, rows, level, situations, limits, found, Fitting(place, kept, fitting))
    return float(fitting.sum())

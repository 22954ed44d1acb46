"""What the order of joins is first chosen by: how many situations there are, and of how many pairs of a sample each constraint holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpu_cep.analysis.bound_intervals import BoundConstraint
from gpu_cep.engine.events.batches import window_length
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.intervals.join import leaf_rows
from gpu_cep.engine.intervals.levels import levels
from gpu_cep.engine.intervals.parts import reach
from gpu_cep.engine.intervals.situations import Derived
from gpu_cep.plan.interval_order import OrderChoice, assumed
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep_kernels.intervals.joins import Candidates, Fitting, Limits, find_candidates, keep_fitting

# Situations of a sample, and pairs that are tested of it at most.
_SAMPLE, _TESTED = 256, 1 << 16


def order_choice(plan: IntervalPlan, derived: Derived) -> OrderChoice:
    """The order of the joins to begin with: by table 3, and what a sample says of it."""
    constraints = plan.query.constraints
    sizes = np.diff(derived.runs.names)
    buffers = sizes * reach(derived.runs.start, plan.query.window) / max(1, derived.streams)
    statistics = assumed(constraints, buffers.tolist())
    if sizes.all():
        shares = tuple(_share(constraint, plan, derived, float(buffers[constraint.right])) for constraint in constraints)
        statistics = replace(statistics, selectivities=shares)
    return OrderChoice(constraints, statistics)


def _share(constraint: BoundConstraint, plan: IntervalPlan, derived: Derived, buffer: float) -> float:
    """The selectivity of a constraint in a sample of the left name's situations; at least as if half a pair had satisfied it."""
    low, high = (int(border) for border in derived.runs.names[constraint.left : constraint.left + 2])
    sample = np.unique(np.linspace(low, high - 1, _SAMPLE).astype(np.int64))
    found = _partners(constraint, sample, plan, derived)
    return min(1.0, max(found, 0.5) / max(len(sample) * buffer, 1.0))


def _partners(constraint: BoundConstraint, sample: Indices, plan: IntervalPlan, derived: Derived) -> float:
    """How many situations fit those of a sample; where they are many, how many lie in the zones of the constraint."""
    situations, length = derived.situations, window_length(plan, derived.events.times.dtype)
    (level,) = levels((constraint.left, constraint.right), (constraint,), "range_join", windowed=plan.query.window is not None)
    rows = leaf_rows(derived, sample)
    size = len(sample)
    found = Candidates(*(np.empty((len(level.runs), size), np.int64) for _ in range(2)))
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

"""Define the plan of a query over situations, as picklable data with a stable hash."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_cep.analysis.bound_intervals import BoundIntervals
from gpu_cep.plan.event_plan import EventPlan, Plan

INTERVAL_PLAN_VERSION = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalPlan(Plan):
    """How a query over situations is answered.

    `algorithm`: the one that joins situations.

    The events of situation v are those with label bit v. No event is filtered out.
    """

    query: BoundIntervals
    algorithm: str
    version: int = INTERVAL_PLAN_VERSION


# A plan of either kind.
AnyPlan = EventPlan | IntervalPlan

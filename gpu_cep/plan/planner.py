"""Turn a bound query into a plan, by rules that rewrite a draft one after the other.

A rule takes a plan and returns a more complete one. Its docstring shows a plan before and after it.
There ``draft(text)`` is the draft of a query over columns ts, type, k, x (int64), y (float64) and s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from gpu_cep.analysis.bound import BoundPattern
from gpu_cep.analysis.bound_intervals import BoundIntervals
from gpu_cep.plan.algorithms import choose_algorithms
from gpu_cep.plan.certainty import check_detection
from gpu_cep.plan.derived_keys import split_streams
from gpu_cep.plan.dictionaries import share_dictionaries
from gpu_cep.plan.event_plan import EventPlan, PlanT
from gpu_cep.plan.interval_algorithms import choose_join
from gpu_cep.plan.interval_checks import check_interval_settings, check_solvable
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep.plan.lifting import lift_conditions
from gpu_cep.plan.properties import plan_properties
from gpu_cep.plan.pruning import drop_useless_steps
from gpu_cep.plan.rankings import follow_result_order
from gpu_cep.plan.relationships import plan_branches
from gpu_cep.plan.returns import plan_ranking, plan_returns
from gpu_cep.plan.robustness import follow_plain_strategy
from gpu_cep.plan.settings import Settings, check_settings
from gpu_cep.plan.timeouts import check_kinds

# The rules for event patterns, in the order in which they are applied.
RULES: tuple[Callable[[EventPlan], EventPlan], ...] = (
    follow_result_order,
    choose_algorithms,
    split_streams,
    plan_branches,
    follow_plain_strategy,
    lift_conditions,
    plan_properties,
    share_dictionaries,
    drop_useless_steps,
    plan_returns,
    plan_ranking,
)

# The rules for situations.
INTERVAL_RULES: tuple[Callable[[IntervalPlan], IntervalPlan], ...] = (
    choose_join,
    plan_properties,
    share_dictionaries,
    plan_returns,
)


def plan(query: BoundPattern, settings: Settings) -> EventPlan:
    """Return the plan of an event pattern.

    Raises
    ------
    PatternError, UnsupportedError
        A setting is unknown or not supported yet.
    """
    check_settings(settings)
    check_kinds(query, settings)
    return check_detection(_apply(RULES, draft_plan(query, settings)))


def plan_intervals(query: BoundIntervals, settings: Settings, text: str | None) -> IntervalPlan:
    """Return the plan of a query over situations; `text` is the query's text, for errors to quote.

    Raises
    ------
    PatternError
        No situations satisfy all constraints, or a setting is unknown.
    UnsupportedError
        A setting is not supported for situations.
    """
    check_settings(settings)
    check_solvable(query, text)
    check_interval_settings(settings)
    return _apply(INTERVAL_RULES, draft_interval_plan(query, settings))


def draft_plan(query: BoundPattern, settings: Settings) -> EventPlan:
    """Return the plan of an event pattern before any rule, with the query and its settings only."""
    return EventPlan(
        query=query,
        settings=settings,
        contenders=(settings.algorithm,),
        strategy=query.strategy,
        stream_keys=query.partition_by,
        pruning=settings.prune,
    )


def draft_interval_plan(query: BoundIntervals, settings: Settings) -> IntervalPlan:
    """Return the plan of a query over situations before any rule."""
    return IntervalPlan(query=query, settings=settings, algorithm=settings.algorithm, stream_keys=query.partition_by)


def _apply(rules: Iterable[Callable[[PlanT], PlanT]], draft: PlanT) -> PlanT:
    """Return the plan after all rules, applied one after the other."""
    return reduce(lambda planned, rule: rule(planned), rules, draft)

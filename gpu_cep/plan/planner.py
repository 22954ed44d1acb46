"""Bound query → plan."""

from __future__ import annotations

from gpu_cep.analysis.bound import BoundQuery, CountWindow, TimeWindow
from gpu_cep.plan.algorithms import Algorithm, choose_algorithms
from gpu_cep.plan.event_plan import Plan
from gpu_cep.plan.properties import plan_properties
from gpu_cep.plan.relationships import plan_branches, plan_dictionaries
from gpu_cep.plan.returns import plan_return
from gpu_cep.plan.robustness import followed_strategy
from gpu_cep.plan.settings import Settings, check_settings

CONTIGUOUS = ("strict_contiguity", "partition_contiguity")


def plan(query: BoundQuery, settings: Settings) -> Plan:
    """Choose how to answer `query`.

    Raises
    ------
    PatternError, UnsupportedError
        A setting is unknown or not supported yet.
    """
    check_settings(settings)
    contenders = choose_algorithms(query, settings.algorithm, settings.engine, cut=_cuts(settings))
    derived = query.derived_keys if _partitions(query, settings) else ()
    branches, layout = plan_branches(query, derived)
    return Plan(
        query=query,
        settings=settings,
        contenders=tuple(algorithm.name for algorithm in contenders),
        strategy=followed_strategy(query, derived),
        properties=plan_properties(query),
        branches=branches,
        layout=layout,
        dictionaries=plan_dictionaries(query),
        stream_keys=query.partition_by + derived,
        derived=derived,
        steps=_steps(query, settings, derived, contenders),
        returns=tuple(plan_return(item.expression) for item in query.returns),
    )


def _partitions(query: BoundQuery, settings: Settings) -> bool:
    """Whether derived keys split the streams: not if positions of the undivided stream count.

    Under partition_contiguity they do if they are what all branches' partitions are made of.
    """
    if isinstance(query.window, CountWindow) or query.strategy == "strict_contiguity":
        return False
    if query.strategy == "partition_contiguity":
        keys = set(query.derived_keys).union(query.partition_by)
        return all(set(branch.agreed) <= keys and set(query.derived_keys) <= set(branch.agreed) for branch in query.branches)
    return "partition" in settings.prune


def _cuts(settings: Settings) -> bool:
    """Whether searches may spare matches that `after_match` drops."""
    return "overlap" in settings.prune and settings.after_match != "all"


def _steps(query: BoundQuery, settings: Settings, derived: tuple[int, ...], contenders: tuple[Algorithm, ...]) -> tuple[str, ...]:
    useless = set(settings.prune).difference(*(algorithm.steps for algorithm in contenders))
    if not derived:
        useless.add("partition")
    if isinstance(query.window, CountWindow) or query.strategy in CONTIGUOUS:
        useless.add("filter")
    if not isinstance(query.window, TimeWindow):
        useless.add("reach")
    if not _cuts(settings):
        useless.add("overlap")
    if "chain" in settings.prune and all(variable.minimum == 1 for variable in query.positives):
        # the chained condition implies that every counter is positive
        useless.add("summary")
    return tuple(step for step in settings.prune if step not in useless)

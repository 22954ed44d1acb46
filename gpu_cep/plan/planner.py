"""Bound query → plan."""

from __future__ import annotations

from gpu_cep.analysis.bound import BoundQuery, CountWindow
from gpu_cep.plan.algorithms import Algorithm, choose_algorithm
from gpu_cep.plan.plan import Plan
from gpu_cep.plan.properties import plan_properties
from gpu_cep.plan.relationships import plan_dictionaries, plan_relationships
from gpu_cep.plan.returns import plan_return
from gpu_cep.plan.settings import Settings, check_settings


def plan(query: BoundQuery, settings: Settings) -> Plan:
    """Choose how to answer `query`.

    Raises
    ------
    PatternError, UnsupportedError
        A setting is unknown or not supported yet.
    """
    check_settings(settings)
    algorithm = choose_algorithm(query, settings.algorithm, settings.engine)
    derived = query.derived_keys if _partitions(query, settings) else ()
    conditions, layout = plan_relationships(query, derived)
    return Plan(
        query=query,
        settings=settings,
        algorithm=algorithm.name,
        properties=plan_properties(query),
        conditions=conditions,
        layout=layout,
        dictionaries=plan_dictionaries(query),
        stream_keys=query.partition_by + derived,
        derived=derived,
        steps=_steps(query, settings, derived, algorithm),
        returns=tuple(plan_return(item.expression) for item in query.returns),
    )


def _partitions(query: BoundQuery, settings: Settings) -> bool:
    """Derived keys split the streams unless the window counts positions of the undivided stream."""
    return "partition" in settings.prune and not isinstance(query.window, CountWindow)


def _steps(query: BoundQuery, settings: Settings, derived: tuple[int, ...], algorithm: Algorithm) -> tuple[str, ...]:
    useless = set(settings.prune).difference(algorithm.steps)
    if not derived:
        useless.add("partition")
    if isinstance(query.window, CountWindow):
        useless.add("filter")
    if "chain" in settings.prune and all(variable.minimum == 1 for variable in query.variables):
        # the chained condition implies that every counter is positive
        useless.add("summary")
    return tuple(step for step in settings.prune if step not in useless)

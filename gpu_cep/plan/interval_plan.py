"""The plan of a query over situations, as picklable data with a stable hash."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from gpu_cep.analysis.bound import BoundQuery, Condition, ConditionKind, EventVariable
from gpu_cep.analysis.bound_intervals import BoundIntervals
from gpu_cep.errors import Diagnostic, PatternError, UnsupportedError
from gpu_cep.plan.allen import clash
from gpu_cep.plan.event_plan import BankLayout, Plan
from gpu_cep.plan.interval_algorithms import choose_interval_algorithm
from gpu_cep.plan.properties import plan_properties
from gpu_cep.plan.relationships import plan_dictionaries
from gpu_cep.plan.returns import plan_return
from gpu_cep.plan.settings import Settings, check_settings

INTERVAL_PLAN_VERSION = 1


@dataclass(frozen=True, slots=True)
class IntervalPlan:
    """How a query over situations is answered.

    `events` is the plan of what labels and orders events: a variable for each
    situation, whose properties are the situation's condition; nothing is
    filtered. The programs of RETURN's items are its, too.
    """

    query: BoundIntervals
    settings: Settings
    algorithm: str
    events: Plan
    version: int = INTERVAL_PLAN_VERSION

    def fingerprint(self) -> str:
        """A stable digest of the plan, the same in every process."""
        return hashlib.sha256(repr(self).encode()).hexdigest()


def plan_intervals(query: BoundIntervals, settings: Settings, text: str | None = None) -> IntervalPlan:
    """Choose how to answer `query`; `text` is its text, for errors to quote.

    Raises
    ------
    PatternError
        No situations satisfy all constraints, or a setting is unknown.
    UnsupportedError
        A setting is not supported for situations.
    """
    check_settings(settings)
    _check_solvable(query, text)
    _check_supported(settings)
    return IntervalPlan(
        query=query,
        settings=settings,
        algorithm=choose_interval_algorithm(settings.algorithm),
        events=_plan_events(query, settings),
    )


def _check_solvable(query: BoundIntervals, text: str | None) -> None:
    """Refuse constraints that cannot hold together, with a smallest set of those that clash."""
    clashing = clash(query.constraints)
    if clashing:
        texts = " AND ".join(constraint.text for constraint in clashing)
        hint = "leave one of them out, or add an alternative"
        raise PatternError([Diagnostic(f"no situations satisfy {texts}", clashing[-1].span, hint)], text)


def _check_supported(settings: Settings) -> None:
    faults = []
    if settings.after_match != "all":
        faults.append(f"after_match={settings.after_match!r} is not supported for situations; supported: all")
    if settings.output == "compressed":
        faults.append("output='compressed' is not supported for situations; supported: matches, events, indices, count")
    if (settings.engine, settings.algorithm) == ("gpu", "brute_force"):
        faults.append("algorithm='brute_force' is not supported with engine='gpu'; supported: auto, cpu")
    if faults:
        raise UnsupportedError([Diagnostic(fault) for fault in faults])


def _plan_events(query: BoundIntervals, settings: Settings) -> Plan:
    """The plan of the events' labels and order."""
    bound = _event_query(query)
    return Plan(
        query=bound,
        settings=settings,
        contenders=(),
        strategy=bound.strategy,
        properties=plan_properties(bound),
        branches=(),
        layout=BankLayout(),
        dictionaries=plan_dictionaries(bound),
        stream_keys=bound.partition_by,
        derived=(),
        steps=(),
        returns=tuple(plan_return(item.expression) for item in query.returns),
    )


def _event_query(query: BoundIntervals) -> BoundQuery:
    """A query whose variables bind the events of situations."""
    conditions = tuple(
        Condition(situation.condition, ConditionKind.PROPERTY, (number,), situation.text)
        for number, situation in enumerate(query.situations)
    )
    return BoundQuery(
        schema=query.schema,
        computed=query.computed,
        variables=tuple(EventVariable(situation.name, 1, None, quantified=True) for situation in query.situations),
        branches=(),
        conditions=conditions,
        returns=query.returns,
        window=query.window,
        strategy="strict_contiguity",
        ties="position",
        timestamp=query.timestamp,
        partition_by=query.partition_by,
        order_by=query.order_by,
        derived_keys=(),
    )

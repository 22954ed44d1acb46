"""Plan the rules of a rule set over events that keep coming."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpu_cep.engine.streaming.certainty import counts_by_key
from gpu_cep.errors import CepError
from gpu_cep.keywords import read_keywords
from gpu_cep.live.plans import Arrival, plan_live, ticks_to_live
from gpu_cep.live.queries import LiveQuery
from gpu_cep.queries.plans import make_plan
from gpu_cep.queries.row_plans import is_row_pattern
from gpu_cep.rule_sets.rules import Rule, named, united

if TYPE_CHECKING:
    import pyarrow as pa

    from gpu_cep.analysis.options import Options
    from gpu_cep.plan.interval_plan import AnyPlan
    from gpu_cep.plan.settings import Settings
    from gpu_cep.queries.plans import Pattern


def plan_stream_rules(rules: Mapping[str, Rule], schema: pa.Schema, keywords: Mapping[str, Any], arrival: Arrival) -> dict[str, LiveQuery]:
    """Return the query of each rule; raise the errors of all rules together."""
    planned: dict[str, LiveQuery] = {}
    failed: dict[str, CepError] = {}
    for name, rule in rules.items():
        try:
            options, settings = read_keywords({**keywords, **rule.options})
            own = _own_arrival(arrival, rule.pattern, schema, options, settings)
            planned[name] = plan_live(rule.pattern, schema, options, settings, own)
            if arrival.time_to_live is not None:
                # also where the rule has no use for it
                ticks_to_live(planned[name].plan, arrival.time_to_live, options.time_unit)
        except CepError as fault:
            failed[name] = named(name, fault)
    if failed:
        raise united(failed)
    return planned


def _own_arrival(arrival: Arrival, pattern: Pattern, schema: pa.Schema, options: Options, settings: Settings) -> Arrival:
    """Return what :func:`arrival_of_rule` does for a rule without a plan; a row pattern has no use for a time to live."""
    if arrival.time_to_live is None or is_row_pattern(pattern):
        return replace(arrival, time_to_live=None)
    return arrival_of_rule(arrival, make_plan(pattern, schema, options, settings))


def arrival_of_rule(arrival: Arrival, plan: AnyPlan) -> Arrival:
    """Return how events come for the rule of a plan: with a time to live only if its window is a number of events of each key."""
    return arrival if counts_by_key(plan) else replace(arrival, time_to_live=None)

"""Leave out a ranking that says what the order of results says anyway (a rule of the planner).

Precondition: the ranking never falls from one match of a first event to the next, in the order of
results; that is by last event, then by bindings.
Rewrite: no ranking. Searches then stop at the limit, and find no match that is not kept.

So it is with the time of the variable that ends every match, as in ``c.ts``, also less that of the
variable that begins it, as in ``c.ts - a.ts``: the shortest matches. An attribute of the variable
that begins every match is the same for all matches of one first event.
"""

from __future__ import annotations

from dataclasses import replace

from gpu_cep.analysis.bound import BoundPattern, Ranking, TimeWindow
from gpu_cep.analysis.bound_expressions import Aggregation, Bound, Field, Operation, Place
from gpu_cep.analysis.types import Kind
from gpu_cep.plan.event_plan import EventPlan


def follow_result_order(plan: EventPlan) -> EventPlan:
    """Return the plan without its ranking if the order of results keeps the same matches.

    Examples
    --------
    >>> before = draft("PATTERN SEQ(a, b) WITHIN 9", limit_per_start=2, order_matches_by="b.ts - a.ts")
    >>> before.query.ranking.text, follow_result_order(before).query.ranking
    ('b.ts - a.ts', None)
    >>> after = follow_result_order(draft("PATTERN SEQ(a, b)", limit_per_start=2, order_matches_by="b.ts desc"))
    >>> after.query.ranking.text
    'b.ts'
    """
    ranking = plan.query.ranking
    if ranking is None or not _follows(plan.query, ranking):
        return plan
    return replace(plan, query=replace(plan.query, ranking=None), settings=replace(plan.settings, order_matches_by=None))


def _follows(query: BoundPattern, ranking: Ranking) -> bool:
    """Return whether the ranking never falls in the order of results of one first event."""
    if _is_fixed(query, ranking.expression):
        return True
    match ranking.expression:
        case Operation(name="sub", arguments=(last, first), type=kind):
            # a window bounds the difference, which can overflow without one
            exact = isinstance(query.window, TimeWindow) and kind.kind is not Kind.FLOAT
            rises = exact and _is_last_time(query, last) and _is_fixed(query, first) and _is_time(query, first)
        case last:
            rises = _is_last_time(query, last)
    return rises and not ranking.descending


def _is_fixed(query: BoundPattern, expression: Bound) -> bool:
    """Return whether an expression is an attribute of the single variable that begins every match."""
    if not isinstance(expression, Field) or query.variables[expression.variable].quantified:
        return False
    return all(branch.begins_with(expression.variable) for branch in query.branches)


def _is_last_time(query: BoundPattern, expression: Bound) -> bool:
    """Return whether an expression is the time of the last event of every match."""
    match expression:
        case Field(place=Place.EACH | Place.LAST) | Aggregation(function="last", running=False):
            return _is_time(query, expression) and all(branch.ends_with(expression.variable) for branch in query.branches)
    return False


def _is_time(query: BoundPattern, expression: Bound) -> bool:
    return isinstance(expression, Field | Aggregation) and expression.column == query.timestamp

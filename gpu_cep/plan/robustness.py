"""Follow skip_till_next_match for robust_skip_till_next_match where both find the same (thesis Thm. 6.3).

Precondition, for each branch: take any partial match and an event that it may bind. If the partial
match can be completed without the event, it can be completed with it.
Rewrite: the strategy that is followed. The automaton then never backtracks.

Theorem 6.3 says when a match is missed. An event e is not in the match, but fits a variable v. It
has v's properties (6.5) and v's relationships with what is bound so far (6.6). If nothing that is
bound later can rule e out, e can replace the event that v binds, or join it. Then the match is none
by Definition 6.2. Nothing bound later can rule e out under these conditions:

- A condition relates v to the *root* alone, or relates events of v with each other. The root is the
  single variable that precedes all others and is bound by the first event.
- If a condition relates events of v, or v binds several events, one event must be enough for v.
  What v would bind later is then left out.
- No condition waits for the end of a binding (closing conditions).
- Nothing is negated: Γ obeys negations under the robust strategy only (docs/strategies.md).
- If events tie, and a tie is no order, an event that joins v could tie with a successor's event.
  So a variable with successors binds a fixed number of events; e replaces one of them.

A match that goes on is complete with each event that joins it. So both strategies report the same,
longest matches.
"""

from __future__ import annotations

from dataclasses import replace

from gpu_cep.analysis.bound import BoundPattern, Branch, Condition
from gpu_cep.plan.event_plan import EventPlan

ROBUST, NEXT = "robust_skip_till_next_match", "skip_till_next_match"


def follow_plain_strategy(plan: EventPlan) -> EventPlan:
    """Return the plan with skip_till_next_match, if that finds what the robust strategy does with less work.

    Conditions that derived keys imply hold for all events of a stream, so they are left aside.

    Examples
    --------
    >>> before = draft("PATTERN SEQ(a, b) WHERE robust_skip_till_next_match { a.x < b.x }")
    >>> before.strategy, follow_plain_strategy(before).strategy
    ('robust_skip_till_next_match', 'skip_till_next_match')
    """
    query = plan.query
    plain = query.strategy == ROBUST and all(_never_misses(query, branch, plan.derived) for branch in query.branches)
    return replace(plan, strategy=NEXT) if plain else plan


def _never_misses(query: BoundPattern, branch: Branch, derived: tuple[int, ...]) -> bool:
    """Return whether the conditions of the module's introduction hold for a branch."""
    root = _root(query, branch)
    conditions = [condition for condition in branch.conditions if condition.key is None or condition.key not in derived]
    ordered = query.ties == "position" or not any(_may_join(query, branch, v) for v in branch.variables)
    return not branch.negations and ordered and all(_is_local(query, condition, root) for condition in conditions)


def _root(query: BoundPattern, branch: Branch) -> int | None:
    """Return the single variable that precedes all others; None if there is none."""
    first = [v for v, mask in zip(branch.variables, branch.before, strict=True) if not mask]
    return first[0] if len(first) == 1 and query.variables[first[0]].maximum == 1 else None


def _is_local(query: BoundPattern, condition: Condition, root: int | None) -> bool:
    """Return whether a condition relates one variable to itself or to the root, and is not closing.

    The variable must need one event only.
    """
    others = [query.variables[v] for v in condition.variables if v != root]
    return not condition.closing and len(others) <= 1 and all(variable.minimum == 1 for variable in others)


def _may_join(query: BoundPattern, branch: Branch, v: int) -> bool:
    """Return whether variable v has successors and can bind more events than it must."""
    variable = query.variables[v]
    return variable.maximum != variable.minimum and any(mask >> v & 1 for mask in branch.before)

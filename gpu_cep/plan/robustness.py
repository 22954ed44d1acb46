"""Rule: robust_skip_till_next_match is skip_till_next_match where no match can be missed by binding an event too early (thesis Thm. 6.3).

Precondition, of each branch: whatever partial match has a complete one ahead
that skips an event which it may bind, has one that binds it. Rewrite: the
strategy that is followed; the automaton then never steps back.

Theorem 6.3 says that a match is missed for an event e that fits a variable v
by its properties and by its relationships with what is bound so far (6.5 and
6.6), and is not in the match. If nothing that is bound later could rule e out,
e can take the place of the event that v binds in the match, or join it, and so
the match is no longer one by Definition 6.2. So that nothing can:

- A condition relates v to the *root* alone, the single variable that precedes
  all others and is bound by the first event, or relates events of v with each
  other. In the second case, or where v binds several events, one of them
  must be enough: what v would bind later is left out.
- Nothing waits for the end of a binding (closing conditions), and nothing is
  negated: Γ obeys negations under the robust strategy only (SPEC section 3).
- Where events tie, and a tie is no order, an event that joins a variable with
  a successor could tie with the event of that. So such a variable binds a
  fixed number of events, and e takes the place of one.

A match that goes on is complete with each event that joins it, so that both
strategies report the same, longest ones.
"""

from __future__ import annotations

from dataclasses import replace

from gpu_cep.analysis.bound import BoundPattern, Branch, Condition
from gpu_cep.plan.event_plan import EventPlan

ROBUST, NEXT = "robust_skip_till_next_match", "skip_till_next_match"


def follow_plain_strategy(plan: EventPlan) -> EventPlan:
    """Follow skip_till_next_match where it finds what the robust strategy does, with less work.

    Conditions that the derived keys imply hold for all events of a stream.

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
    root = _root(query, branch)
    conditions = [condition for condition in branch.conditions if condition.key is None or condition.key not in derived]
    ordered = query.ties == "position" or not any(_may_join(query, branch, v) for v in branch.variables)
    return not branch.negations and ordered and all(_is_local(query, condition, root) for condition in conditions)


def _root(query: BoundPattern, branch: Branch) -> int | None:
    """Return the single variable that precedes all others, if there is one."""
    first = [v for v, mask in zip(branch.variables, branch.before, strict=True) if not mask]
    return first[0] if len(first) == 1 and query.variables[first[0]].maximum == 1 else None


def _is_local(query: BoundPattern, condition: Condition, root: int | None) -> bool:
    """Return whether a condition relates one variable to itself or the root, needs one event of it, and waits for nothing."""
    others = [query.variables[v] for v in condition.variables if v != root]
    return not condition.closing and len(others) <= 1 and all(variable.minimum == 1 for variable in others)


def _may_join(query: BoundPattern, branch: Branch, v: int) -> bool:
    """Return whether a variable that others follow can bind more events than it must."""
    variable = query.variables[v]
    return variable.maximum != variable.minimum and any(mask >> v & 1 for mask in branch.before)

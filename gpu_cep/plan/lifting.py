"""Lift conditions between neighbouring events into label bits (a rule of the planner).

Precondition: branches are planned. Under contiguity an event of a match follows the one before it in
its stream, with nothing in between. So the event before ``b[i]`` is ``b[i-1]``, and the event before
the first event of c is the last event of the variable that c follows.
Rewrite: for each condition of a branch, the variable whose events it judges, and how many places
before such an event each event stands that the condition reads. All conditions are then decided for
each event alone, whatever run of the automaton comes to it.

A branch is lifted if its variables follow one another, nothing is negated, and all conditions read
events at fixed distances. ``b.x > a.x`` with a quantified b is an example of one that does not. If
all events of a match are equal in a column, it is enough that neighbours are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from gpu_cep.analysis.bound import EventVariable
from gpu_cep.plan.algorithms import algorithm_named
from gpu_cep.plan.event_plan import EventPlan, LiftedCondition, Part, PlannedBranch, PlannedCondition, Spread

# Instructions that read an aggregate of a binding.
_AGGREGATE_LOADS = frozenset({"load_count", "load_aggregate_int", "load_aggregate_float"})
# Variables whose bits fit into one label word.
_MOST_VARIABLES = 64


def lift_conditions(plan: EventPlan) -> EventPlan:
    """Return the plan with the conditions of each branch lifted, if they can be.

    Examples
    --------
    >>> from gpu_cep.plan.algorithms import choose_algorithms
    >>> from gpu_cep.plan.relationships import plan_branches
    >>> text = "PATTERN SEQ(a, b+, c) WHERE partition_contiguity { b[i].x > b[i-1].x AND c.x < last(b.x) }"
    >>> before = plan_branches(choose_algorithms(draft(text)))
    >>> before.branches[0].lifted
    >>> [(each.variable, each.repeated, each.back) for each in lift_conditions(before).branches[0].lifted]
    [(1, True, (0, 1)), (2, False, (0, 1))]
    """
    used = any("lift" in algorithm_named(name).pruning for name in plan.contenders)
    if not used or "lift" not in plan.pruning or len(plan.query.variables) > _MOST_VARIABLES:
        return plan
    return replace(plan, branches=tuple(replace(branch, lifted=_lifted(plan, branch)) for branch in plan.branches))


def _lifted(plan: EventPlan, branch: PlannedBranch) -> tuple[LiftedCondition, ...] | None:
    """Return the lifted conditions of a branch; None if it is not lifted."""
    if branch.negations or not _follow_one_another(branch) or not _neighbours_are_next(plan, branch):
        return None
    found = list(_lift_each(branch.conditions, [plan.query.variables[v] for v in branch.positives]))
    lifted = tuple(each for each in found if each is not None)
    return lifted if len(lifted) == len(found) else None


def _lift_each(conditions: Sequence[PlannedCondition], variables: Sequence[EventVariable]) -> Iterator[LiftedCondition | None]:
    """Yield each condition lifted, or None if the distances of the events that it reads vary; skip implied ones."""
    equated = [_equated(condition) for condition in conditions]
    agreed = _agreed({equality for equality in equated if equality is not None}, variables)
    for number, (condition, equality) in enumerate(zip(conditions, equated, strict=True)):
        if equality is None or equality.column not in agreed:
            yield _lift(number, condition, variables)
        elif equality.later - equality.earlier < 2:
            yield _lift_equality(number, condition, equality)


def _follow_one_another(branch: PlannedBranch) -> bool:
    """Return whether the variables form a sequence, in the order of their numbers."""
    return all(mask == (1 << v) - 1 for v, mask in enumerate(branch.before))


def _neighbours_are_next(plan: EventPlan, branch: PlannedBranch) -> bool:
    """Return whether the event that a run must take next is always the next one of its stream."""
    if plan.query.strategy == "partition_contiguity":
        return set(branch.agreed) <= set(plan.stream_keys)
    return plan.query.strategy == "strict_contiguity"


class _Equality(NamedTuple):
    """An equality of one column for all events of two variables, or for every two events of one.

    `column`: the instruction that loads it, and its number among the columns of its type.
    """

    column: tuple[str, int]
    earlier: int
    later: int


def _equated(condition: PlannedCondition) -> _Equality | None:
    """Return which events a condition demands to be equal in a column; None if it is no such condition."""
    code = condition.program.code
    if len(code) != 3 or code[2][0] not in ("eq_int", "eq_float") or code[0][0] != code[1][0] or code[0][2] != code[1][2]:
        return None
    if any(part.first >= 0 or part.last >= 0 or part.each < 0 for part in condition.parts):
        return None
    column = code[0][0], code[0][2]
    if len(condition.parts) == 1:
        (part,) = condition.parts
        return _Equality(column, part.variable, part.variable) if part.spread is Spread.PAIRWISE else None
    earlier, later = sorted(part.variable for part in condition.parts)
    return _Equality(column, earlier, later)


def _agreed(equalities: Collection[_Equality], variables: Sequence[EventVariable]) -> set[tuple[str, int]]:
    """Return the columns in which conditions demand that all events of a match are equal."""
    numbers = range(len(variables))
    pairs = {(v, w) for w in numbers for v in range(w)} | {(v, v) for v in numbers if variables[v].maximum != 1}
    columns = {equality.column for equality in equalities}
    return {column for column in columns if all(_Equality(column, *pair) in equalities for pair in pairs)}


def _lift_equality(number: int, condition: PlannedCondition, equality: _Equality) -> LiftedCondition:
    """Return an equality between neighbours."""
    if equality.earlier == equality.later:
        (part,) = condition.parts
        return LiftedCondition(number, part.variable, repeated=True, back=_by_role({part.each: 0, part.previous: 1}, condition.roles))
    back = {part.each: 0 if part.variable == equality.later else 1 for part in condition.parts}
    return LiftedCondition(number, equality.later, repeated=False, back=_by_role(back, condition.roles))


def _lift(number: int, condition: PlannedCondition, variables: Sequence[EventVariable]) -> LiftedCondition | None:
    """Return a condition with the distances of the events that it reads; None if they vary."""
    if any(operation in _AGGREGATE_LOADS for operation, *_ in condition.program.code):
        return None
    (part, *others) = condition.parts
    if not others and part.spread is Spread.CONSECUTIVELY:
        pair = {part.each: 0, part.previous: 1}
        if part.first >= 0 or part.last >= 0:
            return None
        return LiftedCondition(number, part.variable, repeated=True, back=_by_role(pair, condition.roles))
    judged = max(part.variable for part in condition.parts)
    # what reads the last event of a binding waits for the event that follows it
    judged += variables[judged].maximum != 1 and judged in condition.closing
    if judged == len(variables):
        return None
    back: dict[int, int] = {}
    for part in condition.parts:
        for role, distance in _distances(part, judged, variables):
            if distance is None:
                return None
            back[role] = distance
    return LiftedCondition(number, judged, repeated=False, back=_by_role(back, condition.roles))


def _distances(part: Part, judged: int, variables: Sequence[EventVariable]) -> Iterator[tuple[int, int | None]]:
    """Yield each role of a part, and how many places before the first event of `judged` its event stands; None if that varies."""
    single = variables[part.variable].maximum == 1
    between = variables[part.variable + 1 : judged]
    behind = 1 + len(between) if all(variable.maximum == 1 for variable in between) else None
    first = 0 if part.variable == judged else behind if single else None
    last = behind if part.variable < judged else 0 if single else None
    for role, distance in ((part.each, last if single else None), (part.previous, None), (part.first, first), (part.last, last)):
        if role >= 0:
            yield role, distance


def _by_role(distances: dict[int, int], roles: int) -> tuple[int, ...]:
    return tuple(distances.get(role, 0) for role in range(roles))

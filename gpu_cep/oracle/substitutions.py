"""Find Γ, the set of all matches of a branch: test for every substitution whether it is a match.

The definitions are those of docs/language.md and thesis Def. 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from gpu_cep.errors import UnsupportedError
from gpu_cep.oracle.conditions import Agreement
from gpu_cep.oracle.patterns import END, Negation, Quantity
from gpu_cep.oracle.problems import Problem, Substitution, events_of


def all_matches(problem: Problem, limit: int) -> Iterator[Substitution]:
    """Return Γ: all substitutions that are matches."""
    size = number_of_substitutions(problem)
    if size > limit:
        raise UnsupportedError(f"brute force tries {limit} substitutions per stream; one of {len(problem.positions)} events has {size}")
    return (substitution for substitution in substitutions(problem) if is_match(problem, substitution))


def substitutions(problem: Problem) -> Iterator[Substitution]:
    """Yield every way to give the events of a window to variables.

    The first event of a substitution opens the window. An event goes only to a variable whose
    properties it has. All other requirements are left to :func:`is_match`.
    """
    fitting = _fitting(problem)
    for first in problem.positions:
        window = problem.window(first)
        choices = [fitting[first], *([*fitting[position], None] for position in window[1:])]
        for assigned in product(*choices):
            yield {name: tuple(i for i, v in zip(window, assigned, strict=True) if v == name) for name in problem.branch.variables}


def number_of_substitutions(problem: Problem) -> int:
    """Return how many :func:`substitutions` there are."""
    fitting = _fitting(problem)
    windows = [problem.window(first) for first in problem.positions]
    return sum(len(fitting[window[0]]) * math.prod(1 + len(fitting[position]) for position in window[1:]) for window in windows)


def _fitting(problem: Problem) -> list[list[str | None]]:
    """Return, for each event, the variables whose properties it has."""
    return [[name for name in problem.branch.variables if _has_properties(problem, name, position)] for position in problem.positions]


def _has_properties(problem: Problem, name: str, position: int) -> bool:
    properties = [condition for condition in problem.branch.conditions if condition.is_property and condition.variables == (name,)]
    return all(problem.holds(condition, {name: (position,)}) for condition in properties)


def is_match(problem: Problem, substitution: Substitution) -> bool:
    """Return whether `substitution` is a match of the whole branch (docs/language.md)."""
    return (
        _fills(problem.branch.variables, substitution)
        and _is_in_order(problem, substitution)
        and is_in_window(problem, substitution)
        and all(problem.holds(condition, substitution) for condition in problem.branch.conditions)
        and not is_ended(problem, substitution)
        and not any(is_violated(problem, negation, substitution) for negation in problem.branch.negations)
    )


def _fills(variables: Mapping[str, Quantity], substitution: Substitution) -> bool:
    events = events_of(substitution)
    return len(events) == len(set(events)) and all(is_filled(quantity, substitution.get(name, ())) for name, quantity in variables.items())


def is_filled(quantity: Quantity, bound: Sequence[int]) -> bool:
    """Return whether as many events are bound as there must be, and no more than may be."""
    return len(bound) >= quantity.minimum and not is_over(quantity, bound)


def is_over(quantity: Quantity, bound: Sequence[int]) -> bool:
    """Return whether more events are bound than may be."""
    return quantity.maximum is not None and len(bound) > quantity.maximum


def _is_in_order(problem: Problem, substitution: Substitution) -> bool:
    return all(
        problem.is_before(earlier, later)
        for first, second in problem.branch.before
        for earlier in substitution.get(first, ())
        for later in substitution.get(second, ())
    )


def is_in_window(problem: Problem, substitution: Substitution) -> bool:
    """Return whether the first and the last event are close enough."""
    events = events_of(substitution)
    return problem.is_within(events[0], events[-1])


def is_ended(problem: Problem, substitution: Substitution) -> bool:
    """Return whether a variable binds an event at which UNTIL ended it, or a later one."""
    return any(
        _ends(problem, name, position, substitution)
        for name in problem.branch.until
        for position in problem.positions
        if substitution.get(name) and substitution[name][0] <= position <= substitution[name][-1]
    )


def _ends(problem: Problem, name: str, position: int, substitution: Substitution) -> bool:
    """Return whether the event at `position` satisfies the UNTIL of a variable, and agrees with the match as ``[attr]`` says.

    One that the variable binds is of the match, also if its attribute is NULL, which equals nothing.
    """
    conditions = problem.branch.until[name]
    if position in substitution[name]:
        conditions = tuple(condition for condition in conditions if not isinstance(condition, Agreement))
    return all(problem.holds(condition, {**substitution, END: (position,)}) for condition in conditions)


def is_violated(problem: Problem, negation: Negation, match: Substitution) -> bool:
    """Return whether an event outside `match` in the scope of `negation` satisfies its conditions."""
    outside = set(problem.positions).difference(events_of(match))
    return any(
        is_in_scope(problem, negation, match, position)
        and all(problem.holds(condition, {**match, negation.variable: (position,)}) for condition in negation.conditions)
        for position in outside
    )


def is_in_scope(problem: Problem, negation: Negation, match: Substitution, position: int) -> bool:
    """Return whether the event at `position` is in the scope of `negation`.

    It is behind all predecessors and before all successors. Without predecessors the scope begins one
    window before the last event of the match. Without successors it ends one window after the first
    event. Both ends are inclusive.
    """
    events = events_of(match)
    return (
        all(problem.is_before(event, position) for name in negation.predecessors for event in match[name])
        and all(problem.is_before(position, event) for name in negation.successors for event in match[name])
        and (bool(negation.predecessors) or position >= events[-1] or problem.is_within(position, events[-1]))
        and (bool(negation.successors) or position <= events[0] or problem.is_within(events[0], position))
    )

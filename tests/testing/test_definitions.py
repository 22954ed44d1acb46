"""The oracle against itself: the processes of SPEC section 3 and the declarative definitions give the same matches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import assume, given

from gpu_cep.lang.parser import parse
from gpu_cep.testing.oracle import (
    Problem,
    Substitution,
    all_matches,
    is_match,
    number_of_substitutions,
    problems,
    skip_till_any_match,
    skip_till_next_match,
)
from gpu_cep.testing.patterns import Pattern, Quantity
from gpu_cep.testing.strategies import Case, cases

LIMIT = 5_000


def problems_of(case: Case) -> list[Problem]:
    options = case.options
    found = problems(
        parse(case.text),
        case.events,
        "ts",
        options.get("partition_by", ()),
        options.get("order_by", ()),
        "type",
        options["ties"],
        options.get("time_unit"),
    )
    assume(all(number_of_substitutions(problem) <= LIMIT for problem in found))
    return found


def as_set(found: Iterator[Substitution]) -> set[tuple[tuple[str, tuple[int, ...]], ...]]:
    matches = [tuple(sorted(match.items())) for match in found]
    assert len(matches) == len(set(matches))
    return set(matches)


@given(cases())
def test_the_process_that_may_skip_anything_finds_all_matches(case):
    for problem in problems_of(case):
        assert as_set(skip_till_any_match(problem, LIMIT)) == as_set(all_matches(problem, LIMIT))


@given(cases())
def test_skip_till_next_match_is_definition_6_1(case):
    for problem in problems_of(case):
        conforming = (match for match in all_matches(problem, LIMIT) if not any(passed_over(problem, match)))
        assert as_set(skip_till_next_match(problem, LIMIT)) == as_set(conforming)


def passed_over(problem: Problem, match: Substitution) -> Iterator[int]:
    """Events outside `match` that extend its prefix before them (Condition 6.1); behind its last event, those that extend it.

    Def. 6.1 compares timestamps; with ties, stream order takes their place.
    """
    bound = {position for events in match.values() for position in events}
    for position in problem.positions:
        if min(bound) < position and position not in bound:
            prefix = {name: tuple(event for event in events if event < position) for name, events in match.items()}
            present = {name: events for name, events in prefix.items() if events}
            if any(is_prefix_match(problem, present | {name: (*prefix[name], position)}) for name in problem.pattern.variables):
                yield position


def is_prefix_match(problem: Problem, substitution: Substitution) -> bool:
    """Whether `substitution` is a match of a pattern prefix: of the pattern without the variables that it leaves unbound.

    A prefix holds whole every variable before one that it holds; its last ones need not have their minimum yet.
    """
    pattern = problem.pattern
    first = {one for one, other in pattern.before if other in substitution}
    if not first <= substitution.keys():
        return False
    quantities = {name: pattern.variables[name] if name in first else _begun(pattern.variables[name]) for name in substitution}
    return is_match(replace(problem, pattern=_restricted(pattern, quantities)), substitution)


def _begun(quantity: Quantity) -> Quantity:
    return replace(quantity, minimum=1)


def _restricted(pattern: Pattern, variables: dict[str, Quantity]) -> Pattern:
    conditions = (*pattern.conditions, *pattern.closure)
    return Pattern(
        variables=variables,
        before=frozenset((one, other) for one, other in pattern.before if one in variables and other in variables),
        conditions=tuple(condition for condition in conditions if set(condition.variables) <= variables.keys()),
        closure=(),
    )

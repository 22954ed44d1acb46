"""The oracle against itself: the processes of the strategies and the declarative definitions give the same matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from gpu_cep.lang.parser import parse
from gpu_cep.oracle.patterns import Branch, Quantity, pattern_of
from gpu_cep.oracle.problems import Problem, Substitution, bind, events_of, order_test, window_length, window_test
from gpu_cep.oracle.selection import (
    partition_contiguity,
    robust_by_definition,
    robust_skip_till_next_match,
    skip_till_any_match,
    skip_till_next_match,
    strict_contiguity,
)
from gpu_cep.oracle.streams import schema_of, sort_key, streams
from gpu_cep.oracle.substitutions import all_matches, is_match, number_of_substitutions
from tests.drawn.patterns import ALL_OPERATORS
from tests.drawn.queries import Case, cases, trend_cases

LIMIT = 5_000
ALL_CASES = st.one_of(cases(), cases(operators=ALL_OPERATORS, iterations=True), trend_cases(max_size=9))


def problems_of(case: Case) -> list[Problem]:
    options, query = case.options, parse(case.text)
    pattern = pattern_of(query, schema_of(case.events, {}), "type")
    length = window_length(query.within, case.events.schema.field("ts").type, options.get("time_unit"))
    found = [
        Problem(branch, stream, window_test(query.within, length, stream), order_test(options["ties"], stream))
        for stream in streams(case.events, "ts", options.get("partition_by", ()), options.get("order_by", ()))
        for branch in pattern.branches
    ]
    assume(all(number_of_substitutions(problem) <= LIMIT for problem in found))
    return found


def as_set(found: Iterator[Substitution]) -> set[tuple[tuple[str, tuple[int, ...]], ...]]:
    matches = [tuple(sorted(match.items())) for match in found]
    assert len(matches) == len(set(matches))
    return set(matches)


@given(ALL_CASES)
def test_the_process_that_may_skip_anything_finds_all_matches(case):
    for problem in problems_of(case):
        assert as_set(skip_till_any_match(problem, LIMIT)) == as_set(all_matches(problem, LIMIT))


@given(ALL_CASES)
def test_skip_till_next_match_is_definition_6_1(case):
    for problem in problems_of(case):
        conforming = (match for match in all_matches(problem, LIMIT) if not any(passed_over(problem, match)))
        assert as_set(skip_till_next_match(problem, LIMIT)) == as_set(conforming)


@given(ALL_CASES)
def test_robust_skip_till_next_match_is_definition_6_2(case):
    for problem in problems_of(case):
        assert as_set(robust_skip_till_next_match(problem, LIMIT)) == as_set(robust_by_definition(problem, LIMIT))


@given(ALL_CASES)
def test_robust_finds_what_skip_till_next_match_finds(case):
    """Theorem 6.1, for matches that are maximal under both."""
    for problem in problems_of(case):
        assert as_set(skip_till_next_match(problem, LIMIT)) <= as_set(robust_skip_till_next_match(problem, LIMIT))


@given(ALL_CASES)
def test_contiguity_leaves_no_gaps(case):
    for problem in problems_of(case):
        for strategy, keys in ((strict_contiguity, ()), (partition_contiguity, problem.branch.keys)):
            conforming = (match for match in all_matches(problem, LIMIT) if is_contiguous(problem, match, keys))
            assert as_set(strategy(problem, LIMIT)) == as_set(conforming)


def is_contiguous(problem: Problem, match: Substitution, keys: Sequence[str]) -> bool:
    """Whether the events of `match` follow each other in their partition, and the one behind them extends no more."""
    bound, rows = events_of(match), problem.stream.rows
    partition = [position for position in problem.positions if sort_key(rows[position], keys) == sort_key(rows[bound[0]], keys)]
    following = partition[partition.index(bound[0]) :]
    extending = [bind(match, name, position) for position in following[len(bound) :][:1] for name in problem.branch.variables]
    return following[: len(bound)] == bound and not any(is_prefix_match(problem, extended) for extended in extending)


def passed_over(problem: Problem, match: Substitution) -> Iterator[int]:
    """Events outside `match` that extend its prefix before them (Condition 6.1); behind its last event, those that extend it.

    Def. 6.1 compares timestamps; with ties, stream order takes their place.
    """
    bound = {position for events in match.values() for position in events}
    for position in problem.positions:
        if min(bound) < position and position not in bound:
            prefix = {name: tuple(event for event in events if event < position) for name, events in match.items()}
            present = {name: events for name, events in prefix.items() if events}
            if any(is_prefix_match(problem, present | {name: (*prefix[name], position)}) for name in problem.branch.variables):
                yield position


def is_prefix_match(problem: Problem, substitution: Substitution) -> bool:
    """Whether `substitution` is a match of a pattern prefix: of the pattern without the variables that it leaves unbound.

    A prefix holds whole every variable before one that it holds; its last ones need not have their minimum yet.
    """
    branch = problem.branch
    whole = {one for one, other in branch.before if other in substitution}
    if not whole <= substitution.keys():
        return False
    quantities = {name: branch.variables[name] if name in whole else _begun(branch.variables[name]) for name in substitution}
    return is_match(replace(problem, branch=_restricted(branch, quantities, whole)), substitution)


def _begun(quantity: Quantity) -> Quantity:
    return replace(quantity, minimum=1)


def _restricted(branch: Branch, variables: dict[str, Quantity], whole: set[str]) -> Branch:
    """The branch over `variables` alone; what is said of a whole binding is said of those in `whole`."""
    conditions = (*branch.conditions, *branch.closure)
    return Branch(
        variables=variables,
        before=frozenset((one, other) for one, other in branch.before if one in variables and other in variables),
        conditions=tuple(each for each in conditions if set(each.variables) <= variables.keys() and each.closing <= whole),
    )

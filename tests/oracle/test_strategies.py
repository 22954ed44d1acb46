"""The random cases: they mean something, and matches of them are what results promise."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from gpu_cep.errors import UnsupportedError
from gpu_cep.lang import ast
from gpu_cep.lang.parser import parse
from gpu_cep.oracle import events
from gpu_cep.oracle.options import EventOptions
from tests.drawn.patterns import ALL_OPERATORS
from tests.drawn.queries import Case, cases, trend_cases

AFTER_MATCH = tuple(events.AFTER_MATCH)
ALL_CASES = st.one_of(
    cases(operators=ALL_OPERATORS, iterations=True, strategies=ast.STRATEGIES, after_match=AFTER_MATCH),
    trend_cases(after_match=AFTER_MATCH),
)


def found(case: Case, **options: object) -> list[events.Match]:
    try:
        return events.matches(parse(case.text), case.events, EventOptions(**case.options | options), limit=2_000)
    except UnsupportedError:
        assume(False)
        raise


@given(ALL_CASES)
def test_matches_are_distinct_and_bind_no_event_twice(case):
    matches = [tuple(match.items()) for match in found(case)]
    assert len(set(matches)) == len(matches)
    for match in matches:
        rows = [row for _, bound in match for row in bound]
        assert rows
        assert len(set(rows)) == len(rows)


@given(ALL_CASES)
def test_strategies_select_from_all_matches(case):
    everything = found(case, strategy="skip_till_any_match", after_match="all")
    selected = found(case, after_match="all")
    assert [match for match in everything if match in selected] == selected


@given(ALL_CASES)
def test_after_match_selects_from_the_matches(case):
    """In the same order."""
    everything, selected = found(case, after_match="all"), found(case)
    assert [match for match in everything if match in selected] == selected
    assert bool(everything) == bool(selected)


@given(cases())
def test_without_being_asked_only_sequences_and_sets_are_drawn(case):
    query = parse(case.text)
    assert query.strategy is None
    assert case.options["strategy"] in ("skip_till_next_match", "skip_till_any_match")
    assert "after_match" not in case.options
    assert not any(word in case.text for word in ("OR(", "NOT(", "LEN", "[1]", ".."))
    assert all(quantity.minimum > 0 for quantity in repeats(query.pattern))


def repeats(node: ast.PatternNode) -> list[ast.Repeat]:
    match node:
        case ast.Repeat():
            return [node]
        case ast.Seq(elements=elements) | ast.And(elements=elements):
            return [repeat for element in elements for repeat in repeats(element)]
    return []

"""The memory of dead ends is kept for states to which several ways lead."""

from __future__ import annotations

import pytest
from hypothesis import given

from gpu_cep.engine.row_patterns import dead_ends
from gpu_cep.engine.row_patterns.dead_ends import met_on_several_ways
from tests.drawn.row_patterns import patterns
from tests.effort import examples
from tests.plan.row_patterns.test_planner import automaton_of, ways_into


@pytest.mark.parametrize(
    ("pattern", "met"),
    [
        ("S B+", ""), ("A{3} B+ C", ""), ("(A | B)* C", "ABC"), ("A+ B+ C", "BC"), ("A B? C D", ""), ("A B? A C", ""), ("A (A | B) A", "A"),
        ("A+ B+", "B"), ("PERMUTE(A, B) C", "C"),
    ],
)  # fmt: skip
def test_states_met_on_several_ways(pattern, met):
    automaton = automaton_of(pattern)
    names = list(dict.fromkeys(letter for letter in pattern.replace("PERMUTE", "") if letter.isalpha()))
    found = met_on_several_ways(automaton)
    assert {names[automaton.variable[q]] for q in range(len(found)) if found[q]} == set(met)


@examples(150, 1_000)
@given(patterns)
def test_no_state_is_left_out(pattern):
    automaton = automaton_of(pattern)
    found = met_on_several_ways(automaton)
    ways: dict[tuple[int, int], int] = {}
    for starts in (automaton.starts_first, automaton.starts_later):
        ways.clear()
        for way in ways_into(automaton, 5):
            if way[0] in starts:
                ways[len(way), way[-1]] = ways.get((len(way), way[-1]), 0) + 1
        assert all(found[q] for (_, q), count in ways.items() if count > 1)


def test_pairs_of_many_states_are_not_followed(monkeypatch):
    monkeypatch.setattr(dead_ends, "_MOST_PAIRED", 2)
    assert met_on_several_ways(automaton_of("A B C")).all()
    assert not met_on_several_ways(automaton_of("A B")).any()

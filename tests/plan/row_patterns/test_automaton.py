"""The automaton of a row pattern has its moves in order of preference, and no more states than it must."""

from __future__ import annotations

import pytest

from gpu_cep.lang.parser import parse
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.plan.row_patterns.automaton import ACCEPT, RowAutomaton, row_automaton


def automaton_of(pattern: str) -> RowAutomaton:
    query = parse(f"MATCH_RECOGNIZE (MEASURES count(*) AS n PATTERN ({pattern}))")
    assert isinstance(query, RowPatternQuery)
    return row_automaton(query.pattern)


@pytest.mark.parametrize(
    ("pattern", "starts", "moves"),
    [
        ("A B", (0,), ((1,), (ACCEPT,))),
        ("A | B", (0, 1), ((ACCEPT,), (ACCEPT,))),
        ("A+", (0,), ((0, ACCEPT),)),
        ("A+?", (0,), ((ACCEPT,),)),
        ("A*? B", (0, 1), ((ACCEPT,), (0, 1))),
        ("A{2}", (0,), ((1,), (ACCEPT,))),
        ("A{1,2}", (0,), ((1, ACCEPT), (ACCEPT,))),
        ("A{1,2}? B", (0,), ((1, 2), (ACCEPT,), (1,))),
        ("(() | A)*", (ACCEPT,), ()),
        ("(A | ())*", (0, ACCEPT), ((0, ACCEPT),)),
        ("A ^ B", (0,), ((),)),
    ],
)
def test_moves_are_in_order_of_preference(pattern, starts, moves):
    found = automaton_of(pattern)
    assert found.starts_later == starts
    assert found.moves == moves


def test_anchors_are_decided():
    found = automaton_of("^ A $ | B")
    assert (found.starts_first, found.starts_later) == ((0, 1), (1,))
    assert (found.moves, found.ends) == (((), (ACCEPT,)), (True, True))


def test_what_is_excluded_is_another_state():
    assert automaton_of("A {- A -}").excluded == (False, True)


@pytest.mark.parametrize(
    ("pattern", "states"),
    [
        ("PERMUTE(A, B, C, D, E, F, G)", 7 * 2**6),
        ("PERMUTE(A, B C)", 6),
        ("((A*)*)*", 2),
        ("(A+ B+)+", 2),
        ("((((A+ B)+ B)+ B)+ B)+", 5),
        ("A{1000}", 1000),
        ("(A | A | A)", 1),
    ],
)
def test_states_are_few(pattern, states):
    assert len(automaton_of(pattern).variable) == states

"""NOT: which events are in its scope, and which of them count."""

from __future__ import annotations

import pytest

from tests.oracle.queries import ANY, NEXT, ROBUST, bindings, stream


def found(text: str, letters: str, *times: int, **options: object) -> bool:
    """Whether there is a match in events of these types at these times."""
    return bool(bindings(f"PATTERN {text}", stream(letters, ts=list(times)), **options))


def test_between_two_variables():
    text = "PATTERN SEQ(A a, NOT(B b), C c)"
    assert bindings(text, stream("AC")) == [((0,), (1,))]
    assert bindings(text, stream("BACB")) == [((1,), (2,))]
    assert bindings(text, stream("ABC")) == []
    assert bindings(text, stream("ABCAC"), ANY) == [((3,), (4,))]


def test_only_events_that_fulfil_the_conditions_count():
    """Pattern 4 of the lazy paper."""
    text = "PATTERN SEQ(A a, NOT(B b), C c, D d) WHERE b.x < c.y"
    assert bindings(text, stream("ABCD", x=[0, 2, 0, 0], y=[0, 0, 3, 0]), ANY) == []
    assert bindings(text, stream("ABCD", x=[0, 4, 0, 0], y=[0, 0, 3, 0]), ANY) == [((0,), (2,), (3,))]
    assert bindings(text, stream("ABCD", x=[0, None, 0, 0], y=[0, 0, 3, 0]), ANY) == [((0,), (2,), (3,))]


def test_conditions_hold_for_all_events_of_a_binding():
    events = stream("ABCC", x=[0, 2, 3, 1])
    assert bindings("PATTERN SEQ(A a, NOT(B b), C c+) WHERE b.x < c.x", events, ANY) == [((0,), (2, 3)), ((0,), (3,))]


def test_conditions_on_whole_bindings():
    """Both B are below the last C; only the second is above the sum of the first C alone."""
    events = stream("ABBCC", x=[0, 2, 4, 3, 6])
    assert bindings("PATTERN SEQ(A a, NOT(B b), C c+) WHERE b.x > sum(c.x)", events, ANY) == [((0,), (3, 4)), ((0,), (4,))]


def test_equivalence_relates_negated_events_to_the_match():
    text = "PATTERN SEQ(A a, NOT(B b), C c) WHERE [k]"
    assert bindings(text, stream("ABC", k=[1, 1, 1])) == []
    assert bindings(text, stream("ABC", k=[1, 2, 1])) == [((0,), (2,))]
    assert bindings(text, stream("ABC", k=[1, None, 1])) == [((0,), (2,))]


def test_a_condition_with_an_absent_variable_is_dropped():
    text = "PATTERN SEQ(A a, OR(B b, C c), NOT(D d), E e) WHERE d.x = b.x"
    assert bindings(text, stream("ABDE", x=[0, 1, 2, 0])) == [((0,), (1,), (), (3,))]
    assert bindings(text, stream("ACDE", x=[0, 1, 2, 0])) == []


def test_an_event_of_the_match_is_not_outside_it():
    assert bindings("PATTERN AND(A a, NOT(A b)) WITHIN 5", stream("A")) == [((0,),)]
    assert bindings("PATTERN AND(A a, NOT(A b)) WITHIN 5", stream("AA")) == []
    assert bindings("PATTERN SEQ(a, NOT(x), c)", stream("ABC"), ANY) == [((0,), (1,)), ((1,), (2,))]


def test_the_scope_begins_behind_the_last_event_of_a_binding():
    text = "PATTERN SEQ(A a+, NOT(B b), C c)"
    assert bindings(text, stream("ABAC"), ANY) == [((0, 2), (3,)), ((2,), (3,))]
    assert bindings("PATTERN SEQ(C c, NOT(B b), A a+)", stream("CABA"), ANY) == [((0,), (1,)), ((0,), (1, 3))]


def test_ties_with_a_neighbour_are_outside():
    assert found("SEQ(A a, NOT(B b), C c)", "ABC", 1, 1, 2)
    assert found("SEQ(A a, NOT(B b), C c)", "ABC", 1, 2, 2)
    assert not found("SEQ(A a, NOT(B b), C c)", "ABC", 1, 1, 2, ties="position")
    assert found("SEQ(NOT(A a), B b) WITHIN 2", "AB", 1, 1)
    assert not found("SEQ(NOT(A a), B b) WITHIN 2", "AB", 1, 1, ties="position")
    assert found("SEQ(NOT(A a), B b) WITHIN 2", "BA", 1, 1, ties="position")


@pytest.mark.parametrize(
    ("text", "letters", "inside", "outside"),
    [
        ("SEQ(NOT(N n), A a) WITHIN 2", "NA", (1, 3), (1, 4)),
        ("SEQ(NOT(N n), A a, B b) WITHIN 4", "NAB", (3, 5, 7), (2, 5, 7)),  # from one window before b
        ("SEQ(A a, NOT(N n)) WITHIN 2", "AN", (1, 3), (1, 4)),
        ("SEQ(A a, B b, NOT(N n)) WITHIN 4", "ABN", (1, 3, 5), (1, 3, 6)),  # to one window behind a
        ("AND(A a, NOT(N n)) WITHIN 2", "NA", (1, 3), (1, 4)),
        ("AND(A a, NOT(N n)) WITHIN 2", "AN", (1, 3), (1, 4)),
        ("AND(A a, B b, NOT(N n)) WITHIN 3", "NAB", (2, 4, 5), (1, 4, 5)),
        ("AND(A a, B b, NOT(N n)) WITHIN 3", "ABN", (4, 5, 7), (4, 5, 8)),
        ("AND(A a, SEQ(B b, NOT(N n))) WITHIN 5", "BAN", (1, 4, 6), (1, 4, 7)),
        ("AND(A a, SEQ(B b, NOT(N n))) WITHIN 5", "BNA", (1, 3, 4), (1, 1, 4)),
        ("SEQ(A a, AND(B b, NOT(N n)), C c)", "ANBC", (1, 2, 3, 4), (1, 1, 3, 4)),
        ("SEQ(A a, AND(B b, NOT(N n)), C c)", "ABNC", (1, 2, 3, 4), (1, 2, 4, 4)),
        ("SEQ(A a?, NOT(N n), C c) WITHIN 3", "NC", (2, 5), (2, 6)),
    ],
)
def test_scope(text, letters, inside, outside):
    assert not found(text, letters, *inside)
    assert found(text, letters, *outside)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("SEQ(A a, B b, NOT(N n)) WITHIN 4 EVENTS", "ABXN", "ABXXN"),
        ("SEQ(NOT(N n), A a, B b) WITHIN 4 EVENTS", "NXAB", "NXXAB"),
        ("AND(A a, B b, NOT(N n)) WITHIN 4 EVENTS", "NXAB", "NXXAB"),
        ("AND(A a, B b, NOT(N n)) WITHIN 4 EVENTS", "BAXN", "BAXXN"),
    ],
)
def test_scope_in_events(text, inside, outside):
    assert bindings(f"PATTERN {text}", stream(inside)) == []
    assert len(bindings(f"PATTERN {text}", stream(outside))) == 1


def test_negation_is_of_the_stream():
    events = stream("ABC", k=[1, 2, 1])
    assert bindings("PATTERN SEQ(A a, NOT(B b), C c)", events) == []
    assert bindings("PATTERN SEQ(A a, NOT(B b), C c)", events, partition_by="k") == [((0,), (2,))]


def test_a_negated_variable_in_two_partial_sequences():
    """a precedes b, which precedes c, so a precedes c."""
    text = "PATTERN AND(SEQ(A a, NOT(B b)), SEQ(NOT(B b), C c))"
    assert bindings(text, stream("BAC")) == [((1,), (2,))]
    assert bindings(text, stream("ABC")) == []
    assert bindings(text, stream("CA")) == []


def test_negation_filters_what_the_strategy_selects():
    """The first C must be taken although a B follows it, except in robust skip-till-next-match, whose Γ obeys negation."""
    text = "PATTERN SEQ(A a, C c, NOT(B b), D d)"
    assert bindings(text, stream("ACBCD"), NEXT) == []
    assert bindings(text, stream("ACBCD"), ROBUST) == [((0,), (3,), (4,))]
    assert bindings(text, stream("ACBCD"), ANY) == [((0,), (3,), (4,))]

"""Contiguity, robust skip-till-next-match, and what happens after a match."""

from __future__ import annotations

import pyarrow as pa
import pytest

from examples.stocks import P3, stocks
from gpu_cep.errors import PatternError
from gpu_cep.lang.parser import parse
from gpu_cep.oracle import events as oracle
from gpu_cep.oracle.options import EventOptions
from tests.oracle.queries import ANY, NEXT, PARTITION, ROBUST, STRICT, bindings, stream


def test_strict_contiguity():
    assert bindings("PATTERN SEQ(A a, B b)", stream("AABCAXB"), STRICT) == [((1,), (2,))]
    assert bindings("PATTERN SEQ(A a, B b)", stream("AXB", k=[1, 2, 1]), STRICT, partition_by="k") == [((0,), (2,))]


def test_contiguous_repetition_is_maximal():
    assert bindings("PATTERN A a+", stream("AABA"), STRICT) == [((0, 1),), ((1,),), ((3,),)]
    assert bindings("PATTERN SEQ(A a, B b+, C c?)", stream("ABBC"), STRICT) == [((0,), (1, 2), ()), ((0,), (1, 2), (3,))]


def test_a_contiguous_run_branches():
    assert bindings("PATTERN SEQ(AND(a, b), C c)", stream("AAC"), STRICT) == [((0,), (1,), (2,)), ((1,), (0,), (2,))]


def test_a_tie_ends_a_contiguous_run():
    assert bindings("PATTERN SEQ(A a, B b)", stream("ABB", ts=[1, 1, 2]), STRICT) == []
    assert bindings("PATTERN SEQ(A a, B b)", stream("ABB", ts=[1, 1, 2]), STRICT, ties="position") == [((0,), (1,))]


def test_a_closing_condition_ends_a_contiguous_run():
    events = stream("AABAB", x=[1, 1, 3, 2, 3])
    assert bindings("PATTERN SEQ(A a+, B b) WHERE sum(a.x) = b.x", events, STRICT) == []
    assert bindings("PATTERN SEQ(A a+, B b) WHERE sum(a.x) < b.x", events, STRICT) == [((0, 1), (2,)), ((1,), (2,)), ((3,), (4,))]


@pytest.mark.parametrize("condition", ["[k]", "a.k = b.k", "b[i].k = a.k"])
def test_partition_contiguity(condition):
    events = stream("AABXB", k=[1, 2, 1, 1, 1])
    assert bindings(f"PATTERN SEQ(A a, B b+) WHERE {condition}", events, PARTITION) == [((0,), (2,))]
    assert bindings(f"PATTERN SEQ(A a, B b+) WHERE {condition}", events, STRICT) == []


def test_a_partition_needs_equalities_that_connect_all_variables():
    events = stream("AXBC", k=[1, 2, 1, 1])
    assert bindings("PATTERN SEQ(A a, B b, C c) WHERE a.k = b.k", events, PARTITION) == []
    assert bindings("PATTERN SEQ(A a, B b, C c) WHERE a.k = b.k AND b.k = c.k", events, PARTITION) == [((0,), (2,), (3,))]
    assert bindings("PATTERN SEQ(A a, B b+) WHERE b[i].k = b[i-1].k", stream("AXB", k=[1, 2, 1]), PARTITION) == []


def test_a_negated_variable_is_not_connected():
    """Without the negated variable the equalities do not connect a and c."""
    events = stream("AXC", k=[1, 2, 1])
    assert bindings("PATTERN SEQ(A a, NOT(B b), C c) WHERE a.k = b.k AND b.k = c.k", events, PARTITION) == []
    assert bindings("PATTERN SEQ(A a, NOT(B b), C c) WHERE a.k = b.k AND a.k = c.k", events, PARTITION) == [((0,), (2,))]


def test_each_branch_has_its_partition():
    """Where b is absent, a and c are connected; where it is present, it is not connected to them."""
    events = stream("AXCABC", k=[1, 2, 1, 3, 4, 3])
    text = "PATTERN SEQ(A a, B b?, C c) WHERE a.k = c.k"
    assert bindings(text, events, PARTITION) == [((0,), (), (2,)), ((3,), (), (5,)), ((3,), (4,), (5,))]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([1.0, 2.0, 1.0], [((0, 2),), ((1,),), ((2,),)]),
        ([0.0, 2.0, -0.0], [((0, 2),), ((1,),), ((2,),)]),
        ([float("nan"), 2.0, float("nan")], [((0,),), ((1,),), ((2,),)]),  # one group, but NaN is not NaN
        ([None, 2.0, None], [((0,),), ((1,),), ((2,),)]),
    ],
)
def test_partition_of_a_single_variable(keys, expected):
    assert bindings("PATTERN A a+ WHERE [k]", stream("AAA", k=pa.array(keys, pa.float64())), PARTITION) == expected


def test_a_window_of_events_counts_the_stream_also_in_a_partition():
    events = stream("AXB", k=[1, 2, 1])
    assert bindings("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 2 EVENTS", events, PARTITION) == []
    assert bindings("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 3 EVENTS", events, PARTITION) == [((0,), (2,))]


def test_robust_matches_of_p3():
    """The thesis' list after Example 6.5."""
    numbers = stocks()["n"].to_pylist()
    found = oracle.matches(parse(P3), stocks(), EventOptions(timestamp="T", strategy=ROBUST))
    assert [{name: tuple(numbers[row] for row in rows) for name, rows in match.items()} for match in found] == [
        {"s1": (1,), "s2": (4,), "s3": (5, 6), "s4": (7,)},
        {"s1": (3,), "s2": (4,), "s3": (5, 6), "s4": (7,)},
        {"s1": (4,), "s2": (5,), "s3": (6,), "s4": (7,)},
        {"s1": (71,), "s2": (74,), "s3": (76,), "s4": (77,)},
    ]


def test_robust_backtracks():
    """The first B leads nowhere."""
    events = stream("ABBC", x=[0, 5, 1, 3])
    assert bindings("PATTERN SEQ(A a, B b, C c) WHERE b.x < c.x", events, ROBUST) == [((0,), (2,), (3,))]
    assert bindings("PATTERN SEQ(A a, B b, C c) WHERE b.x < c.x", events, NEXT) == []


def test_robust_does_not_skip_an_event_that_leads_to_a_match():
    assert bindings("PATTERN SEQ(A a, B b, C c)", stream("ABBC"), ROBUST) == [((0,), (1,), (3,))]


def test_robust_branches_only_into_variables_that_lead_to_a_match():
    """Of the second event, only b completes the match; the third, which c alone could take as well, must not replace it."""
    events = stream("AAAC", x=[1, 1, 2, 2])
    assert bindings("PATTERN SEQ(AND(A a, A b), C c) WHERE a.x < c.x AND b.x = c.x", events, ROBUST) == [
        ((0,), (2,), (3,)),
        ((1,), (2,), (3,)),
    ]


def test_robust_is_maximal():
    events = stream("AAA", x=[1, 2, 3])
    assert bindings("PATTERN A a+ WHERE sum(a.x) < 4", events, ROBUST) == [((0, 1),), ((1,),), ((2,),)]
    assert bindings("PATTERN A a+ WHERE sum(a.x) < 4", events, NEXT) == [((2,),)]


def test_after_match_skip_past_last():
    text = "PATTERN SEQ(A a, B b)"
    assert bindings(text, stream("AABB"), ANY, after_match="skip_past_last") == [((0,), (2,))]
    assert bindings(text, stream("ABAB"), ANY, after_match="skip_past_last") == [((0,), (1,)), ((2,), (3,))]


def test_after_match_skip_to_next():
    text = "PATTERN SEQ(A a, B b)"
    assert bindings(text, stream("AABB"), ANY, after_match="skip_to_next") == [((0,), (2,)), ((1,), (2,))]
    assert bindings("PATTERN A a+", stream("AA"), ANY, after_match="skip_to_next") == [((0,),), ((1,),)]


def test_a_match_that_is_completed_earlier_is_taken_first():
    """The later start completes first, and the earlier one overlaps it."""
    events = stream("AABB", x=[1, 2, 2, 1])
    assert bindings("PATTERN SEQ(A a, B b) WHERE a.x = b.x", events, after_match="skip_past_last") == [((1,), (2,))]


def test_after_match_is_of_each_stream():
    events = stream("AABB", k=[1, 2, 2, 1])
    assert bindings("PATTERN SEQ(A a, B b)", events, partition_by="k", after_match="skip_past_last") == [((0,), (3,)), ((1,), (2,))]


@pytest.mark.parametrize("after_match", ["skip_past_last", "skip_to_next"])
def test_after_match_is_of_all_branches(after_match):
    text = "PATTERN OR(SEQ(A a, B b), SEQ(A a, C c))"
    assert bindings(text, stream("ABC"), after_match=after_match) == [((0,), (1,), ())]


@pytest.mark.parametrize("after_match", ["skip_past_last", "skip_to_next"])
def test_bindings_decide_between_matches_of_the_same_events(after_match):
    assert bindings("PATTERN AND(A a, A b)", stream("AA"), after_match=after_match) == [((0,), (1,))]
    assert bindings("PATTERN SEQ(A a, OR(B b, B c))", stream("AB"), after_match=after_match) == [((0,), (), (1,))]


@pytest.mark.parametrize("option", [{"after_match": "skip_past"}, {"strategy": "greedy"}])
def test_unknown_option(option):
    with pytest.raises(PatternError, match="is one of"):
        oracle.matches(parse("PATTERN A a"), stream("A"), EventOptions(**option))

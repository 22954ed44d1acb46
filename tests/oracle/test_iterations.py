"""Conditions on the events of a repeated variable, and when the strategies check them."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from gpu_cep.errors import EventError, PatternError
from gpu_cep.lang import ast
from gpu_cep.oracle.expressions import Assignment, Schema, meaning
from gpu_cep.oracle.meanings import Kind
from tests.oracle.queries import ANY, NEXT, ROBUST, bindings, stream


def test_iteration_of_the_lazy_paper():
    """Section 4.5 of the lazy paper: seven matches."""
    found = bindings("PATTERN SEQ(A a, B+ b[], C c)", stream("ABBBC"), ANY)
    assert sorted(bound for _, bound, _ in found) == [(1,), (1, 2), (1, 2, 3), (1, 3), (2,), (2, 3), (3,)]


def test_aggregate_of_the_lazy_paper():
    """Pattern 6 of the lazy paper."""
    events = stream("ABBBC", x=[0, 1, 2, 6, 0], y=[0, 0, 0, 0, 3])
    found = bindings("PATTERN SEQ(A a, B+ b[], C c) WHERE AVG(b[i].x) < c.y", events, ANY)
    assert sorted(bound for _, bound, _ in found) == [(1,), (1, 2), (2,)]


@pytest.mark.parametrize("first", ["a[1].x", "first(a.x)"])
def test_first_event(first):
    assert bindings(f"PATTERN A a+ WHERE {first} = 1", stream("AAA", x=[2, 1, 2])) == [((1, 2),)]
    assert bindings(f"PATTERN A a+ WHERE {first} = 1", stream("AAA", x=[2, 1, 2]), ANY) == [((1,),), ((1, 2),)]


def test_every_event_is_compared_with_the_first():
    """The first event is among them."""
    events = stream("AAA", x=[2, 1, 3])
    assert bindings("PATTERN A a+ WHERE a[i].x >= a[1].x", events) == [((0, 2),), ((1, 2),), ((2,),)]
    assert bindings("PATTERN A a+ WHERE a[i].x > a[1].x", events) == []


def test_running_aggregate():
    """It is about every event but the first."""
    events = stream("AAAA", x=[1, 3, 2, 3])
    assert bindings("PATTERN A a+ WHERE a[i].x > avg(a[..i-1].x)", events) == [((0, 1, 3),), ((1,),), ((2, 3),), ((3,),)]
    assert bindings("PATTERN A a+ WHERE count(a[..i-1]) < 2", events) == [((0, 1),), ((1, 2),), ((2, 3),), ((3,),)]


def test_previous_events_of_two_variables():
    text = "PATTERN SEQ(A a{2,}, B b{2}) WHERE a[i].x - a[i-1].x = b[i].x - b[i-1].x"
    assert bindings(text, stream("AAABB", x=[1, 3, 5, 5, 7])) == [((0, 1, 2), (3, 4)), ((1, 2), (3, 4))]
    assert bindings(text, stream("AAABB", x=[1, 3, 6, 5, 7])) == []


def test_each_event_of_one_variable_with_earlier_ones_of_another():
    """For every event of b, and every event of a that another follows."""
    events = stream("AABB", x=[1, 9, 2, 3])
    assert bindings("PATTERN SEQ(A a{2}, B b+) WHERE sum(a[..i-1].x) < b.x", events) == [((0, 1), (2, 3))]


def test_whole_binding_at_completion():
    """Where nothing follows a, its sum is known at the end; by then the rule has taken all it can."""
    events = stream("AAA", x=[1, 1, 2])
    assert bindings("PATTERN A a+ WHERE sum(a.x) > 3", events) == [((0, 1, 2),)]
    assert bindings("PATTERN A a+ WHERE sum(a.x) = 2", events) == [((2,),)]
    assert bindings("PATTERN A a+ WHERE sum(a.x) = 2", events, ROBUST) == [((0, 1),), ((2,),)]
    assert bindings("PATTERN A a+ WHERE sum(a.x) = 2", events, ANY) == [((0, 1),), ((2,),)]


def test_a_binding_is_closed_by_a_successor():
    """The first B would close a with an average too high, and is passed over."""
    events = stream("ABAB", x=[2, 1, 4, 5])
    assert bindings("PATTERN SEQ(A a+, B b) WHERE avg(a.x) < b.x", events) == [((0, 2), (3,)), ((2,), (3,))]


def test_count_of_a_binding():
    assert bindings("PATTERN SEQ(A a+, B b) WHERE count(a) = 2", stream("AABAB")) == [((0, 1), (2,)), ((1, 3), (4,))]
    assert bindings("PATTERN SEQ(A a+, B b) WHERE count(a.x) = 1", stream("AAB", x=[None, 1, 1])) == [((0, 1), (2,)), ((1,), (2,))]


@pytest.mark.parametrize("last", ["a[a.LEN].x", "last(a.x)"])
def test_last_event(last):
    events = stream("AABAB", x=[1, 2, 3, 3, 3])
    assert bindings(f"PATTERN SEQ(A a+, B b) WHERE {last} = b.x", events) == [((0, 1, 3), (4,)), ((1, 3), (4,)), ((3,), (4,))]


def test_a_closed_binding_is_checked_for_every_event_of_the_others():
    events = stream("ABBB", x=[3, 1, 5, 2])
    assert bindings("PATTERN SEQ(A a+, B b+) WHERE sum(a.x) > b.x", events) == [((0,), (1, 3))]


def test_a_closing_condition_waits_until_all_variables_are_bound():
    """C closes a, and is taken before any D is there to compare with."""
    events = stream("ACDD", x=[3, 0, 1, 4])
    assert bindings("PATTERN SEQ(A a+, AND(C c, D d)) WHERE sum(a.x) < d.x", events) == [((0,), (1,), (3,))]


def test_without_order_a_binding_is_closed_at_completion_only():
    events = stream("ACC", x=[2, 1, 3])
    assert bindings("PATTERN AND(A a+, C c) WHERE last(a.x) < c.x", events, NEXT) == []
    assert bindings("PATTERN AND(A a+, C c) WHERE last(a.x) < c.x", events, ROBUST) == [((0,), (2,))]


@pytest.mark.parametrize("whole", ["last(a.x)", "avg(a.x)", "a[a.LEN].x", "max(a.x)", "a[1].x", "a.x"])
def test_of_a_single_variable_it_is_the_value(whole):
    """The pair is checked when it is bound, so that the first C is passed over."""
    events = stream("ACC", x=[2, 1, 3])
    assert bindings(f"PATTERN AND(A a, C c) WHERE {whole} < c.x", events) == [((0,), (2,))]
    assert bindings(f"PATTERN AND(A a{{1}}, C c) WHERE {whole} < c.x", events) == [((0,), (2,))]


def test_the_same_variable_event_by_event_and_as_a_whole():
    events = stream("AAAB", x=[4, 5, 6, 0])
    assert bindings("PATTERN SEQ(A a+, B b) WHERE a.x >= avg(a.x) - 1", events) == [((0, 1, 2), (3,)), ((1, 2), (3,)), ((2,), (3,))]
    assert bindings("PATTERN SEQ(A a+, B b) WHERE a[i-1].x + a[i].x < sum(a.x)", events, ANY) == [
        ((0,), (3,)),
        ((0, 1, 2), (3,)),
        ((1,), (3,)),
        ((2,), (3,)),
    ]


def test_absent_variables():
    assert bindings("PATTERN SEQ(A a*, B b) WHERE sum(a.x) = b.x", stream("AB", x=[1, 2])) == [((), (1,))]


ROWS = [
    {"x": 1, "y": 0.5, "z": math.nan, "m": Decimal("0.25"), "s": "b", "n": None},
    {"x": None, "y": None, "z": None, "m": None, "s": None, "n": None},
    {"x": 4, "y": 1.0, "z": 3.0, "m": Decimal("0.50"), "s": "a", "n": None},
    {"x": 0, "y": 2.0, "z": 1.0, "m": Decimal("9.00"), "s": "c", "n": None},
]
SCHEMA = Schema({"x": Kind.INTEGER, "y": Kind.FLOAT, "z": Kind.FLOAT, "m": Kind.DECIMAL, "s": Kind.STRING, "n": Kind.INTEGER})


@pytest.mark.parametrize(
    ("function", "attribute", "running", "whole"),
    [
        ("sum", "x", 5, 5),
        ("avg", "x", 2.5, 5 / 3),
        ("min", "x", 1, 0),
        ("max", "x", 4, 4),
        ("count", "x", 2, 3),
        ("first", "x", 1, 1),
        ("last", "x", 4, 0),
        ("sum", "y", 1.5, 3.5),
        ("avg", "y", 0.75, 3.5 / 3),
        ("sum", "m", Decimal("0.75"), Decimal("9.75")),
        ("avg", "m", 75 / 2 / 100, 975 / 3 / 100),
        ("min", "m", Decimal("0.25"), Decimal("0.25")),
        ("min", "s", "a", "a"),
        ("max", "s", "b", "c"),
        ("sum", "n", None, None),
        ("avg", "n", None, None),
        ("max", "n", None, None),
        ("count", "n", 0, 0),
        ("count", None, 3, 4),
        ("sum", "z", math.nan, math.nan),
        ("avg", "z", math.nan, math.nan),
        ("min", "z", math.nan, math.nan),
        ("max", "z", math.nan, math.nan),
        ("count", "z", 2, 3),
    ],
)
def test_aggregate(function, attribute, running, whole):
    assignment = Assignment({"a": ROWS}, {"a": 3})
    for is_running, expected in ((True, running), (False, whole)):
        value = meaning(ast.Aggregate(function, "a", attribute, running=is_running), SCHEMA).value(assignment)
        assert type(value) is type(expected)
        assert value == expected or (value != value and expected != expected)


@pytest.mark.parametrize(("function", "attribute"), [("sum", "s"), ("avg", "s"), ("max", "unknown")])
def test_no_aggregate(function, attribute):
    with pytest.raises(PatternError):
        meaning(ast.Aggregate(function, "a", attribute), SCHEMA)


def test_overflowing_sum():
    with pytest.raises(EventError, match="overflow"):
        bindings("PATTERN A a+ WHERE sum(a.x) > 0", stream("AA", x=[2**62, 2**62]))

"""OR, ``?``, ``*``, and variables that stand in a pattern several times: the branches of the normal form."""

from __future__ import annotations

import pytest

from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.lang.parser import parse
from gpu_cep.oracle import events as oracle
from tests.oracle.queries import ANY, bindings, stream


def test_alternatives_leave_the_other_variables_unbound():
    found = oracle.matches(parse("PATTERN OR(A a, B b)"), stream("AB"))
    assert found == [{"a": (0,), "b": ()}, {"a": (), "b": (1,)}]


def test_an_absent_variable_comes_first():
    assert bindings("PATTERN SEQ(A a, OR(B b, C c), D d)", stream("ABCD")) == [((0,), (), (2,), (3,)), ((0,), (1,), (), (3,))]


def test_optional_variable():
    assert bindings("PATTERN SEQ(A a, B b?, C c)", stream("ABC")) == [((0,), (), (2,)), ((0,), (1,), (2,))]


def test_a_present_optional_variable_is_single():
    assert bindings("PATTERN SEQ(A a, B b?, C c)", stream("ABBC")) == [((0,), (), (3,)), ((0,), (1,), (3,))]
    assert bindings("PATTERN SEQ(A a, B b{0,1}, C c)", stream("ABBC")) == [((0,), (), (3,)), ((0,), (1,), (3,))]


def test_a_present_star_is_a_plus():
    assert bindings("PATTERN SEQ(A a, B b*, C c)", stream("ABBC")) == [((0,), (), (3,)), ((0,), (1, 2), (3,))]


def test_a_present_variable_binds_one_event_or_more_up_to_the_maximum():
    assert bindings("PATTERN SEQ(A a, B b{0,2})", stream("ABBB"), ANY) == [
        ((0,), ()),
        ((0,), (1,)),
        ((0,), (1, 2)),
        ((0,), (2,)),
        ((0,), (1, 3)),
        ((0,), (2, 3)),
        ((0,), (3,)),
    ]


def test_the_neighbours_of_an_absent_variable_become_neighbours():
    assert bindings("PATTERN SEQ(A a, B b?, C c)", stream("CBA"), ANY) == []
    assert bindings("PATTERN SEQ(A a?, B b?, C c)", stream("BAC"), ANY) == [((), (0,), (2,)), ((1,), (), (2,)), ((), (), (2,))]


def test_a_branch_that_binds_nothing_yields_nothing():
    assert bindings("PATTERN A a?", stream("BA")) == [((1,),)]
    assert bindings("PATTERN SEQ(A a?, NOT(B b)) WITHIN 1", stream("C")) == []


def test_the_branches_are_a_union():
    assert bindings("PATTERN OR(SEQ(A a, B b), AND(A a, B b))", stream("ABA")) == [((0,), (1,)), ((2,), (1,))]


def test_a_variable_in_several_alternatives():
    assert bindings("PATTERN OR(SEQ(A a, B b), SEQ(A a, C c))", stream("ABC")) == [((0,), (1,), ()), ((0,), (), (2,))]


def test_each_branch_is_selected_by_itself():
    """The b that would lead the branch with b astray does not exist for the branch with c."""
    events = stream("ABCD", x=[0, 9, 1, 5])
    assert bindings("PATTERN SEQ(A a, OR(B b, C c), D d) WHERE b.x < d.x AND c.x < d.x", events) == [((0,), (), (2,), (3,))]


def test_conditions_on_absent_variables_are_dropped():
    assert bindings("PATTERN SEQ(A a, B b?) WHERE a.x < b.x", stream("AB", x=[5, 1])) == [((0,), ())]
    assert bindings("PATTERN OR(A a, B b) WHERE a.x + b.x > 9", stream("AB", x=[5, 1])) == [((0,), ()), ((), (1,))]


def test_equivalence_relates_the_variables_that_are_present():
    assert bindings("PATTERN SEQ(A a, B b?, C c) WHERE [k]", stream("ABC", k=[1, 2, 1])) == [((0,), (), (2,))]


def test_a_variable_shared_by_partial_sequences():
    text = "PATTERN AND(SEQ(A a, B b), SEQ(C c, B b))"
    assert bindings(text, stream("CAB")) == [((1,), (2,), (0,))]
    assert bindings(text, stream("ABC")) == []


def test_partial_sequences_that_follow_each_other():
    text = "PATTERN AND(SEQ(A a, B b), SEQ(B b, C c))"
    assert bindings(text, stream("ABC")) == [((0,), (1,), (2,))]
    assert bindings(text, stream("CAB")) == []


def test_partial_sequences_of_the_lazy_paper():
    """Pattern 3 of the lazy paper."""
    text = "PATTERN AND(SEQ(A a, B b), SEQ(C c, D d), E e)"
    assert bindings(text, stream("CAEDB")) == [((1,), (4,), (0,), (3,), (2,))]
    assert bindings(text, stream("DAEBC")) == []


def test_a_shared_variable_is_in_all_elements_or_in_none():
    """``b?`` is there or it is not, wherever it stands: no branch has it after a without having it before c."""
    assert bindings("PATTERN AND(SEQ(A a, B b?), SEQ(B b?, C c))", stream("CAB")) == [((1,), (), (0,))]
    assert bindings("PATTERN AND(SEQ(A a, B b?), SEQ(B b?, C c))", stream("ABC")) == [((0,), (), (2,)), ((0,), (1,), (2,))]


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN OR(A a, B a)",
        "PATTERN AND(SEQ(A a, B b), SEQ(C c, b))",
        "PATTERN AND(SEQ(A a, B b), SEQ(C c, B b+))",
        "PATTERN OR(A a, A a?)",
        "PATTERN SEQ(A a?, A a)",
        "PATTERN SEQ(A a, OR(B b, A a))",
        "PATTERN AND(SEQ(A a, B b), SEQ(B b, C c), SEQ(C c, A a))",
        "PATTERN SEQ(A a, NOT(B b), C c, NOT(B b), D d)",
        "PATTERN SEQ(A a, NOT(A a), B b)",
        "PATTERN OR(SEQ(A a, B b), SEQ(A a, NOT(B b), C c))",
        "PATTERN SEQ(A a, NOT(SEQ(B b, C c)), D d)",
        "PATTERN SEQ(A a, NOT(OR(B b, C c)), D d)",
        "PATTERN SEQ(A a, NOT(NOT(B b)), D d)",
        "PATTERN SEQ(A a, NOT(B b+), C c)",
        "PATTERN SEQ(A a, NOT(B b?), C c)",
        "PATTERN SEQ(A a, NOT(B b), NOT(C c), D d) WHERE b.ts < c.ts",
        "PATTERN OR(SEQ(A a, NOT(B b), D d), SEQ(A a, NOT(C c), D d)) WHERE b.ts < c.ts",
        "PATTERN SEQ(NOT(A a), B b)",
        "PATTERN SEQ(A a, NOT(B b))",
        "PATTERN AND(A a, NOT(B b))",
        "PATTERN SEQ(A a?, NOT(B b), C c)",  # open where a is absent
        "PATTERN NOT(A a) WITHIN 5",
        "PATTERN OR(NOT(A a), NOT(B b)) WITHIN 5",
        "PATTERN SEQ(A a, B b?) WHERE b.unknown > 1",
    ],
)
def test_meaningless(text):
    with pytest.raises(PatternError):
        oracle.matches(parse(text), stream("AB"))


def test_number_of_branches():
    with pytest.raises(UnsupportedError, match="this one has 1024"):
        oracle.matches(parse(f"PATTERN AND({', '.join(f'v{n}?' for n in range(10))})"), stream("A"))

"""Timeouts by their definition: the longest prefix of each start without a match."""

from __future__ import annotations

import pytest

from gpu_cep.errors import PatternError
from gpu_cep.lang.parser import parse
from gpu_cep.oracle.options import EventOptions
from gpu_cep.oracle.timeouts import timeouts
from tests.oracle.queries import ANY, NEXT, PARTITION, STRICT, bindings, stream


def found(text, events, strategy=NEXT, **options):
    """The bindings of each timeout, and what is missing."""
    over = timeouts(parse(text), events, EventOptions(strategy=strategy, **options))
    return [(tuple(each.prefix.values()), each.missing) for each in over]


def test_what_a_run_has_bound_when_its_window_is_over():
    events = stream("AABC", ts=[1, 2, 3, 9])
    assert found("PATTERN SEQ(A a, B b, C c) WITHIN 5", events) == [(((0,), (2,), ()), ("c",)), (((1,), (2,), ()), ("c",))]


def test_a_start_with_a_match_has_no_timeout():
    events = stream("AABA", ts=[1, 2, 3, 9])
    assert bindings("PATTERN SEQ(A a, B b) WITHIN 5", events) == [((0,), (2,)), ((1,), (2,))]
    assert found("PATTERN SEQ(A a, B b) WITHIN 5", events) == [(((3,), ()), ("b",))]


def test_a_run_that_is_ruled_out_lacks_nothing():
    events = stream("ABCAB", ts=[1, 2, 3, 9, 10])
    assert found("PATTERN SEQ(A a, B b, NOT(C c)) WITHIN 5", events) == [(((0,), (1,)), ())]
    assert found("PATTERN SEQ(A a, B b+) WHERE sum(b.x) > 1 WITHIN 5", stream("AB", x=[5, 1])) == [(((0,), (1,)), ())]


def test_a_quantified_variable_lacks_events_until_it_has_its_least():
    assert found("PATTERN SEQ(A a{2,}, B b) WITHIN 9", stream("AA")) == [(((0, 1), ()), ("b",)), (((1,), ()), ("a", "b"))]


def test_of_several_runs_the_longest_counts_then_the_one_that_lacks_least():
    # the first run binds b to the one B, the second one c and d
    text = "PATTERN OR(SEQ(A a, B b, X x), SEQ(A a, C c, D d, X x)) WITHIN 9"
    assert found(text, stream("ABCD")) == [(((0,), (), (), (2,), (3,)), ("x",))]
    assert found("PATTERN OR(SEQ(A a, B b, C c), SEQ(A a, D d)) WITHIN 9", stream("A")) == [(((0,), (), (), ()), ("d",))]
    assert found("PATTERN OR(SEQ(A a, B b), SEQ(A a, C c)) WITHIN 9", stream("A")) == [(((0,), (), ()), ("b",))]


def test_a_branch_without_an_optional_variable_lacks_less():
    assert found("PATTERN SEQ(A a, B b?, C c) WITHIN 9", stream("AX")) == [(((0,), (), ()), ("c",))]


@pytest.mark.parametrize(("strategy", "second"), [(STRICT, ()), (PARTITION, (2,))])
def test_contiguity_ends_a_run_early(strategy, second):
    events = stream("AXBX", k=[1, 2, 1, 1])
    assert found("PATTERN SEQ(A a, B b, C c) WHERE [k] WITHIN 9", events, strategy)[0][0] == ((0,), second, ())


def test_a_key_that_is_null_equals_none():
    assert found("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 9", stream("AB", k=[None, None])) == [(((0,), ()), ("b",))]


def test_other_strategies_have_no_runs_of_their_own():
    with pytest.raises(PatternError, match="strategy is one of strict_contiguity, partition_contiguity, skip_till_next_match"):
        found("PATTERN SEQ(A a, B b) WITHIN 9", stream("A"), ANY)

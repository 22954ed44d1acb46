"""The oracle on streams small enough to check by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from gpu_cep.errors import EventError, PatternError, UnsupportedError
from gpu_cep.lang.parser import parse
from gpu_cep.oracle import events as oracle
from gpu_cep.oracle.options import EventOptions
from tests.oracle.queries import ANY, bindings, stream


def test_sequence_of_two():
    assert bindings("PATTERN SEQ(A a, B b)", stream("ABB"), ANY) == [((0,), (1,)), ((0,), (2,))]
    assert bindings("PATTERN SEQ(A a, B b)", stream("ABB")) == [((0,), (1,))]


def test_each_start_has_its_own_run():
    assert bindings("PATTERN SEQ(A a, B b)", stream("AAB")) == [((0,), (2,)), ((1,), (2,))]


def test_set_in_any_order():
    assert bindings("PATTERN SEQ(AND(A a, B b), C c)", stream("BAC")) == [((1,), (0,), (2,))]


def test_sequence_inside_a_set():
    text = "PATTERN AND(SEQ(A a, B b), C c)"
    assert bindings(text, stream("ACB")) == [((0,), (2,), (1,))]
    assert bindings(text, stream("CBA")) == []


def test_repetition_is_greedy_and_maximal():
    assert bindings("PATTERN SEQ(A a, B b+)", stream("ABB")) == [((0,), (1, 2))]
    assert bindings("PATTERN SEQ(A a, B b+)", stream("ABB"), ANY) == [((0,), (1,)), ((0,), (1, 2)), ((0,), (2,))]


@pytest.mark.parametrize(
    ("quantifier", "expected"),
    [("{2}", [((0, 1),), ((1, 2),)]), ("{2,}", [((0, 1, 2),), ((1, 2),)]), ("{1,2}", [((0, 1),), ((1, 2),), ((2,),)])],
)
def test_bounded_repetition(quantifier, expected):
    assert bindings(f"PATTERN A a{quantifier}", stream("AAA")) == expected


def test_a_complete_match_that_the_rule_extends_is_not_reported():
    """b takes the second B, after which nothing completes c's condition; the shorter b is no result."""
    events = stream("ABBC", x=[0, 1, 5, 3])
    text = "PATTERN SEQ(A a, B b+, C c) WHERE b.x < c.x"
    assert bindings(text, events) == []
    assert bindings(text, events, ANY) == [((0,), (1,), (3,))]


def test_several_variables_branch():
    assert bindings("PATTERN AND(A a, A b)", stream("AA")) == [((0,), (1,)), ((1,), (0,))]


def test_ties_strict():
    events = stream("AB", ts=[1, 1])
    assert bindings("PATTERN SEQ(A a, B b)", events, ties="strict") == []
    assert bindings("PATTERN SEQ(A a, B b)", events, ties="position") == [((0,), (1,))]
    assert bindings("PATTERN SEQ(B b, A a)", events, ties="position") == []


def test_events_of_one_binding_may_tie():
    assert bindings("PATTERN A a+", stream("AA", ts=[1, 1])) == [((0, 1),), ((1,),)]


def test_order_by_breaks_ties_with_null_first():
    events = stream("AAA", ts=[1, 1, 1], x=[2, None, 1])
    assert bindings("PATTERN A a{3}", events, order_by="x") == [((1, 2, 0),)]


def test_unsorted_input():
    assert bindings("PATTERN SEQ(A a, B b)", stream("BA", ts=[2, 1])) == [((1,), (0,))]


def test_streams_are_independent_and_null_is_a_key():
    events = stream("AABAB", k=[2, None, 2, 1, None])
    assert bindings("PATTERN SEQ(A a, B b)", events, partition_by="k") == [((1,), (4,)), ((0,), (2,))]
    assert bindings("PARTITION BY k PATTERN SEQ(A a, B b)", events) == [((1,), (4,)), ((0,), (2,))]


def test_nan_keys_are_one_stream():
    events = stream("AB", k=[float("nan"), float("nan")])
    assert bindings("PATTERN SEQ(A a, B b)", events, partition_by="k") == [((0,), (1,))]


def test_time_window_is_inclusive():
    text = "PATTERN SEQ(A a, B b) WITHIN 2"
    assert bindings(text, stream("AB", ts=[1, 3])) == [((0,), (1,))]
    assert bindings(text, stream("AB", ts=[1, 4])) == []


def test_window_of_a_unit():
    text = "PATTERN SEQ(A a, B b) WITHIN 1500 ms"
    assert bindings(text, stream("AB", ts=pa.array([0, 1_500_000], pa.timestamp("us")))) == [((0,), (1,))]
    assert bindings(text, stream("AB", ts=pa.array([0, 1_500_001], pa.timestamp("us")))) == []
    for unit in ("s", "second", "seconds"):
        assert bindings(text, stream("AB"), time_unit=unit) == [((0,), (1,))]
    with pytest.raises(PatternError, match="time_unit"):
        bindings(text, stream("AB"))


def test_a_window_without_a_unit_counts_ticks_of_numbers_and_the_time_unit_of_times():
    text, times = "PATTERN SEQ(A a, B b) WITHIN 1.5", pa.array([0, 1500], pa.timestamp("ms"))
    for kind in (pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns", "UTC")):
        assert bindings(text, stream("AB", ts=times.cast(kind)), time_unit="s") == [((0,), (1,))]
        assert bindings(text, stream("AB", ts=times.cast(kind)), time_unit="ms") == []
        with pytest.raises(PatternError, match="time_unit"):
            bindings(text, stream("AB", ts=times.cast(kind)))
    days = pa.array([0, 14], pa.int32()).cast(pa.date32())
    assert bindings("PATTERN SEQ(A a, B b) WITHIN 2", stream("AB", ts=days), time_unit="week") == [((0,), (1,))]
    for unit in (None, "ms", "days"):
        assert bindings("PATTERN SEQ(A a, B b) WITHIN 2", stream("AB", ts=[1, 3]), time_unit=unit) == [((0,), (1,))]


def test_count_window_counts_all_events_of_the_stream():
    text = "PATTERN SEQ(A a, B b) WITHIN 3 EVENTS"
    assert bindings(text, stream("ACB")) == [((0,), (2,))]
    assert bindings(text, stream("ACCB")) == []
    assert bindings(text, stream("ACCB", k=[1, 2, 2, 1]), partition_by="k") == [((0,), (3,))]


def test_pairs_hold_for_all_combinations():
    events = stream("AABB", x=[1, 2, 3, 2])
    assert bindings("PATTERN SEQ(A a+, B b+) WHERE a.x < b.x", events, ANY) == [
        ((0,), (2,)),
        ((0, 1), (2,)),
        ((0,), (2, 3)),
        ((0,), (3,)),
        ((1,), (2,)),
    ]


def test_three_variables_hold_for_all_combinations():
    events = stream("ABBC", x=[1, 1, 2, 3])
    assert bindings("PATTERN SEQ(A a, B b+, C c) WHERE a.x + b.x < c.x", events, ANY) == [((0,), (1,), (3,))]


def test_previous_event_of_a_binding():
    events = stream("AAAA", x=[1, 3, 2, 4])
    assert bindings("PATTERN A a+ WHERE prev(a.x) < a.x", events) == [((0, 1, 3),), ((1, 3),), ((2, 3),), ((3,),)]
    assert bindings("PATTERN A a+ WHERE a[i].x > a[i-1].x", events) == [((0, 1, 3),), ((1, 3),), ((2, 3),), ((3,),)]


def test_previous_event_and_another_variable():
    """The last event of a is nobody's previous event."""
    events = stream("AAB", x=[1, 9, 2])
    assert bindings("PATTERN SEQ(A a{2}, B b) WHERE a[i-1].x < b.x", events) == [((0, 1), (2,))]


def test_null_fulfils_no_comparison():
    events = stream("AB", x=[None, None])
    assert bindings("PATTERN SEQ(A a, B b) WHERE a.x = b.x", events) == []
    assert bindings("PATTERN SEQ(A a, B b) WHERE a.x <> b.x", events) == []


def test_equivalence_relates_all_events():
    events = stream("AAB", k=[1, 2, 1])
    assert bindings("PATTERN SEQ(A a+, B b) WHERE [k]", events) == [((0,), (2,))]
    assert bindings("PATTERN SEQ(A a+, B b)", events) == [((0, 1), (2,)), ((1,), (2,))]


def test_equivalence_over_one_event_relates_nothing():
    assert bindings("PATTERN A a WHERE [k]", stream("A", k=pa.array([None], pa.int64()))) == [((0,),)]


def test_the_closure_of_connecting_equalities_is_incremental():
    """a and c meet only through b, yet a c of another key is passed over (thesis Def. 5.3)."""
    events = stream("ACCB", k=[1, 2, 1, 1])
    connected = "PATTERN SEQ(AND(A a, C c), B b) WHERE a.k = b.k AND b.k = c.k"
    assert bindings(connected, events) == [((0,), (2,), (3,))]
    # Without the closure c takes the event of key 2, a dead end: that is so where not all variables are connected.
    assert bindings("PATTERN SEQ(AND(A a, C c), B b) WHERE a.k = b.k AND c.k >= a.k", events) == [((0,), (1,), (3,))]
    assert bindings("PATTERN SEQ(AND(A a, C c), AND(B b, A d)) WHERE a.k = b.k AND b.k = c.k", stream("ACCBA", k=[1, 2, 1, 1, 1])) == []


def test_constant_condition():
    assert bindings("PATTERN A a WHERE 1 = 1", stream("A")) == [((0,),)]
    assert bindings("PATTERN A a WHERE NULL", stream("A")) == []
    assert bindings("PATTERN A a WHERE 1 = 2", stream("A"), ANY) == []


def test_an_event_is_bound_once():
    assert bindings("PATTERN AND(a, b)", stream("A"), ANY) == []


def test_order_of_results():
    """Last event before bindings, bindings as lists of positions."""
    events = stream("AAAB")
    assert bindings("PATTERN SEQ(A a+, B b)", events, ANY) == [
        ((0,), (3,)),
        ((0, 1), (3,)),
        ((0, 1, 2), (3,)),
        ((0, 2), (3,)),
        ((1,), (3,)),
        ((1, 2), (3,)),
        ((2,), (3,)),
    ]
    assert bindings("PATTERN AND(A a, B b+)", stream("BAB"), ANY) == [((1,), (0,)), ((1,), (0, 2)), ((1,), (2,))]


def test_no_events():
    assert bindings("PATTERN A a", pa.table({"ts": pa.array([], pa.int64()), "type": pa.array([], pa.string())})) == []


def test_null_timestamp():
    with pytest.raises(EventError, match="'ts' holds 1 NULL"):
        bindings("PATTERN A a", stream("AA", ts=[1, None]))


def test_nan_timestamp():
    with pytest.raises(EventError, match="NaN"):
        bindings("PATTERN A a", stream("A", ts=[float("nan")]))


def test_overflow_in_a_condition():
    with pytest.raises(EventError, match="overflow"):
        bindings("PATTERN SEQ(A a, B b) WHERE a.x + b.x > 0", stream("AB", x=[2**62, 2**62]))


@pytest.mark.parametrize("strategy", ["skip_till_next_match", "skip_till_any_match"])
def test_limit(strategy):
    with pytest.raises(UnsupportedError, match=r"tries 100 .* of 120 events"):
        bindings("PATTERN A a+", stream("A" * 120), strategy, limit=100)


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A a+ WHERE a[2].ts > 1",
        f"PATTERN AND({', '.join(f'v{n}?' for n in range(10))})",  # 1,024 branches
    ],
)
def test_refused(text):
    with pytest.raises(UnsupportedError):
        oracle.matches(parse(text), stream("AB"))


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B a)",
        "PATTERN AND(SEQ(A a, B b), SEQ(B b, A a))",
        "PATTERN A a WHERE b.ts > 1",
        "PATTERN A a WHERE a.unknown > 1",
        "PATTERN A a WHERE [unknown]",
        "PATTERN A a WHERE a.ts",
    ],
)
def test_meaningless(text):
    with pytest.raises(PatternError):
        oracle.matches(parse(text), stream("AB"))


def test_contradicting_strategy():
    query = parse("PATTERN A a WHERE skip_till_any_match { a.ts > 1 }")
    with pytest.raises(PatternError, match="strategy"):
        oracle.matches(query, stream("A"), EventOptions(strategy="skip_till_next_match"))

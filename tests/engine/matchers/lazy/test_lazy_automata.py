"""The lazy automata: their matches, slices, limits and the choice by frequency; the conformance tests hold them to the oracle."""

from __future__ import annotations

import itertools
from functools import partial
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep
from gpu_cep import errors
from gpu_cep.engine.events.batches import cut_batches
from gpu_cep.engine.matchers import negation_schedule
from gpu_cep.engine.matchers.lazy import enumeration

QUERY = "PATTERN SEQ(AND(A a, B b), C c) WHERE a.x < b.x AND b.x <> c.x WITHIN 40"


def events(size, shares, seed=1):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.cumsum(rng.integers(0, 3, size)),
            "type": rng.choice(list("ABC"), size, p=shares),
            "k": rng.integers(0, 3, size),
            "x": pa.array(rng.integers(0, 50, size), mask=rng.random(size) < 0.1),
        }
    )


def matched(table, query=QUERY, **options):
    return gpu_cep.match(table, query, strategy="skip_till_any_match", **{"output": "indices", "threads": 1, **options})


LAZY = pytest.mark.parametrize("algorithm", ["lazy_chain", "lazy_tree"])


@LAZY
@pytest.mark.parametrize("shares", [(0.9, 0.05, 0.05), (0.05, 0.9, 0.05), (0.05, 0.05, 0.9), (0.4, 0.3, 0.3)])
@pytest.mark.parametrize("ties", ["strict", "position"])
@pytest.mark.parametrize("partition_by", [None, "k"])
def test_every_frequency_order_gives_the_matches_of_the_automaton(shares, ties, partition_by, algorithm):
    table = events(600, shares)
    wanted, found = (matched(table, ties=ties, partition_by=partition_by, algorithm=name) for name in ("ses_automaton", algorithm))
    assert found.num_rows > 20
    assert found.equals(wanted)


@LAZY
@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("shares", [(0.6, 0.3, 0.1), (0.1, 0.3, 0.6), (0.3, 0.6, 0.1)])
def test_ties_across_the_border_of_a_batch(size, shares, algorithm):
    """Of events at one time none is before another, whichever batch they are in."""
    rng = np.random.default_rng(2)
    table = pa.table({"ts": np.cumsum(rng.random(400) < 0.3), "type": rng.choice(list("ABC"), 400, p=shares)})
    query = "PATTERN SEQ(A a, B b, C c) WITHIN 4"
    wanted = matched(table, query, ties="strict", algorithm="ses_automaton")
    assert wanted.num_rows > 100
    with patch("gpu_cep.engine.run.cut_batches", partial(cut_batches, size=size)):
        assert matched(table, query, ties="strict", algorithm=algorithm).equals(wanted)


@pytest.mark.parametrize("rarest_last", [*itertools.permutations(range(4))])
@pytest.mark.parametrize("pattern", ["SEQ(A a, B b, C c, D d)", "SEQ(A a, AND(C c, B b), D d)", "SEQ(AND(A a, B b), C c, D d)"])
def test_matches_are_in_order_whatever_order_finds_them(rarest_last, pattern):
    """By first event, last event, then bindings in the order of the pattern."""
    rng = np.random.default_rng(4)
    shares = np.array([0.4, 0.3, 0.2, 0.1])[np.argsort(rarest_last)]
    table = pa.table({"ts": np.cumsum(rng.integers(0, 3, 120)), "type": rng.choice(list("ABCD"), 120, p=shares)})
    found = matched(table, f"PATTERN {pattern} WITHIN 15", algorithm="lazy_chain")
    rows = [tuple(row.values()) for row in found.to_pylist()]
    assert len(rows) > 20
    assert rows == sorted(rows, key=lambda row: (min(row), max(row), row))


@LAZY
@pytest.mark.parametrize("output", ["indices", "count"])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_slices_of_a_stream_report_the_matches_that_start_in_them(output, size, algorithm):
    table = events(500, (0.3, 0.6, 0.1))
    wanted = matched(table, output=output)
    with patch("gpu_cep.engine.run.cut_batches", partial(cut_batches, size=size)):
        assert matched(table, output=output, algorithm=algorithm).equals(wanted)


ITERATED = "PATTERN SEQ(A a, AND(B b{2,}, C c+), NOT(C d), A e) WHERE b[i].x > b[i-1].x AND count(c) < 3 AND d.x > e.x WITHIN 9"


@LAZY
@pytest.mark.parametrize("output", ["indices", "count"])
@pytest.mark.parametrize("query", [QUERY, ITERATED])
def test_an_enumeration_goes_on_where_it_stopped(monkeypatch, output, query, algorithm):
    table = events(500, (0.3, 0.6, 0.1))
    wanted = matched(table, query, output=output, algorithm="ses_automaton")
    monkeypatch.setattr(enumeration, "_STEPS_PER_CALL", 10)
    monkeypatch.setattr(enumeration, "_SMALLEST_OUTPUT", 1)
    monkeypatch.setattr(enumeration, "_LARGEST_OUTPUT", 5)
    monkeypatch.setattr(enumeration, "_PATH", 1)
    monkeypatch.setattr(enumeration, "_ROOM", 1)
    assert matched(table, query, output=output, algorithm=algorithm).equals(wanted)


def test_pivots_alone_are_looked_at_where_windows_do_not_reach():
    """Work follows the rarest variable: a thousand quotes more between the halts cost no step."""

    def steps(quotes):
        types = ["C"] + ["A", "B"] * quotes + ["C"]
        table = pa.table({"ts": [0, *range(10**6, 10**6 + 2 * quotes), 10**7], "type": types})
        return least_steps(table, "PATTERN SEQ(A a, B b, C c) WITHIN 10")

    assert steps(1_000) == steps(10)


def least_steps(table, query, algorithm="lazy_chain"):
    """The least max_steps with which a query runs."""
    for limit in range(1_000):
        try:
            matched(table, query, algorithm=algorithm, max_steps=limit)
        except errors.MatchLimitExceeded:
            continue
        return limit
    raise AssertionError("more than 1,000 steps")


@LAZY
@pytest.mark.parametrize("output", ["indices", "count"])
@pytest.mark.parametrize("query", [QUERY, "PATTERN SEQ(A a, B b+) WITHIN 40"])
@pytest.mark.parametrize("limit", [{"max_matches": 5}, {"max_steps": 5}])
def test_limits_name_the_window(output, query, limit, algorithm):
    table = pa.table({"ts": range(60), "type": list("ABC") * 20, "x": [1, 2, 3] * 20})
    with pytest.raises(errors.MatchLimitExceeded, match=r"more than max_(matches|steps)=5 .*, in the window that starts at ts="):
        matched(table, query, output=output, algorithm=algorithm, **limit)


@LAZY
@pytest.mark.parametrize(
    ("pattern", "condition"),
    [("SEQ(A a, B b)", "a.x + b.x > 0"), ("SEQ(A a, B b+)", "a.x + b.x > 0"), ("SEQ(A a, B b+)", "sum(b.x) + a.x > 0")],
)
def test_an_overflow_names_condition_and_window(pattern, condition, algorithm):
    table = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "A"], "x": [2**62, 2**62, 1]})
    with pytest.raises(errors.EventError) as caught:
        matched(table, f"PATTERN {pattern} WHERE {condition}", algorithm=algorithm)
    assert f"integer overflow in {condition}, in the window that starts at ts=1" in str(caught.value)


def profiled(table, query=QUERY, **options):
    profile = gpu_cep.Profile()
    matched(table, query, profile=profile, **options)
    return profile.counts


def test_rare_events_are_pivots():
    rare = events(2_000, (0.6, 0.3, 0.1))
    assert profiled(rare, algorithm="lazy_chain")["pivots"] == rare["type"].to_pylist().count("C")


def test_a_batch_without_events_of_some_variable_has_no_matches():
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [1, 2]})
    assert profiled(table, algorithm="lazy_chain")["pivots"] == 0
    assert matched(table).num_rows == 0
    assert matched(table, output="count").to_pylist() == [{"count": 0}]


def test_times_of_the_next_stream_say_nothing():
    events = pa.table({"ts": [0, 1, 0], "type": ["B", "B", "B"], "k": [1, 1, 2]})
    query = "PATTERN SEQ(B a, B b) WHERE skip_till_any_match { a.k = b.k }"
    assert gpu_cep.match(events, query, output="indices", algorithm="lazy_chain").to_pylist() == [{"a": 0, "b": 1}]


@LAZY
@pytest.mark.parametrize("pattern", ["SEQ(A a, OR(B b, C c), A d)", "SEQ(A a, B b?, C c)", "OR(SEQ(A a, B b), AND(A a, B b))"])
@pytest.mark.parametrize("output", ["indices", "count"])
def test_each_branch_has_its_chain(pattern, output, algorithm):
    query = f"PATTERN {pattern} WHERE a.x < b.x WITHIN 20"
    table = events(400, (0.5, 0.1, 0.4))
    with patch("gpu_cep.engine.run.cut_batches", partial(cut_batches, size=50)):
        found = matched(table, query, output=output, algorithm=algorithm)
    assert found.equals(matched(table, query, output=output, algorithm="ses_automaton"))
    assert found.num_rows > 0


def test_the_tree_looks_no_further_where_a_window_lacks_a_variable():
    """The order is that of each window: what is rare in one hour and frequent in the next costs steps only where all are there."""

    def steps(idle):
        types = ["A", "B"] * idle + ["C"] * idle + ["A", "B", "C"]
        table = pa.table({"ts": [*range(2 * idle), *range(10**6, 10**6 + idle), *range(10**7, 10**7 + 3)], "type": types})
        starts = 1 + idle
        return least_steps(table, "PATTERN SEQ(A a, B b, C c) WITHIN 1000", "lazy_tree") - starts

    assert steps(100) == steps(10)


NEGATED = (
    "PATTERN SEQ(A a, NOT(B d), C c, A e) WHERE d.x > a.x WITHIN 12",
    "PATTERN SEQ(A a, C c, NOT(B d), B b) WHERE d.x > a.x AND b.x > c.x WITHIN 12",
    "PATTERN SEQ(NOT(B d), A a, B b) WHERE d.x > b.x WITHIN 6",
    "PATTERN SEQ(A a, B b, NOT(B d)) WHERE d.x > b.x WITHIN 6",
    "PATTERN AND(A a, NOT(C d), B b) WHERE d.x < b.x WITHIN 6",
    "PATTERN SEQ(A a, NOT(B d), C c+, A e) WHERE d.x > avg(c.x) WITHIN 9",
    "PATTERN SEQ(A a, NOT(A d), AND(A c, B b+)) WHERE d.x > a.x AND b[i].x > b[i-1].x WITHIN 6",
)


@LAZY
@pytest.mark.parametrize("query", NEGATED)
@pytest.mark.parametrize("early", [True, False])
def test_negations_are_judged_alike_at_the_first_chance_and_in_the_end(monkeypatch, query, early, algorithm):
    monkeypatch.setattr(negation_schedule, "judges_early", lambda needed, expected: early)
    table = events(400, (0.4, 0.4, 0.2))
    wanted = matched(table, query, algorithm="ses_automaton")
    assert wanted.num_rows > 10
    assert matched(table, query, algorithm=algorithm).equals(wanted)
    assert matched(table, query, output="count", algorithm=algorithm).equals(matched(table, query, output="count"))


def test_a_first_chance_spares_what_the_rest_would_cost():
    """The paper's figure 10: no B between A and C rules a match out before the frequent D is looked at."""
    table = pa.table({"ts": range(104), "type": ["A", "B", "C", "C", *"D" * 100]})
    query = "PATTERN SEQ(A a, NOT(B n), C c, D d) WITHIN 1000"
    assert least_steps(table, query) < 10
    with patch.object(negation_schedule, "judges_early", lambda needed, expected: False):
        assert least_steps(table, query) > 100


@pytest.mark.parametrize(
    ("needed", "expected", "early"),
    [((1, 1, 0), (5, 2, 3), True), ((1, 1, 0), (5, 2, 0.5), False), ((1, 1, 1), (5, 2, 0.5), True), ((1, 0, 0), (5, 0.5, 2), True)],
)
def test_a_negation_is_judged_where_fewer_partial_matches_are_expected(needed, expected, early):
    assert negation_schedule.judges_early(np.array(needed, np.bool_), np.array(expected)) is early


@LAZY
@pytest.mark.parametrize("condition", ["b[i].k = b[i-1].k", "b[i].k = b[1].k", "[k]"])
def test_sub_sequences_are_made_within_groups(condition, algorithm):
    """40 events of 20 groups in one window: two to a group, where over all there would be 2 ** 40."""
    table = pa.table({"ts": range(41), "type": ["A"] + ["B"] * 40, "k": [0] + [k % 20 for k in range(40)]})
    found = matched(table, f"PATTERN SEQ(A a, B b+) WHERE {condition}", algorithm=algorithm, max_steps=2_000)
    assert found.num_rows == (3 if condition == "[k]" else 60)


@LAZY
def test_values_that_never_fall_filter_what_follows(algorithm):
    table = pa.table({"ts": range(61), "type": ["A"] + ["B"] * 60, "x": [0, *range(60, 0, -1)]})
    found = matched(table, "PATTERN SEQ(A a, B b+) WHERE b[i].x >= b[i-1].x", algorithm=algorithm, max_steps=4_000)
    assert found.num_rows == 60


@pytest.mark.parametrize("algorithm", ["lazy_chain", "lazy_tree", "join_tree", "brute_force"])
@pytest.mark.parametrize(
    ("pattern", "stream", "expected"),
    [
        # the scope begins a window before the last event, which is not bound when the rare `a` is
        ("SEQ(NOT(N n), A a, B b)", [("N", 0), ("A", 2), ("B", 10), ("B", 11), ("B", 12), ("B", 90), ("B", 95)], [(1, 3), (1, 4)]),
        # the only event between `a` and `c` is in the match where `b`, of which there are more, binds it
        ("AND(X b, SEQ(A a, NOT(X n), C c))", [("A", 1), ("X", 2), ("C", 3), ("X", 4), ("X", 90), ("X", 95)], [(1, 0, 2)]),
    ],
)
def test_a_negation_waits_for_all_that_its_scope_depends_on(algorithm, pattern, stream, expected, monkeypatch):
    monkeypatch.setattr(negation_schedule, "judges_early", lambda needed, expected: True)
    events = pa.table({"type": [kind for kind, _ in stream], "ts": [time for _, time in stream]})
    found = gpu_cep.match(events, f"PATTERN {pattern} WITHIN 10", strategy="skip_till_any_match", algorithm=algorithm, output="indices")
    assert [tuple(row.values()) for row in found.to_pylist()] == expected

"""Joins in the order of a tree: hashing, limits, failures, slices; the conformance tests hold its matches to the oracle."""

from __future__ import annotations

import math
from functools import partial
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep
from gpu_cep import errors
from gpu_cep.engine.events.batches import cut_batches
from gpu_cep.engine.matchers.joins import execution, join_tree
from gpu_cep.plan.join_trees import Join, Single
from tests.effort import every_pair

KEYED = "PATTERN SEQ(A a, B b, AND(C c, D d)) WHERE a.k = b.k AND c.y = d.y AND a.x < d.x AND a.x + c.x > b.x WITHIN 60"
BUSHY = Join(Join(Single(3), Single(2)), Join(Single(1), Single(0)))
TREES = [
    None,
    BUSHY,
    Join(Single(1), Join(Single(3), Join(Single(0), Single(2)))),
    Join(Join(Join(Single(3), Single(1)), Single(0)), Single(2)),
]


def events(size=600):
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "ts": np.cumsum(rng.integers(0, 3, size)),
            "type": rng.choice(list("ABCD"), size),
            "k": rng.integers(0, 4, size),
            "x": pa.array(rng.integers(0, 50, size), mask=rng.random(size) < 0.1),
            "y": rng.choice([0.0, -0.0, 1.5, -2.0, math.nan], size),
        }
    )


def matched(table, query=KEYED, **options):
    defaults = {"output": "indices", "threads": 1, "algorithm": "join_tree"}
    return gpu_cep.match(table, query, strategy="skip_till_any_match", **{**defaults, **options})


def with_tree(tree):
    """The planner's choice, or a tree in its place."""
    return patch.object(join_tree, "cheapest_tree", join_tree.cheapest_tree if tree is None else lambda statistics: tree)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("ties", ["strict", "position"])
@pytest.mark.parametrize("window", ["60", "25 EVENTS"])
def test_any_tree_gives_the_matches_of_the_automaton(tree, ties, window):
    table, query = events(), KEYED.replace("60", window)
    wanted = matched(table, query, ties=ties, algorithm="ses_automaton")
    assert wanted.num_rows > 20
    with with_tree(tree):
        assert matched(table, query, ties=ties).equals(wanted)
        assert matched(table, query, ties=ties, output="count")["count"].to_pylist() == [wanted.num_rows]


@pytest.mark.parametrize(("pattern", "pairs"), [("AND(a, b)", 6), ("SEQ(AND(a, b), c)", 2), ("AND(a, SEQ(b, c))", 3), ("AND(a, b, c)", 6)])
def test_no_event_is_bound_twice(pattern, pairs):
    """Any event fits any variable, and no order keeps those of AND apart."""
    found = matched(pa.table({"ts": [1, 2, 3]}), f"PATTERN {pattern} WITHIN 9", prune=False).to_pylist()
    assert len(found) == pairs
    assert all(len(set(match.values())) == len(match) for match in found)


@pytest.mark.parametrize("buckets", [1, 2])
def test_hashes_may_collide(buckets):
    table = events()
    wanted = matched(table)
    with with_tree(BUSHY), patch.object(execution, "_MOST_BUCKETS", buckets):
        assert matched(table).equals(wanted)


@pytest.mark.parametrize(
    ("values", "pairs"),
    [
        ([0.0, -0.0, math.nan, math.nan], [(0, 1)]),
        ([-0.0, 0.0, None, None], [(0, 1)]),
        ([-(2**63), 0, 0, 2**63 - 1], [(1, 2)]),
    ],
    ids=["nan", "null", "ends"],
)
def test_hashes_find_what_is_equal(values, pairs):
    table = pa.table({"ts": range(4), "v": values})
    found = matched(table, "PATTERN SEQ(a, b) WHERE a.v = b.v", prune=False)
    assert list(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True)) == pairs


def test_equal_values_are_all_that_is_looked_at():
    table = pa.table({"ts": range(1_001), "type": ["A"] + ["B"] * 1_000, "k": [0, *range(1_000)]})
    profile = gpu_cep.Profile()
    assert matched(table, "PATTERN SEQ(A a, B b) WHERE a.k = b.k", prune=False, profile=profile).num_rows == 1
    assert profile.counts["pairs"] < 10


def test_pairs_are_the_steps_of_a_join():
    table = pa.table({"ts": range(1_001), "type": ["A"] + ["B"] * 1_000, "k": [0, *range(1_000)]})
    query = "PATTERN SEQ(A a, B b) WHERE a.k < b.k"
    assert matched(table, query, max_steps=1_000).num_rows == 999
    with pytest.raises(errors.MatchLimitExceeded, match="more than max_steps=999"):
        matched(table, query, max_steps=999)


@pytest.mark.parametrize("output", ["indices", "count"])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_slices_of_a_stream_report_the_matches_that_start_in_them(output, size):
    table = events()
    wanted = matched(table, output=output)
    with patch("gpu_cep.engine.run.cut_batches", partial(cut_batches, size=size)), with_tree(BUSHY):
        assert matched(table, output=output).equals(wanted)


@pytest.mark.parametrize("output", ["indices", "count"])
def test_limits_name_the_window(output):
    table = pa.table({"ts": range(60), "type": list("ABC") * 20})
    with pytest.raises(errors.MatchLimitExceeded, match=r"more than max_matches=5 matches, in the window that starts at ts="):
        matched(table, "PATTERN SEQ(A a, B b, C c) WITHIN 40", output=output, max_matches=5)


def test_an_overflow_names_condition_and_window():
    table = pa.table({"ts": [0, 1, 2, 3], "type": ["B", "A", "B", "A"], "x": [1, 2**62, 2**62, 1]})
    with pytest.raises(errors.EventError, match=r"integer overflow in a\.x \+ b\.x > 0, in the window that starts at ts=1"):
        matched(table, "PATTERN SEQ(A a, B b) WHERE a.x + b.x > 0")


@pytest.mark.parametrize("output", ["indices", "count"])
def test_one_variable_is_a_tree(output):
    found = matched(events(50), "PATTERN A a", output=output)
    assert found.equals(matched(events(50), "PATTERN A a", output=output, algorithm="ses_automaton"))


def test_a_batch_without_events_of_some_variable_has_no_matches():
    table = pa.table({"ts": [1, 2], "type": ["A", "B"]})
    assert matched(table, "PATTERN SEQ(A a, B b, C c)").num_rows == 0
    assert matched(table, "PATTERN SEQ(A a, B b, C c)", output="count").to_pylist() == [{"count": 0}]


def test_times_of_the_next_stream_say_nothing():
    table = pa.table({"ts": [0, 1, 0], "k": [1, 1, 2]})
    assert matched(table, "PATTERN SEQ(a, b) WHERE a.k = b.k").to_pylist() == [{"a": 0, "b": 1}]


def test_many_more_variables_than_are_nested_are_refused():
    names = ", ".join(f"v{v}" for v in range(300))
    with pytest.raises(errors.UnsupportedError, match="at most 128 in a branch"):
        matched(events(10), f"PATTERN SEQ({names})")


def test_as_many_variables_as_are_nested_are_joined():
    size = 128
    table = pa.table({"ts": range(size), "type": [f"T{v}" for v in range(size)]})
    pattern = ", ".join(f"T{v} v{v}" for v in range(size))
    assert matched(table, f"PATTERN SEQ({pattern})").num_rows == 1


NEGATED = [
    "PATTERN SEQ(A a, NOT(D n), B b, C c) WHERE a.k = c.k AND n.x > a.x WITHIN 60",
    "PATTERN SEQ(A a, B b, C c, NOT(D n)) WHERE a.k = b.k AND n.k = c.k WITHIN 20",
    "PATTERN SEQ(NOT(D n), A a, B b, C c) WHERE a.k = c.k AND n.y = b.y WITHIN 30",
    "PATTERN SEQ(AND(A a, C c), NOT(D n), B b) WHERE a.k = b.k AND n.x + a.x > c.x WITHIN 60",
    "PATTERN SEQ(A a, NOT(B n), b, NOT(D m), C c) WHERE a.k = c.k AND n.k = a.k AND m.x < b.x WITHIN 30",
]


@every_pair(
    query=NEGATED,
    tree=[None, Join(Single(2), Join(Single(1), Single(0))), Join(Join(Single(0), Single(2)), Single(1))],
    ties=["strict", "position"],
    threads=[1, 2],
)
def test_negations_rule_out_what_they_do_of_the_automaton(query, tree, ties, threads):
    table = events()
    wanted = matched(table, query, ties=ties, algorithm="ses_automaton")
    assert wanted.num_rows > 5
    with with_tree(tree), patch.object(join_tree, "count_parts", lambda batch: threads):
        assert matched(table, query, ties=ties, threads=threads).equals(wanted)
        assert matched(table, query, ties=ties, threads=threads, output="count")["count"].to_pylist() == [wanted.num_rows]


def test_what_is_negated_is_not_joined():
    """A negation is judged by the first table that has all it needs: the others never see what it rules out."""
    size = 300
    table = pa.table({"ts": range(size), "type": ["A", "N", "B"] * 50 + ["C"] * 150, "k": [0] * size})
    query = "PATTERN SEQ(A a, NOT(N n), B b, C c) WHERE a.k = c.k WITHIN 3000"
    profile = gpu_cep.Profile()
    with with_tree(Join(Join(Single(0), Single(1)), Single(2))):
        assert matched(table, query, prune=False, profile=profile).num_rows == 0
    assert profile.counts["pairs"] == 50 * 51 // 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("output", ["indices", "count"])
def test_a_negation_beside_the_only_variable(threads, output):
    table, query = events(), "PATTERN SEQ(A a, NOT(D n)) WHERE n.x > a.x WITHIN 20"
    wanted = matched(table, query, algorithm="ses_automaton", output=output)
    assert not wanted.equals(matched(table, "PATTERN A a WITHIN 20", output=output))
    with patch.object(join_tree, "count_parts", lambda batch: threads):
        assert matched(table, query, threads=threads, output=output).equals(wanted)


@pytest.mark.parametrize("tree", [Join(Single(0), Join(Single(1), Single(2))), Join(Join(Single(0), Single(1)), Single(2))])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_overflow_beside_a_match_names_condition_and_window(tree, threads):
    types, x = ["A", "N", "B", "C"], [2**62, 2**62, 1, 1]
    table = pa.table({"ts": range(6), "type": ["C", "B", *types], "x": [1, 1, *x]})
    query = "PATTERN SEQ(A a, NOT(N n), B b, C c) WHERE a.x + n.x > b.x WITHIN 9"
    overflow = r"integer overflow in a\.x \+ n\.x > b\.x, in the window that starts at ts=2"
    split = patch.object(join_tree, "count_parts", lambda batch: threads)
    with split, with_tree(tree), pytest.raises(errors.EventError, match=overflow):
        matched(table, query, threads=threads)

"""What a batch tells of how large joins will be."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep
from gpu_cep.engine.matchers.joins import join_tree


def statistics(table, query, **options):
    """Of the first batch of a run."""
    found = []

    def kept(*arguments):
        found.append(plain(*arguments))
        return found[-1]

    plain = join_tree.join_statistics
    with patch.object(join_tree, "join_statistics", kept):
        gpu_cep.match(table, query, strategy="skip_till_any_match", algorithm="join_tree", output="count", **{"prune": False, **options})
    return found[0]


def events(size=1_000):
    random = np.random.default_rng(5)
    columns = {"ts": range(size), "type": ["A", "A", "B", "C"] * (size // 4), "k": random.integers(0, 4, size), "x": random.random(size)}
    return pa.table({**columns, "n": pa.array([None] * size, pa.int64())})


def test_events_are_counted():
    assert statistics(events(), "PATTERN SEQ(A a, AND(B b, c))").counts == (500, 250, 1_000)


@pytest.mark.parametrize(("window", "share"), [("WITHIN 99", 0.095), ("WITHIN 100 EVENTS", 0.095), ("", 0.5)])
def test_a_window_holds_a_share_of_the_batch(window, share):
    """At the end of the stream windows hold less."""
    assert statistics(events(), f"PATTERN SEQ(A a, B b) {window}").share == pytest.approx(share, rel=0.03)


def test_windows_end_with_their_stream():
    split = statistics(events(), "PATTERN SEQ(A a, B b) WITHIN 1000", partition_by="k").share
    assert split == pytest.approx(1 / 8, rel=0.1)


@pytest.mark.parametrize(
    ("condition", "selectivity"),
    [("a.k = b.k", 0.25), ("a.k <> b.k", 0.75), ("a.x < b.x", 0.5), ("b.x >= a.x", 0.5), ("a.n = b.n", 0.0), ("a.x + b.x > 1.9", 0.5)],
)
def test_selectivity_is_that_of_sampled_events(condition, selectivity):
    (found,) = statistics(events(), f"PATTERN SEQ(A a, B b) WHERE {condition}").conditions
    assert found.variables == 0b11
    assert found.selectivity > 0
    assert found.selectivity == pytest.approx(selectivity, abs=0.1)


def test_equalities_of_one_key_are_one_group():
    keyed = "PATTERN SEQ(A a, B b, C c, A d) WHERE a.k = b.k AND b.k = c.k AND a.x = d.x AND c.x < d.x"
    conditions = statistics(events(), keyed).conditions
    groups = {condition.variables: condition.group for condition in conditions}
    assert groups[0b0011] == groups[0b0110] >= 0
    assert groups[0b1001] not in (-1, groups[0b0011])
    assert groups[0b1100] == -1


def test_what_negations_read_joins_nothing():
    found = statistics(events(), "PATTERN SEQ(A a, NOT(C n), B b) WHERE a.k = b.k AND n.k = a.k AND n.x > 0.5 WITHIN 99")
    assert [condition.variables for condition in found.conditions] == [0b11]


@pytest.mark.parametrize(
    ("pattern", "judged"),
    [
        ("SEQ(A a, NOT(C n), B b)", 0b11),
        ("SEQ(A a, B b, NOT(C n))", 0b11),
        ("SEQ(A a, NOT(C n), B b, A d)", 0b011),
        ("SEQ(A a, B b, NOT(C n), A d)", 0b110),
    ],
)
def test_negations_wait_for_what_they_read(pattern, judged):
    assert statistics(events(), f"PATTERN {pattern} WITHIN 99").judged == (judged,)


def test_what_only_a_negated_event_connects_is_not_one_key():
    query = "PATTERN SEQ(A a, NOT(C n), B b) WHERE a.k = b.k AND a.n = b.n AND n.k = a.k AND n.k = a.n WITHIN 99"
    groups = [condition.group for condition in statistics(events(), query).conditions]
    assert len(groups) == len(set(groups)) == 2

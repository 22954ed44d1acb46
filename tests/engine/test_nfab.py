"""NFA^b: what is merged, room that grows, bounds, and faults that name their window."""

from __future__ import annotations

import random
from unittest.mock import patch

import pyarrow as pa
import pytest

import gpu_cep as cep

CHOICE = random.Random(3)


def stream(types, **columns):
    return pa.table({"ts": range(len(types)), "type": list(types), **columns})


def both(events, pattern, strategy="skip_till_any_match", **options):
    """What NFA^b finds, having checked that it is what the automaton finds."""
    options |= {"strategy": strategy, "output": "indices"}
    found = cep.match(events, f"PATTERN {pattern}", algorithm="nfab", **options)
    assert found.equals(cep.match(events, f"PATTERN {pattern}", algorithm="ses_automaton", **options))
    return found


def nodes(events, pattern, strategy="skip_till_any_match"):
    """How many nodes the buffer has in the end."""
    profile = cep.Profile()
    cep.match(events, f"PATTERN {pattern}", strategy=strategy, algorithm="nfab", output="count", profile=profile)
    return profile.counts["nodes"]


def test_runs_that_no_condition_tells_apart_are_one():
    """Each event extends one run, whatever the hundred before it bound, where the automaton walks each pair of them."""
    events = stream("A" * 100 + "B" * 100 + "C")
    assert both(events, "SEQ(A a, B b, C c)").num_rows == 10_000
    assert nodes(events, "SEQ(A a, B b, C c)") == 201


def test_runs_whose_values_a_condition_still_reads_are_not():
    events = stream("AAAABBBBC", x=[1, 1, 2, 2, 5, 5, 6, 6, 9])
    merged, told_apart = "SEQ(A a, B b, C c) WHERE b.x < c.x", "SEQ(A a, B b, C c) WHERE a.x < c.x"
    # c extends the runs with b = 5 and b = 6; each b those with a = 1 and a = 2, and so does c
    assert both(events, merged).num_rows == both(events, told_apart).num_rows == 16
    assert nodes(events, merged) == 4 + 4 + 2
    assert nodes(events, told_apart) == 4 + 2 * 4 + 2


def test_values_are_forgotten_once_no_condition_reads_them():
    events = stream("AAAABBBBC", x=[1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert both(events, "SEQ(A a, B b, C c) WHERE a.x < b.x").num_rows == 16
    # each b extends the runs of four a, and then c extends one
    assert nodes(events, "SEQ(A a, B b, C c) WHERE a.x < b.x") == 4 + 4 * 4 + 1


@pytest.mark.parametrize("strategy", ["skip_till_next_match", "skip_till_any_match", "strict_contiguity", "partition_contiguity"])
def test_windows_that_slide_over_merged_runs(strategy):
    events = stream(CHOICE.choices("AABX", k=3_000), x=CHOICE.choices(range(5), k=3_000))
    for pattern in ("SEQ(A a, B b{1,2}) WITHIN 6", "SEQ(A a{1,2}, B b) WHERE prev(a.x) <= a.x WITHIN 9", "AND(A a, B b) WITHIN 4 EVENTS"):
        assert both(events, pattern, strategy).num_rows > 0


def test_paths_longer_than_the_first_room():
    events = stream("A" + "B" * 500 + "C", x=range(502))
    (match,) = both(events, "SEQ(A a, B b+, C c) WHERE prev(b.x) < b.x", "skip_till_next_match").to_pylist()
    assert len(match["b"]) == 500


def test_more_runs_than_the_first_room():
    events = stream("A" * 300 + "B" * 20, x=range(320))
    assert both(events, "SEQ(A a, B b) WHERE a.x % 7 = b.x % 7").num_rows > 500


def test_a_buffer_that_does_not_fit():
    events = stream("A" * 3_000 + "B" * 3_000, x=range(6_000))
    with patch("gpu_cep.engine.run.memory_for_results", lambda concurrent: 1_000_000), pytest.raises(cep.MatchLimitExceeded) as caught:
        cep.match(events, "PATTERN SEQ(A a, B b) WHERE a.x < b.x", strategy="skip_till_any_match", algorithm="nfab", output="count")
    assert "match buffer of nfab" in str(caught.value)


def test_bounds_on_matches_and_steps():
    events = stream("AAABBB")
    options = {"strategy": "skip_till_any_match", "algorithm": "nfab"}
    with pytest.raises(cep.MatchLimitExceeded, match="max_matches=3 matches"):
        cep.match(events, "PATTERN SEQ(A a, B b)", max_matches=3, **options)
    with pytest.raises(cep.MatchLimitExceeded, match="max_steps=2 automaton steps"):
        cep.match(events, "PATTERN SEQ(A a, B b)", max_steps=2, **options)


def test_an_overflow_names_its_condition_and_a_window():
    events = stream("XAB", x=[0, 2**62, 2**62])
    with pytest.raises(cep.EventError, match=r"integer overflow in a.x \+ b.x > 0, in the window that starts at ts=1"):
        cep.match(events, "PATTERN SEQ(A a, B b) WHERE a.x + b.x > 0", algorithm="nfab")


def test_the_robust_strategy_is_refused():
    message = "algorithm='nfab' needs a strategy other than robust_skip_till_next_match"
    with pytest.raises(cep.UnsupportedError, match=message):
        cep.match(stream("AB"), "PATTERN SEQ(A a, B b)", strategy="robust_skip_till_next_match", algorithm="nfab")

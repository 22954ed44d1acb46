"""NFA^b: what is merged, room that grows, bounds, and faults that name their window."""

from __future__ import annotations

import random
from unittest.mock import patch

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.engine.matchers.nfab.buffer_counts import count_on_buffer

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


def counted(events, pattern, strategy="skip_till_any_match", **options):
    """How many matches NFA^b counts, and the steps it takes to count them when all runs have been followed."""
    spent = []
    target = "gpu_cep.engine.matchers.nfab.nfab.count_on_buffer"
    with patch(target, lambda *given: count_on_buffer(*given[:-1], noting(given[-1], spent))):
        found = cep.match(events, f"PATTERN {pattern}", strategy=strategy, algorithm="nfab", output="count", **options)
    return sum(found["count"].to_pylist()), sum(spent)


def noting(spend, spent):
    def noted(matches, steps, start_of):
        spent.append(steps)
        spend(matches, steps, start_of)

    return noted


def test_counting_takes_no_step_for_a_match():
    """2**60 - 1 matches, each a path of 61 nodes at most."""
    number, steps = counted(stream("A" * 60 + "B"), "SEQ(A a+, B b)")
    assert number == 2**60 - 1
    assert steps < 1_000


def test_counting_is_linear_where_windows_slide_over_one_run():
    """Each start's match is as long as the window; what all starts have in common is passed over."""
    events = stream("AXXXX" * 400, x=range(2_000))
    for window in (50, 500):
        number, steps = counted(events, f"SEQ(A a, v+, X b) WHERE b.x % 50 = 49 AND v.x > 0 WITHIN {window}", "skip_till_next_match")
        assert number >= 400
        assert steps < 20 * 2_000


@pytest.mark.parametrize("strategy", ["skip_till_next_match", "skip_till_any_match", "strict_contiguity", "partition_contiguity"])
def test_counts_where_windows_slide_over_merged_runs(strategy):
    """Each count is that of the matches found, by streams, with a stack of sums that must grow."""
    kinds, keys = CHOICE.choices("AABX", k=1_500), CHOICE.choices(range(3), k=1_500)
    events = stream(kinds, x=CHOICE.choices(range(5), k=1_500), k=keys)
    for pattern in (
        "SEQ(A a, B b{1,2}) WITHIN 9",
        "SEQ(A a{1,2}, B b) WHERE prev(a.x) <= a.x WITHIN 12",
        "SEQ(A a, A b+, B c) WHERE a.x <= b.x WITHIN 10",
        "AND(A a+, B b) WITHIN 5 EVENTS",
    ):
        found = cep.match(events, f"PATTERN {pattern}", strategy=strategy, partition_by="k", algorithm="ses_automaton", output="count")
        with patch("gpu_cep.engine.matchers.nfab.buffer_counts._HEIGHT", 1):
            again = cep.match(events, f"PATTERN {pattern}", strategy=strategy, partition_by="k", algorithm="nfab", output="count")
        assert again.equals(found)
        assert sum(found["count"].to_pylist()) > 0


def test_more_matches_than_64_bits_count():
    events = stream("A" * 70 + "B")
    with pytest.raises(cep.MatchLimitExceeded, match="does not fit a 64-bit count"):
        counted(events, "SEQ(A a+, B b)")


def test_few_matches_of_many_paths_are_counted():
    """All but the paths from the first start have left the window: their number does not fit, and is not asked for."""
    events = stream("A" + "B" * 70 + "C", x=[0] + [1] * 70 + [0])
    # the window of C holds the last two B only
    short = events.set_column(0, "ts", pa.array([0, *range(1, 71), 71]))
    number, _ = counted(short, "SEQ(AND(A a+, B b+), C c) WITHIN 2")
    assert number == 0
    number, _ = counted(short, "SEQ(B b+, C c) WITHIN 3")
    assert number == 7


def test_a_negation_or_a_condition_of_the_end_is_judged_match_by_match():
    events = stream("ABXBAB", x=range(6))
    for pattern in ("SEQ(A a, NOT(X x), B b)", "SEQ(A a, B b+) WHERE count(b) < 2", "SEQ(A a+, B b) WHERE last(a.x) < b.x"):
        found = both(events, pattern)
        counts = cep.match(events, f"PATTERN {pattern}", strategy="skip_till_any_match", algorithm="nfab", output="count")
        assert counts["count"].to_pylist() == [found.num_rows]


def test_bounds_on_matches_name_where_the_counted_ones_begin():
    events = stream("XAAABBB")
    with pytest.raises(cep.MatchLimitExceeded, match="more than max_matches=3 matches, in the window that starts at ts=1"):
        counted(events, "SEQ(A a, B b)", max_matches=3)


def test_a_buffer_that_does_not_fit():
    events = stream("A" * 3_000 + "B" * 3_000, x=range(6_000))
    little = patch("gpu_cep.engine.accounting.match_budget.memory_for_results", lambda concurrent: 1_000_000)
    with little, pytest.raises(cep.MatchLimitExceeded) as caught:
        cep.match(events, "PATTERN SEQ(A a, B b) WHERE a.x < b.x", strategy="skip_till_any_match", algorithm="nfab", output="count")
    assert "match buffer of nfab" in str(caught.value)


def test_bounds_on_matches_and_steps():
    events = stream("AAABBB")
    options = {"strategy": "skip_till_any_match", "algorithm": "nfab"}
    with pytest.raises(cep.MatchLimitExceeded, match="max_matches=3 matches"):
        cep.match(events, "PATTERN SEQ(A a, B b)", max_matches=3, **options)
    with pytest.raises(cep.MatchLimitExceeded, match="max_steps=2 steps"):
        cep.match(events, "PATTERN SEQ(A a, B b)", max_steps=2, **options)


def test_an_overflow_names_its_condition_and_a_window():
    events = stream("XAB", x=[0, 2**62, 2**62])
    with pytest.raises(cep.EventError, match=r"integer overflow in a.x \+ b.x > 0, in the window that starts at ts=1"):
        cep.match(events, "PATTERN SEQ(A a, B b) WHERE a.x + b.x > 0", algorithm="nfab")


def test_the_robust_strategy_is_refused():
    message = "algorithm='nfab' needs a strategy other than robust_skip_till_next_match"
    with pytest.raises(cep.UnsupportedError, match=message):
        cep.match(stream("AB"), "PATTERN SEQ(A a, B b)", strategy="robust_skip_till_next_match", algorithm="nfab")

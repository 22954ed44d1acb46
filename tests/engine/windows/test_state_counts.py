"""Counting by states: what is enumerated elsewhere is only counted here, and windows of any length cost the same."""

from __future__ import annotations

import math
import time
from itertools import pairwise
from unittest.mock import patch

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep_kernels.labels_decide.counting import capped_product, capped_sum
from gpu_cep_kernels.rules.scalars import UNBOUNDED

ANY = {"strategy": "skip_till_any_match"}


def events_of(types, times=None):
    return pa.table({"ts": range(len(types)) if times is None else times, "type": list(types)})


def count(events, pattern, **options):
    (row,) = cep.match(events, f"PATTERN {pattern}", output="count", **ANY, **options).to_pylist()
    return row["count"]


@pytest.mark.parametrize("ties", ["strict", "position"])
def test_nothing_is_enumerated(ties):
    with patch("gpu_cep.engine.matchers.automaton.two_phase.SesAutomaton.count", side_effect=AssertionError):
        assert count(events_of("AABB"), "SEQ(A a+, B b+)", ties=ties) == 9


@pytest.mark.parametrize(
    ("pattern", "number"),
    [
        ("A a+", 2**40 - 1),
        ("A a{2,}", 2**40 - 1 - 40),
        ("A a{20}", math.comb(40, 20)),
        ("A a{2,4}", sum(math.comb(40, size) for size in (2, 3, 4))),
        ("AND(A a, A b)", 40 * 39),
        ("SEQ(A a+, A b+)", sum(math.comb(40, size) * (size - 1) for size in range(2, 41))),
    ],
)
def test_sets_of_one_window(pattern, number):
    assert count(events_of("A" * 40), pattern) == number


def test_windows_that_slide():
    events = events_of("A" * 1000)
    full, length = 1000 - 50 + 1, 50
    # from each start the subsets of what follows in its window
    wanted = full * 2 ** (length - 1) + sum(2**size for size in range(length - 1))
    assert count(events, "A a+ WITHIN 49") == wanted
    assert count(events, "A a+ WITHIN 50 EVENTS") == wanted
    with patch("gpu_cep.engine.windows.state_counts._ROWS", 7):
        assert count(events, "A a+ WITHIN 49") == wanted


def test_events_of_one_time_are_not_before_one_another():
    tied = events_of("AABBAB", [1, 1, 1, 2, 2, 2])
    assert count(tied, "SEQ(A a+, B b+)") == 3 * 3
    assert count(tied, "SEQ(A a+, B b+)", ties="position") == sum(
        1
        for bits in range(2**6)
        if (chosen := [t for e, t in enumerate("AABBAB") if bits >> e & 1]) == sorted(chosen) and {*chosen} == {"A", "B"}
    )


def test_counts_that_fit_and_that_do_not():
    assert count(events_of("A" * 62), "A a+") == 2**62 - 1
    for size in (63, 64, 200):
        with pytest.raises(cep.MatchLimitExceeded, match="does not fit a 64-bit count"):
            count(events_of("A" * size), "A a+")


def test_paths_that_no_end_follows_do_not_count():
    assert count(events_of("A" * 500 + "B"), "SEQ(A a+, C c)", prune=False) == 0


def test_max_matches_names_the_window_of_the_first_one_beyond():
    with pytest.raises(cep.MatchLimitExceeded, match=r"max_matches=3 matches, in the window that starts at ts=1"):
        count(events_of("AAAA"), "A a+ WITHIN 1", max_matches=3)


def test_the_length_of_windows_does_not_matter():
    size, reach = 100_000, 50_000
    events = events_of("A" * size)
    count(events.slice(0, 9), "SEQ(A a, A b, A c) WITHIN 3")
    begin = time.process_time()
    found = count(events, f"SEQ(A a, A b, A c) WITHIN {reach}")
    assert found == sum(math.comb(min(reach, size - 1 - start), 2) for start in range(size))
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(("left", "right"), [*pairwise([0, 1, 2**31, 2**32, 2**62, UNBOUNDED - 1, UNBOUNDED, 3, 0])])
def test_capped_numbers(left, right):
    assert capped_sum(left, right) == min(left + right, UNBOUNDED)
    assert capped_product(left, right) == min(left * right, UNBOUNDED)

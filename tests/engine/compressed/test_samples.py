"""Samples of a compressed result: matches of the query, different ones, each as likely as another."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from tests.effort import examples

PATTERNS = (
    "PATTERN SEQ(A a+, B b+) WITHIN {}", "PATTERN SEQ(A a, B b, A c) WITHIN {}", "PATTERN AND(A a+, B b) WITHIN {}",
    "PATTERN SEQ(A a+, B b) WHERE a[i].x > a[i-1].x WITHIN {}", "PATTERN SEQ(A a, NOT(B n), A b) WITHIN {}",
)  # fmt: skip


def compressed(letters: str, pattern: str, **options: object) -> cep.Compressed:
    events = pa.table({"ts": range(len(letters)), "type": list(letters), "x": [ord(each) % 3 + n % 4 for n, each in enumerate(letters)]})
    return cep.match(events, pattern, strategy="skip_till_any_match", output="compressed", **options)


@examples(40, 300)
@given(st.text("AABB", min_size=2, max_size=9), st.sampled_from(PATTERNS), st.integers(1, 9), st.integers(0, 40), st.integers(0, 9))
def test_a_sample_is_of_different_matches(letters, pattern, window, number, seed):
    found = compressed(letters, pattern.format(window))
    every = [str(match) for match in found.indices()]
    drawn = [str(match) for match in found.sample_indices(number, seed)]
    assert len(set(drawn)) == len(drawn) == min(number, found.count())
    assert set(drawn) <= set(every)
    assert drawn == [str(match) for match in found.sample_indices(number, seed)]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("size", [1, 2])
def test_every_set_of_matches_is_as_likely(pattern, size):
    found = compressed("AABABA" if size == 1 else "AABAA", pattern.format(4))
    every = sorted(str(match) for match in found.indices())
    sets = [frozenset(each) for each in combinations(every, size)]
    assert sets
    tries = 60 * len(sets)
    drawn = Counter(frozenset(str(match) for match in found.sample_indices(size, seed)) for seed in range(tries))
    assert set(drawn) <= set(sets)
    # chi squared of as many degrees of freedom, less one: far more than six standard deviations above the mean is no chance
    squares = sum((drawn[each] - 60) ** 2 / 60 for each in sets)
    assert squares < len(sets) + 6 * (2 * len(sets)) ** 0.5 + 6


def test_of_more_matches_than_atoms_some_are_drawn():
    found = compressed("A" * 600, "PATTERN SEQ(A a+, A b+)")
    lengths = [len(match["a"]) + len(match["b"]) for match in found.sample_indices(20, 3)]
    # a subset of 600 events has half of them, give or take twelve
    assert all(200 < length < 400 for length in lengths)
    assert len(set(lengths)) > 3


def test_events_are_drawn_as_row_numbers_are():
    found = compressed("AABB", PATTERNS[0].format(9), columns=["ts"])
    rows = [{name: [event["ts"] for event in bound] for name, bound in match.items()} for match in found.sample(3, 1)]
    assert rows == [{name: list(bound) for name, bound in match.items()} for match in found.sample_indices(3, 1)]
    assert len(rows) == 3


@pytest.mark.parametrize("number", [-1, 1.5, True, "3"])
def test_a_number_that_is_none_is_refused(number):
    with pytest.raises(cep.PatternError, match="whole number of at least 0"):
        compressed("AB", PATTERNS[0].format(9)).sample(number)

"""``after_match`` over streams, ties and keys; the oracle's tests say what it means."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_cep as cep

ANY = "skip_till_any_match"


def events(types, times=None, **columns):
    return pa.table({"ts": list(times or range(len(types))), "type": list(types), **columns})


def found(table, pattern, after_match, **options):
    matches = cep.match(table, pattern, after_match=after_match, output="indices", **options).to_pylist()
    counted = cep.match(table, pattern, after_match=after_match, output="count", **options)
    assert sum(counted["count"].to_pylist()) == len(matches)
    return [tuple(match.values()) for match in matches]


@pytest.mark.parametrize(
    ("after_match", "expected"),
    [
        ("all", [(0, 2), (0, 4), (1, 2), (1, 4), (3, 4)]),
        ("skip_past_last", [(0, 2), (3, 4)]),
        ("skip_to_next", [(0, 2), (1, 2), (3, 4)]),
    ],
)
def test_of_overlapping_matches(after_match, expected):
    assert found(events("AABAB"), "PATTERN SEQ(A a, B b)", after_match, strategy=ANY) == expected


def test_matches_are_taken_as_they_complete():
    """The match of c ends before that of b, which begins earlier."""
    table = events("ACCB")
    assert found(table, "PATTERN OR(SEQ(A a, B b), SEQ(C c, C d))", "skip_past_last") == [(None, None, 1, 2)]
    assert found(table, "PATTERN OR(SEQ(A a, B b), SEQ(C c, C d))", "all") == [(0, 3, None, None), (None, None, 1, 2)]


@pytest.mark.parametrize("ties", ["strict", "position"])
def test_positions_decide_not_times(ties):
    """The second a stands at the time of the first b, behind it or before it."""
    pattern = "PATTERN SEQ(A a, B b)"
    assert found(events("ABAB", [1, 2, 2, 3]), pattern, "skip_past_last", ties=ties) == [(0, 1), (2, 3)]
    assert found(events("AABB", [1, 2, 2, 3]), pattern, "skip_past_last", ties=ties) == [(0, 2)]


def test_each_stream_has_its_own_matches():
    table = events("AABBAABB", k=[1, 2, 1, 2, 1, 2, 1, 2])
    both = [(0, 2), (4, 6), (1, 3), (5, 7)]
    assert found(table, "PATTERN SEQ(A a, B b)", "skip_past_last", partition_by="k") == both
    counts = cep.match(table, "PATTERN SEQ(A a, B b)", partition_by="k", after_match="skip_past_last", output="count")
    assert counts.to_pylist() == [{"k": 1, "count": 2}, {"k": 2, "count": 2}]


@pytest.mark.parametrize("prune", [True, False])
def test_derived_keys_split_no_stream(prune):
    """The engine may look at the keys apart; matches of one still skip over those of the other."""
    table = events("AABBAABB", k=[1, 2, 1, 2, 1, 2, 1, 2], x=[0, 0, 1, 1, 2, 2, 3, 3])
    pattern = "PATTERN SEQ(A a, B b) WHERE a.k = b.k"
    assert found(table, pattern, "skip_past_last", prune=prune) == [(0, 2), (4, 6)]
    assert found(table, pattern, "skip_to_next", prune=prune) == [(0, 2), (1, 3), (4, 6), (5, 7)]
    # of the events of one time, order_by says which comes first
    tied = events("AABB", [1, 1, 2, 2], k=[1, 2, 1, 2], x=[1, 0, 1, 0])
    assert found(tied, pattern, "skip_past_last", prune=prune) == [(0, 2)]
    assert found(tied, pattern, "skip_past_last", prune=prune, order_by="x") == [(1, 3)]


def test_derived_keys_beside_partition_by():
    table = events("AABBAABB", j=[1, 1, 1, 1, 2, 2, 2, 2], k=[1, 2, 1, 2] * 2)
    assert found(table, "PATTERN SEQ(A a, B b) WHERE [k]", "skip_past_last", partition_by="j") == [(0, 2), (4, 6)]


def test_the_same_completion_goes_by_first_event_and_bindings():
    assert found(events("AAB"), "PATTERN SEQ(A a, B b)", "skip_past_last", strategy=ANY) == [(0, 2)]
    assert found(events("AAAB"), "PATTERN SEQ(AND(A a, A c), B b)", "skip_past_last", strategy=ANY) == [(0, 1, 3)]


@pytest.mark.parametrize("after_match", ["all", "skip_past_last", "skip_to_next"])
@pytest.mark.parametrize("output", ["matches", "events", "indices", "count"])
def test_no_match(after_match, output):
    table = events("AXA", k=[1, 1, 2])
    for options in ({}, {"partition_by": "k"}):
        pattern = "PATTERN SEQ(A a, B b+) WITHIN 5"
        answer = cep.match(table, pattern, after_match=after_match, output=output, **options)
        assert answer.equals(cep.match(table, pattern, after_match=after_match, output=output, algorithm="brute_force", **options))


def test_match_ids_number_what_is_kept():
    found = cep.match(events("AABAB"), "PATTERN SEQ(A a, B b)", strategy=ANY, after_match="skip_past_last", output="events")
    assert found["match_id"].to_pylist() == [0, 0, 1, 1]
    assert found["ts"].to_pylist() == [0, 2, 3, 4]

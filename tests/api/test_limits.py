"""Bounds on output and work stop what would never end; what only looks heavy is fast."""

from __future__ import annotations

import resource
import time

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.errors import MatchLimitExceeded, UnsupportedError

# Of 100 A and then 100 B, (2 ** 100 − 1) ** 2 pairs of sets match.
EXPONENTIAL = pa.table({"ts": range(200), "type": ["A"] * 100 + ["B"] * 100, "k": ["x'y"] * 200})
BOTH_REPEATED = "PATTERN SEQ(A a+, B b+) WITHIN 300"
ANY = {"strategy": "skip_till_any_match"}
MEBIBYTE = 2**10  # of ru_maxrss


def peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("output", ["matches", "events", "indices", "count"])
def test_max_matches_stops_an_exponential_pattern(output):
    cep.match(EXPONENTIAL.slice(98, 4), BOTH_REPEATED, output=output, **ANY)
    before, begin = peak_memory(), time.process_time()
    with pytest.raises(MatchLimitExceeded, match=r"max_matches=1,000 .*starts at ts=0 \(input row 0\) of stream k=\"x'y\""):
        cep.match(EXPONENTIAL, BOTH_REPEATED, output=output, max_matches=1_000, partition_by="k", **ANY)
    assert time.process_time() - begin < 10
    assert peak_memory() - before < 100 * MEBIBYTE


@pytest.mark.parametrize("output", ["matches", "count"])
def test_max_steps_stops_an_exponential_pattern(output):
    pattern = "PATTERN SEQ(A a+, B b+) WHERE a.ts < b.ts WITHIN 300"
    with pytest.raises(MatchLimitExceeded, match=r"max_steps=1,000 steps, in the window that starts at ts=0"):
        cep.match(EXPONENTIAL, pattern, output=output, max_steps=1_000, **ANY)


def test_a_count_that_does_not_fit_is_an_error_at_once():
    cep.match(EXPONENTIAL.slice(98, 4), BOTH_REPEATED, output="count", **ANY)
    begin = time.process_time()
    with pytest.raises(MatchLimitExceeded, match="the number of matches does not fit a 64-bit count"):
        cep.match(EXPONENTIAL, BOTH_REPEATED, output="count", **ANY)
    assert time.process_time() - begin < 10


@pytest.mark.parametrize("output", ["matches", "count"])
@pytest.mark.parametrize("options", [{}, ANY], ids=["next", "any"])
@pytest.mark.parametrize("condition", ["", "WHERE a.ts < b.ts"], ids=["labels", "condition"])
def test_a_limit_that_is_just_reached_is_kept(output, options, condition):
    events = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "B", "A", "B"]})
    pattern = f"PATTERN SEQ(A a, B b) {condition} WITHIN 1"
    assert cep.match(events, pattern, output=output, max_matches=2, **options).num_rows == {"matches": 2, "count": 1}[output]
    with pytest.raises(MatchLimitExceeded, match="max_matches=1 matches"):
        cep.match(events, pattern, output=output, max_matches=1, **options)


TWO_STREAMS = pa.table({"k": [0] * 2 + [1] * 6 + [2] * 2, "ts": range(10), "type": list("AAABABABAB")})


@pytest.mark.parametrize("output", ["indices", "count"])
@pytest.mark.parametrize(
    ("options", "start"),
    [
        ({}, 4),
        ({"prune": False}, 4),
        ({"algorithm": "ses_automaton", **ANY}, 2),
        ({"algorithm": "lazy_chain", **ANY}, 2),
        ({"algorithm": "join_tree", **ANY}, 2),
    ],
)
def test_the_window_of_the_first_match_beyond_the_limit_is_named(output, options, start):
    with pytest.raises(MatchLimitExceeded, match=rf"max_matches=1 .*starts at ts={start} \(input row {start}\) of stream k=1"):
        cep.match(TWO_STREAMS, "PATTERN SEQ(A a, B b)", partition_by="k", max_matches=1, output=output, **options)


@pytest.mark.parametrize("output", ["matches", "count"])
@pytest.mark.parametrize("options", [{}, {"prune": False}, ANY], ids=["next", "unpruned", "any"])
@pytest.mark.parametrize("pattern", ["a{1000000000}", "SEQ(A a{1000000000}, B b)", "SEQ(A a{1000000000}, B b) WHERE a.ts < b.ts"])
def test_a_minimum_beyond_all_events_takes_no_memory(output, options, pattern):
    for events in (TWO_STREAMS, TWO_STREAMS.slice(0, 0)):
        found = cep.match(events, f"PATTERN {pattern}", output=output, **options)
        assert found.num_rows == 0 or found.to_pydict() == {"count": [0]}


def test_matches_longer_than_the_first_buffers_are_found():
    events = pa.table({"ts": range(300), "x": range(300)})
    found = cep.match(events, "PATTERN a+ WHERE a[i].x > a[i-1].x", output="indices", algorithm="ses_automaton")
    assert found["a"].to_pylist() == [list(range(start, 300)) for start in range(300)]


def test_brute_force_keeps_max_matches():
    events = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "B", "A", "B"]})
    with pytest.raises(MatchLimitExceeded, match="max_matches=1"):
        cep.match(events, "PATTERN SEQ(A a, B b) WITHIN 1", algorithm="brute_force", max_matches=1)


def and_of(count):
    return f"PATTERN AND({', '.join(f'T{v} v{v}' for v in range(count))})"


@pytest.mark.parametrize("options", [{}, ANY], ids=["next", "any"])
def test_all_of_twenty_variables_is_fast(options):
    events = pa.table({"ts": range(40), "type": [f"T{7 * e % 20}" for e in range(40)]})
    cep.match(events, f"{and_of(20)} WITHIN 1", output="count", **options)
    begin = time.process_time()
    assert cep.match(events, f"{and_of(20)} WITHIN 19", output="count", **options).to_pydict() == {"count": [21]}
    assert time.process_time() - begin < 5


@pytest.mark.usual
@pytest.mark.parametrize("size", [64, 1024])
def test_many_variables(size):
    events = pa.table({"ts": range(size), "type": [f"T{e}" for e in range(size)]})
    assert cep.match(events, and_of(size), output="count").to_pydict() == {"count": [1]}
    in_order = f"PATTERN SEQ({', '.join(f'v{v}' for v in range(size))}) WHERE v0.ts < v{size - 1}.ts"
    assert cep.match(events, in_order, output="count").to_pydict() == {"count": [1]}


def test_no_more_than_so_many_variables():
    with pytest.raises(UnsupportedError, match=r"1,025 variables is not supported(.|\n)*at most 1,024"):
        cep.match(pa.table({"ts": [1], "type": ["T0"]}), and_of(1025))


@pytest.mark.parametrize(("operator", "wanted"), [("AND", [0]), ("OR", [0, 1, 2])])
def test_ten_thousand_conditions_are_fast(operator, wanted):
    events = pa.table({"ts": range(3), "x": [-1, 5_000, 9_999]})
    condition = f" {operator} ".join(f"a.x <> {number}" for number in range(10_000))
    begin = time.process_time()
    found = cep.match(events, f"PATTERN a WHERE {condition}", output="indices")
    assert found["a"].to_pylist() == wanted
    assert time.process_time() - begin < 20


def test_ten_thousand_built_conditions_are_one_node():
    a = cep.var("a")
    joined = a.x != 0
    for number in range(1, 10_000):
        joined = joined & (a.x != number)
    assert len(joined.ast.operands) == 10_000

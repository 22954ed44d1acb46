"""Arguments: what is unknown, what is not supported yet, and how errors travel."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep import errors

EVENTS = pa.table({"ts": [1, 2], "type": ["A", "B"]})
PATTERN = "PATTERN SEQ(A a, B b) WITHIN 10"


def fault(expected, pattern=PATTERN, **options):
    with pytest.raises(expected) as caught:
        cep.match(EVENTS, pattern, **options)
    return str(caught.value)


@pytest.mark.parametrize("name", ["backtracking", "nfab", "lazy_tree", "join_tree"])
def test_algorithms_of_later_releases(name):
    assert "supported: auto, ses_automaton, lazy_chain, brute_force" in fault(errors.UnsupportedError, algorithm=name)


@pytest.mark.parametrize("name", ["skip_past_last", "skip_to_next"])
def test_after_match_of_later_releases(name):
    assert "supported: all" in fault(errors.UnsupportedError, after_match=name)


def test_output_of_later_releases():
    assert "supported: matches, events, indices, count" in fault(errors.UnsupportedError, output="compressed")


@pytest.mark.parametrize("name", ["strict_contiguity", "partition_contiguity", "robust_skip_till_next_match"])
def test_strategies_of_later_releases(name):
    message = fault(errors.UnsupportedError, strategy=name)
    assert name in message
    assert "supported strategies are skip_till_next_match and skip_till_any_match" in message


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        ("OR(A a, B b)", "OR"),
        ("SEQ(A a, NOT(B b), A c)", "NOT"),
        ("SEQ(A a?, B b)", r"a\?"),
        ("SEQ(A a*, B b)", r"a\*"),
        ("SEQ(A a+, B b) WHERE count(a) > 1", r"count\(a\)"),
        ("SEQ(A a+, B b) WHERE a[1].ts < b.ts", r"a\[1\].ts"),
        ("SEQ(A a+, B b) WHERE avg(a[..i-1].ts) < a[i].ts", r"avg"),
    ],
)
def test_patterns_of_later_releases(pattern, construct):
    with pytest.raises(errors.UnsupportedError, match=construct):
        cep.match(EVENTS, f"PATTERN {pattern} WITHIN 10")


def test_no_gpu_yet():
    assert "use engine='auto' or engine='cpu'" in fault(errors.EngineUnavailable, engine="gpu")


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"output": "matchs"}, "did you mean 'matches'?"),
        ({"algorithm": "ses_automat"}, "did you mean 'ses_automaton'?"),
        ({"engine": "tpu"}, "expected one of auto, cpu, gpu"),
        ({"after_match": "every"}, "expected one of all"),
        ({"strategy": "skip_till_next"}, "did you mean 'skip_till_next_match'?"),
        ({"ties": "loose"}, "there are strict, position"),
        ({"prune": ["chian"]}, "did you mean 'chain'?"),
        ({"time_unit": "fortnight"}, "unknown time_unit 'fortnight'"),
        ({"max_matches": -1}, "max_matches must be a whole number of at least 0, not -1"),
        ({"max_steps": 1.5}, "max_steps must be a whole number of at least 0, not 1.5"),
        ({"max_matches": True}, "max_matches must be a whole number of at least 0, not True"),
        ({"threads": 0}, "threads must be a whole number of at least 1, not 0"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_unknown_choices(options, hint):
    assert hint in fault(errors.PatternError, **options)


def test_all_unknown_choices_are_reported_at_once():
    message = fault(errors.PatternError, output="x", algorithm="y", max_steps=-1)
    assert all(name in message for name in ("output", "algorithm", "max_steps"))


@pytest.mark.parametrize(
    ("keyword", "clause"),
    [({"strategy": "skip_till_any_match"}, "WHERE skip_till_next_match { a.ts > 0 }"), ({"partition_by": "ts"}, "")],
)
def test_a_keyword_that_contradicts_the_text(keyword, clause):
    prefix = "PARTITION BY type " if "partition_by" in keyword else ""
    with pytest.raises(errors.PatternError, match=next(iter(keyword))):
        cep.match(EVENTS, f"{prefix}PATTERN SEQ(A a, B b) {clause}", **keyword)


def test_a_pattern_is_text_or_a_parsed_query():
    assert cep.match(EVENTS, cep.parse(PATTERN), output="count").to_pydict() == {"count": [1]}
    with pytest.raises(errors.PatternSyntaxError, match="a query is text, not int"):
        cep.match(EVENTS, 5)


RAISED = [
    (errors.PatternSyntaxError, "PATTERN SEQ(A a", {}),
    (errors.PatternError, "PATTERN A a WHERE a.x = 1", {}),
    (errors.UnsupportedError, "PATTERN OR(A a, B b)", {}),
    (errors.EngineUnavailable, PATTERN, {"engine": "gpu"}),
    (errors.MatchLimitExceeded, PATTERN, {"max_matches": 0}),
    (errors.EventError, "PATTERN SEQ(A a, B b) WHERE a.ts + 9223372036854775807 > 0", {}),
]


@pytest.mark.parametrize(("kind", "pattern", "options"), RAISED, ids=[kind.__name__ for kind, _, _ in RAISED])
def test_errors_are_cep_errors_and_travel_between_processes(kind, pattern, options):
    with pytest.raises(kind) as caught:
        cep.match(EVENTS, pattern, **options)
    assert isinstance(caught.value, cep.CepError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is kind
    assert str(copy) == str(caught.value) != ""
    assert getattr(copy, "diagnostics", None) == getattr(caught.value, "diagnostics", None)

"""Counts and compressed results against the oracle: random queries that labels decide, and random queries of any kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import accumulate
from unittest.mock import patch

import pyarrow as pa
from hypothesis import assume, example, given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.events.batches import cut_batches
from gpu_cep.errors import UnsupportedError
from gpu_cep.lang.parser import parse
from gpu_cep.oracle import events as oracle
from gpu_cep.oracle.options import EventOptions
from tests.conformance.expectation import LIMIT, answered, expected
from tests.drawn.patterns import ALL_OPERATORS
from tests.drawn.queries import Case, cases, whole_language

LABELS_ONLY = cases(max_size=12, strategies=("skip_till_any_match",))
ALTERNATIVES = cases(max_size=7, strategies=("skip_till_any_match",), operators=ALL_OPERATORS)
SLIDING = ("SEQ(A a+, B b+)", "SEQ(AND(A a, B b+), A c)", "SEQ(A a{2}, AND(A b+, B c{1,2}))", "AND(A a+, SEQ(B b, A c))")


def without_conditions(case):
    """The case's query without its WHERE, and the oracle's matches."""
    query = replace(parse(case.text), where=None)
    try:
        return query, oracle.matches(query, case.events, EventOptions(**case.options), limit=LIMIT)
    except UnsupportedError:
        assume(False)
        raise


def as_set(matches):
    """How often each match is there."""
    return Counter(tuple(sorted((name, rows) for name, rows in match.items() if rows)) for match in matches)


def assert_holds(found, wanted):
    """A compressed result has the matches `wanted`, each once, also when it was taken apart."""
    assert as_set(found.indices()) == as_set(wanted)
    assert found.count() == len(wanted)
    backwards = found.table.take(pa.array(range(found.table.num_rows)[::-1], pa.int64()))
    again = cep.Compressed.from_table(backwards)
    assert as_set(again.indices()) == as_set(wanted)
    assert again.count() == len(wanted)


@given(LABELS_ONLY, st.integers(1, 5))
def test_count_of_label_patterns(case, size):
    query, wanted = without_conditions(case)
    with patch("gpu_cep.engine.run.cut_batches", partial(cut_batches, size=size)):
        counted = cep.match(case.events, query, **case.options, output="count")
    assert sum(row["count"] for row in counted.to_pylist()) == len(wanted)


@given(st.sampled_from(SLIDING), st.integers(1, 6), st.lists(st.tuples(st.sampled_from([0, 0, 1, 2]), st.sampled_from("ABX")), max_size=14))
@example(SLIDING[1], 6, [(1, "A"), (1, "A"), (1, "B"), (3, "B"), (0, "B"), (1, "A"), (1, "A")])
def test_windows_that_slide_over_ties(pattern, window, steps):
    times, types = list(accumulate(step for step, _ in steps)), [kind for _, kind in steps]
    events = pa.table({"ts": pa.array(times, pa.int64()), "type": pa.array(types, pa.string())})
    case = Case(f"PATTERN {pattern} WITHIN {window}", events, {"strategy": "skip_till_any_match"})
    wanted = answered(case, output="indices").num_rows
    assert answered(case, output="count")["count"].to_pylist() == [wanted]
    assert answered(case, output="compressed").count() == wanted


@given(LABELS_ONLY)
def test_compressed_label_patterns(case):
    query, wanted = without_conditions(case)
    assert_holds(cep.match(case.events, query, **case.options, output="compressed"), wanted)


@given(ALTERNATIVES)
def test_compressed_alternatives(case):
    try:
        query, wanted = without_conditions(case)
        found = cep.match(case.events, query, **case.options, output="compressed")
    except cep.PatternError:
        # what negates has lost the conditions or the window that it needs
        assume(False)
        raise
    assert_holds(found, wanted)


@given(whole_language())
def test_compressed_queries_of_any_kind(case):
    wanted = expected(case)
    assert_holds(answered(case, output="compressed"), wanted)


def test_derived_keys_are_labels_too():
    events = pa.table({"ts": range(8), "type": list("ABABABAB"), "k": [1, 1, 2, 2, 1, 2, 2, None]})
    case = Case("PATTERN SEQ(A a+, B b+) WHERE [k] WITHIN 6", events, {"strategy": "skip_till_any_match"})
    found = cep.match(events, case.text, **case.options, output="compressed")
    assert found.table["group"].to_pylist()[0] >= 0
    assert_holds(found, expected(case))

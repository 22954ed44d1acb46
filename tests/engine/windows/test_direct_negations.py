"""Matches of single variables that labels decide are read off without a search, and so is what negations rule out."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_cep as cep

# x above 5 is what must not happen; it may be an event of a match as well
QUERIES = {
    "between": "PATTERN SEQ(A a, NOT(n), C c) WHERE skip_till_next_match { n.x > 5 } WITHIN 4",
    "beside-a-bound-event": "PATTERN AND(SEQ(A a, NOT(n), C c), B b) WHERE skip_till_next_match { n.x > 5 } WITHIN 4",
    "at-the-end": "PATTERN SEQ(A a, C c, NOT(n)) WHERE skip_till_next_match { n.x > 5 } WITHIN 4",
    "at-the-beginning": "PATTERN SEQ(NOT(n), A a, C c) WHERE skip_till_next_match { n.x > 5 } WITHIN 4",
    "two": "PATTERN SEQ(NOT(N m), A a, NOT(n), AND(B b, C c)) WHERE skip_till_next_match { n.x > 5 } WITHIN 6",
}
EVENTS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ABCN"), st.sampled_from([1, 9]), st.integers(0, 1)), max_size=14)


def table(events):
    gaps, types, values, keys = zip(*events, strict=True) if events else ((), (), (), ())
    times = [sum(gaps[: place + 1]) for place in range(len(gaps))]
    columns = {"ts": (times, pa.int64()), "type": (types, pa.string()), "x": (values, pa.int64()), "k": (keys, pa.int64())}
    return pa.table({name: pa.array([*own], kind) for name, (own, kind) in columns.items()})


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
@pytest.mark.filterwarnings("ignore::gpu_cep.AbsentValueWarning")
@settings(max_examples=60)
@given(EVENTS, st.sampled_from(["all", "skip_past_last"]), st.sampled_from([[], ["k"]]))
def test_what_negations_rule_out(text, events, after_match, partition_by):
    profile = cep.Profile()
    given = {"partition_by": partition_by, "after_match": after_match}
    found = cep.match(table(events), text, output="indices", profile=profile, **given)
    assert found.to_pylist() == cep.match(table(events), text, output="indices", algorithm="brute_force", **given).to_pylist()
    assert profile.counts.get("steps", 0) == 0
    counted = cep.match(table(events), text, output="count", **given)
    assert sum(counted["count"].to_pylist()) == len(found)


def test_a_bound_event_rules_nothing_out():
    events = table([(1, "A", 1, 0), (1, "B", 9, 0), (1, "C", 1, 0)])
    found = cep.match(events, QUERIES["beside-a-bound-event"], output="indices")
    assert found.to_pylist() == [{"a": 0, "c": 2, "b": 1}]

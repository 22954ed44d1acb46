"""Slices of time have the matches of the whole, each those that start in it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from gpu_cep.analysis.options import Options
from gpu_cep.engine.answers import answer
from gpu_cep.engine.events.own_events import TimeSlice
from gpu_cep.engine.events.reported import Reported
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.times import load_times
from gpu_cep.errors import UnsupportedError
from gpu_cep.keywords import make_options
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from tests.conformance.expectation import expected
from tests.drawn.queries import trend_cases, whole_language
from tests.effort import examples
from tests.results import matches_of

WINDOW = 6
QUERIES = [
    "PATTERN SEQ(A a, B b+) WITHIN 6 RETURN a.n AS a, b.n AS b",
    "PATTERN SEQ(AND(A a, B b), C c) WHERE a.k = b.k AND b.k = c.k WITHIN 6 RETURN a.n AS a, b.n AS b, c.n AS c",
    "PATTERN SEQ(A a, C c) WHERE skip_till_any_match { a.k < c.k } WITHIN 6 RETURN a.n AS a, c.n AS c",
    "PATTERN SEQ(NOT(B b), A a, C c) WITHIN 6 RETURN a.n AS a, c.n AS c",
    "PATTERN SEQ(A a, C c, NOT(B b)) WHERE robust_skip_till_next_match { b.k = a.k } WITHIN 6 RETURN a.n AS a, c.n AS c",
    "PATTERN SEQ(AND(A a+, NOT(B b)), OR(C c, D d)) WHERE [k] WITHIN 6 RETURN a.n AS a, c.n AS c, d.n AS d",
    "PATTERN SEQ(A a, OR(B b, SEQ(NOT(D d), C c*))) WHERE partition_contiguity { [k] } WITHIN 6 RETURN a.n AS a, b.n AS b, c.n AS c",
    "PATTERN SEQ(A a, B b?, NOT(C c), D d) WHERE strict_contiguity { a.k <= d.k } WITHIN 6 RETURN a.n AS a, b.n AS b, d.n AS d",
]


def rows(tables: list[pa.Table]) -> list[str]:
    return sorted(repr(row) for table in tables for row in table.to_pylist())


@pytest.mark.parametrize("query", QUERIES)
@examples(12, 100)
@given(
    st.sampled_from([pa.int64(), pa.float64()]),
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from("ABCD"), st.integers(0, 2)), max_size=40),
    st.integers(1, 15),
    st.sampled_from(["all", "skip_to_next"]),
)
def test_slices_have_the_matches_of_the_whole(query, dtype, events, width, after_match):
    times, types, keys = zip(*sorted(events), strict=True) if events else ((), (), ())
    table = pa.table(
        {
            "ts": pa.array(times, dtype),
            "type": pa.array(types, pa.string()),
            "k": pa.array(keys, pa.int64()),
            "n": pa.array(range(len(events)), pa.int64()),
        }
    )
    plan = make_plan(query, table.schema, Options(), Settings(after_match=after_match))
    found = []
    for begin in range(0, 41, width):
        # a negation looks back over a window
        needed = [begin - WINDOW <= time < begin + width + WINDOW for time in times]
        found.append(answer(plan, table.filter(pa.array(needed, pa.bool_())), reported=Reported(TimeSlice(begin, begin + width))))
    assert rows(found) == rows([answer(plan, table)])


def test_a_slice_without_end():
    table = pa.table({"ts": [1, 2], "type": ["A", "B"]})
    plan = make_plan("PATTERN SEQ(A a, B b)", table.schema, Options(), Settings(output="count"))
    assert answer(plan, table, reported=Reported(TimeSlice(begin=2))).to_pylist() == [{"count": 0}]
    assert answer(plan, table, reported=Reported(TimeSlice(begin=1))).to_pylist() == [{"count": 1}]


@given(st.one_of(whole_language(max_size=14, after_match=("all", "skip_to_next")), trend_cases()), st.data())
def test_two_slices_of_any_query_have_the_matches_of_the_whole(case, data):
    expected(case)  # not too many
    given = case.options.get
    options = make_options(**{name: given(name) for name in ("partition_by", "order_by", "strategy", "ties", "time_unit")})
    try:
        plan = make_plan(case.text, case.events.schema, options, Settings(output="indices", after_match=given("after_match", "all")))
    except UnsupportedError:
        reject()
    times = load_times(EventColumns(case.events, plan.query, threads=1), plan.query.timestamp)
    cut = data.draw(st.sampled_from(sorted(times.view(np.int64 if times.dtype.kind == "u" else times.dtype).tolist()) or [0]))
    before = matches_of(answer(plan, case.events, reported=Reported(TimeSlice(end=cut))))
    behind = matches_of(answer(plan, case.events, reported=Reported(TimeSlice(begin=cut))))
    assert sorted(map(repr, before + behind)) == sorted(map(repr, matches_of(answer(plan, case.events))))


def planned(query, **settings):
    return make_plan(query, TIMES.schema, Options(), Settings(**settings))


TIMES = pa.table({"ts": pa.array([0.0, 0.7, 0.8, 0.9, 1.0, 1.1]), "type": ["B"] * 6})


def test_matches_that_earlier_ones_rule_out_cannot_be_sliced():
    plan = planned("PATTERN SEQ(A a, B b) WITHIN 3", after_match="skip_past_last")
    assert answer(plan, TIMES).num_rows == 0
    with pytest.raises(UnsupportedError, match="skip_past_last"):
        answer(plan, TIMES, reported=Reported(TimeSlice(begin=1.0)))

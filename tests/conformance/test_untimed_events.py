"""Events without a timestamp under ``nulls="drop"``: the answer over the others, with the row numbers of all."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.errors import EventError, MatchLimitExceeded, PatternError
from tests.conformance import test_intervals as situations
from tests.conformance.expectation import answered, expected
from tests.drawn.queries import Case, trend_cases, whole_language
from tests.drawn.situations import situation_cases
from tests.results import matches_of

CASES = st.one_of(whole_language(max_size=14), trend_cases())


@st.composite
def holes(draw: st.DrawFn, events: pa.Table, timestamp: str) -> tuple[pa.Table, np.ndarray]:
    """The events with others between them that have no time, and where the first ones lie."""
    size = events.num_rows
    rows = np.array(draw(st.lists(st.integers(-1, size - 1), max_size=8)), np.int64) if size else np.empty(0, np.int64)
    order = np.array(draw(st.permutations(range(size + len(rows)))), np.int64)
    timed = np.sort(order[:size])
    source = np.empty(len(order), np.int64)
    source[timed], source[np.sort(order[size:])] = np.arange(size), rows % max(size, 1)
    mixed = events.take(pa.array(source))
    column = mixed.schema.get_field_index(timestamp)
    times = mixed.column(column).to_pylist()
    missing = [None, math.nan] if pa.types.is_floating(mixed.schema.field(column).type) else [None]
    known = set(timed.tolist())
    times = [time if row in known else draw(st.sampled_from(missing)) for row, time in enumerate(times)]
    return mixed.set_column(column, mixed.schema.field(column), pa.array(times, mixed.schema.field(column).type, from_pandas=False)), timed


def with_holes(case: Case, data: st.DataObject) -> tuple[Case, np.ndarray]:
    mixed, timed = data.draw(holes(case.events, case.options.get("timestamp", "ts")))
    return Case(case.text, mixed, {**case.options, "nulls": "drop"}), timed


@given(CASES, st.sampled_from(("auto", "ses_automaton", "brute_force")), st.booleans(), st.data())
def test_matches_over_the_other_events(case, algorithm, prune, data):
    wanted = expected(case)
    mixed, timed = with_holes(case, data)
    found = matches_of(answered(mixed, output="indices", algorithm=algorithm, prune=prune))
    assert found == [{name: tuple(int(timed[row]) for row in rows) for name, rows in match.items()} for match in wanted]
    for output in ("matches", "events", "count"):
        assert repr(answered(mixed, output=output).to_pylist()) == repr(answered(case, output=output).to_pylist())  # NaN equals NaN


@given(CASES, st.data())
def test_rows_of_a_graph_are_those_of_all_events(case, data):
    expected(case)
    mixed, timed = with_holes(case, data)
    found, wanted = (answered(each, output="compressed").table for each in (mixed, case))
    assert found.column("row").to_pylist() == timed[wanted.column("row").to_numpy()].tolist()


@given(situation_cases(), st.sampled_from(("auto", "brute_force")), st.data())
def test_situations_of_the_other_events(case, algorithm, data):
    situations.expected(case)
    mixed, timed = with_holes(case, data)
    found, wanted = (situations.answered(each, output="indices", algorithm=algorithm).to_pylist() for each in (mixed, case))
    assert found == [{name: [int(timed[row]) for row in rows] for name, rows in match.items()} for match in wanted]


def test_all_events_may_be_without_a_time():
    events = pa.table({"ts": pa.array([None, None], pa.int64()), "type": ["A", "A"]})
    assert cep.match(events, "PATTERN A a", nulls="drop").num_rows == 0
    assert cep.match(events, "PATTERN A a", nulls="drop", output="count").to_pylist() == [{"count": 0}]


EVENTS = pa.table({"ts": [None, 1, None, 2, 3], "type": ["A", "A", "B", "B", "B"], "v": [2**62, 1, 0, 2**62, 1]})


def test_errors_name_rows_of_all_events():
    with pytest.raises(MatchLimitExceeded, match=r"starts at ts=1 \(input row 1\)"):
        cep.match(EVENTS, "PATTERN SEQ(A a, B b)", strategy="skip_till_any_match", nulls="drop", max_matches=1)
    for where in ("b.v * 4 > 1", "lag_free(b.v * 4) > 1"):
        with pytest.raises(EventError, match=r"overflow.* at input row 3"):
            cep.match(EVENTS, f"PATTERN SEQ(A a, B b) WHERE {where}", nulls="drop", functions={"lag_free": lambda value: value})


@pytest.mark.parametrize("nulls", ["keep", "DROP"])
def test_an_unknown_choice(nulls):
    for pattern in ("PATTERN A a", "DEFINE A AS v > 1, B AS v < 1 PATTERN A before B WITHIN 5"):
        with pytest.raises(PatternError, match=f"unknown value of nulls '{nulls}'"):
            cep.match(EVENTS, pattern, nulls=nulls)


def test_every_public_call_leaves_them_out():
    bound = cep.events(EVENTS, nulls="drop")
    pattern = "PATTERN SEQ(A a, B b)"
    assert bound.count(pattern) == 1
    for query in (pattern, "DEFINE A AS v > 1, B AS v < 1 PATTERN A before B WITHIN 5"):
        assert "streams    one, events without a timestamp left out" in str(bound.explain(query))
    assert "3 events, 1 match" in bound.report(pattern).html
    assert bound.plot(pattern)._repr_svg_()

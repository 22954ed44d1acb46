"""NEXT against the oracle, against plain contiguity, and against all matches filtered by their rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep
from gpu_cep.lang.ast import STRATEGIES
from tests.conformance.expectation import answered, expected
from tests.conformance.test_conformance import applicable
from tests.drawn.queries import Case
from tests.effort import examples
from tests.results import matches_of

thoroughly = examples(100, 1_000)
ELEMENTS = ("{t} {v}", "{t} {v}", "{t} {v}+", "{v}", "AND({t} {v}, {t} {v}2)", "OR({t} {v}, SEQ({t} {v}2, NEXT(A {v}3)))", "{t} {v}{{2}}")
NESTED = ("SEQ(NEXT({t} {v}), {v}2)", "OR(SEQ(NEXT({t} {v}), {v}2), A {v}3)", "SEQ(SEQ(NEXT({v}), NEXT({t} {v}2)))",
          "OR(NEXT({t} {v}), A {v}2)", "AND(NEXT({t} {v}), {v}2)", "AND({v}, SEQ(NEXT({t} {v}2), {v}3))")  # fmt: skip
LEFT_OUT = ("{t} {v}?", "NOT({t} {v})")
CONDITIONS = ("", " WHERE [k]", " WHERE a.x <= b.x", " WHERE a.k = b.k")


@st.composite
def sequences(draw: st.DrawFn) -> str:
    """A SEQ of two to four elements, most of them in NEXT; the first and the last bind an event."""
    size = draw(st.integers(2, 4))
    elements = [draw(st.sampled_from(ELEMENTS)).format(t=draw(st.sampled_from("AB")), v=name) for name in "abcd"[:size]]
    elements = [elements[0], *(f"NEXT({each})" if draw(st.integers(0, 2)) else each for each in elements[1:])]
    if draw(st.integers(0, 3)) == 0:
        elements[1] = draw(st.sampled_from(NESTED)).format(t=draw(st.sampled_from("AB")), v="b")
    if size > 2 and draw(st.booleans()):
        elements.insert(1, draw(st.sampled_from(LEFT_OUT)).format(t="A", v="z"))
    return f"SEQ({', '.join(elements)})"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    pattern, size = draw(sequences()), draw(st.integers(0, 8))
    letters = draw(st.lists(st.sampled_from("AABBX"), min_size=size, max_size=size))
    steps = draw(st.lists(st.sampled_from((0, 1, 1, 1)), min_size=size, max_size=size))
    numbers = st.lists(st.integers(0, 1), min_size=size, max_size=size)
    times = [sum(steps[: place + 1]) for place in range(size)]
    events = pa.table({
        "ts": pa.array(times, pa.int64()), "type": pa.array(letters, pa.string()),
        "k": pa.array(draw(numbers), pa.int64()), "x": pa.array(draw(numbers), pa.int64()),
    })  # fmt: skip
    singles = {"a", "b"} <= set(pattern.replace("(", " ").replace(")", " ").replace(",", " ").split())
    condition = draw(st.sampled_from(CONDITIONS if singles and "OR" not in pattern else CONDITIONS[:2]))
    options = {"strategy": draw(st.sampled_from(STRATEGIES)), "ties": draw(st.sampled_from(("strict", "position")))}
    return Case(f"PATTERN {pattern}{condition} WITHIN {draw(st.integers(1, 8))}", events, options)


@thoroughly
@given(cases(), st.data())
def test_same_matches_as_the_oracle(case, data):
    algorithm = data.draw(st.sampled_from(["auto", *applicable(case)]))
    assert matches_of(answered(case, algorithm=algorithm, output="indices")) == expected(case)


def letters_of(letters: str) -> pa.Table:
    return pa.table({"ts": range(len(letters)), "type": list(letters)})


@pytest.mark.parametrize("letters", ["ABCABXCAABCB", "AABCCABBC", "ABCBCABC"])
def test_next_in_every_gap_is_strict_contiguity(letters):
    events = letters_of(letters)
    wanted = gpu_cep.match(events, "PATTERN SEQ(A a, B b, C c)", strategy="strict_contiguity", output="indices")
    for strategy in STRATEGIES:
        assert gpu_cep.match(events, "PATTERN SEQ(A a, NEXT(B b), NEXT(C c))", strategy=strategy, output="indices") == wanted
    assert wanted.num_rows


def test_one_gap_filters_all_matches():
    events = letters_of("ABACBBCABCC")
    every = gpu_cep.match(events, "PATTERN SEQ(A a, B b, C c)", strategy="skip_till_any_match", output="indices").to_pylist()
    near = gpu_cep.match(events, "PATTERN SEQ(A a, B b, NEXT(C c))", strategy="skip_till_any_match", output="indices").to_pylist()
    assert near == [each for each in every if each["c"] == each["b"] + 1]
    assert 0 < len(near) < len(every)


@pytest.mark.parametrize("pattern", ["SEQ(A a, NEXT(B b), C c)", "SEQ(A a, OR(NEXT(B b), SEQ(SEQ(B d)?, NEXT(C c))))"])
def test_streams_and_batches_agree(pattern):
    events = letters_of("ABXABBCABC")
    query = f"PATTERN {pattern} WITHIN 6"
    live = gpu_cep.stream(query, events.schema, output="events")
    parts = [*(live.push(events.slice(row, 1)) for row in range(events.num_rows)), live.finish()]
    rows = [row for part in parts for row in part.to_pylist()]
    wanted = gpu_cep.match(events, query, output="events").to_pylist()
    assert sorted((row["variable"], row["ts"]) for row in rows) == sorted((row["variable"], row["ts"]) for row in wanted)
    assert wanted


@pytest.mark.parametrize("strategy", [each for each in STRATEGIES if each != "skip_till_next_match"])
def test_behind_a_variable_that_may_bind_more(strategy):
    rows = gpu_cep.match(letters_of("AAXAAB"), "PATTERN SEQ(A a+, NEXT(B b))", strategy=strategy, output="indices").to_pylist()
    assert {"a": [3, 4], "b": 5} in rows
    assert all(row["a"][-1] == 4 for row in rows)


def test_in_an_optional_context_it_asks_for_nothing():
    rows = gpu_cep.match(letters_of("XB"), "PATTERN SEQ(A a?, NEXT(B b))", output="indices").to_pylist()
    assert rows == [{"a": None, "b": 1}]

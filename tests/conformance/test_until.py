"""UNTIL against the oracle, and against what it says in plain words."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
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

PATTERNS = (
    "SEQ(A a, B b{q} UNTIL ({u}))", "SEQ(A a, B b{q} UNTIL ({u}), A c)", "SEQ(b{q} UNTIL ({u}), A c)", "b{q} UNTIL ({u})",
    "SEQ(A a, AND(B b{q} UNTIL ({u}), X x), A c)", "SEQ(A a, OR(B b{q} UNTIL ({u}), X x))", "SEQ(A a, NOT(X n), B b{q} UNTIL ({u}), A c)",
    "SEQ(A+ a[] UNTIL ({u}), B b{q} UNTIL ({u}))", "SEQ(A a, NEXT(B b{{2,}} UNTIL ({u})), A c)",
)  # fmt: skip
ENDS = ("type = 'X'", "type = 'X' OR x = 1", "type IS NULL", "x > 0", "b.x = 1 AND type <> 'A'", "type = 'X' AND k = 0", "abs(x) = 1")
CONDITIONS = ("", "", " WHERE [k]", " WHERE b.x <= b.k", " WHERE b[i].x >= b[i-1].x", " WHERE count(b) > 1", " WHERE [k] AND [x]")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    pattern = draw(st.sampled_from(PATTERNS)).format(q=draw(st.sampled_from(("+", "*", "{2,3}", "{2,}"))), u=draw(st.sampled_from(ENDS)))
    if "SEQ(A+ a[]" in pattern:
        pattern = pattern.replace("b.x", "x")
    size = draw(st.integers(0, 8))
    numbers = st.lists(st.sampled_from((0, 0, 1, None)), min_size=size, max_size=size)
    steps = draw(st.lists(st.sampled_from((0, 1, 1)), min_size=size, max_size=size))
    letters = draw(st.lists(st.sampled_from(("A", "B", "B", "B", "X", None)), min_size=size, max_size=size))
    times = draw(st.permutations([sum(steps[: place + 1]) for place in range(size)]))
    events = pa.table({
        "ts": pa.array(times, pa.int64()), "type": pa.array(letters, pa.string()),
        "k": pa.array(draw(numbers), pa.int64()), "x": pa.array(draw(numbers), pa.int64()),
    })  # fmt: skip
    options = {
        "strategy": draw(st.sampled_from(STRATEGIES)), "ties": draw(st.sampled_from(("strict", "position"))),
        "partition_by": draw(st.sampled_from((None, None, "k"))), "order_by": draw(st.sampled_from((None, "x"))),
    }  # fmt: skip
    window = draw(st.sampled_from(("3", "9", "4 EVENTS")))
    return Case(f"PATTERN {pattern}{draw(st.sampled_from(CONDITIONS))} WITHIN {window}", events, options)


@examples(300, 3_000)
@given(cases(), st.data())
def test_same_matches_as_the_oracle(case, data):
    algorithm = data.draw(st.sampled_from(["auto", *applicable(case)]))
    assert matches_of(answered(case, algorithm=algorithm, output="indices")) == expected(case)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_event_without_a_key_that_satisfies_the_condition_is_not_bound(strategy):
    events = pa.table({"ts": [1, 2, 3], "type": list("BBB"), "k": pa.array([None, None, 1], pa.int64()), "x": [1, 0, 1]})
    case = Case("PATTERN B b+ UNTIL (x = 1) WHERE [k] WITHIN 5", events, {"strategy": strategy})
    assert matches_of(answered(case, output="indices")) == expected(case) == [{"b": (1,)}]


@examples(60, 500)
@given(cases())
def test_same_numbers_of_matches(case):
    assert sum(row["count"] for row in answered(case, output="count").to_pylist()) == len(expected(case))


def found(letters: str, pattern: str, **options: object) -> list[Mapping[str, object]]:
    events = pa.table({"ts": range(len(letters)), "type": list(letters)})
    table = gpu_cep.match(events, f"PATTERN {pattern} WITHIN 20", output="indices", **options)
    return [{name: bound for name, bound in row.items() if bound is not None} for row in table.to_pylist()]


@pytest.mark.parametrize("strategy", ["skip_till_next_match", "robust_skip_till_next_match"])
def test_what_comes_behind_the_end_is_not_bound(strategy):
    assert found("ABBXB", "SEQ(A a, B b+ UNTIL (type = 'X'))", strategy=strategy) == [{"a": 0, "b": [1, 2]}]
    assert found("ABBXBC", "SEQ(A a, B b+ UNTIL (type = 'X'), C c)", strategy=strategy) == [{"a": 0, "b": [1, 2], "c": 5}]


def test_the_end_itself_is_not_bound_but_may_be_by_another_variable():
    assert found("ABBC", "SEQ(A a, b+ UNTIL (type = 'C'), C c)") == [{"a": 0, "b": [1, 2], "c": 3}]


def test_what_comes_before_its_first_event_ends_nothing():
    assert found("AXBB", "SEQ(A a, B b+ UNTIL (type = 'X'))") == [{"a": 0, "b": [2, 3]}]


def test_all_matches_stay_on_one_side_of_an_end():
    pattern = "SEQ(A a, B b+{})"
    every = found("ABXBB", pattern.format(""), strategy="skip_till_any_match")
    wanted = [row for row in every if 1 not in row["b"] or len(row["b"]) == 1]
    assert found("ABXBB", pattern.format(" UNTIL (type = 'X')"), strategy="skip_till_any_match") == wanted
    assert len(wanted) < len(every)


def test_an_end_of_another_stream_ends_nothing():
    events = pa.table({"ts": range(5), "type": list("ABXXB"), "k": [1, 1, 2, 2, 1], "m": [1, 1, 1, 2, 1]})
    pattern = "PATTERN SEQ(A a, B b+ UNTIL (type = 'X')){} WITHIN 9"
    assert gpu_cep.match(events, pattern.format(""), partition_by="k", output="indices").to_pylist() == [{"a": 0, "b": [1, 4]}]
    assert gpu_cep.match(events, pattern.format(" WHERE [k]"), output="indices").to_pylist() == [{"a": 0, "b": [1, 4]}]
    # an equality of variables says nothing of the event that ends one of them
    equal = " WHERE a.k = b.k"
    assert gpu_cep.match(events, pattern.format(equal), output="indices").to_pylist() == [{"a": 0, "b": [1]}]
    assert gpu_cep.match(events, pattern.format(equal), partition_by="k", output="indices").to_pylist() == [{"a": 0, "b": [1, 4]}]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_streams_and_batches_agree(cut):
    letters = "ABXBABBXBCAXBBC"
    events = pa.table({"ts": range(len(letters)), "type": list(letters)})
    query = "PATTERN SEQ(A a, B b+ UNTIL (type = 'X'), C c?) WITHIN 6"
    live = gpu_cep.stream(query, events.schema, output="events")
    parts = [*(live.push(events.slice(row, cut)) for row in range(0, events.num_rows, cut)), live.finish()]
    rows = [(row["variable"], row["ts"]) for part in parts for row in part.to_pylist()]
    assert rows == [(row["variable"], row["ts"]) for row in gpu_cep.match(events, query, output="events").to_pylist()]
    assert rows


def test_files_agree(tmp_path):
    letters = "ABXBABBXBCAXBBC" * 20
    events = pa.table({"ts": range(len(letters)), "type": list(letters)})
    pq.write_table(events, tmp_path / "events.parquet", row_group_size=7)
    query = "PATTERN SEQ(A a, B b+ UNTIL (type = 'X')) WITHIN 6"
    assert gpu_cep.match(tmp_path / "events.parquet", query, output="events") == gpu_cep.match(events, query, output="events")


def test_rule_sets_agree():
    letters = "ABXBABBXBCAXBBC" * 4
    events = pa.table({"ts": range(len(letters)), "type": list(letters)})
    rules = {f"until {end}": f"PATTERN SEQ(A a, B b+ UNTIL (type = '{end}')) WITHIN 6" for end in "XCA"}
    together = gpu_cep.match_all(events, rules, output="events")
    for name, query in rules.items():
        own = together.filter(pc.equal(together["pattern"], name)).drop_columns("pattern")
        assert own.to_pylist() == gpu_cep.match(events, query, output="events").to_pylist()


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("SEQ(A a, B b? UNTIL (type = 'X'))", r"UNTIL behind b\?, which binds one event"),
        ("SEQ(A a, B b{1} UNTIL (type = 'X'))", r"UNTIL behind b\{1\}, which binds one event"),
        ("SEQ(A a, B b+ UNTIL (typ = 'X'))", "unknown attribute 'typ'"),
        ("SEQ(A a, B b+ UNTIL (a.type = 'X'))", "a.type has no place in UNTIL"),
        ("SEQ(A a, B b+ UNTIL (count(b) > 2))", r"count\(b\) has no place in UNTIL"),
        ("SEQ(A a, B b+ UNTIL (ts))", "a condition is true or false"),
        ("SEQ(A a, B b+ UNTIL (TRUE))", r"UNTIL \(TRUE\) reads no attribute"),
        ("OR(SEQ(A a, B b+), SEQ(B b+ UNTIL (type = 'X'), A a))", "different types, quantifiers, ends or negations"),
    ],
)
def test_refused_with_the_place(pattern, message):
    with pytest.raises(gpu_cep.PatternError, match=message) as error:
        found("AB", pattern)
    assert "^" in str(error.value)


def test_the_variable_of_the_end_has_no_name_in_the_query():
    with pytest.raises(gpu_cep.PatternError, match="unknown variable 'end of b'"):
        found("AB", "SEQ(A a, B b+ UNTIL (type = 'X')) WHERE \"end of b\".type = 'X'")

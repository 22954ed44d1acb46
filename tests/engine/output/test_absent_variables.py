"""Matches of several branches in every form of output: what a branch lacks is NULL, and counts 0."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_cep as cep

EVENTS = pa.table(
    {
        "ts": [1, 2, 3, 4, 5, 6],
        "type": ["A", "B", "B", "A", "C", "D"],
        "x": [1, 2, None, 4, 5, 6],
        "s": ["p", "q", "r", None, "t", "u"],
        "l": [[1], [2], None, [4], [5], [6]],
    }
)
# a b b, and a c
PATTERN = "PATTERN SEQ(A a, OR(B b+, C c)) WITHIN 2"
EVENT = pa.struct([EVENTS.schema.field("ts"), EVENTS.schema.field("x")])


def test_indices():
    found = cep.match(EVENTS, PATTERN, output="indices")
    assert found.schema == pa.schema([("a", pa.int64()), ("b", pa.list_(pa.int64())), ("c", pa.int64())])
    assert found.to_pylist() == [{"a": 0, "b": [1, 2], "c": None}, {"a": 3, "b": None, "c": 4}]


def test_whole_events():
    found = cep.match(EVENTS, PATTERN, columns=["ts", "x"])
    assert found.schema.types[2:] == [EVENT, pa.list_(EVENT), EVENT]
    assert found.to_pylist() == [
        {
            "match_start": 1, "match_end": 3,
            "a": {"ts": 1, "x": 1}, "b": [{"ts": 2, "x": 2}, {"ts": 3, "x": None}], "c": None,
        },
        {"match_start": 4, "match_end": 5, "a": {"ts": 4, "x": 4}, "b": None, "c": {"ts": 5, "x": 5}},
    ]  # fmt: skip


def test_whole_events_without_columns():
    assert cep.match(EVENTS, PATTERN, columns=[]).select(["a", "b", "c"]).to_pylist() == [
        {"a": {}, "b": [{}, {}], "c": None}, {"a": {}, "b": None, "c": {}},
    ]  # fmt: skip


def test_events():
    found = cep.match(EVENTS, PATTERN, output="events", columns=["ts"])
    assert found.to_pylist() == [
        {"match_id": 0, "variable": "a", "event_index": 1, "ts": 1},
        {"match_id": 0, "variable": "b", "event_index": 1, "ts": 2},
        {"match_id": 0, "variable": "b", "event_index": 2, "ts": 3},
        {"match_id": 1, "variable": "a", "event_index": 1, "ts": 4},
        {"match_id": 1, "variable": "c", "event_index": 1, "ts": 5},
    ]


def test_count():
    assert cep.match(EVENTS, PATTERN, output="count").to_pylist() == [{"count": 2}]


@pytest.mark.parametrize(
    ("item", "values"),
    [
        ("c.x", [None, 5]),
        ("c.s", [None, "t"]),
        ("c.l", [None, [5]]),
        ("c", [None, {"x": 5}]),
        ("b", [[{"x": 2}, {"x": None}], None]),
        ("b.x", [[2, None], None]),
        ("b.l", [[[2], None], None]),
        ("count(b)", [2, 0]),
        ("count(b.x)", [1, 0]),
        ("count(c)", [0, 1]),
        ("sum(b.x)", [2, None]),
        ("avg(b.x)", [2.0, None]),
        ("min(b.s)", ["q", None]),
        ("max(b.x)", [2, None]),
        ("first(b.s)", ["q", None]),
        ("last(b.x)", [None, None]),
        ("last(c.l)", [None, [5]]),
        ("a.x + c.x", [None, 9]),
        ("c.s = 't'", [None, True]),
        ("c.s IS NULL", [True, False]),
        ("max(b.s) = 'r'", [True, None]),
        ("coalesce(c.x, -1)", [-1, 5]),
        ("count(b) + count(c)", [2, 1]),
    ],
)
def test_returned_items(item, values):
    assert cep.match(EVENTS, f"{PATTERN} RETURN {item} AS item", columns=["x"])["item"].to_pylist() == values


@pytest.mark.parametrize("strategy", ["skip_till_next_match", "skip_till_any_match"])
@pytest.mark.parametrize("output", ["matches", "events", "indices", "count"])
def test_brute_force_gives_the_same_table(output, strategy):
    options = {"output": output, "strategy": strategy}
    assert cep.match(EVENTS, PATTERN, algorithm="brute_force", **options).equals(cep.match(EVENTS, PATTERN, **options))


def test_optional_variables_have_the_matches_with_and_without():
    found = cep.match(EVENTS, "PATTERN SEQ(A a, B b*, C c?, D d) WITHIN 9", output="indices").to_pylist()
    assert found == [
        {"a": 0, "b": None, "c": None, "d": 5},
        {"a": 0, "b": None, "c": 4, "d": 5},
        {"a": 0, "b": [1, 2], "c": None, "d": 5},
        {"a": 0, "b": [1, 2], "c": 4, "d": 5},
        {"a": 3, "b": None, "c": None, "d": 5},
        {"a": 3, "b": None, "c": 4, "d": 5},
    ]


def test_a_match_that_several_branches_find_is_one():
    """With and without the negation, the branches bind the same variables."""
    query = "PATTERN SEQ(A a, OR(NOT(C c), B b), D d)"
    alike = "PATTERN OR(SEQ(A a, NOT(B b), D d), SEQ(A a, NOT(C c), D d), SEQ(A a, D d))"
    assert cep.match(EVENTS, query, output="indices")["a"].to_pylist() == [0]
    assert cep.match(EVENTS, alike, output="indices").to_pylist() == [{"a": 0, "d": 5}, {"a": 3, "d": 5}]
    assert cep.match(EVENTS, alike, output="count")["count"].to_pylist() == [2]


def test_negated_variables_have_no_column():
    found = cep.match(EVENTS, "PATTERN SEQ(A a, NOT(C c), D d)", output="indices")
    assert found.column_names == ["a", "d"]
    assert found.num_rows == 0


def test_no_match_of_any_branch():
    found = cep.match(EVENTS, f"{PATTERN.replace('WITHIN 2', 'WITHIN 0')} RETURN b, c.x, count(b) AS n")
    assert found.num_rows == 0
    assert found.column_names == ["match_start", "match_end", "b", "x", "n"]

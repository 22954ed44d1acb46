"""A column of Arrow type null (pandas' all-None, Spark's VOID) is NULL in every type."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_cep as cep

EVENTS = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "A"], "n": [1, 2, 3], "flag": [True, False, True], "c": pa.nulls(3)})


def indices(query, events=EVENTS, **options):
    return cep.match(events, f"PATTERN {query}", output="indices", **options).to_pylist()


@pytest.mark.parametrize(
    "condition",
    [
        "a.c > 1",
        "a.c = 0.5",
        "'x' = a.c",
        "a.c <> a.n",
        "a.c = a.type",
        "a.c = a.c",
        "a.c > NULL",
        "a.c",
        "NOT a.c",
        "-a.c = 1",
        "a.c + a.n > 0",
        "a.c + 1 day > 1 day",
        "a.c BETWEEN 1 AND 2",
        "a.c IN (1, 2)",
        "a.c NOT IN ('x', 'y')",
        "a.c LIKE 'x%'",
        "abs(a.c) >= 0",
        "sqrt(a.c) >= 0",
        "coalesce(a.c, 0.5) > 1",
        "lower(a.c) = 'x'",
        "exp(a.c) > 0",
        "year(a.c) = 2000",
    ],
)
def test_conditions_that_are_never_true(condition):
    assert indices(f"a WHERE {condition}") == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("a WHERE a.c IS NULL", [{"a": 0}, {"a": 1}, {"a": 2}]),
        ("a WHERE a.c > 1 OR a.flag", [{"a": 0}, {"a": 2}]),
        ("a WHERE coalesce(a.c, a.n) = 2", [{"a": 1}]),
        ("SEQ(a, b) WHERE a.c = b.c", []),
        ("SEQ(a, b) WHERE [c]", []),
        ("SEQ(a, b) WHERE a.c = b.type OR a.n = 2", [{"a": 1, "b": 2}]),
        # nothing stands before the first event of a binding
        ("SEQ(a, b+) WHERE prev(b.c) < b.n", [{"a": 0, "b": [1]}, {"a": 1, "b": [2]}]),
        ("SEQ(a, b+) WHERE prev(b.c) LIKE 'x'", [{"a": 0, "b": [1]}, {"a": 1, "b": [2]}]),
    ],
)
@pytest.mark.parametrize("algorithm", ["auto", "brute_force"])
def test_conditions_beside_others(query, found, algorithm):
    assert indices(query, algorithm=algorithm) == found


def test_no_event_is_of_a_type_if_the_type_column_is_null():
    assert indices("A a", EVENTS.set_column(1, "type", pa.nulls(3))) == []


@pytest.mark.parametrize("role", ["partition_by", "order_by"])
def test_null_is_a_key_like_any_other(role):
    assert indices("SEQ(a, b)", **{role: "c"}) == indices("SEQ(a, b)")


def test_return():
    items = ["a.c AS c", "sum(b.c)", "avg(b.c)", "min(b.c)", "last(b.c)", "a.c + 1", "-a.c", "lower(a.c)", "a.c > 1"]
    found = cep.match(EVENTS, f"PATTERN SEQ(a, b+) RETURN count(b.c), {', '.join(items)}")
    assert [list(row.values())[2:] for row in found.to_pylist()] == [[0] + [None] * len(items)] * 2

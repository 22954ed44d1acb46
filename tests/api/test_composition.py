"""A result is a table of events, and partial sequences share variables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import gpu_cep as cep

TIMES = {
    "integer": pa.int64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("ms"),
    "zoned timestamp": pa.timestamp("us", "Europe/Zurich"),
    "float": pa.float64(),
}
PAIRS = "PARTITION BY k PATTERN SEQ(A a, B b+) WITHIN 3 RETURN a, b AS rest, b.x AS xs, a.w AS w, a.tags AS tags, a.ts AS at, count(b) AS n"


def events(time: pa.DataType = pa.int64()) -> pa.Table:  # noqa: B008
    return pa.table(
        {
            "ts": pa.array(range(12), pa.int32()).cast(pa.int32() if time == pa.date32() else pa.int64()).cast(time),
            "k": [1, 2] * 6,
            "type": list("AABBCAABBAAB"),
            "x": [float(number) for number in range(12)],
            "w": pa.array([[number, number + 1] for number in range(12)], pa.list_(pa.int32(), 2)),
            "tags": pa.array([[str(number)] if number else None for number in range(12)]),
        }
    )


def as_bindings(table: pa.Table) -> set[tuple[int, int, int]]:
    return {(row["a"], row["b"], row["c"]) for row in table.to_pylist()}


def of_type(name: str) -> tuple[pa.Table, dict[str, Any]]:
    """Events with times of that type, and the unit of a window over them."""
    return events(TIMES[name]), {} if name in ("integer", "float") else {"window": "days"}


@pytest.mark.parametrize("name", TIMES)
def test_times_of_a_result_are_times_of_events(name: str) -> None:
    table, unit = of_type(name)
    within = f"WITHIN 1000 {unit.get('window', '')}"
    found = cep.match(table, f"PATTERN SEQ(A a, B b) {within} RETURN a.x AS x")
    assert found.schema.types[:2] == [TIMES[name]] * 2
    pairs = f"PATTERN SEQ(p, q) WHERE p.match_end <= q.match_end {within} RETURN p.x AS p, q.x AS q"
    again = cep.match(found, pairs, timestamp="match_start")
    assert again.num_rows == found.num_rows - 1 > 1


def test_lists_and_structs_pass_through() -> None:
    found = cep.match(events(), PAIRS)
    query = "PATTERN SEQ(p, q) WITHIN 12 RETURN p.a AS a, q.rest AS rest, p.xs AS xs, p.w AS w, p.tags AS tags, q, p.n + q.n AS n"
    again = cep.match(found, query, timestamp="match_end", partition_by="k")
    assert again.num_rows
    assert again.schema.field("a").type == found.schema.field("a").type
    assert again.schema.field("w").type == pa.list_(pa.int32(), 2)
    by_end = {(row["k"], row["match_end"]): row for row in found.to_pylist()}
    for row in again.to_pylist():
        later = row["q"]
        assert later == by_end[row["k"], later["match_end"]]
        assert (row["rest"], row["n"]) == (later["rest"], len(row["xs"]) + later["n"])
        assert row["a"]["w"] == row["w"]
    assert None in again["tags"].to_pylist()


def test_whole_matches_are_events() -> None:
    found = cep.match(events(), "PATTERN SEQ(A a, B b?, C c) WITHIN 9")
    again = cep.match(found, "PATTERN m WHERE m.b IS NULL", timestamp="match_start")
    assert again["m"].to_pylist() == [row for row in found.to_pylist() if row["b"] is None] != []


def test_a_third_query_reads_the_second_ones_result() -> None:
    first = cep.match(events(), "PATTERN SEQ(A a, B b) RETURN a.x AS x")
    second = cep.match(first, "PATTERN SEQ(p, q) RETURN q.x - p.x AS step", timestamp="match_start")
    third = cep.match(second, "PATTERN SEQ(p, q+) RETURN sum(q.step) AS steps", timestamp="match_end", order_by=["match_start", "step"])
    assert third.column_names == ["match_start", "match_end", "steps"]
    assert third.num_rows


def test_partial_sequences_share_a_variable() -> None:
    """`b` follows both `a` and `c`, which nothing orders (004, section 4.3)."""
    table = pa.table({"ts": range(7), "type": list("CACABCB")})
    for strategy in ("skip_till_next_match", "skip_till_any_match"):
        query = f"PATTERN AND(SEQ(A a, B b), SEQ(C c, B b)) WHERE {strategy} {{TRUE}}"
        found = cep.match(table, query, output="indices")
        assert found.equals(cep.match(table, query, output="indices", algorithm="brute_force"))
        nested = query.replace("AND(SEQ(A a, B b), SEQ(C c, B b))", "SEQ(AND(A a, C c), B b)")
        assert as_bindings(found) == as_bindings(cep.match(table, nested, output="indices"))
    assert as_bindings(found) == {(a, b, c) for a in (1, 3) for b in (4, 6) for c in (0, 2, 5) if c < b}


def test_partial_sequences_that_no_nesting_says() -> None:
    """a before b and d, c before d alone: an order that SEQ and AND alone cannot say."""
    table = pa.table({"ts": range(8), "type": list("CABDACBD")})
    query = "PATTERN AND(SEQ(A a, B b), SEQ(A a, D d), SEQ(C c, D d)) WHERE skip_till_any_match {TRUE} WITHIN 7"
    found = cep.match(table, query, output="indices")
    assert found.equals(cep.match(table, query, output="indices", algorithm="brute_force"))
    assert any(row["d"] < row["b"] for row in found.to_pylist())
    assert any(row["b"] < row["c"] for row in found.to_pylist())

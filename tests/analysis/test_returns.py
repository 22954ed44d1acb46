"""RETURN: the names and types of its columns."""

from __future__ import annotations

import pytest

from gpu_cep.analysis.hints import NOW
from gpu_cep.analysis.types import BOOLEAN, DATE, FLOAT, INTEGER, STRING, DataType, Kind, decimal, duration, timestamp
from tests.analysis.queries import SCHEMA, bound, errors, refusals
from tests.analysis.rendering import render


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("a.id", ["id: a.id"]),
        ("a.id, b.id", ["a_id: a.id", "b_id: b.id"]),
        ("a.id, b.n", ["id: a.id", "n: b.n"]),
        ("a.id, b.n AS id", ["a_id: a.id", "id: b.n"]),
        ("a[1].id", ["first_a_id: first(a.id)"]),
        ("b[b.LEN].id", ["last_b_id: last(b.id)"]),
        ("avg(b.n), count(b), count(b.n)", ["avg_b_n: avg(b.n)", "count_b: count(b)", "count_b_n: count(b.n)"]),
        ("count(b[i]), avg(b[i].n)", ["count_b: count(b)", "avg_b_n: avg(b.n)"]),
        ("first(a.id)", ["first_a_id: first(a.id)"]),
        ("a, b", ["a: a", "b: b"]),
        ("a.n + 1, max(b.n) - min(b.n) AS spread", ["column_1: a.n + 1", "spread: max(b.n) - min(b.n)"]),
        ("avg(b.x) > a.x AS above", ["above: avg(b.x) > a.x"]),
        ("lower(a.s)", ["column_1: lower(a.s)"]),
        ("0.5, NULL", ["column_1: 0.5", "column_2: NULL"]),
        ("a.blob, a.wide, last(b.blob)", ["blob: a.blob", "wide: a.wide", "last_b_blob: last(b.blob)"]),
    ],
)
def test_columns(items: str, expected: list[str]) -> None:
    query = bound(f"PATTERN SEQ(a, b+) RETURN {items}")
    assert [f"{column.name}: {render(column.expression, query)}" for column in query.returns] == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("a.id", INTEGER),
        ("b.day", DATE),
        ("b", DataType(Kind.OTHER, name="event")),
        ("avg(b.n)", FLOAT),
        ("avg(b.d2)", FLOAT),
        ("sum(b.n)", INTEGER),
        ("sum(b.x)", FLOAT),
        ("sum(b.d2)", decimal(18, 2)),
        ("sum(b.took)", duration("ms")),
        ("count(b.blob)", INTEGER),
        ("count(b)", INTEGER),
        ("min(b.s)", STRING),
        ("max(b.at)", timestamp("ms")),
        ("min(b.flag)", BOOLEAN),
        ("first(b.d2)", decimal(10, 2)),
        ("max(b.at) - min(b.at)", duration("ms")),
        ("0.5", FLOAT),
        ("1", INTEGER),
        ("a.n = 1", BOOLEAN),
    ],
)
def test_types(item: str, expected: DataType) -> None:
    (column,) = bound(f"PATTERN SEQ(a, b+) RETURN {item}").returns
    assert column.expression.type == expected


def test_a_name_that_the_result_has_already() -> None:
    query = bound("PATTERN SEQ(a, b) RETURN a.id, b.n", partition_by=("id",))
    assert [column.name for column in query.returns] == ["a_id", "n"]
    twice = "two columns of the result are called"
    of_key = "the key of the stream is a column of each result: leave the item out, or name it otherwise with AS"
    of_match = "each result has that column: name the item otherwise with AS"
    assert errors("PATTERN SEQ(a, b) RETURN a.n AS id", partition_by=("id",)) == [f"{twice} 'id'; {of_key}"]
    assert errors("PATTERN SEQ(a, b) RETURN a.n AS match_start") == [f"{twice} 'match_start'; {of_match}"]
    assert errors("PATTERN SEQ(a, b) RETURN a.n, a.n") == [f"{twice} 'a_n'; name one of them with AS"]


ATTRIBUTES = f"write a.id; the attributes are {', '.join(SCHEMA.names)}"
READABLE = "RETURN reads v.attr, v[1].attr, v[v.LEN].attr and aggregates; SEQ(v){3} names its events v1, v2, v3"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("b[i].n", "b[i].n has no place in RETURN; return the whole binding or an aggregate of it"),
        ("b[i-1].n", "b[i-1].n has no place in RETURN; return the whole binding or an aggregate of it"),
        ("prev(b.n)", "prev(b.n) has no place in RETURN; return the whole binding or an aggregate of it"),
        ("avg(b[..i-1].n)", "avg(b[..i-1].n) has no place in RETURN; return the whole binding or an aggregate of it"),
        ("b.n + 1", "b.n is a list: b is bound to several events; write first(b.n), last(b.n) or another aggregate"),
        ("b[1]", "b[1] stands alone: an attribute belongs to a variable; write b[1].id or another attribute"),
        ("b[2]", f"b[2] stands alone: an attribute belongs to a variable; {READABLE}"),
        ("b[i]", "b[i] has no place in RETURN; write b"),
        ("b[i-1]", "b[i-1] has no place in RETURN; write b"),
        ("zz[1]", "unknown variable 'zz'; there are a, b"),
        ("a + 1", "a is an event, not a value; write a.id or another attribute"),
        ("b + 1", "b is a list of events, not a value; write first(b.id), last(b.id) or another aggregate"),
        ("lower(b.s)", "b.s is a list: b is bound to several events; write first(b.s), last(b.s) or another aggregate"),
        ("collect_list(b.n)", "unknown function 'collect_list'; RETURN b.n is the list of its values, if the variable has a quantifier"),
        ("array_agg(b.n)", "unknown function 'array_agg'; RETURN b.n is the list of its values, if the variable has a quantifier"),
        ("zz", f"'zz' stands alone: an attribute belongs to a variable; {ATTRIBUTES}; a text stands in single quotes: 'zz'"),
        ("now", f"'now' stands alone: an attribute belongs to a variable; {NOW}"),
        ("id", "'id' stands alone: an attribute belongs to a variable; write a.id"),
        ("avg(b.s)", "cannot apply avg() to string"),
        ("sum(b.day)", "cannot apply sum() to date"),
        ("min(b.blob)", "cannot apply min() to binary"),
        ("avg(c.n)", "unknown variable 'c'; there are a, b"),
        ("1" * 20, f"the constant {'1' * 20} is out of range: integer has 64 bits; write it as a float: {'1' * 20}e0"),
    ],
)
def test_errors(item: str, expected: str) -> None:
    assert errors(f"PATTERN SEQ(a, b+) RETURN {item}") == [expected]


def test_a_hint_shows_one_value_of_a_variable_that_has_some() -> None:
    (told,) = errors("PATTERN SEQ(NOT(b), a+, c) WITHIN 1 hour RETURN idd + 1")
    assert told.endswith("did you mean first(a.id), last(a.id) or another aggregate?")


@pytest.mark.parametrize("item", ["b", "b[1]", "b.n", "count(b)", "max(b.n)", "last(b.n)", "a.n + b.n"])
def test_a_negated_variable_has_no_value(item: str) -> None:
    (fault,) = errors(f"PATTERN SEQ(a, NOT(b), c) RETURN {item}")
    assert fault.endswith("has no value: b is negated, and no event is bound to it")


def test_an_optional_variable_is_one_event_or_none_and_a_starred_one_a_list() -> None:
    query = bound("PATTERN SEQ(a, b?, c*) RETURN b.n + 1 AS more, b, c.n, count(c) AS many")
    assert [render(column.expression, query) for column in query.returns] == ["b.n + 1", "b", "c.n", "count(c)"]
    assert errors("PATTERN SEQ(a, c*) RETURN c.n + 1") == [
        "c.n is a list: c is bound to several events; write first(c.n), last(c.n) or another aggregate"
    ]


@pytest.mark.parametrize(
    ("item", "construct"),
    [
        ("avg(b.took)", "avg(b.took)"),
        ("b[3].n", "b[3].n in RETURN"),
        ("sum(b.wide)", "sum(b.wide) over a column of type decimal(38, 2)"),
        ("last(b.wide) + 1", "last(b.wide), a column of type decimal(38, 2),"),
        ("exp(first(b.x))", "exp() of these arguments"),
    ],
)
def test_refusals(item: str, construct: str) -> None:
    (refusal,) = refusals(f"PATTERN SEQ(a, b+) RETURN {item}")
    assert refusal.startswith(f"{construct} is not supported; ")

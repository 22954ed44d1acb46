"""How WHERE is split, what each condition relates, and which keys its equalities give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.analysis.bound import BoundQuery, ConditionKind
from gpu_cep.lang.ast import Span
from tests.analysis.queries import SCHEMA, bound, errors, refusals
from tests.analysis.rendering import render

ID = SCHEMA.index("id")


def listed(query: BoundQuery) -> list[str]:
    """Each condition as kind, variables, bound tree and derived key."""
    return [
        " ".join(
            filter(
                None,
                (
                    condition.kind.value,
                    "".join(query.variables[variable].name for variable in condition.variables),
                    render(condition.expression, query),
                    "" if condition.key is None else f"[{SCHEMA.names[condition.key]}]",
                ),
            )
        )
        for condition in query.conditions
    ]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("a.n > 3", ["property a a.n > 3"]),
        ("b.n > 3 AND (a.n = 1 AND a.flag)", ["property b b.n > 3", "property a a.n = 1", "property a a.flag"]),
        ("a.n > 3 OR b.n > 3", ["pair ab a.n > 3 OR b.n > 3"]),
        ("b.n > a.n", ["pair ab b.n > a.n"]),
        ("a.n + b.n > c.n", ["pair abc a.n + b.n > c.n"]),
        ("b.n > prev(b.n)", ["consecutive b b.n > prev(b.n)"]),
        ("prev(b.n) > 3", ["consecutive b prev(b.n) > 3"]),
        ("b[i].n > b[i-1].n + a.n", ["consecutive ab b.n > prev(b.n) + a.n"]),
        ("b[i].n > 3", ["property b b.n > 3"]),
        ("b.n BETWEEN prev(b.n) AND a.n", ["consecutive ab b.n >= prev(b.n) AND b.n <= a.n"]),
        ("1 = 1", ["property 1 = 1"]),
        ("FALSE AND a.n = 1", ["property FALSE", "property a a.n = 1"]),
        # equalities that do not connect all variables, or give no key
        ("a.id = b.id", ["pair ab a.id = b.id"]),
        ("a.id = b.id AND b.n = c.n", ["pair ab a.id = b.id", "pair bc b.n = c.n"]),
        ("a.id = b.n AND b.n = c.id", ["pair ab a.id = b.n", "pair bc b.n = c.id"]),
        ("b[i].id = b[i-1].id", ["consecutive b b.id = prev(b.id)"]),
        ("a.id = a.id", ["property a a.id = a.id"]),
    ],
)
def test_kinds(where: str, expected: list[str]) -> None:
    query = bound(f"PATTERN SEQ(a, b+, c) WHERE {where}")
    assert listed(query) == expected
    assert query.derived_keys == ()


CLOSURE = ["pair ab a.id = b.id [id]", "pair ac a.id = c.id [id]", "pair bc b.id = c.id [id]", "within b b.id = prev(b.id) [id]"]


@pytest.mark.parametrize(
    "where",
    ["[id]", "a.id = b.id AND b.id = c.id", "c.id = b.id AND a.id = c.id", "a.id = b[i].id AND a.id = c.id AND [id]"],
)
def test_a_connecting_equality_becomes_its_closure_and_a_key(where: str) -> None:
    query = bound(f"PATTERN SEQ(a, b+, c) WHERE {where}")
    assert listed(query) == CLOSURE
    assert query.derived_keys == (ID,)


def test_the_closure_stands_where_its_first_part_stood() -> None:
    query = bound("PATTERN SEQ(a, b+, c) WHERE a.n = 1 AND a.id = b.id AND b.n = 2 AND b.id = c.id AND c.n = 3")
    assert listed(query) == ["property a a.n = 1", *CLOSURE, "property b b.n = 2", "property c c.n = 3"]


def test_several_keys() -> None:
    assert bound("PATTERN SEQ(a, b) WHERE [s] AND a.id = b.id").derived_keys == (SCHEMA.index("s"), ID)


def test_a_partition_column_is_no_derived_key_but_keeps_its_conditions() -> None:
    query = bound("PATTERN SEQ(a, b+) WHERE [id]", partition_by=("id",))
    assert listed(query) == ["pair ab a.id = b.id", "within b b.id = prev(b.id)"]
    assert query.derived_keys == ()


def test_a_float_is_no_key_since_nan_equals_nothing() -> None:
    query = bound("PATTERN SEQ(a, b+) WHERE a.x = b.x")
    assert listed(query) == ["pair ab a.x = b.x", "within b b.x = prev(b.x)"]
    assert query.derived_keys == ()


@pytest.mark.parametrize(("pattern", "expected"), [("a", []), ("a+", ["within a a.id = prev(a.id)"])])
def test_equivalence_over_one_variable_gives_no_key(pattern: str, expected: list[str]) -> None:
    query = bound(f"PATTERN {pattern} WHERE [id]")
    assert listed(query) == expected
    assert query.derived_keys == ()


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=7))
def test_a_key_is_derived_iff_the_equalities_connect_all_variables(edges: list[tuple[int, int]]) -> None:
    reached = {0}
    for _ in range(5):
        reached |= {end for edge in edges if set(edge) & reached for end in edge}
    where = " AND ".join(f"v{left}.id = v{right}.id" for left, right in edges)
    query = bound(f"PATTERN AND(v0, v1, v2, v3, v4) WHERE {where}")
    assert query.derived_keys == ((ID,) if len(reached) == 5 else ())
    assert len(query.conditions) == (10 if len(reached) == 5 else len(edges))


def test_event_types_are_properties() -> None:
    query = bound("PATTERN SEQ(Buy a, b, Sell c+) WHERE b.n = 1")
    assert listed(query) == ["property a a.type = 'Buy'", "property c c.type = 'Sell'", "property b b.n = 1"]


def test_event_types_of_an_integer_column() -> None:
    assert listed(bound('PATTERN SEQ("7" a, b)', type_column="id")) == ["property a a.id = 7"]
    assert errors("PATTERN SEQ(Buy a, b)", type_column="id") == ["event type 'Buy' is no value of the column 'id' (integer)"]
    assert errors("PATTERN SEQ(Buy a, b)", type_column="x") == ["event type 'Buy' is no value of the column 'x' (float)"]


def test_an_event_type_needs_its_column() -> None:
    assert errors("PATTERN SEQ(Buy a, Sell b)", type_column="kind") == [
        "event types are read from the column that type_column= names, and there is no 'kind'; did you mean 'id'?"
    ]
    assert bound("PATTERN SEQ(a, b)", type_column="kind").conditions == ()


def test_texts_are_canonical_and_spans_kept() -> None:
    query = bound("PATTERN SEQ(Buy a, b+) WHERE a.n==1 and b.id=a.id")
    assert [condition.text for condition in query.conditions] == ["a.type = 'Buy'", "a.n = 1", "a.id = b.id", "every b.id equal"]
    assert query.conditions[1].span == Span(1, 30, 1, 36)
    assert query.conditions[2].kind is ConditionKind.PAIR


def test_previous_events_of_two_variables_are_refused() -> None:
    assert refusals("PATTERN SEQ(a+, b+) WHERE prev(a.n) = prev(b.n)") == [
        "a condition on the previous events of a and b is not supported; a condition reads the previous event of one variable"
    ]

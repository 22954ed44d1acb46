"""How WHERE is split, what each condition relates and when it is decided, and which keys its equalities give."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.analysis.bound import BoundPattern, Condition, ConditionKind
from gpu_cep.lang.ast import Span
from tests.analysis.queries import SCHEMA, bound, errors
from tests.analysis.rendering import render

ID = SCHEMA.index("id")


def listed(query: BoundPattern, conditions: Sequence[Condition]) -> list[str]:
    """Each condition as kind, variables, bound tree, the variables that it waits for, and derived key."""
    return [
        " ".join(
            filter(
                None,
                (
                    condition.kind.value,
                    names(query, condition.variables),
                    render(condition.expression, query),
                    f"when {names(query, condition.closing)} is closed" if condition.closing else "",
                    "" if condition.key is None else f"[{SCHEMA.names[condition.key]}]",
                ),
            )
        )
        for condition in conditions
    ]


def names(query: BoundPattern, variables: Sequence[int]) -> str:
    return "".join(query.variables[variable].name for variable in variables)


def related(query: BoundPattern) -> list[str]:
    """The conditions of the only branch."""
    (branch,) = query.branches
    return listed(query, branch.conditions)


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
        # first events are known as soon as there are any, last ones and aggregates at the end
        ("first(b.n) > 3", ["binding b first(b.n) > 3"]),
        ("b[1].n > a.n", ["pair ab first(b.n) > a.n"]),
        ("b[i].n > b[1].n", ["binding b b.n > first(b.n)"]),
        ("last(b.n) > 3", ["binding b last(b.n) > 3 when b is closed"]),
        ("b[b.LEN].n > a.n", ["pair ab last(b.n) > a.n when b is closed"]),
        ("count(b) > 1", ["binding b count(b) > 1 when b is closed"]),
        ("avg(b.n) > c.n", ["pair bc avg(b.n) > CAST(c.n AS float) when b is closed"]),
        ("b.n > avg(b[..i-1].n)", ["consecutive b CAST(b.n AS float) > avg(b[..i-1].n)"]),
        ("b.n > sum(b[..i-1].n) + count(b)", ["consecutive b b.n > sum(b[..i-1].n) + count(b) when b is closed"]),
        ("b[i].n > prev(b.n) + b[1].n", ["consecutive b b.n > prev(b.n) + first(b.n)"]),
    ],
)
def test_kinds(where: str, expected: list[str]) -> None:
    query = bound(f"PATTERN SEQ(a, b+, c) WHERE {where}")
    assert listed(query, query.conditions) == expected
    assert related(query) == [condition for condition in expected if not condition.startswith("property")]
    assert query.derived_keys == ()


def test_a_condition_on_two_negated_variables() -> None:
    text = "PATTERN SEQ(a, NOT(b), NOT(c), d) WHERE b.n = c.n"
    assert errors(text) == ["a condition on two negated variables, b and c; a negated event is compared with the match's events only"]


def test_equivalence_relates_negated_events_to_those_of_the_match_alone() -> None:
    query = bound("PATTERN SEQ(a, NOT(b), NOT(c), d+) WHERE [n]")
    assert listed(query, query.conditions) == [
        "pair ad a.n = d.n", "within d d.n = prev(d.n)", "pair ab a.n = b.n", "pair db d.n = b.n", "pair ac a.n = c.n", "pair dc d.n = c.n",
    ]  # fmt: skip


def test_conditions_that_mention_absent_variables_are_dropped() -> None:
    query = bound("PATTERN SEQ(a, OR(b, c?), NOT(d), e) WHERE a.n < b.n AND c.n < e.n AND d.n < b.n AND a.n < e.n AND b.n = 1")
    assert [(names(query, branch.variables), listed(query, branch.conditions)) for branch in query.branches] == [
        ("abe", ["pair ab a.n < b.n", "pair bd d.n < b.n", "pair ae a.n < e.n"]),
        ("ace", ["pair ce c.n < e.n", "pair ae a.n < e.n"]),
        ("ae", ["pair ae a.n < e.n"]),
    ]


CLOSURE = ["pair ab a.id = b.id [id]", "pair ac a.id = c.id [id]", "pair bc b.id = c.id [id]", "within b b.id = prev(b.id) [id]"]


@pytest.mark.parametrize(
    "where",
    ["[id]", "a.id = b.id AND b.id = c.id", "c.id = b.id AND a.id = c.id", "a.id = b[i].id AND a.id = c.id AND [id]"],
)
def test_a_connecting_equality_becomes_its_closure_and_a_key(where: str) -> None:
    query = bound(f"PATTERN SEQ(a, b+, c) WHERE {where}")
    assert related(query) == CLOSURE
    assert query.branches[0].agreed == query.derived_keys == (ID,)


def test_the_closure_stands_where_its_first_part_stood() -> None:
    query = bound("PATTERN SEQ(a, b+, c) WHERE a.n = 1 AND a.id = b.id AND b.n = 2 AND b.id = c.id AND c.n = 3")
    assert related(query) == CLOSURE
    ahead = bound("PATTERN SEQ(a, b+, c) WHERE a.n < c.n AND a.id = b.id AND b.n < c.n AND b.id = c.id AND a.n < b.n")
    assert related(ahead) == ["pair ac a.n < c.n", *CLOSURE, "pair bc b.n < c.n", "pair ab a.n < b.n"]


def test_several_keys() -> None:
    assert bound("PATTERN SEQ(a, b) WHERE [s] AND a.id = b.id").derived_keys == (SCHEMA.index("s"), ID)


def test_a_partition_column_is_no_derived_key_but_keeps_its_conditions() -> None:
    query = bound("PATTERN SEQ(a, b+) WHERE [id]", partition_by=("id",))
    assert related(query) == ["pair ab a.id = b.id", "within b b.id = prev(b.id)"]
    assert query.derived_keys == ()


def test_a_float_is_no_key_since_nan_equals_nothing() -> None:
    query = bound("PATTERN SEQ(a, b+) WHERE a.x = b.x")
    assert related(query) == ["pair ab a.x = b.x", "within b b.x = prev(b.x)"]
    assert (query.branches[0].agreed, query.derived_keys) == ((SCHEMA.index("x"),), ())


@pytest.mark.parametrize(("pattern", "expected"), [("a", []), ("a+", ["within a a.id = prev(a.id)"])])
def test_equivalence_over_one_variable_gives_no_key(pattern: str, expected: list[str]) -> None:
    query = bound(f"PATTERN {pattern} WHERE [id]")
    assert related(query) == expected
    assert query.derived_keys == ()
    assert query.branches[0].agreed == ((ID,) if expected else ())


@pytest.mark.parametrize(
    ("text", "keys", "agreed"),
    [
        ("SEQ(a, OR(b, c)) WHERE [id]", ("id",), [("id",), ("id",)]),
        ("SEQ(a, OR(b, c)) WHERE a.id = b.id", (), [("id",), ()]),
        ("SEQ(a, OR(b, c)) WHERE [id] AND [s] AND a.n = c.n", ("id", "s"), [("id", "s"), ("id", "s", "n")]),
        # a branch of one variable may bind an event without a key
        ("SEQ(a, b?) WHERE a.id = b.id", (), [("id",), ()]),
        ("SEQ(a, b?, c) WHERE a.id = b.id AND a.id = c.id", ("id",), [("id",), ("id",)]),
        ("SEQ(a, b?, c) WHERE a.id = b.id AND b.id = c.id", (), [("id",), ()]),
        # events of other streams would rule matches out
        ("SEQ(a, NOT(b), c) WHERE a.id = c.id", (), [("id",)]),
        ("SEQ(a, NOT(b), c) WHERE a.id = c.id AND a.id = b.id", ("id",), [("id",)]),
        ("SEQ(a, NOT(b), c) WHERE [id]", ("id",), [("id",)]),
        # nothing relates the events of a match by way of one that must not happen
        ("SEQ(a, NOT(b), c) WHERE a.id = b.id AND b.id = c.id", (), [()]),
        ("SEQ(a+, NOT(b)) WHERE a.id = b.id", (), [()]),
    ],
)
def test_keys_of_branches(text: str, keys: tuple[str, ...], agreed: list[tuple[str, ...]]) -> None:
    query = bound(f"PATTERN {text} WITHIN 5 s")
    assert tuple(SCHEMA.names[column] for column in query.derived_keys) == keys
    assert [tuple(SCHEMA.names[column] for column in branch.agreed) for branch in query.branches] == agreed


def test_a_key_marks_the_conditions_on_negated_events_too() -> None:
    query = bound("PATTERN SEQ(a, NOT(b), c) WHERE [id]")
    assert related(query) == ["pair ac a.id = c.id [id]", "pair ab a.id = b.id [id]", "pair cb c.id = b.id [id]"]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=7))
def test_a_key_is_derived_iff_the_equalities_connect_all_variables(edges: list[tuple[int, int]]) -> None:
    reached = {0}
    for _ in range(5):
        reached |= {end for edge in edges if set(edge) & reached for end in edge}
    where = " AND ".join(f"v{left}.id = v{right}.id" for left, right in edges)
    query = bound(f"PATTERN AND(v0, v1, v2, v3, v4) WHERE {where}")
    assert query.derived_keys == ((ID,) if len(reached) == 5 else ())
    assert len(query.branches[0].conditions) == (10 if len(reached) == 5 else len(edges))


def test_event_types_are_properties() -> None:
    query = bound("PATTERN SEQ(Buy a, b, Sell c+) WHERE b.n = 1")
    assert listed(query, query.conditions) == ["property a a.type = 'Buy'", "property c c.type = 'Sell'", "property b b.n = 1"]


def test_event_types_of_an_integer_column() -> None:
    query = bound('PATTERN SEQ("7" a, b)', type_column="id")
    assert listed(query, query.conditions) == ["property a a.id = 7"]
    for column, kind in (("id", "integer"), ("x", "float")):
        message = f"event type 'Buy' is no value of the column {column!r} ({kind})"
        assert errors("PATTERN SEQ(Buy a, b)", type_column=column) == [f"{message}; type_column= says which column holds the event types"]


def test_an_event_type_needs_its_column() -> None:
    assert errors("PATTERN SEQ(Buy a, Sell b)", type_column="kind") == [
        "event types are read from the column that type_column= names, and there is no 'kind'; columns of text are type, s"
    ]
    assert bound("PATTERN SEQ(a, b)", type_column="kind").conditions == ()


def test_texts_are_canonical_and_spans_kept() -> None:
    query = bound("PATTERN SEQ(Buy a, b+) WHERE a.n==1 and b.id=a.id")
    assert [condition.text for condition in query.conditions] == ["a.type = 'Buy'", "a.n = 1", "b.id = a.id"]
    assert query.conditions[1].span == Span(1, 30, 1, 36)
    assert query.conditions[2].kind is ConditionKind.PAIR
    (branch,) = query.branches
    assert [(condition.text, condition.span) for condition in branch.conditions] == [
        ("a.id = b.id", query.conditions[2].span),
        ("every b.id equal", query.conditions[2].span),
    ]


def test_previous_events_of_two_variables() -> None:
    assert related(bound("PATTERN SEQ(a+, b+) WHERE prev(a.n) = prev(b.n)")) == ["consecutive ab prev(a.n) = prev(b.n)"]

"""``parse(format_query(q)) == q``, types of literals included, and nothing hostile gets through."""

from dataclasses import fields, is_dataclass
from datetime import UTC, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_cep.errors import PatternError
from gpu_cep.lang import ast
from gpu_cep.lang.ast import (
    AGGREGATES,
    STRATEGIES,
    UNITS,
    Aggregate,
    Binary,
    Call,
    DurationLiteral,
    Expression,
    Literal,
    PatternNode,
    Query,
    Reference,
    Repeat,
    ReturnItem,
    Seq,
    Source,
    Unary,
    Variable,
    Window,
    connect,
)
from gpu_cep.lang.ast_intervals import RELATIONS, Constraint, IntervalQuery, Relation, Situation
from gpu_cep.lang.format import format_definition, format_expression, format_pattern, format_query
from gpu_cep.lang.limits import MAX_DEPTH
from gpu_cep.lang.parser import parse

VARIABLES = (
    "a",
    "b2",
    "größe",
    "from",
    "Seq",
    "skip_till_any_match",
    "odd name",
    'quo"te',
    "back`tick",
    "i",
    "events",
    "avg",
    "x.y",
    "ſeq",
)

HOSTILE = (
    "__import__('os').system('true')",
    "'; DROP TABLE events; --",
    "{0.__class__}",
    "%s%n",
    "*/ /*",
    "a\nb\r\n\tc",
    "\x00",
    "\u202e\u2028",
    "''",
    '""',
    "``",
    "\\",
    "TRUE",
    "1e5",
)

variables = st.sampled_from(VARIABLES)
attributes = st.sampled_from(("x", "Price", "in", "LEN", "2nd", "with space", *HOSTILE)) | st.text(min_size=1, max_size=5)
bare_attributes = attributes.filter(lambda name: name not in VARIABLES)
functions = st.sampled_from(("abs", "least", "avg", "prev", "like", "my function", "corr"))

integers = st.integers(-(10**30), 10**30)
decimals = st.decimals(allow_nan=False, allow_infinity=False, places=4) | st.sampled_from([Decimal("1E+5"), Decimal("-1E-40"), Decimal(7)])
zones = st.none() | st.just(UTC) | st.builds(timezone, st.integers(-1000, 1000).map(lambda minutes: timedelta(minutes=minutes)))
values = (
    st.none()
    | st.booleans()
    | integers
    | decimals
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(HOSTILE)
    | st.dates()
    | st.datetimes(timezones=zones)
)
amounts = st.integers(0, 10**12) | st.decimals(0, 1000, places=3)
indices = st.sampled_from([None, ast.EachIndex(), ast.PreviousIndex(), ast.LastIndex(), ast.NumberIndex(1), ast.NumberIndex(10**20)])

leaves: st.SearchStrategy[Expression] = st.one_of(
    st.builds(Literal, values),
    st.builds(DurationLiteral, amounts | amounts.map(lambda amount: -amount), st.sampled_from(list(UNITS))),
    st.builds(Reference, variables, attributes, indices),
    st.builds(Reference, variables, st.none()),
    st.builds(Reference, st.none(), bare_attributes),
    st.builds(ast.PrevBound, variables, attributes),
    st.builds(Aggregate, st.sampled_from(AGGREGATES), variables, attributes, st.booleans()),
    st.builds(Aggregate, st.just("count"), variables, st.none(), st.booleans()),
    st.builds(ast.Equivalence, attributes),
)


def composed(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    pairs = st.lists(st.tuples(inner, inner), min_size=1, max_size=2)
    return st.one_of(
        st.builds(Unary, st.sampled_from(["-", "NOT"]), inner),
        st.builds(Binary, st.sampled_from(["+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">="]), inner, inner),
        st.builds(connect, st.sampled_from(["AND", "OR"]), st.lists(inner, min_size=2, max_size=3)),
        st.builds(ast.Between, inner, inner, inner, st.booleans()),
        st.builds(ast.In, inner, several, st.booleans()),
        st.builds(lambda branches, otherwise: ast.Case(*zip(*branches, strict=True), otherwise), pairs, st.none() | inner),
        st.builds(ast.Like, inner, inner, st.booleans()),
        st.builds(ast.IsNull, inner, st.booleans()),
        st.builds(Call, functions, st.just(()) | several),
    )


expressions = st.recursive(leaves, composed, max_leaves=8)

bounds = st.sampled_from([(1, None), (0, None), (0, 1), (3, 3), (2, None), (2, 4), (0, 5), (1, 1)])
single = st.builds(Variable, variables, st.none() | variables)
ends = st.none() | expressions
primitives = single | st.builds(lambda variable, bound, until: Repeat(variable, *bound, until=until), single, bounds, ends)


def combined(inner: st.SearchStrategy[PatternNode]) -> st.SearchStrategy[PatternNode]:
    several = st.lists(inner, min_size=1, max_size=4).map(tuple)
    composites = st.builds(Seq, several) | st.builds(ast.And, several) | st.builds(ast.Or, several)
    gaps = st.builds(ast.Gap, inner, st.sampled_from(tuple(ast.GAPS.values())))
    repeated = st.builds(lambda composite, bound: Repeat(composite, *bound), composites, st.sampled_from([(1, 1), (3, 3), (2, 4), (0, 5)]))
    return composites | repeated | st.builds(ast.Not, inner) | st.builds(ast.Next, inner) | gaps


# The first element declares every name of VARIABLES, so that each of them is a variable wherever it stands bare.
declarations = tuple(Variable(name) for name in VARIABLES)
patterns = st.recursive(primitives, combined, max_leaves=5).map(lambda pattern: Seq((*declarations, pattern)))

windows = st.builds(Window, amounts, st.none() | st.sampled_from(list(UNITS))) | st.builds(Window, st.integers(1, 100), st.just("events"))
strategies = st.tuples(st.none(), st.just(())) | st.tuples(st.sampled_from(STRATEGIES), st.lists(variables, max_size=2).map(tuple))


@st.composite
def queries(draw: st.DrawFn) -> Query:
    strategy, listed = draw(strategies)
    return Query(
        draw(patterns),
        source=draw(st.none() | st.builds(Source, attributes, st.none() | attributes)),
        partition_by=draw(st.lists(attributes, max_size=2).map(tuple)),
        where=draw(st.none() | expressions),
        strategy=strategy,
        strategy_variables=listed,
        within=draw(st.none() | windows),
        returns=draw(st.lists(st.builds(ReturnItem, expressions, st.none() | attributes), max_size=2).map(tuple)),
    )


lengths = st.builds(Window, amounts, st.none() | st.sampled_from(list(UNITS)))
situations = st.builds(Situation, variables, expressions, st.none() | lengths, st.none() | lengths)
relations = st.builds(Relation, variables, st.sampled_from(list(RELATIONS)), variables)
constraints = st.builds(Constraint, st.lists(relations, min_size=1, max_size=4).map(tuple))


@st.composite
def interval_queries(draw: st.DrawFn) -> IntervalQuery:
    declared = tuple(Situation(name, Literal(True)) for name in VARIABLES)
    return IntervalQuery(
        (*declared, *draw(st.lists(situations, max_size=3))),
        draw(st.lists(constraints, min_size=1, max_size=4).map(tuple)),
        source=draw(st.none() | st.builds(Source, attributes, st.none() | attributes)),
        partition_by=draw(st.lists(attributes, max_size=2).map(tuple)),
        within=draw(st.none() | windows),
        returns=draw(st.lists(st.builds(ReturnItem, expressions, st.none() | attributes), max_size=2).map(tuple)),
    )


def exact(node: Any) -> Any:
    """`node` in a form in which 1, 1.0, TRUE and Decimal(1) differ."""
    if is_dataclass(node):
        return type(node), [exact(getattr(node, field.name)) for field in fields(node) if field.compare]
    if isinstance(node, tuple):
        return [exact(item) for item in node]
    return type(node), node


@settings(max_examples=150, deadline=None)
@given(queries() | interval_queries())
def test_round_trip(query: Query | IntervalQuery) -> None:
    text = format_query(query)
    found = parse(text)
    assert found == query
    assert exact(found) == exact(query)
    assert format_query(found) == text


@settings(max_examples=150, deadline=None)
@given(expressions)
def test_expression_round_trip(expression: Expression) -> None:
    text = format_expression(expression)
    found = parse(format_query(Query(Seq(declarations))) + f" WHERE {text}")
    assert isinstance(found, Query)
    assert exact(found.where) == exact(expression)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    query = Query(
        Variable(text, text),
        source=Source(text, text),
        partition_by=(text,),
        where=Binary("=", Reference(text, text), Literal(text)),
        strategy="skip_till_any_match",
        strategy_variables=(text,),
        returns=(ReturnItem(Call(text.lower(), (Reference(text, None),)), text),),
    )
    assert parse(format_query(query)) == query


@pytest.mark.parametrize(
    "text",
    [
        "a.x + b.x * 2 - -3",
        "(a.x + b.x) * 2",
        "a.x - (b.x - 1)",
        "-(1)",
        "-(-1)",
        "-(-a.x)",
        "NOT (a.x = 1 OR b.x = 2) AND b.x IS NOT NULL",
        "a.x NOT BETWEEN 1 AND 2 OR a.x NOT IN (1, 2) OR a.s NOT LIKE '%'",
        "(a.x = 1) = TRUE",
        "a.x < 15 days",
        "a.x < INTERVAL '-1.5' hours",
        "0.80 * b[b.LEN].x % 7",
        'b[i-1]."from to" = avg(b[..i-1].from)',
        "TIMESTAMP '2020-01-01 10:00:00.500000+02:00' > DATE '2020-01-01'",
        '"avg"(a.x) = 1.5e0',
        "count(b) > 2",
        "CASE WHEN a.x = 1 OR a.y THEN 1 + 2 WHEN a.x IS NULL THEN NULL ELSE 0 END * 2 = 2",
        "NOT CASE WHEN a.x THEN 15 days END < 1 day",
    ],
)
def test_canonical_expression(text: str) -> None:
    where = parse(f"PATTERN SEQ(a, b+) WHERE {text}").where
    assert where is not None
    assert format_expression(where) == text


def test_canonical_query() -> None:
    text = (
        "from s `t` partition by t.k, `the key` pattern seq(A a, ~b, B{2,2} c[], or(d?, e*, f{2,})) "
        "where skip_till_any_match(a, c[]) { a.x == c[I].x and c.y != 80% } within 2 h return count(c) as n, a;"
    )
    assert format_query(parse(text)).split("\n") == [
        "FROM s t",
        'PARTITION BY k, "the key"',
        "PATTERN SEQ(A a, NOT(b), B c{2}, OR(d?, e*, f{2,}))",
        "WHERE skip_till_any_match(a, c) { a.x = c[i].x AND c.y <> 0.80 }",
        "WITHIN 2 HOURS",
        "RETURN count(c) AS n, a",
    ]


def test_the_pattern_alone_and_a_definition_alone() -> None:
    query = parse("DEFINE A AS x>5 BETWEEN 2 s AND 3 s, B AS y PATTERN A meets B;A before B AND B after A WITHIN 1 hour")
    assert format_pattern(query) == "A meets B; A before B AND B after A\nWITHIN 1 HOUR"
    assert isinstance(query, IntervalQuery)
    assert list(map(format_definition, query.situations)) == ["x > 5 AT LEAST 2 SECONDS AT MOST 3 SECONDS", "y"]
    assert format_pattern(parse("PATTERN SEQ(A a, b+) WHERE a.x > 1 RETURN a.x")) == "SEQ(A a, b+)"


@pytest.mark.parametrize(
    "expression",
    [Literal(float("nan")), Literal(float("inf")), Literal(Decimal("NaN")), Reference("", "x"), Call("abs", (Reference("a", ""),))],
)
def test_what_no_text_can_say(expression: Expression) -> None:
    with pytest.raises(PatternError):
        format_expression(expression)


def test_quantifiers_that_have_no_text() -> None:
    with pytest.raises(PatternError, match="a quantifier is written on a variable, SEQ, AND or OR, and is greedy"):
        format_query(Query(Repeat(ast.Next(Variable("a")), 1, None)))
    with pytest.raises(PatternError, match="UNTIL is written on a variable"):
        format_query(Query(Repeat(Seq((Variable("a"),)), 2, 2, until=ast.Reference(None, "x"))))


@pytest.mark.parametrize(
    "condition",
    [
        " AND ".join(["a.x = 1"] * (MAX_DEPTH - 10)),
        "(" * MAX_DEPTH + "a.x = 1" + ")" * MAX_DEPTH,
        "1 + (" * (MAX_DEPTH - 10) + "1" + ")" * (MAX_DEPTH - 10),
        "NOT " * (MAX_DEPTH - 10) + "TRUE",
    ],
)
def test_deepest_trees_can_be_walked(condition: str) -> None:
    query = parse(f"PATTERN a WHERE {condition}")
    assert parse(format_query(query)) == query
    assert hash(query) == hash(parse(format_query(query)))
    assert repr(query)

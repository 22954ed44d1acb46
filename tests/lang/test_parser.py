"""Every construct of event patterns, and the tree it gives."""

import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from gpu_cep.lang.ast import (
    GAPS,
    STRATEGIES,
    Aggregate,
    And,
    Between,
    Binary,
    Call,
    Case,
    Connective,
    DurationLiteral,
    EachIndex,
    Equivalence,
    Expression,
    Gap,
    In,
    IsNull,
    LastIndex,
    Like,
    Literal,
    Next,
    Not,
    NumberIndex,
    Or,
    PatternNode,
    PrevBound,
    PreviousIndex,
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
from gpu_cep.lang.parser import parse

A, B, C = Variable("a"), Variable("b"), Variable("c")
AX, BX, BY = Reference("a", "x"), Reference("b", "x"), Reference("b", "y")
ONE, TWO, THREE = Literal(1), Literal(2), Literal(3)
EQUAL = (Binary("=", AX, ONE), Binary("=", AX, TWO))


def condition(text: str) -> Expression | None:
    return parse(f"PATTERN SEQ(a, b+) WHERE {text}").where


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", A),
        ("A a", Variable("a", "A")),
        ("a+", Repeat(A, 1, None)),
        ("a *", Repeat(A, 0, None)),
        ("a?", Repeat(A, 0, 1)),
        ("a{3}", Repeat(A, 3, 3)),
        ("a{2,}", Repeat(A, 2, None)),
        ("a{2, 4}", Repeat(A, 2, 4)),
        ("A a{0,4}", Repeat(Variable("a", "A"), 0, 4)),
        ("Stock+ a[]", Repeat(Variable("a", "Stock"), 1, None)),
        ("a+ UNTIL (x = 1)", Repeat(A, 1, None, until=Binary("=", Reference(None, "x"), ONE))),
        ("Stock* a[] until(a.x = 1)", Repeat(Variable("a", "Stock"), 0, None, until=Binary("=", AX, ONE))),
        ("until{2} u[]", Repeat(Variable("u", "until"), 2, 2)),
        ("B + b[ ]", Repeat(Variable("b", "B"), 1, None)),
        ("B{2,3} b[]", Repeat(Variable("b", "B"), 2, 3)),
        ("SEQ(a)", Seq((A,))),
        ("seq(a, and(b, c))", Seq((A, And((B, C))))),
        ("OR(a, SEQ(b, c))", Or((A, Seq((B, C))))),
        ("SEQ(a, NOT(b), c)", Seq((A, Not(B), C))),
        ("SEQ(a, NOT b, c)", Seq((A, Not(B), C))),
        ("SEQ(a, ~b, ~(Register c))", Seq((A, Not(B), Not(Variable("c", "Register"))))),
        ("SEQ(a, ~(B+ b[]))", Seq((A, Not(Repeat(Variable("b", "B"), 1, None))))),
        ("NOT(SEQ(a, b))", Not(Seq((A, B)))),
        ("SEQ(a, NEXT(b), next (B b+))", Seq((A, Next(B), Next(Repeat(Variable("b", "B"), 1, None))))),
        ("SEQ(a, first(b), ANY (B b))", Seq((A, Gap(B, GAPS["FIRST"]), Gap(Variable("b", "B"), GAPS["ANY"])))),
        ("SEQ(a, FIRST b, any b)", Seq((A, Variable("b", "FIRST"), Variable("b", "any")))),
        ("SEQ(a, NEXT b)", Seq((A, Variable("b", "NEXT")))),
        ("SEQ(AND(c, p+, d), b)", Seq((And((C, Repeat(Variable("p"), 1, None), Variable("d"))), B))),
        ('"SEQ"', Variable("SEQ")),
        ('"my type" `a.b`', Variable("a.b", "my type")),
        ('"say ""hi"""', Variable('say "hi"')),
        ("`back``quote`", Variable("back`quote")),
        ("größe", Variable("größe")),
        ("android", Variable("android")),
        ("date events", Variable("events", "date")),
    ],
)
def test_pattern(text: str, expected: PatternNode) -> None:
    assert parse(f"PATTERN {text}") == Query(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("007", 7),
        ("1.5", Decimal("1.5")),
        (".5", Decimal("0.5")),
        ("5.", Decimal("5")),
        ("1e3", 1000.0),
        ("1.5E-3", 0.0015),
        ("-1", -1),
        ("- 1.5", Decimal("-1.5")),
        ("80%", Decimal("0.80")),
        ("-12.5%", Decimal("-0.125")),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("-1.2345678901234567890123456789012345", Decimal("-1.2345678901234567890123456789012345")),
        ("'it''s'", "it's"),
        ("''", ""),
        ("'-- no comment /* nor this'", "-- no comment /* nor this"),
        ("'two\nlines'", "two\nlines"),
        ("TRUE", True),
        ("false", False),
        ("Null", None),
        ("DATE '2020-01-31'", date(2020, 1, 31)),
        ("timestamp '2020-01-01 10:00:00'", datetime(2020, 1, 1, 10)),
        ("TIMESTAMP '2020-01-01T10:00:00.5'", datetime(2020, 1, 1, 10, 0, 0, 500_000)),
        ("TIMESTAMP '2020-01-01'", datetime(2020, 1, 1)),
        ("TIMESTAMP '2020-01-01 10:00:00.123456+02:00'", datetime(2020, 1, 1, 10, 0, 0, 123_456, timezone(timedelta(hours=2)))),
        ("TIMESTAMP '2020-01-01 10:00:00 Z'", datetime(2020, 1, 1, 10, tzinfo=UTC)),
    ],
)
def test_literal(text: str, expected: Any) -> None:
    found = condition(f"a.x = {text}")
    assert found == Binary("=", AX, Literal(expected))
    assert isinstance(found, Binary)
    assert isinstance(found.right, Literal)
    assert type(found.right.value) is type(expected)


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("15 days", 15, "days"),
        ("15days", 15, "days"),
        ("1 DAY", 1, "days"),
        ("1.5 h", Decimal("1.5"), "hours"),
        ("2 m", 2, "minutes"),
        ("2 mins", 2, "minutes"),
        ("3 sec", 3, "seconds"),
        ("3 s", 3, "seconds"),
        ("4 ms", 4, "ms"),
        ("4 milliseconds", 4, "ms"),
        ("5 us", 5, "us"),
        ("5 µs", 5, "us"),
        ("6 nanoseconds", 6, "ns"),
        ("7 weeks", 7, "weeks"),
        ("INTERVAL '15' DAY", 15, "days"),
        ("interval '-1.5' hours", Decimal("-1.5"), "hours"),
    ],
)
def test_duration(text: str, amount: int | Decimal, unit: str) -> None:
    assert condition(f"a.x < {text}") == Binary("<", AX, DurationLiteral(amount, unit))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b.x", BX),
        ("x", Reference(None, "x")),
        ("b", Reference("b", None)),
        ("b.from", Reference("b", "from")),
        ("b.SEQ", Reference("b", "SEQ")),
        ('b."odd name"', Reference("b", "odd name")),
        ("`b`.x", BX),
        ("b[i].x", Reference("b", "x", EachIndex())),
        ("b[i-1].x", Reference("b", "x", PreviousIndex())),
        ("b[ i - 1 ].x", Reference("b", "x", PreviousIndex())),
        ("b[1].x", Reference("b", "x", NumberIndex(1))),
        ("b[b.LEN].x", Reference("b", "x", LastIndex())),
        ("b[b.len].x", Reference("b", "x", LastIndex())),
        ("prev(b.x)", PrevBound("b", "x")),
        ("PREV(b.x)", PrevBound("b", "x")),
        ("first(b.x)", Aggregate("first", "b", "x")),
        ("last(b.x)", Aggregate("last", "b", "x")),
        ("AVG(b.x)", Aggregate("avg", "b", "x")),
        ("AVG(b[i].x)", Aggregate("avg", "b", "x")),
        ("sum(b.x)", Aggregate("sum", "b", "x")),
        ("min(b.x)", Aggregate("min", "b", "x")),
        ("max(b.x)", Aggregate("max", "b", "x")),
        ("count(b.x)", Aggregate("count", "b", "x")),
        ("count(b)", Aggregate("count", "b", None)),
        ("count(b[i])", Aggregate("count", "b", None)),
        ("avg(b[..i-1].x)", Aggregate("avg", "b", "x", running=True)),
        ("count(b[..i-1])", Aggregate("count", "b", None, running=True)),
        ("ABS(b.x)", Call("abs", (BX,))),
        ("now()", Call("now", ())),
        ("corr(a.x, b.x)", Call("corr", (AX, BX))),
        ('"avg"(b.x)', Call("avg", (BX,))),
        ("[x]", Equivalence("x")),
        ("[ in ]", Equivalence("in")),
    ],
)
def test_reference(text: str, expected: Expression) -> None:
    assert condition(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", Binary("+", ONE, Binary("*", TWO, THREE))),
        ("(1 + 2) * 3", Binary("*", Binary("+", ONE, TWO), THREE)),
        ("1 - 2 - 3", Binary("-", Binary("-", ONE, TWO), THREE)),
        ("1 / 2 % 3", Binary("%", Binary("/", ONE, TWO), THREE)),
        ("-b.x * 2", Binary("*", Unary("-", BX), TWO)),
        ("1 - -2", Binary("-", ONE, Literal(-2))),
        ("- -2", Unary("-", Literal(-2))),
        ("-(2)", Unary("-", TWO)),
        ("a.x == 1", Binary("=", AX, ONE)),
        ("a.x != 1", Binary("<>", AX, ONE)),
        ("a.x <> 1", Binary("<>", AX, ONE)),
        ("a.x <= 1", Binary("<=", AX, ONE)),
        ("a.x >= 1", Binary(">=", AX, ONE)),
        ("a.x>-1", Binary(">", AX, Literal(-1))),
        ("TRUE OR FALSE AND TRUE", connect("OR", (Literal(True), connect("AND", (Literal(False), Literal(True)))))),
        ("NOT a.x = 1 and true", connect("AND", (Unary("NOT", Binary("=", AX, ONE)), Literal(True)))),
        ("not not TRUE", Unary("NOT", Unary("NOT", Literal(True)))),
        ("a.x BETWEEN 1 AND 2 AND TRUE", connect("AND", (Between(AX, ONE, TWO), Literal(True)))),
        ("a.x NOT BETWEEN 1 AND 2", Between(AX, ONE, TWO, negated=True)),
        ("a.x IN (1, 2)", In(AX, (ONE, TWO))),
        ("a.x NOT IN (1)", In(AX, (ONE,), negated=True)),
        ("a.x LIKE 'a%'", Like(AX, Literal("a%"))),
        ("a.x NOT LIKE 'a%'", Like(AX, Literal("a%"), negated=True)),
        ("CASE WHEN a.x = 1 THEN 2 END", Case((Binary("=", AX, ONE),), (TWO,))),
        ("case a.x when 1 then 2 when 2 then 80% else b.x end", Case(EQUAL, (TWO, Literal(Decimal("0.80"))), BX)),
        ("CASE (a.x) WHEN 1 THEN case WHEN b.x THEN 1 END END", Case(EQUAL[:1], (Case((BX,), (ONE,)),))),
        ("count(distinct b.x) > 1", Binary(">", Aggregate("count_distinct", "b", "x"), ONE)),
        ("COUNT(DISTINCT b[..i-1].x) > 1", Binary(">", Aggregate("count_distinct", "b", "x", running=True), ONE)),
        ("Count_Distinct(b.x) > median(b.x)", Binary(">", Aggregate("count_distinct", "b", "x"), Aggregate("median", "b", "x"))),
        ("f(distinct.x) > 1", Binary(">", Call("f", (Reference("distinct", "x"),)), ONE)),
        ("a.x IS NULL", IsNull(AX)),
        ("a.x IS NOT NULL", IsNull(AX, negated=True)),
        ("NOT a.x IS NULL", Unary("NOT", IsNull(AX))),
        ("a.x = 1 -- comment\n AND /* a * b */ TRUE", connect("AND", (Binary("=", AX, ONE), Literal(True)))),
    ],
)
def test_operators(text: str, expected: Expression) -> None:
    assert condition(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("80% * b.x", Binary("*", Literal(Decimal("0.80")), BX)),
        ("b.x * 80%", Binary("*", BX, Literal(Decimal("0.80")))),
        ("(80%)", Literal(Decimal("0.80"))),
        ("80% - b.x", Binary("-", Literal(Decimal("0.80")), BX)),
        ("80 % b.x", Binary("%", Literal(80), BX)),
        ("80%b.x", Binary("%", Literal(80), BX)),
        ("80 % -2", Binary("%", Literal(80), Literal(-2))),
        ("7%2", Binary("%", Literal(7), TWO)),
        ("b.x % b.y", Binary("%", BX, BY)),
        ("b.x%2", Binary("%", BX, TWO)),
    ],
)
def test_percentage_and_remainder(text: str, expected: Expression) -> None:
    assert condition(text) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategy(strategy: str) -> None:
    query = parse(f"PATTERN SEQ(a, b+) WHERE {strategy.upper()} {{ a.x = 1 }}")
    assert query == Query(Seq((A, Repeat(B, 1, None))), strategy=strategy, where=Binary("=", AX, ONE))


@pytest.mark.parametrize(
    ("text", "variables", "where"),
    [
        ("skip_till_any_match (a, b[]) { a.x = 1 }", ("a", "b"), Binary("=", AX, ONE)),
        ("skip_till_any_match(a){}", ("a",), None),
        ("skip_till_any_match { }", (), None),
    ],
)
def test_strategy_with_variables(text: str, variables: tuple[str, ...], where: Expression | None) -> None:
    expected = Query(Seq((A, B)), strategy="skip_till_any_match", strategy_variables=variables, where=where)
    assert parse(f"PATTERN SEQ(a, b) WHERE {text}") == expected


def test_braces_without_strategy() -> None:
    assert parse("PATTERN a WHERE { a.x = 1 }") == parse("PATTERN a WHERE a.x = 1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 hour", Window(1, "hours")),
        ("0.5 HOURS", Window(Decimal("0.5"), "hours")),
        ("12h", Window(12, "hours")),
        ("100", Window(100, None)),
        ("2.5", Window(Decimal("2.5"), None)),
        ("10 EVENTS", Window(10, "events")),
        ("1 event", Window(1, "events")),
        ("INTERVAL '15' DAY", Window(15, "days")),
    ],
)
def test_window(text: str, expected: Window) -> None:
    assert parse(f"PATTERN a WITHIN {text}") == Query(A, within=expected)


def test_clauses_in_order() -> None:
    text = """
        FROM CarStream CS
        PARTITION BY CS.car_id, CarStream.lane, "from", `odd name`
        PATTERN SEQ(a, b)
        WHERE a.x = 1
        WITHIN 5 MINUTES
        RETURN a.x AS first_x, b, count(b) AS "n of b", a.x + 1;
    """
    assert parse(text) == Query(
        Seq((A, B)),
        source=Source("CarStream", "CS"),
        partition_by=("car_id", "lane", "from", "odd name"),
        where=Binary("=", AX, ONE),
        within=Window(5, "minutes"),
        returns=(
            ReturnItem(AX, "first_x"),
            ReturnItem(Reference("b", None)),
            ReturnItem(Aggregate("count", "b", None), "n of b"),
            ReturnItem(Binary("+", AX, ONE)),
        ),
    )


def test_bare_name_is_a_variable_where_the_pattern_declares_it() -> None:
    query = parse("PATTERN SEQ(A a, NOT(B+ h[])) RETURN a, A, h")
    assert [item.expression for item in query.returns] == [Reference("a", None), Reference(None, "A"), Reference("h", None)]


def test_lark_is_imported_by_the_first_parse_only() -> None:
    script = "import sys, gpu_cep.lang.parser as p; assert 'lark' not in sys.modules; p.parse('PATTERN a'); assert 'lark' in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def test_keywords_ignore_case_and_names_do_not() -> None:
    assert parse("pattern seq(a, b) where a.x = 1 within 1 HOUR return a.x as y") == parse(
        "PATTERN SEQ(a, b) WHERE a.x = 1 WITHIN 1 hour RETURN a.x AS y"
    )
    assert parse("PATTERN a") != parse("PATTERN A")


def test_only_connectives_of_one_kind_are_one_node() -> None:
    one, two = EQUAL
    assert condition("a.x = 1 AND a.x = 2 AND (a.x = 1 AND a.x = 2)") == Connective("AND", (one, two, one, two))
    assert condition("a.x = 1 AND a.x = 2 OR a.x = 1 OR a.x = 2") == Connective("OR", (Connective("AND", (one, two)), one, two))
    assert condition("a.x = 1 AND (a.x = 2 OR a.x = 1) AND a.x = 2") == Connective("AND", (one, Connective("OR", (two, one)), two))


def test_words_of_case_are_names_where_they_stand_for_variables() -> None:
    query = parse("PATTERN SEQ(Case case, Then end) WHERE case.when < end.x AND case(1) = 2 RETURN case, end(case.end) AS when, case AS c")
    assert query.pattern == Seq((Variable("case", "Case"), Variable("end", "Then")))
    assert query.where == Connective(
        "AND", (Binary("<", Reference("case", "when"), Reference("end", "x")), Binary("=", Call("case", (ONE,)), TWO))
    )
    assert query.returns == (
        ReturnItem(Reference("case", None)),
        ReturnItem(Call("end", (Reference("case", "end"),)), "when"),
        ReturnItem(Reference("case", None), "c"),
    )

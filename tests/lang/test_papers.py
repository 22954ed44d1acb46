"""The papers' own queries, in their own spelling."""

from decimal import Decimal

import pytest

from gpu_cep.lang.ast import (
    Aggregate,
    And,
    Binary,
    EachIndex,
    Equivalence,
    Expression,
    LastIndex,
    Literal,
    Not,
    NumberIndex,
    PatternNode,
    PreviousIndex,
    Query,
    Reference,
    Repeat,
    Seq,
    Source,
    Variable,
    Window,
    connect,
)
from gpu_cep.lang.format import format_query
from gpu_cep.lang.parser import parse

SHOPLIFTING = """
PATTERN SEQ(Shelf a, ~(Register b), Exit c)
WHERE skip_till_next_match(a, b, c) {
    a.tag_id = b.tag_id
    AND a.tag_id = c.tag_id /* equivalently, [tag_id] */ }
WITHIN 12 hours
"""

CONTAMINATION = """
PATTERN SEQ(Alert a, Shipment+ b[ ])
WHERE skip_till_any_match(a, b[ ]) {
    a.type = 'contaminated' and b[1].from = a.site and b[i].from = b[i-1].to }
WITHIN 3 hours
"""

STOCKS = """
PATTERN SEQ(Stock+ a[ ], Stock b)
WHERE skip_till_next_match(a[ ], b) {
    [symbol]
    and a[1].volume > 1000
    and a[i].price > avg(a[..i-1].price)
    and b.volume < 80% * a[a.LEN].volume }
WITHIN 1 hour
"""


def attribute(variable: str, name: str) -> Reference:
    return Reference(variable, name)


def conjunction(*conditions: Expression) -> Expression:
    return connect("AND", conditions)


def test_sase_query_1() -> None:
    assert parse(SHOPLIFTING) == Query(
        Seq((Variable("a", "Shelf"), Not(Variable("b", "Register")), Variable("c", "Exit"))),
        where=conjunction(
            Binary("=", attribute("a", "tag_id"), attribute("b", "tag_id")),
            Binary("=", attribute("a", "tag_id"), attribute("c", "tag_id")),
        ),
        strategy="skip_till_next_match",
        strategy_variables=("a", "b", "c"),
        within=Window(12, "hours"),
    )


def test_sase_query_2() -> None:
    assert parse(CONTAMINATION) == Query(
        Seq((Variable("a", "Alert"), Repeat(Variable("b", "Shipment"), 1, None))),
        where=conjunction(
            Binary("=", attribute("a", "type"), Literal("contaminated")),
            Binary("=", Reference("b", "from", NumberIndex(1)), attribute("a", "site")),
            Binary("=", Reference("b", "from", EachIndex()), Reference("b", "to", PreviousIndex())),
        ),
        strategy="skip_till_any_match",
        strategy_variables=("a", "b"),
        within=Window(3, "hours"),
    )


def test_sase_query_3() -> None:
    assert parse(STOCKS) == Query(
        Seq((Repeat(Variable("a", "Stock"), 1, None), Variable("b", "Stock"))),
        where=conjunction(
            Equivalence("symbol"),
            Binary(">", Reference("a", "volume", NumberIndex(1)), Literal(1000)),
            Binary(">", Reference("a", "price", EachIndex()), Aggregate("avg", "a", "price", running=True)),
            Binary("<", attribute("b", "volume"), Binary("*", Literal(Decimal("0.80")), Reference("a", "volume", LastIndex()))),
        ),
        strategy="skip_till_next_match",
        strategy_variables=("a", "b"),
        within=Window(1, "hours"),
    )


A, B, C, D, E = (Variable(name.lower(), name) for name in "ABCDE")


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("PATTERN SEQ (A a, B b, C c)\nWITHIN 1 hour.", Seq((A, B, C))),
        ("PATTERN AND (A a, B b, C c)\nWITHIN 1 hour", And((A, B, C))),
        ("PATTERN AND (SEQ (A a, B b) , SEQ (C c, D d) , E e)\nWITHIN 1 hour", And((Seq((A, B)), Seq((C, D)), E))),
        ("PATTERN SEQ (A a, NOT (B b), C c, D d)\nWITHIN 1 hour", Seq((A, Not(B), C, D))),
        ("PATTERN SEQ (A a, B + b[], C c)\nWITHIN 1 hour", Seq((A, Repeat(B, 1, None), C))),
    ],
)
def test_lazy_patterns(text: str, pattern: PatternNode) -> None:
    assert parse(text.rstrip(".")) == Query(pattern, within=Window(1, "hours"))


def test_lazy_query_with_negation() -> None:
    query = parse("PATTERN SEQ (A a, NOT (B b), C c, D d)\nWHERE skip_till_any_match {b.x < c.y}\nWITHIN 1 hour")
    assert query.where == Binary("<", attribute("b", "x"), attribute("c", "y"))
    assert query.strategy == "skip_till_any_match"


def test_thesis_query_1() -> None:
    query = parse("PATTERN SEQ(AND(c, p+, d), b) WHERE c.L = 'C' AND d.L = 'D' AND p.L = 'P' AND b.L = 'B' AND [ID] WITHIN 264 HOURS")
    p = Repeat(Variable("p"), 1, None)
    assert query.pattern == Seq((And((Variable("c"), p, Variable("d"))), Variable("b")))
    assert query.within == Window(264, "hours")


def test_partition_by_the_source_alias() -> None:
    query = parse("FROM CarStream CS PARTITION BY CS.car_id PATTERN SEQ(a, b+) WHERE AVG(b[i].speed) > a.speed")
    assert query.source == Source("CarStream", "CS")
    assert query.partition_by == ("car_id",)
    assert query.where == Binary(">", Aggregate("avg", "b", "speed"), attribute("a", "speed"))


@pytest.mark.parametrize("text", [SHOPLIFTING, CONTAMINATION, STOCKS])
def test_canonical_text_is_stable(text: str) -> None:
    canonical = format_query(parse(text))
    assert parse(canonical) == parse(text)
    assert format_query(parse(canonical)) == canonical

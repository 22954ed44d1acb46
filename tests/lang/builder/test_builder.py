"""The Python builder gives the trees that the text gives."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import gpu_cep as cep
from gpu_cep.lang import ast, builder
from gpu_cep.lang.ast import DurationLiteral, Literal
from gpu_cep.lang.builder import Buildable, query_of
from gpu_cep.lang.builder.queries import DEEPEST
from gpu_cep.lang.format import format_query
from gpu_cep.lang.parser import parse
from tests.lang.builder.built_queries import Twin, queries
from tests.lang.test_format import exact

c, p, d, b = cep.var("c", "C"), cep.var("p", "P"), cep.var("d", "D"), cep.var("b", "B")


@given(queries())
def test_built_and_written_are_one_tree(twin: Twin) -> None:
    assert exact(query_of(twin.built)) == exact(parse(twin.text))


@given(queries())
def test_what_is_built_comes_back_from_its_text(twin: Twin) -> None:
    query = query_of(twin.built)
    found = parse(format_query(query))
    assert found == query
    assert exact(found) == exact(query)
    assert parse(str(twin.built)) == query


def test_a_whole_query() -> None:
    built = (
        cep.seq(cep.all_of(c, p.plus(), d), b)
        .where(c.ID == p.ID, p.v > 0.8 * cep.prev(p.v), cep.count(p) >= 2)
        .within(264, "hours")
        .using("skip_till_next_match")
        .returning(c.ID, total=cep.sum(p.v))
    )
    text = """
        PATTERN SEQ(AND(C c, P p+, D d), B b)
        WHERE skip_till_next_match { c.ID = p.ID AND p.v > 0.8 * prev(p.v) AND count(p) >= 2 }
        WITHIN 264 hours
        RETURN c.ID, sum(p.v) AS total
    """
    assert built.ast == parse(text)


@pytest.mark.parametrize(
    ("built", "text"),
    [
        ((c.x == 1) & (p.x != 2) | ~(d.x < 3), "c.x = 1 AND p.x <> 2 OR NOT d.x < 3"),
        (cep.not_(c.x == 1), "NOT c.x = 1"),
        (5 <= c.x, "c.x >= 5"),  # noqa: SIM300
        (cep.literal(5) <= c.x, "5 <= c.x"),
        (1 - c.x / 2 % -p.x > abs(d.x), "1 - c.x / 2 % -p.x > abs(d.x)"),
        (~c.x.between(1, 2), "c.x NOT BETWEEN 1 AND 2"),
        (~~c.x.between(1, 2), "c.x BETWEEN 1 AND 2"),
        (c.x.isin(1, 2), "c.x IN (1, 2)"),
        (c.x.isin([1, 2]), "c.x IN (1, 2)"),
        (c.x.isin({"b", "a", "c"}), "c.x IN ('a', 'b', 'c')"),
        (c.x.isin("ab"), "c.x IN ('ab')"),
        (c.x.isin(each for each in (1, p.x)), "c.x IN (1, p.x)"),
        (~c.x.like("a%") & c.y.is_null() & c.z.is_not_null(), "c.x NOT LIKE 'a%' AND c.y IS NULL AND c.z IS NOT NULL"),
        (~c.y.is_null(), "c.y IS NOT NULL"),
        (~c.flag, "NOT c.flag"),
        (p[1].x == p[-1].x, "p[1].x = p[p.LEN].x"),
        (p[cep.i].x > p[cep.i - 1].x, "p[i].x > p[i-1].x"),
        (p[cep.i].x > cep.avg(p[: cep.i - 1].x), "p[i].x > avg(p[..i-1].x)"),
        (cep.count(p[: cep.i - 1]) < cep.count(p[cep.i]), "count(p[..i-1]) < count(p)"),
        (cep.first(p.x) < cep.last(p.x), "first(p.x) < last(p.x)"),
        (cep.count_distinct(p[cep.i].x) > cep.median(p[: cep.i - 1].x), "count(DISTINCT p.x) > median(p[..i-1].x)"),
        (c["plus"] + c.attr("where") + p[1]["attr"] > 0, "c.plus + c.where + p[1].attr > 0"),
        (c.last + c.name + c.node + c.query > 0, "c.last + c.name + c.node + c.query > 0"),
        (cep.fn.lower(c.x) == cep.fn("LOWER", p.x), "lower(c.x) = lower(p.x)"),
        (cep.fn.least(c.x, 1, 0.5) > 0, "least(c.x, 1, 0.5) > 0"),
        (cep.case((c.x > 1, "a"), (c.flag, p.y)) == "a", "CASE WHEN c.x > 1 THEN 'a' WHEN c.flag THEN p.y END = 'a'"),
        (cep.case((c.flag, 1), otherwise=0) + 1 > 1, "CASE WHEN c.flag THEN 1 ELSE 0 END + 1 > 1"),
        (cep.same("odd name"), '["odd name"]'),
        (b.ts - c.ts <= timedelta(days=1), "b.ts - c.ts <= 1 day"),
        (b.ts - c.ts <= cep.duration(36, "h"), "b.ts - c.ts <= 36 hours"),
        (b.ts - c.ts <= cep.duration("1.5 days"), "b.ts - c.ts <= 1.5 days"),
        (c.ts >= datetime(2020, 1, 1, 10), "c.ts >= TIMESTAMP '2020-01-01 10:00:00'"),
    ],
)
def test_conditions(built: object, text: str) -> None:
    pattern = cep.seq(c, p.plus(), d, b)
    assert pattern.where(built).ast == parse(f"{pattern} WHERE {text}")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (c, "PATTERN C c"),
        (cep.seq(c, ~b, p.star()), "PATTERN SEQ(C c, ~(B b), P p*)"),
        (cep.any_of(c.optional(), cep.not_(p.plus())), "PATTERN OR(C c?, NOT(P p+))"),
        (p.times(2, 4).within("10 min"), "PATTERN P p{2,4} WITHIN 10 minutes"),
        (p.at_least(0), "PATTERN P p*"),
        (c.from_("stock", "s").partition_by("id", "the key"), 'FROM stock s PARTITION BY s.id, "the key" PATTERN C c'),
        (c.using("Skip_Till_Any_Match", c, "c"), "PATTERN C c WHERE skip_till_any_match(c, c) {}"),
        (c.where(c.x == 1).where(c.y == 2), "PATTERN C c WHERE c.x = 1 AND c.y = 2"),
        (c.where(c.x == 1, (c.y == 2) & (c.z == 3)), "PATTERN C c WHERE c.x = 1 AND (c.y = 2 AND c.z = 3)"),
        (c.within(0.5), "PATTERN C c WITHIN 0.5"),
        (c.within(Decimal("1.5"), "weeks"), "PATTERN C c WITHIN 1.5 weeks"),
        (c.within(np.int64(10), "Events"), "PATTERN C c WITHIN 10 EVENTS"),
        (p.plus().returning(p, p[1], first=p[1].x, of=p), "PATTERN P p+ RETURN p, p[1], p[1].x AS first, p AS of"),
        (c.returning(c.x.alias("select"), cep.literal(1)), "PATTERN C c RETURN c.x AS select, 1"),
    ],
)
def test_patterns_and_clauses(built: Buildable, text: str) -> None:
    assert query_of(built) == parse(text)


@pytest.mark.parametrize(
    ("value", "node"),
    [
        (0.8, Literal(Decimal("0.8"))),
        (-2.0, Literal(Decimal("-2.0"))),
        (1e-7, Literal(1e-7)),
        (np.float64(0.1), Literal(Decimal("0.1"))),
        (np.int32(7), Literal(7)),
        (np.str_("x"), Literal("x")),
        (True, Literal(True)),
        (None, Literal(None)),
        (date(2020, 1, 2), Literal(date(2020, 1, 2))),
        (pd.Timestamp("2020-01-02 03:04:05.000006"), Literal(datetime(2020, 1, 2, 3, 4, 5, 6))),
        (datetime(2020, 7, 1, tzinfo=ZoneInfo("Europe/Zurich")), Literal(datetime(2020, 7, 1, tzinfo=timezone(timedelta(hours=2))))),
        (
            datetime(1800, 7, 1, tzinfo=timezone(timedelta(minutes=34, seconds=8))),
            Literal(datetime(1800, 6, 30, 23, 59, 52, tzinfo=timezone(timedelta(minutes=34)))),
        ),
        (datetime(2020, 7, 1, tzinfo=UTC), Literal(datetime(2020, 7, 1, tzinfo=UTC))),
        (timedelta(days=14), DurationLiteral(14, "days")),
        (timedelta(days=1, minutes=1), DurationLiteral(1441, "minutes")),
        (timedelta(microseconds=-1), DurationLiteral(-1, "us")),
        (pd.Timedelta("2h"), DurationLiteral(2, "hours")),
    ],
)
def test_literals(value: object, node: ast.Expression) -> None:
    built = cep.literal(value).ast  # type: ignore[arg-type]
    assert exact(built) == exact(node)
    assert parse(f"PATTERN c RETURN {cep.literal(value)}").returns[0].expression == node  # type: ignore[arg-type]


def test_numpy_leaves_operators_to_expressions() -> None:
    assert repr(np.float64(0.5) * c.x) == "0.5 * c.x"
    assert repr(np.int64(3) < c.x) == "c.x > 3"


def test_clauses_change_nothing() -> None:
    pattern = cep.seq(c, b)
    short, long = pattern.within(1), pattern.within(2)
    assert pattern.ast == cep.seq(c, b).ast
    assert str(short) != str(long)
    p.plus()
    assert p == cep.var("p", "P")


@pytest.mark.parametrize(
    "built", [c, p.plus(), c.x, p[1], p[: cep.i - 1], p[: cep.i - 1].x, cep.i - 1, cep.fn, c.x.alias("y"), c.within(1)]
)
def test_copies_and_pickles(built: object) -> None:
    for twin in (copy.copy(built), copy.deepcopy(built), pickle.loads(pickle.dumps(built))):
        assert type(twin) is type(built)
        assert repr(twin) == repr(built)


def test_the_deepest_chain_can_be_read_again() -> None:
    deep = cep.prev(c.x) < cep.sum(c[: cep.i - 1].x)
    for _ in range(DEEPEST - 3):
        deep = ~deep
    assert parse(str(c.where(deep))).where == deep.ast


def test_public_names() -> None:
    internal = {"Buildable", "query_of"}
    assert set(builder.__all__) - internal == {name for name in cep.__all__ if hasattr(builder, name)}
    assert all(getattr(cep, name) is getattr(builder, name) for name in set(builder.__all__) - internal)
    assert set(cep.__all__) <= set(dir(cep))

"""The oracle's own evaluator, case by case."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal

import pytest

from gpu_cep.errors import EventError, PatternError
from gpu_cep.lang import ast
from gpu_cep.lang.parser import parse
from gpu_cep.oracle.expressions import Assignment, Schema, meaning
from gpu_cep.oracle.meanings import Kind

SCHEMA = Schema(
    {
        "x": Kind.INTEGER,
        "z": Kind.INTEGER,
        "n": Kind.INTEGER,
        "y": Kind.FLOAT,
        "nan": Kind.FLOAT,
        "m": Kind.DECIMAL,
        "s": Kind.STRING,
        "f": Kind.BOOLEAN,
        "d": Kind.TIME,
        "t": Kind.TIME,
        "zoned": Kind.ZONED_TIME,
    }
)
SECOND = 10**9
DAY = 86_400 * SECOND
ROW = {
    "x": 7,
    "z": -7,
    "n": None,
    "y": 2.5,
    "nan": math.nan,
    "m": Decimal("0.10"),
    "s": "Paris",
    "f": True,
    "d": 2 * DAY,
    "t": 2 * DAY + SECOND,
    "zoned": 2 * DAY,
}


def expression(text: str) -> ast.Expression:
    where = parse(f"PATTERN a WHERE {text}").where
    assert where is not None
    return where


def value(text: str) -> object:
    return meaning(expression(text), SCHEMA).value(Assignment({"a": (ROW | {"x": 5}, ROW)}, {"a": 1}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.x + 1 = 8", True),
        ("a.x - prev(a.x) = 2", True),
        ("a[i].x > a[i-1].x", True),
        ("a.x / 2 = 3.5", True),
        ("a.x / 0 IS NULL", True),
        ("a.y / 0 IS NULL", True),
        ("a.x % 0 IS NULL", True),
        ("a.x % 3 = 1", True),
        ("a.z % 3 = -1", True),
        ("a.z % -3 = -1", True),
        ("a.y % 2 = 0.5", True),
        ("-a.y % 2 = -0.5", True),
        ("a.m = 0.1", True),
        ("a.m + 0.2 = 0.3", True),  # exact: the literals are decimals here
        ("0.1 + 0.2 = 0.3", False),  # and floats here
        ("a.m % 0.03 = 0.01", True),
        ("a.nan = a.nan", False),
        ("a.nan <> a.nan", True),
        ("NOT (a.nan < 1)", True),
        ("a.nan IN (1, 2)", False),
        ("a.n = a.n", None),
        ("a.n <> 1", None),
        ("NOT (a.n = 1)", None),
        ("a.n = 1 OR a.f", True),
        ("a.n = 1 OR a.f = FALSE", None),
        ("(a.n = 1) IS NULL", True),
        ("NOT (a.n = 1 AND a.f = FALSE)", True),
        ("a.n IS NULL", True),
        ("a.x IS NOT NULL", True),
        ("a.x IN (1, NULL)", None),
        ("a.x IN (7, NULL)", True),
        ("a.x NOT IN (7, NULL)", False),
        ("a.x BETWEEN 7 AND 7", True),
        ("a.x NOT BETWEEN 1 AND NULL", None),
        ("a.x BETWEEN 8 AND NULL", False),
        ("a.s LIKE 'P%'", True),
        ("a.s LIKE 'P_ris'", True),
        ("a.s LIKE 'p%'", False),
        ("a.s NOT LIKE '.*'", True),
        ("a.s < 'b'", True),  # by code point: capitals first
        ("lower(a.s) = 'paris'", True),
        ("regexp_like(a.s, '^P.r')", True),
        ("regexp_like(a.s, 'PARIS')", False),
        ("length(upper(a.s)) = 5", True),
        ("abs(a.z) = 7", True),
        ("sign(a.z) = -1", True),
        ("floor(-a.y) = -3", True),
        ("ceil(a.y) = 3", True),
        ("round(a.y) = 3", True),
        ("round(-a.y) = -3", True),
        ("round(0.49999999999999994) = 0", True),
        ("sqrt(a.x + 2) = 3", True),
        ("sqrt(a.z) = sqrt(a.z)", False),
        ("least(a.x, a.n, a.y) = 2.5", True),
        ("greatest(a.n, a.n) IS NULL", True),
        ("greatest(a.x, a.nan) = 7", False),
        ("least(a.x, a.nan) = 7", True),
        ("least(a.nan, a.x) = 7", True),
        ("coalesce(a.n, a.y) = 2.5", True),
        ("nullif(a.x, 7) IS NULL", True),
        ("CASE WHEN a.n = 1 THEN 1 WHEN a.x = 7 THEN 2 WHEN a.f THEN 3 END = 2", True),
        ("CASE WHEN a.n = 1 THEN a.f END IS NULL", True),
        ("CASE a.s WHEN 'London' THEN a.x WHEN 'Paris' THEN a.y END = 2.5", True),
        ("CASE a.n WHEN NULL THEN 1 ELSE 2 END = 2", True),
        ("CASE WHEN a.f THEN 1 ELSE a.x * 9223372036854775807 END = 1", True),
        ("nullif(a.x, a.n) = 7", True),
        ("a.d = DATE '1970-01-03'", True),
        ("a.d < a.t", True),
        ("a.t = TIMESTAMP '1970-01-03 00:00:01'", True),
        ("a.t - a.d = 1 seconds", True),
        ("(a.t - a.d) / 2 seconds = 0.5", True),
        ("(a.t - a.d) / (a.d - a.d) IS NULL", True),
        ("a.t + NULL > a.t", None),
        ("(NULL - a.t) IS NULL AND (1 seconds * NULL) IS NULL", True),
        ("a.t - 1 seconds = a.d", True),
        ("a.d - DATE '1970-01-01' = INTERVAL '2' DAY", True),
    ],
)
def test_value(text, expected):
    assert value(text) is expected


@pytest.mark.parametrize("text", ["a.x + 9223372036854775807 > 0", "-(a.z - 9223372036854775802) > 0", "a.x * 4611686018427387904 > 0"])
def test_integer_overflow(text):
    with pytest.raises(EventError, match="overflow"):
        value(text)


@pytest.mark.parametrize("text", ["a.s < 1", "a.f + 1 = 2", "a.s LIKE 1", "a.zoned = a.t", "a.unknown = 1", "NOT a.x", "a.t + a.t = a.t"])
def test_no_meaning(text):
    with pytest.raises(PatternError):
        meaning(expression(text), SCHEMA)


def test_literals_of_time():
    assert meaning(ast.Literal(datetime(1970, 1, 1, 0, 0, 1, 5)), Schema({})).value(Assignment({}, {})) == SECOND + 5000
    assert meaning(ast.Literal(date(1969, 12, 31)), Schema({})).value(Assignment({}, {})) == -DAY

"""Expressions as they are bound: text → the bound tree, written out with its casts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.analysis.bound_expressions import Bound, Constant, Field, Operation
from gpu_cep.analysis.types import DataType, decimal, duration
from tests.analysis.queries import bound, errors, refusals
from tests.analysis.rendering import render

ZONES = "only one of them has a time zone: write the literal with an offset if the attribute has a zone, without if not"
RETURNED = "return it and filter the result; conditions read count, sum, avg, min, max, first and last"
DURATIONS = "a duration compares with a duration such as 15 days; the difference of two number attributes is a number"
ONE_KIND = "a number compares with a number, a text with a text"

CONDITIONS = [
    # literals meet attributes
    ("a.n > 3", "a.n > 3"),
    ("a.x > 3", "a.x > 3.0"),
    ("a.x > 80%", "a.x > 0.8"),
    ("a.n > 0.5", "CAST(a.n AS float) > 0.5"),
    ("a.n > 1e3", "CAST(a.n AS float) > 1000.0"),
    ("a.d2 = 0.5", "a.d2 = 0.50"),
    ("a.d2 = 0.125", "CASE WHEN a.d2 IS NULL THEN NULL ELSE FALSE END"),
    ("a.d2 = 7", "a.d2 = 7.00"),
    ("a.n = -3", "a.n = -3"),
    ("a.n = NULL", "a.n = NULL"),
    ("a.s = 'it''s'", "a.s = 'it''s'"),
    ("a.n == 3", "a.n = 3"),
    ("a.n != 3", "a.n <> 3"),
    ("TRUE", "TRUE"),
    ("1 = 1", "1 = 1"),
    ("0.5 < 1", "0.5 < 1.0"),
    ("'a' < 'b'", "TRUE"),
    ("a.x < 1000000000000000000000", "a.x < 1e+21"),
    # attributes meet attributes
    ("a.n < b.x", "CAST(a.n AS float) < b.x"),
    ("a.d2 < b.x", "CAST(a.d2 AS float) < b.x"),
    ("a.d2 < b.n", "a.d2 < CAST(b.n AS decimal(18, 2))"),
    ("a.d2 < b.d4", "CAST(a.d2 AS decimal(12, 4)) < b.d4"),
    ("a.s <= b.s", "a.s <= b.s"),
    (
        "a.at < b.ts",
        "CASE WHEN a.at > 9223372036854775 THEN CASE WHEN b.ts IS NULL THEN NULL ELSE FALSE END "
        "WHEN a.at < -9223372036854775 THEN CASE WHEN b.ts IS NULL THEN NULL ELSE TRUE END ELSE CAST(a.at AS timestamp[us]) < b.ts END",
    ),
    ("a.day < b.at", "CAST(a.day AS timestamp[ms]) < b.at"),
    ("a.flag", "a.flag"),
    ("a.flag = a.flag", "a.flag = a.flag"),
    # bindings
    ("avg(b.n) > a.n", "avg(b.n) > CAST(a.n AS float)"),
    ("sum(b.d2) > 0.5", "sum(b.d2) > 0.50"),
    ("max(b.n) - min(b.n) = 2", "max(b.n) - min(b.n) = 2"),
    ("count(b) = 2 OR count(b.s) = 1", "count(b) = 2 OR count(b.s) = 1"),
    ("b[1].n < b[b.LEN].n", "first(b.n) < last(b.n)"),
    ("first(b.n) < last(b.n)", "first(b.n) < last(b.n)"),
    ("b[i].n > avg(b[..i-1].n)", "CAST(b.n AS float) > avg(b[..i-1].n)"),
    ("b[i].n > last(b[..i-1].n) + first(b[..i-1].n)", "b.n > prev(b.n) + first(b.n)"),
    # of a single variable they are values of its event
    ("count(a) = 1", "1 - (a.ts IS NULL) = 1"),
    ("count(a.n) = 1", "1 - (a.n IS NULL) = 1"),
    ("avg(a.n) > 0.5", "CAST(a.n AS float) > 0.5"),
    ("max(a.n) = last(a.n) + a[1].n", "a.n = a.n + a.n"),
    # arithmetic
    ("a.n + b.n = 3", "a.n + b.n = 3"),
    ("a.n - (b.n - 1) = 3", "a.n - (b.n - 1) = 3"),
    ("a.n * 0.5 > b.n", "CAST(a.n AS float) * 0.5 > CAST(b.n AS float)"),
    ("a.n / 2 = b.n", "CAST(a.n AS float) / 2.0 = CAST(b.n AS float)"),
    ("a.n % 2 = 0", "a.n % 2 = 0"),
    ("mod(a.n, 2) = 0", "a.n % 2 = 0"),
    ("-a.n < 3", "-a.n < 3"),
    ("a.d2 + a.d4 > 1", "CAST(a.d2 AS decimal(12, 4)) + a.d4 > 1.0000"),
    ("a.d2 * a.d4 > 0", "a.d2 * a.d4 > 0.000000"),
    ("a.d2 * 0.8 > b.d2", "a.d2 * 0.8 > CAST(b.d2 AS decimal(11, 3))"),
    ("a.d2 * b.n > 0", "a.d2 * CAST(b.n AS decimal(18, 0)) > 0.00"),
    ("a.d2 % 2 = 0", "a.d2 % 2.00 = 0.00"),
    ("a.d2 / 2 > 1", "CAST(a.d2 AS float) / 2.0 > 1.0"),
    ("a.n + NULL > 1", "a.n + NULL > 1"),
    ("NULL + NULL = 1 second", "NULL = NULL"),
    (
        "(NULL - a.ts) + (NULL - b.ts) = 1 second",
        "CASE WHEN CASE WHEN b.ts IS NULL THEN NULL ELSE NULL END IS NULL THEN CASE WHEN a.ts IS NULL THEN NULL ELSE NULL END "
        "ELSE NULL END = NULL",
    ),
    # time
    ("b.ts - a.ts < 15 days", "b.ts - a.ts < 1296000000000 us"),
    ("b.ts - a.at < 1 ms", "b.ts - CAST(a.at AS timestamp[us]) < 1000 us"),
    ("b.day - a.day > INTERVAL '2' DAY", "CAST(b.day AS timestamp[s]) - CAST(a.day AS timestamp[s]) > 172800 seconds"),
    ("b.at - a.at < 5 us", "b.at - a.at <= 0 ms"),
    ("a.took < 1.5 seconds", "a.took < 1500 ms"),
    ("a.at + 1 hour < b.at", "a.at + 3600000 ms < b.at"),
    ("1 hour + a.at < b.at", "a.at + 3600000 ms < b.at"),
    ("a.at - a.took < b.at", "a.at - a.took < b.at"),
    ("a.day < b.at", "CAST(a.day AS timestamp[ms]) < b.at"),
    ("a.took + 1 minute > 3 * b.took", "a.took + 60000 ms > 3 * b.took"),
    ("a.took / b.took > 0.5", "CAST(a.took AS float) / CAST(b.took AS float) > 0.5"),
    ("a.day = DATE '2020-01-31'", "a.day = DATE '2020-01-31'"),
    ("a.day < TIMESTAMP '2020-01-31 10:00:00'", "a.day <= DATE '2020-01-31'"),
    ("a.at > DATE '2020-01-31'", "a.at > TIMESTAMP '2020-01-31 00:00:00'"),
    ("a.ts > TIMESTAMP '2020-01-31 10:00:00.25'", "a.ts > TIMESTAMP '2020-01-31 10:00:00.25'"),
    ("a.at > TIMESTAMP '1969-12-31 23:59:59.000001'", "a.at > TIMESTAMP '1969-12-31 23:59:59'"),
    ("a.zoned > TIMESTAMP '2020-01-31 10:00:00+02:00'", "a.zoned > TIMESTAMP '2020-01-31 08:00:00Z'"),
    # predicates
    ("a.n BETWEEN 1 AND b.x", "a.n >= 1 AND CAST(a.n AS float) <= b.x"),
    ("a.n NOT BETWEEN 1 AND 3", "NOT (a.n >= 1 AND a.n <= 3)"),
    ("a.n IN (1, -2)", "a.n IN (1, -2)"),
    ("a.n NOT IN (1, 2)", "NOT a.n IN (1, 2)"),
    ("a.n IN (1, NULL)", "a.n IN (1, NULL)"),
    ("a.n IN (NULL)", "a.n = NULL"),
    ("a.n IN (1, 0.5)", "a.n = 1 OR CAST(a.n AS float) = 0.5"),
    ("a.x IN (1, 0.5)", "a.x IN (1.0, 0.5)"),
    ("a.n IN (1, b.n)", "a.n = 1 OR a.n = b.n"),
    ("a.n NOT IN (1, b.n)", "NOT (a.n = 1 OR a.n = b.n)"),
    ("a.s LIKE 'A%'", "a.s LIKE 'A%'"),
    ("a.s NOT LIKE 'A%'", "NOT a.s LIKE 'A%'"),
    ("a.s LIKE NULL", "a.s = NULL"),
    ("a.blob IS NULL", "a.blob IS NULL"),
    ("a.wide IS NOT NULL", "NOT a.wide IS NULL"),
    ("a.n + 1 IS NULL", "a.n + 1 IS NULL"),
    ("NULL IS NULL", "TRUE"),
    ("'a' IN ('a', 'b')", "TRUE"),
    ("NOT (a.flag OR a.n = 1)", "NOT (a.flag OR a.n = 1)"),
    ("NULL OR a.flag", "NULL OR a.flag"),
    # places
    ("b.x > prev(b.x)", "b.x > prev(b.x)"),
    ("b[i].x > b[i-1].x + a.x", "b.x > prev(b.x) + a.x"),
    ("a[i].x > 0", "a.x > 0.0"),
    # functions
    ("abs(a.n - b.n) < 2", "abs(a.n - b.n) < 2"),
    ("sign(a.d2) = 1", "sign(a.d2) = 1"),
    ("floor(a.x) = a.n", "floor(a.x) = CAST(a.n AS float)"),
    ("ceiling(a.x) > 0.5", "ceil(a.x) > 0.5"),
    ("round(a.n) = 1", "a.n = 1"),
    ("floor(a.d2) = 1", "a.d2 - (a.d2 % 1.00 + 1.00) % 1.00 = 1.00"),
    ("ceil(a.d2) = 1", "-(-a.d2 - (-a.d2 % 1.00 + 1.00) % 1.00) = 1.00"),
    ("round(a.d2) = 1", "a.d2 + sign(a.d2) * 0.50 - (a.d2 + sign(a.d2) * 0.50) % 1.00 = 1.00"),
    ("sqrt(a.n) < 2", "sqrt(CAST(a.n AS float)) < 2.0"),
    ("least(a.n, b.x, 0.5) > 0", "least(CAST(a.n AS float), b.x, 0.5) > 0.0"),
    ("coalesce(a.d2, 0.5) > 0", "coalesce(a.d2, 0.50) > 0.00"),
    ("nullif(a.n, 0) > 0", "nullif(a.n, 0) > 0"),
    ("coalesce(a.s, b.s, 'x') = 'x'", "CASE WHEN NOT a.s IS NULL THEN a.s = 'x' WHEN NOT b.s IS NULL THEN b.s = 'x' ELSE TRUE END"),
    ("nullif(a.s, '') IS NULL", "CASE WHEN a.s = '' THEN TRUE ELSE a.s IS NULL END"),
    ("median(a.n) > count(DISTINCT a.n)", "CAST(a.n AS float) > CAST(1 - (a.n IS NULL) AS float)"),
    ("CASE WHEN a.flag THEN a.n ELSE 0.5 END > 1", "CASE WHEN a.flag THEN CAST(a.n AS float) ELSE 0.5 END > 1.0"),
    ("CASE a.n WHEN 1 THEN b.flag END", "CASE WHEN a.n = 1 THEN b.flag ELSE NULL END"),
    (
        "CASE WHEN a.flag THEN a.s WHEN b.flag THEN NULL ELSE 'x' END = 'x'",
        "CASE WHEN a.flag THEN a.s = 'x' WHEN b.flag THEN NULL ELSE TRUE END",
    ),
    (
        "a.s = CASE WHEN b.flag THEN CASE WHEN a.flag THEN b.s END ELSE 'x' END",
        "CASE WHEN b.flag THEN CASE WHEN a.flag THEN a.s = b.s ELSE a.s = NULL END ELSE a.s = 'x' END",
    ),
    ("CASE WHEN a.flag THEN a.s END IS NOT NULL", "NOT CASE WHEN a.flag THEN a.s IS NULL ELSE TRUE END"),
    ("CASE WHEN a.flag THEN a.s ELSE 'x' END NOT IN ('x', 'y')", "NOT CASE WHEN a.flag THEN a.s IN ('x', 'y') ELSE TRUE END"),
    ("CASE WHEN a.flag THEN a.s END LIKE 'x%'", "CASE WHEN a.flag THEN a.s LIKE 'x%' ELSE NULL END"),
    ("greatest(a.ts, b.at) = a.ts", "greatest(a.ts, CAST(b.at AS timestamp[us])) = a.ts"),
    ("lower(a.s) = 'x'", "lower(a.s) = 'x'"),
    ("lower(trim(a.s)) = 'x'", "lower(trim(a.s)) = 'x'"),
    ("upper(b.s) = upper(prev(b.s))", "upper(b.s) = upper(prev(b.s))"),
    ("substring(a.s, 2, 3) = 'x'", "substring(a.s, 2, 3) = 'x'"),
    ("substring(a.s, 2) = 'x'", "substring(a.s, 2) = 'x'"),
    ("power(a.n, 2) < 9", "power(a.n, 2.0) < 9.0"),
    ("exp(a.x) < 9", "exp(a.x) < 9.0"),
    ("power(a.n, NULL) IS NULL", "CASE WHEN a.n IS NULL THEN NULL ELSE NULL END IS NULL"),
    ("year(a.day + NULL) IS NULL", "CASE WHEN a.day IS NULL THEN NULL ELSE NULL END IS NULL"),
    ("year(a.day) = 2020 OR hour(a.at) < 3", "year(a.day) = 2020 OR hour(a.at) < 3"),
]


@pytest.mark.parametrize(("text", "expected"), CONDITIONS)
def test_conditions(text: str, expected: str) -> None:
    query = bound(f"PATTERN SEQ(a, b+) WHERE {text}")
    assert [render(condition.expression, query) for condition in query.conditions] == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.d2 + b.d4 > 0.0", decimal(13, 4)),
        ("a.d2 * b.d4 > 0.0", decimal(18, 6)),
        ("a.d2 - 0.125 > 0.0", decimal(12, 3)),
        ("b.at - a.ts > 1 day", duration("us")),
        ("b.day - a.day > 1 day", duration("s")),
    ],
)
def test_types_of_results(text: str, expected: DataType) -> None:
    comparison = bound(f"PATTERN SEQ(a, b) WHERE {text}").conditions[0].expression
    assert isinstance(comparison, Operation)
    assert comparison.arguments[0].type == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.idd = 1", "unknown attribute 'idd'; did you mean 'id'?"),
        ("c.id = 1", "unknown variable 'c'; there are a, b"),
        ("prev(a.x) > 1", "prev(a.x): a is bound to one event, which has none before it; a+ is bound to several"),
        ("a[i-1].x > 1", "a[i-1].x: a is bound to one event, which has none before it; a+ is bound to several"),
        ("avg(a[..i-1].x) > 1", "avg(a[..i-1].x): a is bound to one event, which has none before it; a+ is bound to several"),
        ("count(b) > 'x'", f"cannot compare integer with string; {ONE_KIND}"),
        ("avg(b.s) > 1", "cannot apply avg() to string"),
        ("sum(b.day) > 1", "cannot apply sum() to date"),
        ("min(b.blob) = 1", "cannot apply min() to binary"),
        ("avg(b.idd) > 1", "unknown attribute 'idd'; did you mean 'id'?"),
        ("avg(c.x) > 1", "unknown variable 'c'; there are a, b"),
        ("a.n", "a condition is true or false; this one is integer; compare it: a.n = 1"),
        ("a.n OR a.flag", "a condition is true or false; this one is integer; compare it: a.n = 1"),
        ("a.s = 1", "cannot compare string with integer; a text stands in single quotes: '1'"),
        ("a.n > '5'", "cannot compare integer with string; leave the quotes out: 5"),
        ("a.x BETWEEN '-0.5' AND 2", "cannot compare float with string; leave the quotes out: -0.5"),
        ("a.n IN (1, '2')", "cannot compare integer with string; leave the quotes out: 2"),
        ("a.n > 'x'", f"cannot compare integer with string; {ONE_KIND}"),
        ("a.flag = 1", "cannot compare boolean with integer; write a.flag, or a.flag = TRUE"),
        ("a.flag <> 0", "cannot compare boolean with integer; write a.flag, or a.flag = TRUE"),
        ("0 = a.flag", "cannot compare integer with boolean; write NOT a.flag, or a.flag = FALSE"),
        ("(a.n > 1) = 'true'", "cannot compare boolean with string; write a.n > 1, or a.n > 1 = TRUE"),
        ("a.flag > 0", "cannot compare boolean with integer; a truth value is a condition by itself, or compares with TRUE and FALSE"),
        (
            "a.flag IN (0, 1)",
            "cannot compare boolean with integer; a truth value is a condition by itself, or compares with TRUE and FALSE",
        ),
        (
            "a.zoned > a.day",
            "cannot compare timestamp[us, UTC] with date; a date has no time zone: cast one of the columns before they are matched",
        ),
        ("b.ts < a.ts + 5", "cannot apply + to timestamp[us] and integer; a length of time has a unit: a.ts + 5 seconds"),
        ("b.ts - 1 < a.ts", "cannot apply - to timestamp[us] and integer; a length of time has a unit: b.ts - 1 second"),
        ("7 + a.day < b.day", "cannot apply + to integer and date; a length of time has a unit: 7 days + a.day"),
        ("a.ts * 5 < b.ts", "cannot apply * to timestamp[us] and integer"),
        ("5 - a.ts < b.ts", "cannot apply - to integer and timestamp[us]"),
        ("lag(b.n) > 1", "unknown function 'lag'; write prev(b.n), the value of the event bound just before"),
        (
            "lead(b.n) > 1",
            "unknown function 'lead'; there is no LEAD: compare an event with the one before it, prev(b.n) with b.n",
        ),
        ("lag() > 1", "unknown function 'lag'; write prev(v.attr), the value of the event bound just before"),
        ("a.s > 0.5", f"cannot compare string with number; {ONE_KIND}"),
        ("a.day = '2020-01-31'", "cannot compare date with string; write DATE '2020-01-31'"),
        ("a.day = '2020-13-31'", "cannot compare date with string; write DATE '…' or TIMESTAMP '…'"),
        ("a.ts > 5", "cannot compare timestamp[us] with integer; write DATE '…' or TIMESTAMP '…'"),
        ("a.took < 3", f"cannot compare duration[ms] with integer; {DURATIONS}"),
        ("a.zoned > TIMESTAMP '2020-01-31 10:00:00'", f"cannot compare timestamp[us, UTC] with timestamp[s]; {ZONES}"),
        ("a.at > TIMESTAMP '2020-01-31 10:00:00Z'", f"cannot compare timestamp[ms] with timestamp[s, UTC]; {ZONES}"),
        (
            "a.zoned > DATE '2020-01-31'",
            "cannot compare timestamp[us, UTC] with date; a DATE has no time zone: write TIMESTAMP '2020-01-31 00:00:00+00:00'",
        ),
        ("a.zoned - a.at > 1 day", "cannot subtract timestamp[ms] from timestamp[us, UTC]: only one of them has a zone"),
        ("a.s + 1 > 2", "cannot apply + to string and integer"),
        ("CASE WHEN a.n THEN 1 END = 1", "a condition is true or false; this one is integer; compare it: a.n = 1"),
        ("CASE WHEN a.n > 1 THEN a.s ELSE a.n END = 1", "the values of CASE are of no common type: string and integer"),
        ("CASE WHEN a.n > 1 THEN 'x' ELSE 'y' END = 1", "cannot compare string with integer; a text stands in single quotes: '1'"),
        ("median(b.n) > 1", f"median(b.n) stands in RETURN only, since it needs all values at once; {RETURNED}"),
        ("count(distinct b.s) > 1", f"count(DISTINCT b.s) stands in RETURN only, since it needs all values at once; {RETURNED}"),
        ("median(b[..i-1].n) > 1", f"median(b[..i-1].n) stands in RETURN only, since it needs all values at once; {RETURNED}"),
        ("count(DISTINCT a.blob) > 1", "cannot apply count(DISTINCT …) to binary"),
        ("-a.s > 2", "cannot apply - to string"),
        ("a.ts + b.ts > a.ts", "cannot apply + to timestamp[us] and timestamp[us]"),
        ("a.n LIKE 'x'", "cannot apply LIKE to integer and string"),
        (
            "a.blob = b.n",
            "a.blob is of type binary, which cannot be compared or computed with; cast the column before it is matched, such as to text",
        ),
        (
            "[blob]",
            "[blob] is of type binary, which cannot be compared or computed with; cast the column before it is matched, such as to text",
        ),
        ("a.took > 0.1 ns", "0.1 ns is no whole number of nanoseconds"),
        (
            "end(b.ts) > b.ts",
            "unknown function 'end'; start(), end() and duration() are of situations; of events write last(v.ts) - first(v.ts)",
        ),
        ("stddev(b.n) > 1", "unknown function 'stddev'; return the values of each match, and compute it from them"),
        ("next(a.n) > 1", "unknown function 'next'; an event behind it has a variable of its own: SEQ(a, b), and b.attr"),
        (
            "datediff(b.day, a.day) > 1",
            "unknown function 'datediff'; the difference of two times is a length of time: b.ts - a.ts > 5 minutes",
        ),
        ("avrg(b.n) > 1", "unknown function 'avrg'; did you mean 'avg'?"),
        ("sine(a.x) > 0", "unknown function 'sine'; did you mean 'sin'?"),
        ("abs(a.n, 1) > 0", "abs() takes 1 argument, not 2"),
        ("least(a.n) > 0", "least() takes at least 2 arguments, not 1"),
        ("substring(a.s) = 'x'", "substring() takes 2 or 3 arguments, not 1"),
        ("abs(a.s) > 0", "cannot apply abs() to string"),
        ("sqrt(a.day) > 0", "cannot apply sqrt() to date"),
        ("floor(a.took) > 0", "cannot apply floor() to duration[ms]"),
        ("lower(a.n) = 'x'", "cannot apply lower() to integer"),
        ("hour(a.day) = 3", "cannot apply hour() to date"),
        ("substring(a.s, 'x') = 'x'", "substring() takes a constant of type integer, not string"),
        ("regexp_like(a.n, 'x')", "cannot apply regexp_like() to integer"),
        ("regexp_like(a.s, 1)", "regexp_like() takes a constant of type string, not integer"),
        ("regexp_like(NULL, 1)", "regexp_like() takes a constant of type string, not integer"),
        ("substring(a.n, NULL) = 'x'", "cannot apply substring() to integer"),
        ("regexp_like(a.s)", "regexp_like() takes 2 arguments, not 1"),
        ("least(a.n, a.s) > 0", "the arguments of least() are of no common type: integer and string"),
    ],
)
def test_errors(text: str, expected: str) -> None:
    assert errors(f"PATTERN SEQ(a, b+) WHERE {text}") == [expected]


@pytest.mark.parametrize(
    ("text", "number", "kind"),
    [
        ("a.n > 9223372036854775808", "9223372036854775808", "integer"),
        ("a.n IN (1, 9223372036854775808)", "9223372036854775808", "integer"),
        ("a.d2 > 1000000000000000000", "1000000000000000000", "decimal(18, 2)"),
        ("a.d2 + -1000000000000000000.5 > 1", "-1000000000000000000.5", "decimal(18, 2)"),
    ],
)
def test_a_constant_beyond_64_bits_is_shown_as_it_is_written(text: str, number: str, kind: str) -> None:
    expected = f"the constant {number} is out of range: {kind} has 64 bits; write it as a float: {number}e0"
    assert errors(f"PATTERN SEQ(a, b+) WHERE {text}") == [expected]


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("b[3].x > 1", "b[3].x in WHERE"),
        ("avg(b.took) > 1 day", "avg(b.took)"),
        ("sum(b.wide) > 1", "sum(b.wide) over a column of type decimal(38, 2)"),
        ("count(DISTINCT b.wide) > 1", "count(DISTINCT b.wide) over a column of type decimal(38, 2)"),
        ("max(b.wide) > 1", "max(b.wide) over a column of type decimal(38, 2)"),
        ("last(b.wide) > 1", "last(b.wide), a column of type decimal(38, 2),"),
        ("length(max(b.s)) > 1", "length() of these arguments"),
        ("NOT [id]", "[id] inside another expression"),
        ("a.wide > 1", "a.wide, a column of type decimal(38, 2),"),
        ("a.took * 0.5 > 1 day", "duration[ms] * number"),
        ("a.took / 2 > 1 day", "duration[ms] / integer"),
        ("a.s LIKE b.s", "LIKE with a pattern that is not constant"),
        ("least(a.s, 'x') = 'x'", "least() of strings"),
        ("upper(CASE WHEN a.flag THEN a.s END) = 'x'", "upper() of these arguments"),
        ("CASE WHEN a.flag THEN a.s ELSE 'x' END LIKE 'x%'", "'x' LIKE a pattern"),
        ("'x' LIKE 'x%'", "'x' LIKE a pattern"),
        ("exp(a.x + 1) > 1", "exp() of these arguments"),
        ("power(a.x, b.x) > 1", "power() of these arguments"),
        ("a.d4 * b.d4 * a.d4 * b.d4 * a.d4 > 1", "a decimal of scale 20"),
        ("a.d2 + 0.1234567890123456789 > 1", "a decimal of scale 19"),
    ],
)
def test_refusals(text: str, construct: str) -> None:
    (refusal,) = refusals(f"PATTERN SEQ(a, b+) WHERE {text}")
    message, supported = refusal.split("; ", 1)
    assert message == f"{construct} is not supported"
    assert supported


def machine_value(expression: Bound, value: int) -> int:
    """A tree of decimal operations over one field whose unscaled value is `value`."""
    match expression:
        case Constant(value=int(constant)):
            return constant
        case Field():
            return value
        case Operation(name, arguments):
            return MACHINE[name](*(machine_value(argument, value) for argument in arguments))
    raise TypeError(expression)


MACHINE: dict[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "sign": lambda value: (value > 0) - (value < 0),
    "mod": lambda dividend, divisor: int(math.copysign(abs(dividend) % divisor, dividend)),
}


@given(st.integers(-(10**10), 10**10))
@pytest.mark.parametrize(("function", "rounding"), [("floor", ROUND_FLOOR), ("ceil", ROUND_CEILING), ("round", ROUND_HALF_UP)])
def test_decimals_are_rounded_exactly(function: str, rounding: str, unscaled: int) -> None:
    comparison = bound(f"PATTERN a WHERE {function}(a.d2) > 0.0").conditions[0].expression
    assert isinstance(comparison, Operation)
    expected = (Decimal(unscaled) / 100).quantize(Decimal(1), rounding)
    assert machine_value(comparison.arguments[0], unscaled) == expected * 100


def test_one_fault_causes_no_others() -> None:
    assert errors("PATTERN SEQ(a, b) WHERE abs(a.qq + 1) BETWEEN b.y AND 3 AND lower(a.zz) = 's'") == [
        "unknown attribute 'qq'; there are ts, type, id, n, x, d2, d4, s, flag, day, at, zoned, took, wide, blob",
        "unknown attribute 'y'; did you mean 'day'?",
        "unknown attribute 'zz'; there are ts, type, id, n, x, d2, d4, s, flag, day, at, zoned, took, wide, blob",
    ]


def test_computed_columns_are_shared_and_follow_the_schema() -> None:
    query = bound("PATTERN SEQ(a, b) WHERE lower(a.s) = lower(b.s) AND lower(trim(a.s)) = 'x' RETURN upper(a.s) AS u")
    width = len(query.schema.attributes)
    assert [(each.function, each.column) for each in query.computed] == [("lower", 7), ("trim", 7), ("lower", width + 1), ("upper", 7)]
    assert query.derived_keys == ()

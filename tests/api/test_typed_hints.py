"""What a hint says to write is a query that is answered."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.errors import DiagnosedError

TIMES = [datetime(2026, 1, 1) + timedelta(days=day) for day in range(6)]
EVENTS = pa.table(
    {
        "ts": pa.array(TIMES, pa.timestamp("us")),
        "type": list("ABABAB"),
        "price": [1, 2, 3, 4, 5, 6],
        "user": ["ann", "bob", "ann", "bob", "ann", "bob"],
        "my col": [1.5] * 6,
        "day": pa.array([time.date() for time in TIMES]),
        "zoned": pa.array([time.replace(tzinfo=UTC) for time in TIMES], pa.timestamp("us", "UTC")),
        "flag": [True, False] * 3,
    }
)
PAIR = "PATTERN SEQ(A a, B b+) WHERE {} WITHIN 9 days"
RETURNED = "PATTERN SEQ(NOT(A n), A a, B b+) WITHIN 9 days RETURN {}"
LISTED = "PATTERN SEQ(B b+, A a) WITHIN 9 days RETURN {}"
SITUATIONS = "DEFINE X AS price > 1, Y AS price < 9 PATTERN X during Y; X equals Y RETURN {}"
UNTIL = "PATTERN SEQ(A a, B b+ UNTIL ({}), A c) WITHIN 9 days"
ROWS = "MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A) DEFINE A AS {})"

# What a hint shows: behind the words that lead to it, up to those that say more.
_SHOWN = re.compile(
    r"(?:did you mean '?|(?:write|single quotes:|a unit:|quotes out:|is quoted:|has double quotes:) )"
    r"(?P<shown>.+?)(?:'?\?| \(.*|, (?:or|last\(|log2\() ?.*|; .*| or another .*|, the value of .*|: 1 for .*)?\Z"
)

COMPARISONS = {
    "{} !~ 'x'": "NOT regexp_like({}, 'x')",
    "{} ~ 'an+'": "regexp_like({}, 'an+')",
    "{} !~* 'it''s'": "NOT regexp_like({}, '(?i)it''s')",
    "{} NOT REGEXP 'x'": "NOT regexp_like({}, 'x')",
    "{} NOT CONTAINS '%'": r"{} NOT LIKE '%\%%'",
    "{} STARTS WITH 'a'": "{} LIKE 'a%'",
    "{} NOT ILIKE 'A%'": "lower({}) NOT LIKE 'a%'",
    "{} !~~ 'a%'": "{} NOT LIKE 'a%'",
    "{} ~~* 'A%'": "lower({}) LIKE 'a%'",
    "{} NOT SIMILAR TO 'a%'": "NOT regexp_like({}, 'pattern')",
}
# A query, what is wrong in it, and what is written in its place: {} is what the hint shows.
MISTAKES = [
    *((PAIR, wrong.format("a.user"), "{}") for wrong in COMPARISONS),
    *((ROWS, wrong.format("A.user"), "{}") for wrong in COMPARISONS),
    (UNTIL, "user !~ 'x'", "{}"),
    ("DEFINE X AS {}, Y AS price > 1 PATTERN X before Y", "user !~ 'x'", "{}"),
    (PAIR, "a.user IS NOT None", "a.user {}"),
    (PAIR, "a.price => 3", "a.price {} 3"),
    (PAIR, "a.my col > 1", "{} > 1"),
    (PAIR, "a.'my col' > 1", "{} > 1"),
    (PAIR, "price > 1", "{} > 1"),
    (PAIR, "a.prise > 1", "a.{} > 1"),
    (PAIR, "pricee > 1", "{} > 1"),
    (PAIR, "qqqq > 1", "{} > 1"),
    (PAIR, "a.day > qqqq", "a.day > {}"),
    (PAIR, "a > 1", "{} > 1"),
    (PAIR, "b[1] > 1", "{} > 1"),
    (PAIR, "a.user = ann", "a.user = {}"),
    (PAIR, 'a.user = "ann"', "a.user = {}"),
    (PAIR, "a.price > '5'", "a.price > {}"),
    (PAIR, "a.user <> 5", "a.user <> {}"),
    (PAIR, "a.flag <> 1", "{}"),
    (PAIR, "b.ts < a.ts + 5", "b.ts < {}"),
    (PAIR, "a.zoned > DATE '2026-01-01'", "a.zoned > {}"),
    (PAIR, "lag(b.price) > 1", "{} > 1"),
    *((PAIR, f"{name}(a.user, '{text}')", "{}") for name in ("startswith", "ends_with", "contains", "rlike") for text in ("it''s", "{x}")),
    *((PAIR, wrong, "{} > 1") for wrong in ("mean(b.price)", "NVL(a.price, 1)", "if(a.flag, 1, 2)", "weekday(a.ts)", "log(10, a.price)")),
    (PAIR, "isnull(a.user)", "{}"),
    (PAIR, "a.day = '2026-01-01'", "a.day = {}"),
    (PAIR, "a.ts > '2026-01-01T10:00:00'", "a.ts > {}"),
    (PAIR, "a.zoned > '2026-01-01'", "a.zoned > {}"),
    (PAIR, "a.zoned > '2026-01-01 10:00:00+02:00'", "a.zoned > {}"),
    (PAIR, 'a.ts > "2026-01-01"', "a.ts > {}"),
    (ROWS, '"2026-01-01 10:00:00" < max(A.ts)', "{} < max(A.ts)"),
    (UNTIL, 'ts > "2026-01-01"', "ts > {}"),
    *((RETURNED, wrong, "{} + 1") for wrong in ("price + 1", "pricee + 1", "qqqq + 1", "a + 1", "b + 1", "b.price + 1")),
    *((LISTED, wrong, "{} + 1") for wrong in ("price + 1", "pricee + 1", "qqqq + 1", "b + 1", "b[1] + 1")),
    *((SITUATIONS, wrong, "{} + 1") for wrong in ("price + 1", "pricee + 1", "qqqq + 1", "X + 1", "X.price + 1", "X[1] + 1")),
    (ROWS, "user = ann", "user = {}"),
    (ROWS, "PREV(A.pric) > 1", "PREV(A.{}) > 1"),
    (UNTIL, "c.price > 1", "{} > 1"),
]


def shown(text: str) -> str:
    """What the hint of a faulty query shows."""
    with pytest.raises(DiagnosedError) as caught:
        cep.match(EVENTS, text)
    (fault,) = caught.value.diagnostics
    found = _SHOWN.search(fault.hint or "")
    assert found, fault.hint
    return found["shown"]


@pytest.mark.parametrize(("query", "wrong", "right"), MISTAKES)
def test_what_a_hint_shows_is_answered(query: str, wrong: str, right: str) -> None:
    typed = right.format(shown(query.format(wrong)))
    assert typed != wrong
    cep.match(EVENTS, query.format(typed))


@pytest.mark.parametrize(("wrong", "right"), COMPARISONS.items())
def test_the_whole_comparison_is_shown(wrong: str, right: str) -> None:
    assert shown(PAIR.format(wrong.format("last(b.user)"))) == right.format("last(b.user)")


@pytest.mark.parametrize(
    "wrong", ["a.price - a.user ~ 'x'", "a.price > 1 AND contains 'x'", "NOT contains 'x'", "CASE WHEN contains 'x' THEN 1 END = 1"]
)
def test_no_word_or_part_of_an_operand_is_shown_as_one(wrong: str) -> None:
    assert "v.attr" in shown(PAIR.format(wrong))


def test_the_first_and_last_times_of_zones_are_literals_too() -> None:
    for time in ("9999-12-31T23:59:59.999999-14:00", "0001-01-01T00:00:00+14:00"):
        assert cep.match(EVENTS, PAIR.format(f"a.zoned > TIMESTAMP '{time}'"), output="count").num_rows == 1

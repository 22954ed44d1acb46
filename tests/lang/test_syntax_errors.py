"""What users get wrong in the clauses of a query, and what they are told: message, caret, hint."""

import pytest

from gpu_cep.errors import PatternError
from tests.lang.failures import check_report, failure, reports_of

MISTAKES = """
line 1, column 25: 'bfore' is no relation between intervals
  DEFINE A AS x PATTERN A bfore B
                          ^^^^^
  hint: did you mean 'before'?

line 1, column 25: 'overlapped' is no relation between intervals
  DEFINE A AS x PATTERN A overlapped B
                          ^^^^^^^^^^
  hint: did you mean 'overlapped-by'?

line 1, column 24: a situation lasts some time, not a number of events
  DEFINE A AS x AT LEAST 3 EVENTS PATTERN A before B
                         ^^^^^^^^

line 1, column 33: a semicolon stands between two relations, or ends the query
  DEFINE A AS x PATTERN A before B; WITHIN 5
                                  ^

line 1, column 33: a semicolon stands between two relations, or ends the query
  DEFINE A AS x PATTERN A before B; AND B before C
                                  ^

line 1, column 15: found 'WHERE', expected an operator, ',', '.', '(', '[', AND, OR, AT or PATTERN
  DEFINE A AS x WHERE x > 1 PATTERN A before B
                ^^^^^

line 1, column 25: DEFINE must stand before PATTERN
  PATTERN a WITHIN 1 hour DEFINE a AS x > 1
                          ^^^^^^

line 1, column 18: found 'B', expected a quantifier, WHERE, WITHIN, RETURN or the end of the query
  PATTERN A before B
                   ^
  hint: situations are defined before they are related: DEFINE A AS …, B AS … PATTERN A before B

line 1, column 1: found 'PATERN', expected FROM, PARTITION BY, DEFINE or PATTERN
  PATERN SEQ(a, b)
  ^^^^^^
  hint: did you mean 'PATTERN'?

line 1, column 1: found 'SELECT', expected FROM, PARTITION BY, DEFINE or PATTERN
  SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A B+) DEFINE B AS x > 1)
  ^^^^^^
  hint: MATCH_RECOGNIZE (…) is given alone to match(), and in a statement of SQL to sql(): see docs/row-patterns.md

line 1, column 39: found 'a', expected RETURN or the end of the query
  PATTERN SEQ(A a, B b) WITHIN 5 SELECT a.x
                                        ^
  hint: what a match returns stands at its end: PATTERN … WITHIN … RETURN a.price AS price

line 1, column 24: found '(', expected PARTITION BY, DEFINE or PATTERN
  FROM t MATCH_RECOGNIZE (PATTERN (A B+) DEFINE B AS x > 1)
                         ^
  hint: MATCH_RECOGNIZE (…) is given alone to match(), and in a statement of SQL to sql(): see docs/row-patterns.md

line 1, column 1: found 'every', expected FROM, PARTITION BY, DEFINE or PATTERN
  every a=A -> b=B
  ^^^^^
  hint: A -> B is written PATTERN SEQ(A a, B b); every match is found: see strategies and after_match

line 1, column 23: found 'MEASURES', expected a quantifier, WHERE, WITHIN, RETURN or the end of the query
  PATTERN SEQ(A a, B b) MEASURES a.x
                        ^^^^^^^^
  hint: what a match returns stands at its end: RETURN a.price AS price

line 1, column 26: found 'b', expected a quantifier, ',' or ')'
  PATTERN SEQ(A a, B every b b)
                           ^
  hint: events one after the other are SEQ(A a, B b)

line 1, column 19: found 'AS', expected a quantifier, WHERE, WITHIN, RETURN or the end of the query
  PATTERN SEQ(a, b) AS x
                    ^^

line 1, column 15: found 'SEQ', expected PARTITION BY, DEFINE or PATTERN
  FROM s PATERN SEQ(a, b)
                ^^^
  hint: did you mean 'PATTERN' where 'PATERN' stands?

line 1, column 9: found '(', expected a pattern
  PATTERN (A B+ C) WITHIN 1 hour
          ^
  hint: brackets do not group: events one after the other are SEQ(A, B+), in any order AND(A, B+)

line 1, column 33: found '.', expected an operator, AND, OR, WITHIN, RETURN or the end of the query
  PATTERN SEQ(a, b+) WHERE last(b).x > 3
                                  ^
  hint: an aggregate's attribute stands inside its brackets: last(v.attr)

line 1, column 38: found '+', expected '.', ']' or '-'
  PATTERN SEQ(a, b+) WHERE b[i].x > b[i+1].x
                                       ^
  hint: an event is compared with the one before it: v[i] with v[i-1]

line 1, column 13: found '(', expected a pattern
  PATTERN SEQ((a, b)+, c)
              ^
  hint: brackets do not group: events one after the other are SEQ(A, B+), in any order AND(A, B+)

line 1, column 17: the query ends too early: expected ',' or ')'
  PATTERN SEQ(a, b
                  ^
  hint: '(' in line 1, column 12 is not closed

line 1, column 18: found ')', expected WHERE, WITHIN, RETURN or the end of the query
  PATTERN SEQ(a, b))
                   ^

line 1, column 15: found ',', expected a pattern
  PATTERN SEQ(a,, b)
                ^

line 1, column 20: found '[', expected a quantifier, ',' or ')'
  PATTERN SEQ(Stock a[], b)
                     ^
  hint: several events are bound by a quantifier: Stock+ a[] or a+

line 1, column 10: the quantifier's maximum 2 is below its minimum 3
  PATTERN a{3,2}
           ^^^^^

line 1, column 10: a quantifier must allow at least one event
  PATTERN a{0}
           ^^^
  hint: NOT(A a) forbids an event

line 1, column 16: found 'where', expected a pattern
  PATTERN SEQ(a, where)
                 ^^^^^
  hint: where is a keyword: as a name it is quoted, "where"

line 1, column 27: found 'adn', expected an operator, AND, OR, WITHIN, RETURN or the end of the query
  PATTERN a WHERE a.x = y.z adn b.y = 3
                            ^^^
  hint: did you mean 'AND'?

line 1, column 23: 'adn' is no unit of time
  PATTERN a WHERE a.x=5 adn
                        ^^^
  hint: did you mean 'AND'?

line 1, column 27: found '<', expected an operator, AND, OR, WITHIN, RETURN or the end of the query
  PATTERN a WHERE a.x < b.y < 3
                            ^
  hint: comparisons do not chain: join them with AND

line 1, column 40: found '{', expected an operator, AND, OR, WITHIN, RETURN or the end of the query
  PATTERN a WHERE skip_till_nxt_match(a) { a.x = 1 }
                                         ^
  hint: did you mean 'skip_till_next_match'?

line 1, column 26: WHERE must stand before WITHIN
  PATTERN a WITHIN 5 hours WHERE a.x = 1
                           ^^^^^

line 1, column 11: PARTITION BY must stand before PATTERN
  PATTERN a PARTITION BY k
            ^^^^^^^^^

line 1, column 25: a second WHERE: each clause stands once
  PATTERN a WHERE a.x = 1 WHERE a.y = 2
                          ^^^^^

line 1, column 23: found a text that is not closed
  PATTERN a WHERE a.x = 'abc
                        ^
  hint: a ' inside is written twice

line 1, column 9: found a quoted name that is not closed
  PATTERN "abc
          ^
  hint: a " inside is written twice

line 1, column 9: a name cannot be empty
  PATTERN ""
          ^

line 1, column 11: found a comment that is not closed
  PATTERN a /* abc
            ^
  hint: comments end with */

line 1, column 21: found '&', which has no meaning here
  PATTERN a WHERE a.x && b.y
                      ^
  hint: write AND

line 1, column 21: found '≤', which has no meaning here
  PATTERN a WHERE a.x ≤ 5
                      ^
  hint: write <=
"""

# What those write who come from elsewhere -> how the hint begins.
FOREIGN = {
    "PATTERN A -> B": "A -> B is written PATTERN SEQ(A a, B b)",
    "PATTERN a=A -> b=B WITHIN 5": "A -> B is written",
    "A -> B": "A -> B is written",
    "PATTERN SEQ(A a -> B b)": "A -> B is written",
    "SELECT a.x FROM t WHERE a.x > 1": "what a match returns stands at its end",
    "sequence by user [A where x > 1] [B]": "sequence by k [A where …] [B] is written PARTITION BY k PATTERN SEQ(A a, B b)",
    "PATTERN A a FOLLOWED BY B b": "events one after the other are SEQ(A a, B b)",
    "PATTERN SEQ(A a B b)": "events one after the other are",
    "PATTERN A a, B b": "events one after the other are",
    "PATTERN SEQ(A a; B b)": "the elements of a pattern are separated by commas",
    "PATTERN A a AND B b": "events in any order are AND(A a, B b)",
    "PATTERN a OR b": "one event or the other is OR(A a, B b)",
    "PATTERN SEQ(A AS a, B b)": "a variable stands right behind its event type: A a",
    "PATTERN SEQ(a:A, B b)": "a variable stands behind its event type: A a",
    "PATTERN SEQ(A a, (B b, C c)+)": "brackets do not group",
    "PATTERN SEQ(A a, B b)+": "behind a group stands ? or how often it is repeated, SEQ(A a, B b){1,3}; + and * stand behind one variable",
    "PATTERN SEQ(A a, NEXT(B b)?, C c)": "a group is repeated: SEQ(NEXT(B b)){0,3}, or SEQ(NEXT(B b))?",
    "PATTERN SEQ(A a, ANY(OR(B b, C c))+)": "a group is repeated: SEQ(ANY(B b)){0,3}",
    "PATTERN SEQ(A a, KleeneClosure(B b))": "what is repeated has a quantifier behind it: B b+",
    "PATTERN SEQ(A a, negation(B b))": "an event that must not occur is NOT(B b)",
    "PATTERN SEQ(A a, B b) WITHIN 5 MINUTES ON a.k = b.k": "conditions stand in WHERE, before WITHIN",
    "PATTERN SEQ(A a, B b) EMIT CHANGES": "matches of a stream are given once they are certain",
    "PATTERN SEQ(A a, B b) WHERE lag(b.v) OVER (PARTITION BY b.k) > 1": "functions over windows are columns of the events",
    "PATTERN SEQ(A a, B b) WHERE a.v IS DISTINCT FROM b.v": "ask for NULL by itself: a.x <> b.x OR",
    "PATTERN SEQ(A a, B b) WHERE a.v IS NOT DISTINCT FROM b.v": "ask for NULL by itself: a.x = b.x OR a.x IS NULL AND",
    "PATTERN SEQ(A a, B b) WHERE a.v <=> b.v": "ask for NULL by itself: a.x = b.x OR",
    "PATTERN SEQ(A a, B b*?)": "there are no reluctant quantifiers",
    "PATTERN SEQ(A a, B b+?, C c)": "there are no reluctant quantifiers",
    "PATTERN SEQ(A a, B b{2,}?, C c)": "there are no reluctant quantifiers",
    "PATTERN SEQ(a, b+) WITHIN 5 HAVING count(b) > 2": "conditions on aggregates stand in WHERE: WHERE count(b) > 2",
    "PATTERN a GROUP BY a.x": "PARTITION BY k, before PATTERN",
    "PATTERN a ORDER BY a.x": "results are ordered by stream",
    "PATTERN a LIMIT 5": "there is no LIMIT",
    "PATTERN SEQ(a, b) WITHIN 5 AFTER MATCH SKIP PAST LAST ROW": "AFTER MATCH SKIP is the keyword after_match=",
    "PATTERN 'add_to_cart' a": "texts stand in conditions, an event type is a name: add_to_cart a",
    "PATTERN SEQ('add to cart' a, b)": 'texts stand in conditions, an event type is a name: "add to cart" a',
    "PATTERN 'Not' a": 'texts stand in conditions, an event type is a name: "Not" a',
    "PATTERN add-to-cart a": 'a name with other characters than letters, digits and _ is quoted: "add-to-cart"',
    "PATTERN SEQ(add.to.cart a, buy b)": 'a name with other characters than letters, digits and _ is quoted: "add.to.cart"',
    "PATTERN SEQ(And a, B b)": 'And is a keyword: as a name it is quoted, "And"',
    "PATTERN SEQ(a, b) WITHN 5": "did you mean 'WITHIN'?",
    "PATTERN SEQ(a, b) WITHIN 5 RETRUN a.x": "did you mean 'RETURN' where 'RETRUN' stands?",
    "PATTERN SEC(A a, B b)": "did you mean 'SEQ' where 'SEC' stands?",
    "PATTERN SEQ(A a, nott(B b), C c)": "did you mean 'NOT' where 'nott' stands?",
    "PATTERN a WHERE a.x =< 3": "did you mean '<='?",
    "PATTERN a WHERE a.x > = 3": "did you mean '>='?",
    "PATTERN a WHERE a.x RLIKE 'y'": "write regexp_like(a.x, 'y')",
    "PATTERN a WHERE a.x NOT REGEXP 'y'": "write NOT regexp_like(a.x, 'y')",
    "PATTERN a WHERE a.x NOT REGEXP b.y": "write NOT regexp_like(a.x, 'pattern')",
    "PATTERN a WHERE a.x ~ 'y'": "write regexp_like(a.x, 'y')",
    "PATTERN a WHERE (a.x + 1) ~ 'y'": "write regexp_like(v.attr, 'y')",
    "PATTERN a WHERE last(a.\"x y\") !~* 'it''s'": "write NOT regexp_like(last(a.\"x y\"), '(?i)it''s')",
    "PATTERN a WHERE a.x STARTS WITH 'y'": "write a.x LIKE 'y%'",
    "PATTERN a WHERE a.x NOT CONTAINS '5%'": "write a.x NOT LIKE '%5\\%%'",
    "PATTERN a WHERE a.x NOT endswith 'y'": "write a.x NOT LIKE '%y'",
    "PATTERN a WHERE a.x ILIKE 'Y'": "write lower(a.x) LIKE 'y'",
    "PATTERN a RETURN DISTINCT a.x": "count(DISTINCT b.x) counts values that differ, and RETURN b.x gives all values as a list",
    "PATTERN a WHERE a.x::int > 3": "there are no casts",
    "PATTERN SEQ(A a, B b WITHIN 5 minutes, C c)": "WITHIN holds for the whole match; the time between two events is a condition",
    "PATTERN SEQ(A a, B b WITHIN INTERVAL '5' MINUTE)": "WITHIN holds for the whole match",
    "PATTERN SEQ(A a, B b WITHIN '5 minutes', C c)": "WITHIN holds for the whole match",
    "PATTERN SEQ(A a, B b WITHIN 5 minutes": "'(' in line 1, column 12 is not closed",
    "PATTERN SEQ(A a, B b) WITHIN INTERVAL 5 MINUTES": "a length of time is 5 minutes, or INTERVAL '5' MINUTE",
    "PATTERN SEQ(A a, B b) WITHIN INTERVAL '5 minutes'": "a length of time is 5 minutes, or INTERVAL '5' MINUTE",
    "PATTERN SEQ(A a, B b) WHERE b.ts < a.ts + INTERVAL 1 HOUR": "a length of time is 5 minutes, or INTERVAL '5' MINUTE",
    "PATTERN SEQ(A a, B b) WITHIN {hours} hours": "a length is a number and a unit",
    "PATTERN SEQ(A a+, B b) WHERE b.x > a.x.max": "an aggregate stands before its brackets: max(v.attr)",
    "PATTERN a WHERE a.ts.hour > 5": "a function stands before its brackets: hour(v.attr)",
    "PATTERN a RETURN a.x AS 'x'": "a name has no quotes, or double ones: v.price AS price",
    "PATTERN SEQ(A a, B b) WITHIN 10 rows": "a window of events is written WITHIN 10 EVENTS",
    "PATTERN a WHERE a.x ** 2 > 4": "write power(v.attr, 2)",
    "PATTERN a WHERE a.x ^ 2 > 4": "write power(v.attr, 2)",
    "DEFINE A AS x > 1 PATTERN A RETURN start(A) AS since": "a constraint relates two situations: A before B",
    "PATTERN a WHERE a.ts + INTERVAL '1 hour' < a.end": "a length of time is 5 minutes, or INTERVAL '5' MINUTE",
    "DEFINE A AS x > 1 PATTERN A": "a constraint relates two situations: A before B",
}


@pytest.mark.parametrize(("text", "hint"), FOREIGN.items())
def test_what_other_languages_write(text: str, hint: str) -> None:
    (diagnostic,) = failure(text).diagnostics
    assert diagnostic.span is not None
    assert (diagnostic.hint or "").startswith(hint)


@pytest.mark.parametrize("report", reports_of(MISTAKES))
def test_typical_mistakes(report: str) -> None:
    check_report(report)


def test_place_in_a_longer_query() -> None:
    text = "PATTERN SEQ(a, b)\nWHERE a.x = 1\n\tAND b.y = = 2\nWITHIN 1 hour"
    assert str(failure(text)) == (
        "line 3, column 12: found '=', expected an expression\n   AND b.y = = 2\n             ^\n  hint: equality is written ="
    )


def test_qualifier_that_from_does_not_name() -> None:
    error = failure("FROM CarStream CS PARTITION BY SC.car_id PATTERN a")
    assert isinstance(error, PatternError)
    assert error.diagnostics[0].message == "'SC' is neither FROM's name nor its alias"
    assert error.diagnostics[0].hint == "did you mean 'CS'?"
    assert isinstance(failure("PARTITION BY CS.car_id PATTERN a"), PatternError)

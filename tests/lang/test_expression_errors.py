"""What users get wrong in conditions, lengths and names, and what they are told: message, caret, hint."""

import pytest

from tests.lang.failures import check_report, reports_of

MISTAKES = """
line 1, column 20: 'dys' is no unit of time
  PATTERN a WITHIN 5 dys
                     ^^^
  hint: did you mean 'days'?

line 1, column 20: a month has no fixed length: say it in days
  PATTERN a WITHIN 2 months
                     ^^^^^^

line 1, column 18: a window of events takes a whole number
  PATTERN a WITHIN 1.5 events
                   ^^^

line 1, column 18: the amount of a duration is a whole number or a decimal: 15 days, INTERVAL '1.5' HOUR
  PATTERN a WITHIN 1e3 ms
                   ^^^

line 1, column 19: the query ends too early: expected an attribute
  PATTERN a WHERE a.
                    ^

line 1, column 16: the query ends too early: expected an expression, '{' or a strategy
  PATTERN a WHERE
                 ^

line 1, column 19: found 'j', expected the index i, i-1, a number or v.LEN
  PATTERN a WHERE a[j].x = 1
                    ^

line 1, column 19: only the event bound just before can be read: v[i-1]
  PATTERN a WHERE a[i-2].x = 1
                    ^^^

line 1, column 19: the events of a binding are counted from 1
  PATTERN a WHERE a[0].x = 1
                    ^
  hint: the first event is v[1]

line 1, column 19: the last event of a is a[a.LEN]
  PATTERN a WHERE a[b.LEN].x = 1
                    ^^^^^

line 1, column 21: found 'SIZE', expected LEN, as in v[v.LEN]
  PATTERN a WHERE a[a.SIZE].x = 1
                      ^^^^

line 1, column 17: avg takes one attribute of a variable: avg(v.attr)
  PATTERN a WHERE avg(a.x + 1) > 2
                  ^^^^^^^^^^^^
  hint: compute the expression as a column of the events first; MATCH_RECOGNIZE has aggregates of expressions

line 1, column 17: min takes one attribute of a variable: min(v.attr)
  PATTERN a WHERE min(a.x, 2) > 1
                  ^^^^^^^^^^^
  hint: least(…) compares several values

line 1, column 17: count takes a variable or one of its attributes: count(v), count(v.attr)
  PATTERN a WHERE count(b) > 1
                  ^^^^^^^^

line 1, column 17: prev takes one attribute of a variable: prev(v.attr)
  PATTERN a WHERE prev(a) > 1
                  ^^^^^^^

line 1, column 17: 'awg' is no aggregate
  PATTERN a WHERE awg(a[..i-1].x) > 1
                  ^^^
  hint: did you mean 'avg'?

line 1, column 17: avg takes one attribute of a variable: avg(v[..i-1].attr)
  PATTERN a WHERE avg(a[..i-1]) > 1
                  ^^^^^^^^^^^^^

line 1, column 41: the query ends too early: expected WHEN, ELSE or END
  PATTERN a WHERE CASE WHEN a.x > 1 THEN 2
                                          ^

line 1, column 35: found 'ELSE', expected THEN
  PATTERN a WHERE CASE WHEN a.x > 1 ELSE 2 END = 2
                                    ^^^^

line 1, column 46: found '2', expected an operator, AND, OR, WHEN, ELSE or END
  PATTERN a WHERE CASE WHEN a.x > 1 THEN 1 ELS 2 END = 2
                                               ^
  hint: did you mean 'ELSE' where 'ELS' stands?

line 1, column 17: DISTINCT takes one attribute of a variable: count(DISTINCT v.attr)
  PATTERN a WHERE count(DISTINCT a) > 1
                  ^^^^^^^^^^^^^^^^^

line 1, column 21: sum takes no DISTINCT
  PATTERN a WHERE sum(DISTINCT a.x) > 1
                      ^^^^^^^^
  hint: count(DISTINCT v.attr) counts the values that differ

line 1, column 17: a date is written DATE '2020-01-31'
  PATTERN a WHERE DATE '31.1.2020' < a.x
                  ^^^^^^^^^^^^^^^^

line 1, column 17: month must be in 1..12
  PATTERN a WHERE DATE '2020-13-01' < a.x
                  ^^^^^^^^^^^^^^^^^

line 1, column 23: 1e999 is larger than any floating point number
  PATTERN a WHERE a.x = 1e999
                        ^^^^^

line 1, column 23: 1e-999 is nearer to zero than any floating point number
  PATTERN a WHERE a.x = 1e-999
                        ^^^^^^

line 1, column 27: found 'RETRUN', expected an operator, AND, OR, WITHIN, RETURN or the end of the query
  PATTERN a WHERE a.x = 'y' RETRUN a.x
                            ^^^^^^
  hint: did you mean 'RETURN'?

line 1, column 23: found 'p', expected a quantifier, ',' or ')'
  PATTERN SEQ(page view p, buy b)
                        ^
  hint: an event type of several words is quoted: "page view" p; events one after the other are SEQ(A a, B b)

line 1, column 22: found 'view', expected a quantifier or ')'
  PATTERN NOT(big page view p)
                       ^^^^
  hint: an event type of several words is quoted: "big page view" p; events one after the other are SEQ(A a, B b)

line 1, column 20: found 'cart', expected a quantifier, ',' or ')'
  PATTERN SEQ(view v cart c)
                     ^^^^
  hint: events one after the other are SEQ(A a, B b)

line 1, column 26: found 'name', expected an operator, AND, OR, WITHIN, RETURN or the end of the query
  PATTERN a WHERE a.action name NOT IN ('x')
                           ^^^^
  hint: a name with blanks is quoted: a."action name"

line 1, column 30: found 'name', expected an operator, AND, OR, WITHIN, RETURN or the end of the query
  PATTERN a+ WHERE a[i].action name = 3
                               ^^^^
  hint: a name with blanks is quoted: v."action name"

line 1, column 20: found 'name', expected an operator, ',', '.', '(', '[', AND, OR, AT or PATTERN
  DEFINE A AS action name = 'x', B AS x PATTERN A before B
                     ^^^^
  hint: a name with blanks is quoted: "action name"

line 1, column 19: found "'action name'", expected an attribute
  PATTERN a WHERE a.'action name' = 'x'
                    ^^^^^^^^^^^^^
  hint: a name has double quotes: a."action name"

line 1, column 26: found 'AS', expected ',' or ')'
  PATTERN a WHERE CAST(a.x AS INT) = 1
                           ^^
  hint: there are no casts: cast the column before it is matched

line 1, column 27: found 'AS', expected ',' or ')'
  PATTERN a WHERE count(a.x AS INT) = 1
                            ^^

line 1, column 34: found 'FROM', expected an expression
  PATTERN a WHERE EXISTS (SELECT * FROM t)
                                   ^^^^
  hint: there are no subqueries: join the values that are asked for to the events first

line 1, column 32: found 'y', expected an operator, ',', '.', '(', ')', '[', AND or OR
  PATTERN a WHERE a.x IN (SELECT y FROM t)
                                 ^
  hint: there are no subqueries: join the values that are asked for to the events first

line 1, column 19: 'h30m' is no unit of time
  PATTERN a WITHIN 1h30m
                    ^^^^
  hint: a length has one unit: 90 minutes

line 1, column 32: 'm30s' is no unit of time
  PATTERN a WHERE a.ts - a.ts < 1m30s
                                 ^^^^
  hint: a length has one unit: 90 seconds

line 1, column 19: 'h30x' is no unit of time
  PATTERN a WITHIN 1h30x
                    ^^^^
  hint: units are ns, us, ms, seconds, minutes, hours, days, weeks

line 1, column 20: 'foo' is no unit of time
  PATTERN a WITHIN 5 foo
                     ^^^
  hint: units are ns, us, ms, seconds, minutes, hours, days, weeks

line 1, column 25: found '30', expected RETURN or the end of the query
  PATTERN a WITHIN 1 hour 30 minutes
                          ^^
  hint: a length has one unit: 90 minutes, not 1 hour 30 minutes

line 1, column 20: found '.', expected an operator, AND, OR, WITHIN, RETURN or the end of the query
  PATTERN a WHERE a.x.y = 1
                     ^
  hint: nested fields are not read: make the field a column first, as table.flatten() and df.select('x.y') do

line 1, column 20: found '.', expected an operator, AND, OR, WITHIN, RETURN or the end of the query
  PATTERN a WHERE a.x.lower() = 'a'
                     ^
  hint: a function stands before its brackets: lower(v.attr)
"""


@pytest.mark.parametrize("report", reports_of(MISTAKES))
def test_typical_mistakes(report: str) -> None:
    check_report(report)

"""Binding MATCH_RECOGNIZE: the standard's rules, each with its message and place, and the types of measures."""

from __future__ import annotations

import pytest

from gpu_cep.analysis.options import Options
from gpu_cep.analysis.row_patterns.bind import bind_row_pattern
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern
from gpu_cep.analysis.types import BOOLEAN, DATE, FLOAT, INTEGER, STRING, Attribute, DataType, Kind, Schema, decimal, duration, timestamp
from gpu_cep.errors import DiagnosedError, PatternError, UnsupportedError
from gpu_cep.keywords import make_options
from gpu_cep.lang.parser import parse
from gpu_cep.lang.row_patterns.ast import RowPatternQuery

SCHEMA = Schema(
    (
        Attribute("ts", timestamp("us")),
        Attribute("k", STRING),
        Attribute("x", INTEGER),
        Attribute("y", FLOAT),
        Attribute("d", decimal(9, 2)),
        Attribute("day", DATE),
        Attribute("ok", BOOLEAN),
        Attribute("List", DataType(Kind.OTHER, name="list<int64>")),
        Attribute("same", INTEGER),
        Attribute("SAME", INTEGER),
    )
)


def bind(clauses: str, **options) -> BoundRowPattern:
    text = f"MATCH_RECOGNIZE ({clauses})"
    query = parse(text)
    assert isinstance(query, RowPatternQuery)
    return bind_row_pattern(query, SCHEMA, Options(**options), text)


def faults(clauses: str, **options) -> list[tuple[str, str]]:
    """What the text says at the place of each fault, and the message with its hint."""
    text = f"MATCH_RECOGNIZE ({clauses})"
    with pytest.raises(DiagnosedError) as error:
        bind(clauses, **options)
    return [
        ("" if each.span is None else text[each.span.column - 1 : each.span.end_column - 1], f"{each.message}; {each.hint}")
        for each in error.value.diagnostics
    ]


@pytest.mark.parametrize(
    ("clauses", "place", "message"),
    [
        # navigation
        ("MEASURES FIRST(PREV(A.x)) AS m PATTERN (A)", "PREV(A.x)", "PREV(A.x) has no place in FIRST; PREV goes around: PREV(FIRST(A.x))"),
        ("MEASURES LAST(FIRST(A.x)) AS m PATTERN (A)", "FIRST(A.x)", "FIRST(A.x) has no place in LAST"),
        ("MEASURES PREV(NEXT(A.x)) AS m PATTERN (A)", "NEXT(A.x)", "NEXT(A.x) has no place in PREV; one navigation goes all the way"),
        ("MEASURES PREV(1 + LAST(A.x)) AS m PATTERN (A)", "LAST(A.x)", "LAST(A.x) must be all of what PREV takes"),
        ("PARTITION BY k PATTERN (A) DEFINE A AS PREV(1) > 0", "PREV(1)", "PREV(1) reads no row"),
        ("MEASURES FIRST(MATCH_NUMBER()) AS m PATTERN (A)", "FIRST(MATCH_NUMBER())", "reads no row; FIRST takes a column or CLASSIFIER()"),
        # mixed variables
        ("MEASURES LAST(A.x + B.x) AS m PATTERN (A B)", "LAST(A.x + B.x)", "LAST(A.x + B.x) mixes rows of A and B"),
        ("MEASURES sum(A.x + x) AS m PATTERN (A B)", "sum(A.x + x)", "sum(A.x + x) mixes rows of A and any row"),
        (
            "MEASURES count(CASE WHEN CLASSIFIER(B) = 'B' THEN A.x END) AS m PATTERN (A B)",
            "count(CASE WHEN CLASSIFIER(B) = 'B' THEN A.x END)",
            "mixes rows of B and A",
        ),
        ("MEASURES PREV(LAST(A.x + B.x)) AS m PATTERN (A B)", "LAST(A.x + B.x)", "mixes rows"),
        # aggregates
        ("MEASURES sum(avg(A.x)) AS m PATTERN (A)", "avg(A.x)", "avg(A.x) has no place in sum; aggregates do not nest"),
        (
            "MEASURES sum(x + MATCH_NUMBER()) AS m PATTERN (A)", "MATCH_NUMBER()",
            "MATCH_NUMBER() has no place in sum; it is the same in all rows of a match",
        ),
        ("MEASURES sum(LAST(A.x)) AS m PATTERN (A)", "LAST(A.x)", "LAST(A.x) has no place in an aggregate"),
        ("MEASURES LAST(sum(A.x)) AS m PATTERN (A)", "sum(A.x)", "sum(A.x) has no place in LAST"),
        ("MEASURES PREV(sum(A.x)) AS m PATTERN (A)", "sum(A.x)", "sum(A.x) has no place in PREV"),
        ("MEASURES sum(PREV(A.x)) AS m PATTERN (A)", "PREV(A.x)", "PREV(A.x) has no place in an aggregate"),
        ("MEASURES FIRST(FIRST(A.x)) AS m PATTERN (A)", "FIRST(A.x)", "FIRST(A.x) has no place in FIRST"),
        ("MEASURES ARRAY_AGG(x) AS m PATTERN (A)", "ARRAY_AGG(x)", "unknown function 'array_agg'; ALL ROWS PER MATCH gives the rows"),
        ("MEASURES x AS m PATTERN (A) DEFINE A AS isfirst(minute, 10)", "isfirst(minute, 10)", "DEFINE A AS PREV(slot) IS NULL OR"),
        ("MEASURES countif(x > 1) AS m PATTERN (A)", "countif(x > 1)", "write count(CASE WHEN x > 1 THEN 1 END)"),
        ("MEASURES event_name() AS m PATTERN (A)", "event_name()", "write CLASSIFIER()"),
        ("MEASURES pattern_id() AS m PATTERN (A)", "pattern_id()", "write MATCH_NUMBER()"),
        ("MEASURES match_id() AS m PATTERN (A)", "match_id()", "write count(*)"),
        ("MEASURES match_row_number() AS m PATTERN (A)", "match_row_number()", "write count(*)"),
        # DEFINE
        ("PARTITION BY k PATTERN (A) DEFINE A AS FINAL LAST(x) > 1", "FINAL LAST(x)", "FINAL LAST(x) has no place in DEFINE"),
        ("PARTITION BY k PATTERN (A) DEFINE A AS FINAL sum(x) > 1", "FINAL sum(x)", "FINAL sum(x) has no place in DEFINE"),
        ("PARTITION BY k PATTERN (A) DEFINE A AS PREV(FINAL LAST(x)) > 1", "FINAL LAST(x)", "has no place in DEFINE"),
        ("PARTITION BY k PATTERN (A) DEFINE A AS MATCH_NUMBER() = 1", "MATCH_NUMBER()", "MATCH_NUMBER() has no place in DEFINE"),
        ("PARTITION BY k PATTERN (A) DEFINE a AS x > 1, A AS x > 2", "A AS x > 2", "DEFINE names A twice"),
        ("PARTITION BY k PATTERN (Down) DEFINE Dwn AS x > 1", "Dwn AS x > 1", "unknown variable in DEFINE 'Dwn'; did you mean 'Down'?"),
        ("PARTITION BY k PATTERN (A) SUBSET U = (A) DEFINE U AS x > 1", "U AS x > 1", "DEFINE of U, which is a subset"),
        ("PARTITION BY k PATTERN (A) DEFINE A AS x", "x", "a condition is true or false; this one is integer"),
        # SUBSET
        ("PARTITION BY k PATTERN (A B) SUBSET b = (A)", "b = (A)", "SUBSET b has the name of a variable of PATTERN"),
        ("PARTITION BY k PATTERN (A) SUBSET U = (A, C)", "U = (A, C)", "unknown variable in SUBSET U 'C'"),
        ("PARTITION BY k PATTERN (A) SUBSET U = (A), V = (A, U)", "V = (A, U)", "SUBSET V has the subset U as a member"),
        ("PARTITION BY k PATTERN (A) SUBSET U = (A), u = (A)", "u = (A)", "SUBSET names u twice"),
        ("PARTITION BY k PATTERN (A) SUBSET U = (A, a)", "U = (A, a)", "SUBSET U names a twice"),
        # names
        ("MEASURES x AS m, y AS M PATTERN (A)", "y AS M", "MEASURES names M twice"),
        ("MEASURES Q.x AS m PATTERN (A B)", "Q.x", "unknown variable 'Q'; there are A, B"),
        ("MEASURES CLASSIFIER(Q) AS m PATTERN (A)", "CLASSIFIER(Q)", "unknown variable 'Q'"),
        ("MEASURES count(Q.*) AS m PATTERN (A)", "count(Q.*)", "unknown variable 'Q'"),
        ("MEASURES count(a) AS m PATTERN (A)", "a", "a is a variable: a.x is a column of its last row"),
        ("MEASURES A.dya AS m PATTERN (A)", "A.dya", "unknown column 'dya'; did you mean 'day'?"),
        ('MEASURES "X" AS m PATTERN (A)', '"X"', "unknown column 'X'; did you mean 'x'? a text stands in single quotes: 'X'"),
        ("MEASURES Same AS m PATTERN (A)", "Same", 'Same may be any of same, SAME; write it in quotes: "same" or "SAME"'),
        ("MEASURES count(*) AS n AFTER MATCH SKIP TO C PATTERN (A B)", "AFTER MATCH SKIP TO C", "unknown variable 'C'"),
        ('PARTITION BY k PATTERN (a "a")', '"a"', '"a" and a are two variables of one spelling'),
        ("PARTITION BY k MEASURES x AS k PATTERN (A)", "x AS k", "two columns of the result are called 'k'"),
        ("MEASURES x AS y ALL ROWS PER MATCH PATTERN (A)", "x AS y", "two columns of the result are called 'y'"),
        ("PATTERN (A)", "", "the result has no column"),
        # clauses
        ("MEASURES count(*) AS n PATTERN (^ (() | $))", "", "PATTERN has no variable, so that its matches have no row"),
        ("ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A ({- B -} | C)+)", "{- B -}", "no place with WITH UNMATCHED ROWS"),
        ("PARTITION BY A.k PATTERN (A)", "A.k", "A.k has no place in PARTITION BY: rows are mapped to variables later; write k"),
        ("PARTITION BY k ORDER BY A.ts PATTERN (A)", "A.ts", "A.ts has no place in ORDER BY"),
        ("MEASURES x AS m PATTERN (A) DEFINE A AS k = purchase", "purchase", "; a text stands in single quotes: 'purchase'"),
        ("MEASURES x AS m PATTERN (A) DEFINE A AS ts > now", "now", "; a query means the same whenever it runs: write the time"),
        ("PARTITION BY kk PATTERN (A)", "kk", "unknown column 'kk'; did you mean 'k'?"),
        ("PARTITION BY k, K PATTERN (A)", "K", "PARTITION BY names K twice"),
        ("PARTITION BY list PATTERN (A)", "list", "PARTITION BY list of type list<int64> is not supported"),
        ("PARTITION BY k PATTERN (A) WITHIN 5 MINUTES", "WITHIN 5 MINUTES", "there is no ORDER BY"),
        ("PARTITION BY k ORDER BY ts DESC PATTERN (A) WITHIN 5 MINUTES", "WITHIN 5 MINUTES", "that is ts in descending order"),
        ("PARTITION BY k ORDER BY k PATTERN (A) WITHIN 5 MINUTES", "WITHIN 5 MINUTES", "that is k of type string"),
        ("PARTITION BY k ORDER BY ts PATTERN (A) WITHIN 5", "WITHIN 5", "the window 5 needs a unit; write WITHIN 5 seconds"),
        # types
        ("MEASURES sum(k) AS m PATTERN (A)", "sum(k)", "cannot apply sum() to string"),
        ("MEASURES LAST(x) + k AS m PATTERN (A)", "LAST(x) + k", "cannot apply + to integer and string"),
        ("MEASURES CLASSIFIER() > 1 AS m PATTERN (A)", "CLASSIFIER() > 1", "cannot compare string with integer"),
        ("MEASURES LAST(list) AS m PATTERN (A)", "list", "list is of type list<int64>, which cannot be compared"),
        ("MEASURES lowre(k) AS m PATTERN (A)", "lowre(k)", "unknown function 'lowre'; did you mean 'lower'?"),
    ],
)  # fmt: skip
def test_the_rules(clauses, place, message):
    ((found, said),) = faults(clauses)
    assert found == place
    assert message in said


@pytest.mark.parametrize(
    ("condition", "meant"),
    [
        ("k = purchase", True),
        ("purchase <> lower(k)", True),
        ("PREV(A.k) IN ('a', purchase)", True),
        ("k LIKE purchase", True),
        ("purchase > 1", False),
        ("x = purchase", False),
        ("purchase = 'a'", False),
        ("A.purchase = k", False),
        ("lower(purchase) = k", False),
    ],
)
def test_a_name_that_is_compared_with_texts_may_be_one(condition, meant):
    ((place, said),) = faults(f"MEASURES x AS m PATTERN (A) DEFINE A AS {condition}")
    assert place.endswith("purchase")
    assert ("a text stands in single quotes: 'purchase'" in said) == meant


@pytest.mark.parametrize(
    ("condition", "is_time"),
    [
        ('TS > "2026"', True),
        ('A.day = "2026"', True),
        ('"2026" < PREV(LAST(A.ts))', True),
        ('max(ts) > "2026"', True),
        ('ts IN ("2026")', True),
        ('count(ts) > "2026"', False),
        ('k = "2026"', False),
        ('CLASSIFIER() = "2026"', False),
    ],
)
def test_a_name_in_quotes_beside_a_time_is_meant_as_a_time(condition, is_time):
    ((place, said),) = faults(f"MEASURES x AS m PATTERN (A) DEFINE A AS {condition}")
    assert place == '"2026"'
    assert said.endswith("write DATE '…' or TIMESTAMP '…'" if is_time else "a text stands in single quotes: '2026'")


def test_all_faults_are_told_at_once():
    found = faults("PARTITION BY kk ORDER BY A.ts MEASURES sum(k) AS m, Q.x AS m PATTERN (A) SUBSET A = (B) DEFINE C AS MATCH_NUMBER() > k")
    assert len(found) == 10


@pytest.mark.parametrize(
    "allowed",
    [
        "MEASURES PREV(FIRST(A.x, 1), 2) + NEXT(LAST(B.x)) + sum(A.x) + B.x AS m PATTERN (A B)",
        "MEASURES FINAL LAST(A.x) - RUNNING sum(A.x) AS m PATTERN (A)",
        "MEASURES LAST(U.x) AS m PATTERN (A B) SUBSET U = (A, b) DEFINE A AS U.x > 0 AND RUNNING count(*) < 3 AND CLASSIFIER() = 'A'",
        "MEASURES sum(1) AS m PATTERN (A)",
        "MEASURES count(*) AS n AFTER MATCH SKIP TO FIRST u PATTERN (A B) SUBSET U = (B)",
        "MEASURES lower(A.k) AS m PATTERN (A)",
        "MEASURES count(*) AS n PATTERN (A) WITHIN 5 EVENTS",
    ],
)
def test_what_is_allowed(allowed):
    assert bind(allowed).measures[0].expression.type.kind is not Kind.NULL


@pytest.mark.parametrize(
    ("expression", "type"),
    [
        ("A.x", INTEGER),
        ("PREV(A.ts)", timestamp("us")),
        ("LAST(ts) - FIRST(ts)", duration("us")),
        ("avg(x)", FLOAT),
        ("sum(x)", INTEGER),
        ("sum(d)", decimal(18, 2)),
        ("max(k)", STRING),
        ("count(DISTINCT k)", INTEGER),
        ("count(*)", INTEGER),
        ("CLASSIFIER()", STRING),
        ("MATCH_NUMBER()", INTEGER),
        ("x > y", BOOLEAN),
        ("x / 2", FLOAT),
        ("0.5", FLOAT),
        ("CASE WHEN ok THEN 'a' ELSE k END", STRING),
        ("LAST(x + d)", decimal(18, 2)),
    ],
)
def test_types_of_measures(expression, type):
    (measure,) = bind(f"MEASURES {expression} AS m PATTERN (A)").measures
    assert measure.type.kind is type.kind
    assert (measure.type.unit, measure.type.scale) == (type.unit, type.scale)


def test_names_become_numbers():
    clauses = "PARTITION BY K ORDER BY TS DESC NULLS FIRST MEASURES u.x AS m, x AS n AFTER MATCH SKIP TO U"
    found = bind(f"{clauses} PATTERN (Up b) SUBSET U = (b, UP) DEFINE B AS x > 1")
    assert found.variables == ("Up", "b", "U", "")
    assert found.subsets == ((1, 0),)
    assert [measure.expression.variable for measure in found.measures] == [2, 3]
    assert [measure.column for measure in found.measures] == [2, 2]
    assert [number for number, _ in found.conditions] == [1]
    assert (found.partition_by, found.skip) == ((1,), 2)
    assert [(each.column, each.descending, each.nulls_first) for each in found.order_by] == [(0, True, True)]
    assert (found.key_columns, found.returned_columns) == ((1,), ())


def test_columns_of_all_rows():
    found = bind("PARTITION BY k ORDER BY ts, k ALL ROWS PER MATCH PATTERN (A)")
    assert found.key_columns == (1, 0)
    assert found.returned_columns == tuple(range(2, 10))


def test_keywords_supply_clauses_and_must_not_contradict_them():
    assert bind("PATTERN (A)", partition_by=("k",), order_by=("ts",)).query == bind('PARTITION BY "k" ORDER BY "ts" PATTERN (A)').query
    ((place, said),) = faults("PARTITION BY k PATTERN (A)", partition_by=("x",))
    assert (place, said) == ("k", "partition_by=['x'] contradicts PARTITION BY; leave one of them out")
    ((place, said),) = faults("PARTITION BY k ORDER BY ts, x DESC PATTERN (A)", order_by=("ts", "x"))
    assert (place, said) == ("ts", "order_by=['ts', 'x'] contradicts ORDER BY; leave one of them out")
    assert bind("PARTITION BY K ORDER BY TS NULLS LAST PATTERN (A)", partition_by=("k",), order_by=("ts",)).partition_by == (1,)
    assert faults("MEASURES x AS m PATTERN (A)", partition_by=("kk",)) == [("", "unknown column 'kk'; did you mean 'k'?")]
    with pytest.raises(PatternError, match="strategy='strict_contiguity' is not for row patterns"):
        bind("MEASURES x AS m PATTERN (A)", strategy="strict_contiguity")


def test_what_programs_cannot_say_yet_is_refused():
    with pytest.raises(UnsupportedError, match=r"lower\(\) of these arguments is not supported"):
        bind("MEASURES lower(CLASSIFIER()) AS m PATTERN (A)")


@pytest.mark.parametrize(
    ("measure", "columns"),
    [("twice(A.x)", 1), ("LAST(twice(A.x))", 1), ("twice(LAST(A.x))", 0), ("twice(A.x - PREV(A.x))", 0), ("twice(FINAL LAST(A.x)) + 1", 0)],
)
def test_only_what_reads_one_row_is_computed_as_a_column(measure, columns):
    made = make_options(functions={"twice": lambda x: x * 2})
    bound = bind(f"MEASURES {measure} AS m PATTERN (A)", functions=made.functions, result_type=made.result_type)
    assert len(bound.computed) == columns

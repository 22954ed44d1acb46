"""What ISO/IEC TR 19075-5 explains row patterns with: its queries and rules. Rows of the ticker are ours, answers are derived by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from gpu_cep.errors import EventError
from gpu_cep.lang.parser import parse
from tests.oracle.row_patterns.test_answers import ask, mapped, measures

# One V, a day on which nothing changes, and another V.
TICKER = pa.table({"Tradeday": range(1, 10), "Price": [50, 45, 40, 44, 48, 48, 30, 25, 33]})
V = "SUBSET U = (A, B, C) DEFINE B AS B.Price < PREV(B.Price), C AS C.Price > PREV(C.Price)"


def test_one_row_per_match():
    clauses = (
        "ORDER BY Tradeday MEASURES MATCH_NUMBER() AS Matchno, A.Price AS Startp, LAST(B.Price) AS Bottomp, LAST(C.Price) AS Endp, "
        f"AVG(U.Price) AS Avgp ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B+ C+) {V}"
    )
    assert measures(clauses, TICKER) == [(1, 50, 40, 48, 45.4), (2, 48, 25, 33, 34.0)]


def test_all_rows_per_match():
    clauses = (
        "ORDER BY Tradeday MEASURES MATCH_NUMBER() AS Matchno, CLASSIFIER() AS Classy, A.Price AS Startp, FINAL LAST(B.Price) AS Bottomp, "
        f"RUNNING LAST(B.Price) AS Sofar, FINAL AVG(U.Price) AS Avgp ALL ROWS PER MATCH PATTERN (A B+ C+) {V}"
    )
    assert measures(clauses, TICKER) == [
        (1, "A", 50, 40, None, 45.4),
        (1, "B", 50, 40, 45, 45.4),
        (1, "B", 50, 40, 40, 45.4),
        (1, "C", 50, 40, 40, 45.4),
        (1, "C", 50, 40, 40, 45.4),
        (2, "A", 48, 25, None, 34.0),
        (2, "B", 48, 25, 30, 34.0),
        (2, "B", 48, 25, 25, 34.0),
        (2, "C", 48, 25, 25, 34.0),
    ]


# Rows R1 … R5 with prices 10, 20 … are mapped to A, B, A, C, A.
MAPPING = "PATTERN (A B A C A) DEFINE B AS Price = 20"
FIVE = pa.table({"r": range(1, 6), "Price": [10, 20, 30, 40, 50]})


@pytest.mark.parametrize(
    ("navigation", "value"),
    [
        ("FIRST(A.Price)", 10), ("FIRST(A.Price, 0)", 10), ("FIRST(A.Price, 1)", 30), ("FIRST(A.Price, 2)", 50),
        ("FIRST(A.Price, 3)", None), ("LAST(A.Price)", 50), ("LAST(A.Price, 0)", 50), ("LAST(A.Price, 1)", 30),
        ("LAST(A.Price, 2)", 10), ("LAST(A.Price, 3)", None),
        ("A.Price", 50), ("FIRST(Price, 3)", 40), ("LAST(Price, 3)", 20), ("PREV(A.Price)", 40), ("PREV(A.Price, 0)", 50),
        ("NEXT(FIRST(A.Price))", 20), ("NEXT(A.Price)", None),
    ],
)  # fmt: skip
def test_logical_and_physical_offsets(navigation, value):
    assert measures(f"ORDER BY r MEASURES {navigation} AS m {MAPPING}", FIVE) == [value]


def test_running_and_final_last():
    clauses = f"ORDER BY r MEASURES RUNNING LAST(A.Price) AS running, FINAL LAST(A.Price) AS final ALL ROWS PER MATCH {MAPPING}"
    assert measures(clauses, FIVE) == [(10, 50), (10, 50), (30, 50), (30, 50), (50, 50)]


def test_a_logical_offset_inside_of_a_physical_one():
    rows = pa.table({"r": range(1, 7), "Price": [10, 20, 30, 40, 50, 60], "Tax": [1, 2, 3, 4, 5, 6]})
    clauses = "MEASURES PREV(LAST(A.Price + A.Tax, 1), 3) AS m PATTERN (X A B A C A) DEFINE X AS Price = 10, B AS Price = 30"
    # the last row of A but one is R4, and three rows before that R1
    assert measures(f"ORDER BY r {clauses}", rows) == [11]


def test_all_aggregates_are_over_the_rows_of_one_variable():
    clauses = "MEASURES COUNT(*) AS n, COUNT(A.*) AS a, SUM(A.Price) AS s, MIN(B.Price) AS low, MAX(U.Price) AS high, AVG(Price) AS m"
    clauses += " PATTERN (A B A C A) SUBSET U = (B, C) DEFINE B AS Price = 20"
    assert measures(f"ORDER BY r {clauses}", FIVE) == [(5, 3, 90, 20, 40, 30.0)]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        # alternatives are preferred from left to right, before repetitions
        ("A | B", "ab", ["A", "B"]),
        ("(X | A){3,5}", "aaaa", ["XXXX"]),
        ("(A | X){3,5}?", "aaaa", ["AAA"]),
        # greedy quantifiers prefer more, reluctant ones fewer
        ("A*", "aab", ["AA"]),
        ("A*? B", "aab", ["AAB"]),
        ("X+? B", "abab", ["XB", "XB"]),
        ("X+ B", "abab", ["XXXB"]),
        ("A?? X", "ab", ["X", "X"]),
        ("A? X", "ab", ["AX"]),
        ("A{2}", "aaaaa", ["AA", "AA"]),
        ("A{2,}", "aaaaa", ["AAAAA"]),
        ("A{,3}", "aaaaa", ["AAA", "AA"]),
        # PERMUTE prefers the lists in order
        ("PERMUTE(A, X, Y)", "aaa", ["AXY"]),
        ("PERMUTE(X, A, Y)", "aaa", ["XAY"]),
        # anchors are the borders of the partition
        ("^ A", "aa", ["A"]),
        ("A $", "aa", ["A"]),
        ("^ A+ $", "aab", []),
    ],
)
def test_the_order_of_preference(pattern, text, expected):
    assert [word for word in mapped(pattern, text) if word] == expected


@pytest.mark.parametrize("text", ["xxxbcd", "xxxdbc", "bcxxxd", "bcdxxx", "dxxxbc", "dbcxxx", "bxxxd", "dbxxx", "xxbcd", "bdxxx"])
def test_permute_is_short_for_the_alternatives_in_lexicographic_order(text):
    orders = "(A{3} B C? X) | (A{3} X B C?) | (B C? A{3} X) | (B C? X A{3}) | (X A{3} B C?) | (X B C? A{3})"
    text = text.replace("x", "a")
    assert mapped("PERMUTE(A{3}, B C?, X)", text) == mapped(orders, text)


def test_exclusion_leaves_rows_out_of_the_result_alone():
    assert mapped("A {- B+ C+ -} A+", "abbcaa") == ["AAA"]


SKIPPED = "PATTERN (A X* B X+ C) DEFINE A AS c = 'a', B AS c = 'b', C AS c = 'c', X AS c = 'x'"
LETTERS = pa.table({"n": range(12), "c": list("axbxcaxbxcbx")})


@pytest.mark.parametrize("skip", ["TO NEXT ROW", "PAST LAST ROW", "TO FIRST X", "TO LAST X", "TO C", "TO LAST B"])
def test_skipping_to_rows_of_the_match(skip):
    assert measures(f"ORDER BY n MEASURES FIRST(n) AS f AFTER MATCH SKIP {skip} {SKIPPED}", LETTERS) == [0, 5]


@pytest.mark.parametrize("skip", ["FIRST A", "LAST A", "A"])
def test_skipping_to_the_first_row_is_an_exception(skip):
    with pytest.raises(EventError, match="would be found again"):
        ask(f"ORDER BY n MEASURES count(*) AS m AFTER MATCH SKIP TO {skip} {SKIPPED}", LETTERS)


def test_skipping_to_a_variable_without_rows_is_an_exception():
    with pytest.raises(EventError, match="has no row of B"):
        ask("ORDER BY n MEASURES count(*) AS m AFTER MATCH SKIP TO B PATTERN (A B?) DEFINE A AS c = 'c', B AS c = 'b'", LETTERS.slice(3))


def test_skipping_past_and_to_rows_differ_where_matches_overlap():
    rows = pa.table({"n": range(5), "p": [3, 2, 4, 1, 5]})
    clauses = "ORDER BY n MEASURES FIRST(n) AS f AFTER MATCH SKIP {} PATTERN (A B C) DEFINE B AS p < PREV(p), C AS p > PREV(p)"
    assert measures(clauses.format("PAST LAST ROW"), rows) == [0]
    assert measures(clauses.format("TO NEXT ROW"), rows) == measures(clauses.format("TO LAST C"), rows) == [0, 2]


def test_empty_matches_and_unmatched_rows():
    rows = pa.table({"n": range(4), "c": list("bbaa")})
    clauses = "ORDER BY n MEASURES MATCH_NUMBER() AS m, COUNT(*) AS k {} PATTERN ({}) DEFINE A AS c = 'a'"
    assert measures(clauses.format("", "A*"), rows) == [(1, 0), (2, 0), (3, 2)]
    assert measures(clauses.format("ALL ROWS PER MATCH", "A*"), rows) == [(1, 0), (2, 0), (3, 1), (3, 2)]
    assert measures(clauses.format("ALL ROWS PER MATCH OMIT EMPTY MATCHES", "A*"), rows) == [(3, 1), (3, 2)]
    assert measures(clauses.format("ALL ROWS PER MATCH WITH UNMATCHED ROWS", "A+"), rows) == [None, None, (1, 1), (1, 2)]


def test_a_variable_without_a_definition_fits_every_row():
    assert parse("MATCH_RECOGNIZE (PARTITION BY k PATTERN (A B) DEFINE B AS x > 1)").definitions[0].name == "B"
    assert mapped("X X", "ab") == ["XX"]

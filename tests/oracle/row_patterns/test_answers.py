"""The oracle of MATCH_RECOGNIZE: examples whose answers were derived by hand, and properties of all answers."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.errors import EventError, UnsupportedError
from gpu_cep.lang.parser import parse
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.oracle.row_patterns.answers import MOST_ROWS, ReturnedRow, answer

# A fall, a rise, a fall and a rise again; one row a day.
PRICES = pa.table({"day": range(1, 9), "price": [20, 15, 12, 14, 18, 17, 13, 16]})
V = "PATTERN (start down+ up+) DEFINE down AS price < PREV(price), up AS price > PREV(price)"


def ask(clauses: str, table: pa.Table, **keywords: Any) -> list[ReturnedRow]:
    query = parse(f"MATCH_RECOGNIZE ({clauses})")
    assert isinstance(query, RowPatternQuery)
    return answer(query, table, **keywords)


def measures(clauses: str, table: pa.Table, **keywords: Any) -> list[Any]:
    """The measures of each row: a tuple, or the one value if there is one measure."""
    found = [row.measures for row in ask(clauses, table, **keywords)]
    return [values[0] if values is not None and len(values) == 1 else values for values in found]


def letters(text: str) -> pa.Table:
    return pa.table({"n": pa.array(range(len(text)), pa.int64()), "c": pa.array(list(text), pa.string())})


def define(pattern: str) -> str:
    """DEFINE of the variables in a pattern: of one letter each, X fits all rows, Y two letters."""
    conditions = {"A": "c = 'a'", "B": "c = 'b'", "C": "c = 'c'", "Y": "c IN ('a', 'b')"}
    used = [f"{name} AS {condition}" for name, condition in conditions.items() if name in pattern]
    return f"DEFINE {', '.join(used)}" if used else ""


def mapped(pattern: str, text: str, clauses: str = "") -> list[str]:
    """The variables to which the rows of each match are mapped, as a word."""
    asked = "ORDER BY n MEASURES MATCH_NUMBER() AS m, CLASSIFIER() AS v ALL ROWS PER MATCH"
    found = ask(f"{asked} {clauses} PATTERN ({pattern}) {define(pattern.replace('PERMUTE', ''))}", letters(text))
    words: dict[int, str] = {}
    for row in found:
        assert row.measures is not None
        words[row.measures[0]] = words.get(row.measures[0], "") + (row.measures[1] or "")
    return list(words.values())


def test_a_fall_and_a_rise():
    first_last = "FIRST(down.price) AS d, LAST(down.price) AS bottom, LAST(up.price) AS top, start.price AS s, count(*) AS n"
    assert measures(f"ORDER BY day MEASURES {first_last} {V}", PRICES) == [(15, 12, 18, 20, 5), (13, 13, 16, 17, 3)]


@pytest.mark.parametrize(
    ("skip", "starts"),
    [
        ("PAST LAST ROW", [20, 17]),
        ("TO NEXT ROW", [20, 15, 18, 17]),
        ("TO FIRST up", [20, 18]),
        ("TO LAST up", [20, 18]),
        ("TO up", [20, 18]),
        ("TO FIRST down", [20, 15, 18, 17]),
        ("TO LAST down", [20, 18]),
    ],
)
def test_where_the_search_goes_on(skip, starts):
    assert measures(f"ORDER BY day MEASURES start.price AS s AFTER MATCH SKIP {skip} {V}", PRICES) == starts


def test_running_and_final():
    asked = "RUNNING LAST(price) AS r, FINAL LAST(price) AS f, sum(down.price) AS rs, FINAL sum(down.price) AS fs, count(up.*) AS n"
    found = measures(f"ORDER BY day MEASURES {asked}, CLASSIFIER() AS c ALL ROWS PER MATCH {V}", PRICES)
    assert found[:5] == [
        (20, 18, None, 27, 0, "start"),
        (15, 18, 15, 27, 0, "down"),
        (12, 18, 27, 27, 0, "down"),
        (14, 18, 27, 27, 1, "up"),
        (18, 18, 27, 27, 2, "up"),
    ]


def test_navigation_leaves_the_match_but_not_the_partition():
    asked = "PREV(start.price) AS p, NEXT(LAST(up.price)) AS n, PREV(FIRST(down.price, 1), 2) AS pf, NEXT(price, 9) AS none"
    asked += ", LAST(down.price, 1) AS l"
    assert measures(f"ORDER BY day MEASURES {asked} {V}", PRICES) == [(None, 17, 20, None, 15), (18, None, None, None, None)]


def test_classifier_at_other_rows():
    asked = "CLASSIFIER() AS c, PREV(CLASSIFIER()) AS p, NEXT(CLASSIFIER()) AS n, FIRST(CLASSIFIER(), 1) AS f, CLASSIFIER(u) AS u"
    found = measures(f"ORDER BY day MEASURES {asked} ALL ROWS PER MATCH {V.replace(' DEFINE', ' SUBSET U = (start, up) DEFINE')}", PRICES)
    assert found[:2] == [("start", None, "down", None, "start"), ("down", "start", "down", "down", "start")]
    assert found[4] == ("up", "up", None, "down", "up")


def test_a_definition_reads_what_is_mapped_so_far():
    sums = "PATTERN (A+ B) DEFINE A AS sum(A.price) <= 50, B AS price < FIRST(A.price) AND count(*) = 4 AND PREV(CLASSIFIER()) = 'A'"
    # 20 + 15 + 12 are 47, and 14 comes; from 18 on 18 + 17 + 13 are 48, and 16 comes
    assert measures(f"ORDER BY day MEASURES sum(price) AS s {sums}", PRICES) == [61, 64]
    # of B nothing is mapped yet: NULL is not true
    assert measures("ORDER BY day MEASURES count(*) AS n PATTERN (A) SUBSET U = (A) DEFINE A AS LAST(U.price, 1) > 0", PRICES) == []


def test_subsets_and_any_row():
    asked = "avg(u.price) AS u, avg(price) AS a, max(u.day) AS d, count(DISTINCT u.price) AS n"
    found = measures(f"ORDER BY day MEASURES {asked} {V.replace(' DEFINE', ' SUBSET U = (start, up) DEFINE')}", PRICES)
    assert found == [((20 + 14 + 18) / 3, (20 + 15 + 12 + 14 + 18) / 5, 5, 3), ((17 + 16) / 2, (17 + 13 + 16) / 3, 8, 2)]


def test_an_average_of_integers_is_a_double():
    (found,) = measures("ORDER BY day MEASURES avg(price) AS a PATTERN (A{2}) DEFINE A AS day IN (2, 3)", PRICES)
    assert found == 13.5
    assert isinstance(found, float)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("A B", "aabab", ["AB", "AB"]),
        ("A|B", "ab", ["A", "B"]),
        ("Y|A", "a", ["Y"]),
        ("A|Y", "ab", ["A", "Y"]),
        ("A | A B", "ab", ["A"]),
        ("A B | A", "aab", ["A", "AB"]),
        ("A+", "aaba", ["AA", "A"]),
        ("A+?", "aa", ["A", "A"]),
        ("A*? B", "aab", ["AAB"]),
        ("X*? B", "aab", ["XXB"]),
        ("X* B", "abab", ["XXXB"]),
        ("X{2,3}", "abcab", ["XXX", "XX"]),
        ("X{2,3}?", "abcab", ["XX", "XX"]),
        ("X{2,3}? $", "abcab", ["XXX"]),
        ("A?? X", "ab", ["X", "X"]),
        ("A? X", "ab", ["AX"]),
        ("(A B)+", "ababa", ["ABAB"]),
        ("(A | B)+ C", "abac", ["ABAC"]),
        ("^ X", "ab", ["X"]),
        ("X $", "ab", ["X"]),
        ("^ X* $", "abc", ["XXX"]),
        ("X ^", "ab", []),
        ("PERMUTE(A, B)", "abba", ["AB", "BA"]),
        ("PERMUTE(A, Y, X)", "bac", ["YAX"]),
        ("PERMUTE(A, Y, X)", "aab", ["AYX"]),
        ("PERMUTE(Y, A, X)", "aab", ["YAX"]),
        ("PERMUTE(A, B C)", "bca", ["BCA"]),
        ("PERMUTE(X+, A)", "aba", ["XXA"]),
        ("(A+ B+)+", "aabab", ["AABAB"]),
        ("() A", "a", ["A"]),
    ],
)
def test_the_preferred_match(pattern, text, expected):
    assert mapped(pattern, text, "OMIT EMPTY MATCHES") == expected


def test_an_exclusion_belongs_to_the_match():
    asked = f"ORDER BY n MEASURES count(*) AS k, LAST(B.n) AS b ALL ROWS PER MATCH PATTERN (A {{- B+ -}} C) {define('ABC')}"
    found = ask(asked, letters("abbc"))
    assert [(row.number, row.measures) for row in found] == [(0, (1, None)), (3, (4, 2))]
    assert measures(asked.replace("ALL ROWS PER MATCH", ""), letters("abbc")) == [(4, 2)]


EMPTY = "ORDER BY n MEASURES MATCH_NUMBER() AS m, count(*) AS k, CLASSIFIER() AS v, FIRST(n) AS f {} PATTERN ({}) DEFINE A AS c = 'a'"


def test_empty_matches():
    shown = ask(EMPTY.format("ALL ROWS PER MATCH", "A*"), letters("baab"))
    expected = [(0, (1, 0, None, None)), (1, (2, 1, "A", 1)), (2, (2, 2, "A", 1)), (3, (3, 0, None, None))]
    assert [(row.number, row.measures) for row in shown] == expected
    assert ask(EMPTY.format("ALL ROWS PER MATCH SHOW EMPTY MATCHES", "A*"), letters("baab")) == shown
    assert ask(EMPTY.format("ALL ROWS PER MATCH WITH UNMATCHED ROWS", "A*"), letters("baab")) == shown
    assert ask(EMPTY.format("ALL ROWS PER MATCH OMIT EMPTY MATCHES", "A*"), letters("baab")) == shown[1:3]
    assert ask(EMPTY.format("", "A*"), letters("baab")) == [shown[0], ReturnedRow(1, shown[2].measures), shown[3]]


def test_unmatched_rows():
    found = ask(EMPTY.format("ALL ROWS PER MATCH WITH UNMATCHED ROWS", "A+"), letters("baab"))
    assert [(row.number, row.measures) for row in found] == [(0, None), (1, (1, 1, "A", 1)), (2, (1, 2, "A", 1)), (3, None)]
    # where no match begins, a row may still belong to the match before
    overlapping = "ORDER BY n MEASURES MATCH_NUMBER() AS m ALL ROWS PER MATCH WITH UNMATCHED ROWS AFTER MATCH SKIP TO NEXT ROW"
    overlapping += " PATTERN (A X X) DEFINE A AS c = 'a'"
    assert [(row.number, row.measures) for row in ask(overlapping, letters("aabbb"))] == [
        (0, (1,)), (1, (1,)), (2, (1,)), (1, (2,)), (2, (2,)), (3, (2,)), (4, None),
    ]  # fmt: skip


def test_iterations_of_no_row_end():
    assert mapped("(A?)* B", "aab") == ["AAB"]
    assert mapped("(A*)+", "aa") == ["AA"]
    assert mapped("(()|A)*", "aa") == ["", ""]
    assert mapped("(A?){3} B", "ab") == ["AB"]


def test_skipping_to_no_row_and_to_the_first_row_are_errors():
    asked = "ORDER BY n MEASURES count(*) AS k AFTER MATCH SKIP TO {} PATTERN (A B?) DEFINE A AS c = 'a', B AS c = 'b'"
    with pytest.raises(EventError, match="match 2 of its partition, from row 2 on, has no row of B"):
        ask(asked.format("B"), letters("abac"))
    with pytest.raises(EventError, match="match 1 of its partition, from row 0 on, would be found again"):
        ask(asked.format("FIRST A"), letters("ab"))
    # a match without rows is followed by the next row, whatever AFTER MATCH says
    assert measures(
        "ORDER BY n MEASURES count(*) AS k AFTER MATCH SKIP TO A PATTERN (B*) SUBSET A = (B) DEFINE B AS n < 0", letters("ab")
    ) == [0, 0]


def test_order_by():
    table = pa.table({"k": [2, None, 1, None, 2, 1], "n": range(6)})

    def order(by):
        return [row.number for row in ask(f"{by} MEASURES count(*) AS c PATTERN (A)", table)]

    assert order("") == [0, 1, 2, 3, 4, 5]
    assert order("ORDER BY k") == [2, 5, 0, 4, 1, 3]
    assert order("ORDER BY k DESC") == [0, 4, 2, 5, 1, 3]
    assert order("ORDER BY k NULLS FIRST") == [1, 3, 2, 5, 0, 4]
    assert order("ORDER BY k DESC NULLS FIRST, n DESC") == [3, 1, 4, 0, 5, 2]
    assert order("PARTITION BY k ORDER BY n DESC") == [3, 1, 5, 2, 4, 0]
    assert [row.number for row in ask("MEASURES count(*) AS c PATTERN (A)", table, order_by=["k"])] == [2, 5, 0, 4, 1, 3]


def test_match_numbers_begin_anew_in_each_partition():
    table = pa.table({"k": ["x", "y", "x", None, "y"], "n": range(5)})
    assert measures("PARTITION BY k ORDER BY n MEASURES k AS k, MATCH_NUMBER() AS m, FIRST(n) AS n PATTERN (A)", table) == [
        (None, 1, 3), ("x", 1, 0), ("x", 2, 2), ("y", 1, 1), ("y", 2, 4),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("within", "sizes"), [("WITHIN 2", [3, 2, 1]), ("WITHIN 0", [1] * 6), ("WITHIN 2 EVENTS", [2, 2, 2]), ("", [6])]
)  # fmt: skip
def test_a_window(within, sizes):
    table = pa.table({"t": [0, 1, 2, 4, 6, 9]})
    assert measures(f"ORDER BY t MEASURES count(*) AS n PATTERN (A+) {within}", table) == sizes


def test_a_row_without_a_time_is_in_no_window():
    assert measures("ORDER BY t MEASURES count(*) AS n PATTERN (A+) WITHIN 9", pa.table({"t": [0, None, 1]})) == [2]


def test_a_window_cuts_the_match_rather_than_the_preference():
    assert mapped("A X*? C | A B", "abbc") == ["AXXC"]
    assert mapped("A X*? C | A B", "abbc", "OMIT EMPTY MATCHES") == ["AXXC"]
    found = measures(
        "ORDER BY n MEASURES LAST(CLASSIFIER()) AS v PATTERN (A X*? C | A B) WITHIN 2 DEFINE A AS c = 'a', B AS c = 'b', C AS c = 'c'",
        letters("abbc"),
    )
    assert found == ["B"]


def test_names_without_quotes_fold_and_keep_their_spelling():
    table = pa.table({"Price": [1, 2], "x y": [3, 4]})
    clauses = (
        'MEASURES CLASSIFIER() AS c, sum(PRICE) AS s, "DOWN"."x y" AS q PATTERN (Down "up") DEFINE DOWN AS price = 1, "up" AS "Price" = 2'
    )
    assert measures(clauses, table) == [("up", 3, 3)]


def test_large_partitions_are_refused():
    with pytest.raises(UnsupportedError, match=f"at most {MOST_ROWS} rows of a partition"):
        ask("MEASURES count(*) AS n PATTERN (A)", letters("a" * (MOST_ROWS + 1)))
    with pytest.raises(UnsupportedError, match="too deep"):
        ask("MEASURES count(*) AS n PATTERN ((){5000})", letters("a"))


# Patterns as Python's regular expressions have them: both prefer the same match.
atoms = st.sampled_from(["A", "B", "C", "X", "Y"])
quantifiers = st.sampled_from(["+", "?", "*", "{2}", "{1,2}", "{2,}", "+?", "??", "*?", "{1,2}?"])


def joined(inner):
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(several.map(" ".join), several.map(" | ".join), inner).map(lambda text: f"({text})")


simple = st.recursive(atoms, joined, max_leaves=4)
patterns = st.recursive(atoms, lambda inner: st.one_of(joined(inner), st.tuples(simple, quantifiers).map("".join)), max_leaves=6)
words = st.text("abc", max_size=8)


def as_expression(pattern: str) -> str:
    plain = pattern.replace(" ", "")
    return "".join({"X": ".", "Y": "[ab]"}.get(letter, letter.lower()) for letter in plain)


def matched_lengths(pattern: str, text: str) -> list[tuple[int, int]]:
    """Where Python's matches begin and how long they are, one behind the other."""
    compiled, found, start = re.compile(as_expression(pattern)), [], 0
    while start < len(text):
        match = compiled.match(text, start)
        if match is not None:
            found.append((start, len(match[0])))
        start += max(1, len(match[0])) if match else 1
    return found


@given(patterns, words)
def test_matches_are_those_of_regular_expressions(pattern, text):
    found = ask(f"ORDER BY n MEASURES count(*) AS k PATTERN ({pattern}) {define(pattern)}", letters(text))
    assert [(row.number, row.measures) for row in found] == [(start, (length,)) for start, length in matched_lengths(pattern, text)]


@given(patterns, words, st.sampled_from(["PAST LAST ROW", "TO NEXT ROW"]))
def test_all_rows_and_one_row_agree(pattern, text, skip):
    asked = "ORDER BY n MEASURES MATCH_NUMBER() AS m, count(*) AS k, FINAL count(*) AS f, FINAL LAST(n) AS l"
    clauses = f"AFTER MATCH SKIP {skip} PATTERN ({pattern}) {define(pattern)}"
    one = measures(f"{asked} {clauses}", letters(text))
    every = measures(f"{asked} ALL ROWS PER MATCH {clauses}", letters(text))
    assert [row for row in every if row[1] == row[2]] == one
    assert len(every) == sum(max(1, row[1]) for row in one)
    omitted = measures(f"{asked} ALL ROWS PER MATCH OMIT EMPTY MATCHES {clauses}", letters(text))
    assert omitted == [row for row in every if row[2]]


@given(patterns, words)
def test_every_row_is_returned_once_with_unmatched_rows(pattern, text):
    found = ask(
        f"ORDER BY n MEASURES count(*) AS k ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN ({pattern}) {define(pattern)}", letters(text)
    )
    assert [row.number for row in found] == list(range(len(text)))


@given(simple, words)
def test_reluctant_matches_are_no_longer_than_greedy_ones(element, text):
    def first(quantifier):
        return measures(f"ORDER BY n MEASURES count(*) AS k PATTERN (^ {element}{quantifier}) {define(element)}", letters(text))[:1]

    greedy, reluctant = first("+"), first("+?")
    assert len(greedy) == len(reluctant)
    assert all(short <= long for short, long in zip(reluctant, greedy, strict=True))


@given(st.lists(atoms, min_size=1, max_size=3), words)
def test_permute_is_the_alternatives_of_all_orders(elements, text):
    from itertools import permutations

    orders = " | ".join(" ".join(order) for order in permutations(elements))
    used = "".join(elements)
    asked = "ORDER BY n MEASURES CLASSIFIER() AS v ALL ROWS PER MATCH PATTERN ({}) {}"
    permuted = measures(asked.format(f"PERMUTE({', '.join(elements)})", define(used)), letters(text))
    assert permuted == measures(asked.format(orders, define(used)), letters(text))


prices = st.lists(st.integers(0, 3), max_size=10)


@given(prices)
def test_previous_rows_are_those_of_the_partition(drawn):
    moves = "".join(
        "-" if before is None or before == now else "du"[before < now] for before, now in zip([None, *drawn], drawn, strict=False)
    )
    found = measures(
        f"ORDER BY day MEASURES FIRST(day) AS d, count(*) AS n {V}",
        pa.table({"day": range(len(drawn)), "price": pa.array(drawn, pa.int64())}),
    )
    assert found == [(match.start(), len(match[0])) for match in re.finditer(".d+u+", moves)]


@given(prices, st.integers(0, 9))
def test_a_running_sum_ends_a_match(drawn, most):
    table = pa.table({"day": range(len(drawn)), "price": pa.array(drawn, pa.int64())})
    found = measures(
        f"ORDER BY day MEASURES sum(price) AS s, count(*) AS n AFTER MATCH SKIP TO NEXT ROW PATTERN (A+) DEFINE A AS sum(price) <= {most}",
        table,
    )
    expected = []
    for start in range(len(drawn)):
        sums = [sum(drawn[start:end]) for end in range(start + 1, len(drawn) + 1)]
        fitting = [each for each in sums if each <= most]
        expected += [(fitting[-1], len(fitting))] if fitting else []
    assert found == expected


@given(patterns, words, st.randoms(use_true_random=False))
def test_the_order_of_the_table_does_not_matter_where_order_by_decides(pattern, text, random):
    asked = f"ORDER BY n MEASURES FIRST(n) AS f, LAST(n) AS l, CLASSIFIER() AS v ALL ROWS PER MATCH PATTERN ({pattern}) {define(pattern)}"
    shuffled = list(range(len(text)))
    random.shuffle(shuffled)
    assert measures(asked, letters(text).take(pa.array(shuffled, pa.int64()))) == measures(asked, letters(text))

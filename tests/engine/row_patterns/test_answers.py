"""The matcher of row patterns gives the oracle's answers."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.row_patterns import dead_ends as making
from gpu_cep.errors import EventError, UnsupportedError
from tests.drawn.row_patterns import ALONE, BESIDE, READING, STEPWISE, Drawn, clauses
from tests.oracle.row_patterns.test_answers import letters


def answer(drawn: Drawn, algorithm: str, **keywords) -> pa.Table | str:
    """The rows of the result, or the error of the match."""
    try:
        return cep.match(drawn.table, f"MATCH_RECOGNIZE ({drawn.clauses})", algorithm=algorithm, **keywords)
    except EventError as fault:
        return str(fault)


def check(drawn: Drawn, **keywords) -> None:
    expected, found = answer(drawn, "brute_force"), answer(drawn, "auto", **keywords)
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
        return
    found.validate(full=True)
    assert found.schema == expected.schema
    assert str(found.to_pydict()) == str(expected.to_pydict())


EVERY = "ORDER BY n MEASURES MATCH_NUMBER() AS m, CLASSIFIER() AS v, FIRST(n) AS f ALL ROWS PER MATCH"
WAYS = "PATTERN (^ (A | X)+ B) DEFINE A AS c = 'a', B AS c = 'b' AND"


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        # an iteration of no row ends the iterations
        ("PATTERN ((() | A X | A){0,2} B) DEFINE A AS c = 'a', B AS c = 'b'", "abaab"),
        ("PATTERN ((() | A X | A)* B) DEFINE A AS c = 'a', B AS c = 'b'", "abaab"),
        # a dead end of some rows mapped so far is none of others
        (f"{WAYS} count(A.*) = 1", "aaab"),
        (f"{WAYS} LAST(A.n) = 0", "aaab"),
        (f"{WAYS} LAST(A.n, 1) = 0 AND count(*) > 2", "aaaab"),
        (f"{WAYS} FIRST(A.n) = 2", "aaab"),
        (f"{WAYS} FIRST(A.n, 1) = 2", "aaaab"),
        (f"{WAYS} sum(A.n) = 2", "aaaab"),
        (f"{WAYS} max(A.n * 0.5) = 0.5", "aaaab"),
        (f"{WAYS} PREV(CLASSIFIER(), 2) = 'X'", "aaab"),
        (f"{WAYS} LAST(CLASSIFIER(), 3) = 'X'", "aaaab"),
        (f"{WAYS} FIRST(CLASSIFIER(), 1) = 'X'", "aaaab"),
        (f"{WAYS} PREV(LAST(CLASSIFIER(A)), 2) = 'X'", "aaaab"),
        (f"{WAYS} NEXT(FIRST(CLASSIFIER(A))) = 'X'", "aaaab"),
        (f"{WAYS} count(DISTINCT A.n % 2) = 1 AND count(A.*) > 1", "aaaaab"),
        (
            "PATTERN (^ (A | X)+ D B) SUBSET U = (A, D) DEFINE A AS c = 'a', D AS c = 'a', B AS c = 'b' AND count(DISTINCT U.n % 2) = 1",
            "aaaab",
        ),
        (f"{WAYS} max(CLASSIFIER()) = 'X' AND count(A.*) = 1", "aaaab"),
        ("PATTERN ((A | X)+ B) WITHIN 3 DEFINE A AS c = 'a', B AS c = 'b' AND n - LAST(A.n) >= 3 AND LAST(A.n) = 1", "aabbbb"),
        # nor are values of other columns, of rows beside them, or none
        (f"{WAYS} LAST(A.c) = 'a' AND LAST(A.n) = 0", "aaab"),
        (f"{WAYS} PREV(LAST(A.n)) IS NULL", "aaab"),
        (f"{WAYS} PREV(LAST(A.c)) = 'x'", "xaaab"),
        # what is no row is NULL, beside a condition that columns decide
        ("PATTERN (A B?) DEFINE A AS n >= PREV(n), B AS PREV(coalesce(n, 0)) = 0 OR PREV(coalesce(n, 0)) IS NULL", "aab"),
        # of the current row it is not asked whether it is there
        ("PATTERN (A B?) DEFINE A AS FIRST(coalesce(n, 0)) >= 0, B AS PREV(CASE WHEN B.n > 1 THEN 1 END, 0) = 1", "aaa"),
    ],
)
def test_what_random_clauses_seldom_ask(asked, text):
    drawn = Drawn(f"{EVERY} {asked}", letters(text))
    check(drawn)
    assert len(answer(drawn, "auto")) > 0


def test_each_column_orders_what_those_before_it_leave_equal():
    rows = [(a, b, c, number) for number, (a, c, b) in enumerate(product((2, 1), (1.5, 0.5, 1.5), (1, None, 0)))]
    table = pa.table(dict(zip("abcn", map(list, zip(*rows, strict=True)), strict=True)))
    asked = "MATCH_RECOGNIZE (ORDER BY a, b DESC NULLS LAST, c MEASURES X.n AS n PATTERN (X) DEFINE X AS n >= 0)"
    wanted = sorted(rows, key=lambda row: (row[0], row[1] is None, -(row[1] or 0), row[2], row[3]))
    assert cep.match(table, asked)["n"].to_pylist() == [row[3] for row in wanted]


@pytest.mark.parametrize("rows", ["", "ALL ROWS PER MATCH", "ALL ROWS PER MATCH WITH UNMATCHED ROWS"])
def test_values_are_counted_and_rows_even_where_their_number_is_fixed(rows):
    table = pa.table({"n": range(7), "x": [None, 1, None, 4, 2, None, 0]})
    counts = "count(D.x) AS a, count(D.n) AS b, count(D.*) AS c, FINAL count(D.n) AS d, FINAL count(U.x) AS e, count(S.n) AS f"
    counts += ", count(NULL) AS g"
    check(Drawn(f"ORDER BY n MEASURES {counts} {rows} PATTERN (S D+ U) DEFINE U AS n % 4 = 3", table))
    check(Drawn(f"ORDER BY n MEASURES {counts} {rows} PATTERN (S? D* U?) DEFINE S AS n = 2, D AS x > 1, U AS n = 0", table))


CHOSEN = pa.table({"n": range(4), "c": ["b", "a", "c", None], "d": ["a", "z", None, "q"]})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("max(nullif(c, 'c'))", ["b", "b", "b", "b"]),
        ("max(coalesce(c, 'x'))", ["b", "b", "c", "x"]),
        ("min(CASE WHEN n > 0 THEN c ELSE d END)", ["a", "a", "a", "a"]),
        ("count(DISTINCT CASE WHEN n > 0 THEN c ELSE d END)", [1, 1, 2, 2]),
        ("count(CASE WHEN CLASSIFIER() = 'X' THEN d END)", [1, 2, 2, 3]),
        ("LAST(nullif(c, 'a'), 1) > 'a'", [None, True, None, True]),
        ("max(CASE WHEN c < d THEN c ELSE upper(d) END)", ["A", "a", "a", "a"]),
    ],
)
def test_texts_that_are_chosen_are_aggregated(text, values):
    drawn = Drawn(f"ORDER BY n MEASURES {text} AS q ALL ROWS PER MATCH PATTERN (X+)", CHOSEN)
    check(drawn)
    assert answer(drawn, "auto")["q"].to_pylist() == values
    check(Drawn(f"ORDER BY n MEASURES LAST(n) AS q PATTERN (X+) DEFINE X AS ({text}) >= {values[1]!r}", CHOSEN))


@pytest.mark.parametrize("text", ["max(CASE WHEN CLASSIFIER() = 'X' THEN c END)", "count(DISTINCT coalesce(CLASSIFIER(), c))", "min('a')"])
def test_texts_that_no_column_holds_are_refused_by_name(text):
    with pytest.raises(UnsupportedError, match=r"\(\) of this text is not supported(.|\n)*CLASSIFIER\(\) by itself"):
        cep.match(CHOSEN, f"MATCH_RECOGNIZE (MEASURES {text} AS q PATTERN (X))")


@given(clauses(ALONE + BESIDE))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_labels_decide(drawn):
    check(drawn)


@given(clauses(READING))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_conditions_read_the_match(drawn):
    check(drawn)


IN_RUNS = st.sampled_from(["A B+", "A B+ C", "A B* C", "(A B+)+ C", "A B{2,3} C", "B+ A", "A+? B+ A", "A (B | C)+", "A B+ | A C"])


@given(clauses(STEPWISE, IN_RUNS))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_conditions_say_what_holds_where_no_row_is_before(drawn):
    check(drawn)


WITHOUT_END = ("^ (A | B)* C", "(A | B)+? C", "((A | B) (B | A)?)* C", "(A+ B+)+ C", "(A | B)* C $", "A (A | B | C)+ C")
SEEN = (
    "CLASSIFIER(U) = 'A'", "PREV(CLASSIFIER()) = 'A'", "PREV(CLASSIFIER(), 2) = 'B'", "FIRST(CLASSIFIER(), 2) = 'B'", "LAST(A.n) = 2",
    "LAST(CLASSIFIER(), 3) = 'A'", "NEXT(FIRST(CLASSIFIER(U), 1)) = 'A'", "PREV(LAST(CLASSIFIER(U), 1), 1) = 'B'", "LAST(B.n, 1) > 1",
    "FIRST(B.n, 1) = 3", "FIRST(B.n) > FIRST(A.n)", "count(A.*) = 3", "sum(A.n) > 6", "avg(B.n) > 3.5", "max(CLASSIFIER()) = 'A'",
    "count(DISTINCT A.x) = 2", "count(DISTINCT B.x) = 1", "count(DISTINCT CLASSIFIER()) = 2",
    "PREV(FIRST(CLASSIFIER(U), 2), 2) = 'B'", "n - FIRST(n) >= 4", "LAST(n, 3) = 1", "min(A.n * 0.5) > 0.5",
)  # fmt: skip


@pytest.mark.parametrize("dead_ends", [1, 1 << 10])
@given(
    st.sampled_from(WITHOUT_END), st.lists(st.sampled_from(SEEN), min_size=1, max_size=2), st.sampled_from(SEEN), st.integers(3, 7),
    st.sampled_from(["A, B", "A", "B, C"]), st.sampled_from(["", "WITHIN 4"]),
)  # fmt: skip
def test_what_leads_nowhere_leads_nowhere_by_definition(dead_ends, pattern, last, other, rows, members, window):
    conditions = f"B AS n >= 0 AND coalesce({other}, n % 3 > 0), C AS {' AND '.join(last)}"
    clauses = f"{EVERY} PATTERN ({pattern}) {window} SUBSET U = ({members}) DEFINE {conditions}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making, "_DEAD_ENDS", dead_ends)
        check(Drawn(clauses, letters("a" * rows).append_column("x", pa.array([n % 3 for n in range(rows)]))), threads=1)


@pytest.mark.parametrize("threads", [1, 3])
@given(drawn=clauses(ALONE + BESIDE + READING))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_threads_share_partitions(drawn, threads):
    check(drawn, threads=threads)

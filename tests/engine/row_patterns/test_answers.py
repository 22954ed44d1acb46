"""The matcher of row patterns gives the oracle's answers."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import gpu_cep as cep
from gpu_cep.errors import EventError
from tests.drawn.row_patterns import ALONE, BESIDE, READING, Drawn, clauses
from tests.oracle.test_row_patterns import letters


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
        # what is no row is NULL, beside a condition that columns decide
        ("PATTERN (A B?) DEFINE A AS n >= PREV(n), B AS PREV(coalesce(n, 0)) = 0 OR PREV(coalesce(n, 0)) IS NULL", "aab"),
    ],
)
def test_what_random_clauses_seldom_ask(asked, text):
    drawn = Drawn(f"{EVERY} {asked}", letters(text))
    check(drawn)
    assert len(answer(drawn, "auto")) > 0


@given(clauses(ALONE + BESIDE))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_labels_decide(drawn):
    check(drawn)


@given(clauses(READING))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_conditions_read_the_match(drawn):
    check(drawn)


@pytest.mark.parametrize("threads", [1, 3])
@given(drawn=clauses(ALONE + BESIDE + READING))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_threads_share_partitions(drawn, threads):
    check(drawn, threads=threads)

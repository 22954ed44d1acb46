"""Any text at all is a query or a diagnosed error: nothing, absurd sizes, other types, random and damaged text."""

import pickle
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_cep.errors import CepError, DiagnosedError, Diagnostic, PatternSyntaxError, shorten
from gpu_cep.lang.ast import Query, Span
from gpu_cep.lang.ast_intervals import IntervalQuery
from gpu_cep.lang.limits import MAX_DEPTH
from gpu_cep.lang.parser import parse
from tests.lang.failures import failure


@pytest.mark.parametrize("text", ["", "  \n\t", "-- nothing but a comment", "/* nor here */"])
def test_empty_text(text: str) -> None:
    assert str(failure(text)) == "the query is empty: it needs at least a PATTERN clause"


@pytest.mark.parametrize(("value", "name"), [(None, "NoneType"), (b"PATTERN a", "bytes"), (3, "int")])
def test_what_is_no_text(value: object, name: str) -> None:
    error = failure(value)
    assert isinstance(error, PatternSyntaxError)
    assert str(error) == f"a query is text, not {name}"


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN a WHERE " + "(" * 10_000 + "1" + ")" * 10_000,
        "PATTERN " + "SEQ(" * 10_000 + "a" + ")" * 10_000,
        "PATTERN " + "NOT " * 10_000 + "a",
        "PATTERN a WHERE " + "NOT " * 10_000 + "TRUE",
        "PATTERN a WHERE a.x = " + "-" + " -" * 10_000 + "1",
        "PATTERN a WHERE a.x = 1" + " + 1" * 10_000,
    ],
)
def test_absurd_nesting(text: str) -> None:
    error = failure(text)
    assert isinstance(error, PatternSyntaxError)
    assert error.diagnostics[0].message.startswith(f"brackets and operators nest more than {MAX_DEPTH} levels deep")
    assert len(str(error)) < 500


@pytest.mark.parametrize("digits", ["9" * 1001, "0." + "3" * 5000, "1e" + "9" * 5000])
def test_absurd_numbers(digits: str) -> None:
    for text in (f"PATTERN a WHERE a.x = {digits}", f"PATTERN a WITHIN {digits}", f"PATTERN a WHERE a.x < INTERVAL '{digits}' DAY"):
        assert isinstance(failure(text), PatternSyntaxError)


@pytest.mark.parametrize(
    ("begin", "filling", "message"),
    [
        ("PATTERN a WHERE a.x = '", "a", "found a text that is not closed"),
        ("PATTERN a WHERE a.x = '", "''", "found a text that is not closed"),
        ("PATTERN a WHERE a.x IN ('a', '", "\n", "found a text that is not closed"),
        ('PATTERN "', "a", "found a quoted name that is not closed"),
        ("PATTERN `", "a``", "found a quoted name that is not closed"),
        ("PATTERN a /*", "*", "found a comment that is not closed"),
        ("PATTERN a WHERE a.x = ", "1", "a number of 1,000,000 characters is too long"),
    ],
)
def test_a_million_characters_without_end_are_an_error_at_once(begin: str, filling: str, message: str) -> None:
    opened = begin.rstrip("'\"`/*") if message.startswith("found") else begin
    start = time.process_time()
    error = failure(begin + filling * (1_000_000 // len(filling)))
    assert time.process_time() - start < 2
    (diagnostic,) = error.diagnostics
    assert (diagnostic.message.partition(":")[0], diagnostic.span.column) == (message, len(opened) + 1)


def test_errors_survive_pickling() -> None:
    error = failure("PATTERN SEQ(a,, b)")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert isinstance(error, CepError)


QUERY = """
FROM s c PARTITION BY c.k PATTERN SEQ ( A a , B+ b[] , NOT ( c ) )
WHERE skip_till_any_match ( a , b[] ) { a.x + 1 < 2 * b[i].x AND b[b.LEN].y IN ( 1 , 2 ) OR NOT [id] }
WITHIN 5 hours RETURN count(b) AS n , prev(b.x)
"""
FRAGMENTS = r"""
FROM s PARTITION BY k PATTERN SEQ AND OR NOT ~ ( a , B+ b[] {2,3} ? ) WHERE skip_till_any_match { } a . x = 1 - * 80% 'text' "name" [
] [id] b[i] avg ( b[..i-1] . y ) BETWEEN IS NULL IN LIKE CASE WHEN THEN ELSE END WITHIN 5 hours events RETURN AS y ;
DEFINE before AT LEAST MOST meets - by @ ' " /* -- é
"""


INTERVALS = """
FROM s c PARTITION BY c.k DEFINE A AS c.x > 8 AT LEAST 5 s , B AS x < 7 BETWEEN 4 s AND 30 s , C AS y AT MOST 9
PATTERN A meets B ; A overlapped-by B AND C during B WITHIN 5 MINUTES RETURN first(B.k) AS id , start(A) ;
"""


def outcome(text: str) -> Query | IntervalQuery | Diagnostic:
    try:
        return parse(text)
    except DiagnosedError as error:
        return error.diagnostics[0]


fragments = st.sampled_from(FRAGMENTS.split())


@settings(max_examples=200, deadline=None)
@given(st.lists(fragments, max_size=30).map(" ".join) | st.text(max_size=30).map("PATTERN a WHERE {}".format))
def test_any_text_is_a_query_or_a_diagnosed_error(text: str) -> None:
    found = outcome(text)
    assert isinstance(found, Query | IntervalQuery) or found.message


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([QUERY, INTERVALS]), st.floats(0, 1, exclude_max=True), st.lists(fragments, max_size=2))
def test_a_damaged_query_is_a_query_or_a_diagnosed_error(query: str, place: float, inserted: list[str]) -> None:
    words = query.split()
    damaged = int(place * len(words))
    words[damaged : damaged + 1] = inserted
    found = outcome(" ".join(words))
    assert isinstance(found, Query | IntervalQuery) or found.span is not None or "query is empty" in found.message


@pytest.mark.parametrize(
    ("text", "column"), [("PATTERN a\nWHERE a.x = '\ud800'", 14), ('PATTERN a\nWHERE a."\udfff" = 1', 10), ("PATTERN a\n\udc00", 1)]
)
def test_half_a_surrogate_pair_is_no_character(text: str, column: int) -> None:
    error = failure(text)
    assert type(error) is PatternSyntaxError
    (diagnostic,) = error.diagnostics
    assert diagnostic.span == Span(2, column, 2, column + 1)
    assert "is half of a surrogate pair" in str(error)
    assert str(error).isascii()


@given(st.text(max_size=5000) | st.text("x '\n", min_size=150, max_size=300))
def test_a_message_is_shortened_once(message: str) -> None:
    short = shorten(message)
    assert shorten(short) == short
    assert len(short) <= 2_001
    assert message == short or "…" in short

"""Every node knows its place in the text."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest

from gpu_cep.lang.ast import Aggregate, Binary, Literal, Node, Query, Reference, Repeat, Seq, Span, Variable
from gpu_cep.lang.parser import parse

QUERY = """FROM s cs PARTITION BY cs.k
PATTERN SEQ(A a, B+ b[], NOT(C c),
            OR(d?, e{2,3}))
WHERE skip_till_any_match(a, b[]) {
    a.x = -1 AND (b[i].x + 2) * 3 > b[i-1].x
    AND avg(b[..i-1].y) < 80% * b[b.LEN].y AND [id]
    OR abs(prev(b.x)) BETWEEN 1 AND 2 AND a.s IN ('p', 'q''r') AND a.s NOT LIKE 'z' AND a.t IS NULL
    AND a.t - b.t < INTERVAL '15' DAY AND a.d > DATE '2020-01-01' }
WITHIN 5 hours
RETURN count(b) AS n, first(b.x), a.x, CASE a.x WHEN 1 THEN 'p' ELSE a.s END"""


def nodes(value: Any) -> Iterator[Node]:
    if isinstance(value, tuple):
        for item in value:
            yield from nodes(item)
    if isinstance(value, Node):
        yield value
        for field in fields(value):
            yield from nodes(getattr(value, field.name))


def excerpt(text: str, span: Span | None) -> str:
    assert span is not None
    lines = text.split("\n")[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    return "\n".join(lines)


def test_every_node_has_a_span_within_its_parent() -> None:
    for parent in nodes(parse(QUERY)):
        assert excerpt(QUERY, parent.span).strip()
        for field in fields(parent):
            for child in nodes(getattr(parent, field.name)):
                assert excerpt(QUERY, child.span) in excerpt(QUERY, parent.span)


def only(query: Query, kind: type[Node]) -> list[str]:
    return [excerpt(QUERY, node.span) for node in nodes(query) if type(node) is kind]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Variable, ["A a", "B+ b", "C c", "d", "e"]),
        (Repeat, ["B+ b[]", "d?", "e{2,3}"]),
        (Aggregate, ["avg(b[..i-1].y)", "count(b)", "first(b.x)"]),
        (Literal, ["-1", "2", "3", "80%", "1", "2", "'p'", "'q''r'", "'z'", "DATE '2020-01-01'", "1", "'p'"]),
    ],
)
def test_places(kind: type[Node], expected: list[str]) -> None:
    assert only(parse(QUERY), kind) == expected


def test_parentheses_belong_to_the_operation_around_them() -> None:
    text = "PATTERN SEQ(a, b) WHERE (a.x + 1) * (b.x) = 2"
    where = parse(text).where
    assert isinstance(where, Binary)
    assert excerpt(text, where.span) == "(a.x + 1) * (b.x) = 2"
    assert excerpt(text, where.left.span) == "(a.x + 1) * (b.x)"
    assert isinstance(where.left, Binary)
    assert excerpt(text, where.left.left.span) == "a.x + 1"


def test_lines_and_columns_count_from_one_and_the_end_is_exclusive() -> None:
    query = parse("PATTERN SEQ(a,\n  b)\nWHERE a.x = 1")
    assert isinstance(query.pattern, Seq)
    assert query.pattern.span == Span(1, 9, 2, 5)
    assert query.pattern.elements[1].span == Span(2, 3, 2, 4)
    assert query.span == Span(1, 1, 3, 14)


def test_spans_take_no_part_in_equality() -> None:
    assert parse("PATTERN a") == parse("  PATTERN   a")
    assert Reference("a", "x", span=Span(1, 1, 1, 2)) == Reference("a", "x")

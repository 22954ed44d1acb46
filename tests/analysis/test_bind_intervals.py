"""Queries over situations, bound: conditions, durations, one constraint for each pair, and what is at fault."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpu_cep.analysis.bind_intervals import bind_intervals
from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.analysis.bound_expressions import Endpoint
from gpu_cep.analysis.bound_intervals import BoundIntervals
from gpu_cep.analysis.options import Options
from gpu_cep.analysis.types import FLOAT, INTEGER, duration, timestamp
from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.lang.ast_intervals import RELATIONS, IntervalQuery
from gpu_cep.lang.parser import parse
from tests.analysis.queries import SCHEMA
from tests.analysis.rendering import render

DEFINE = "DEFINE A AS n > 1, B AS x < 2, C AS flag"


def bound(text: str, **options: Any) -> BoundIntervals:
    query = parse(text)
    assert isinstance(query, IntervalQuery)
    return bind_intervals(query, SCHEMA, Options(**options), text)


def related(pattern: str, **options: Any) -> list[tuple[int, int, set[str]]]:
    found = bound(f"{DEFINE} PATTERN {pattern}", **options).constraints
    return [(each.left, each.right, set(each.relations)) for each in found]


def errors(text: str, **options: Any) -> list[str]:
    with pytest.raises(PatternError) as caught:
        bound(text, **options)
    return [diagnostic.message for diagnostic in caught.value.diagnostics]


def test_attributes_are_bare_or_behind_the_stream() -> None:
    text = "FROM Sensors CS DEFINE A AS CS.n > 1 AND lower(s) = 'a', B AS Sensors.x BETWEEN n AND 2 OR flag PATTERN A before B"
    query = bound(text)
    naming = SimpleNamespace(schema=query.schema, computed=query.computed, variables=query.variables)
    assert [render(each.expression, naming) for each in query.conditions] == [
        "A.n > 1 AND lower(A.s) = 'a'",
        "B.x >= CAST(B.n AS float) AND B.x <= 2.0 OR B.flag",
    ]
    assert query.conditions[0].text == "CS.n > 1 AND lower(s) = 'a'"


@pytest.mark.parametrize("relation", RELATIONS)
def test_one_pair_has_one_orientation(relation: str) -> None:
    assert related(f"A {relation} B") == [(0, 1, {relation})]
    assert related(f"B {relation} A") == [(0, 1, {RELATIONS[relation]})]


def test_alternatives_and_conjunctions() -> None:
    assert related("A meets B; B overlapped-by A; A starts B AND C during B") == [
        (0, 1, {"meets", "overlaps", "starts"}),
        (1, 2, {"contains"}),
    ]
    assert related("A meets B; A overlaps B AND A before C AND B met-by A; B after A") == [(0, 1, {"meets"}), (0, 2, {"before"})]


def test_finishes_as_the_paper_prints_it_or_as_of_1983() -> None:
    assert related("A finishes B; A equals B") == [(0, 1, {"finishes", "equals"})]
    assert related("A finishes B; A equals B", allen="1983") == [(0, 1, {"finished-by", "equals"})]
    assert related("B finished-by A", allen="1983") == [(0, 1, {"finished-by"})]


def test_durations_are_whole_ticks_within_the_bounds() -> None:
    text = (
        "DEFINE A AS flag AT LEAST 1.0000005 s AT MOST 1.0000015 s, B AS flag AT MOST 2 us, C AS flag AT LEAST 3 us "
        "PATTERN A before B WITHIN 5 s"
    )
    query = bound(text)
    assert [(each.shortest, each.longest) for each in query.durations] == [(1_000_001, 1_000_001), (None, 2), (3, None)]
    assert query.window == TimeWindow(5_000_000)


def test_between_behind_a_truth_value_is_the_duration() -> None:
    query = bound("DEFINE A AS NOT flag BETWEEN 2 s AND 5 s, B AS n > 1 AND flag BETWEEN 1 s AND 1 s PATTERN A before B WITHIN 9 s")
    assert [(each.shortest, each.longest) for each in query.durations] == [(2_000_000, 5_000_000), (1_000_000, 1_000_000)]
    assert [each.text for each in query.conditions] == ["NOT flag", "n > 1 AND flag"]
    assert errors("DEFINE A AS flag BETWEEN 5 s AND 2 s, B AS flag PATTERN A before B") == ["no situation A lasts so long and no longer"]


@pytest.mark.parametrize(
    "condition",
    ["regexp_like(s, 'a')", "NOT regexp_like(s, 'a')", "coalesce(flag, FALSE)", "nullif(flag, TRUE)", "n > 1 OR nullif(c.flag, TRUE)"],
)
def test_between_behind_a_function_that_gives_a_truth_value_is_the_duration(condition: str) -> None:
    query = bound(f"FROM Sensors c DEFINE A AS {condition} BETWEEN 2 s AND 5 s, B AS flag PATTERN A before B WITHIN 9 s")
    assert [(each.shortest, each.longest) for each in query.durations] == [(2_000_000, 5_000_000), (None, None)]
    assert query.conditions[0].text == condition


def test_what_is_tried_for_a_duration_leaves_nothing_behind() -> None:
    query = bound("DEFINE A AS length(s) BETWEEN 2 AND 5, B AS flag PATTERN A before B")
    assert [(each.shortest, each.longest) for each in query.durations] == [(None, None)] * 2
    assert len(query.computed) == 1
    assert errors("DEFINE A AS coalesce(oops, 1) BETWEEN 2 AND 5, B AS flag PATTERN A before B") == ["unknown attribute 'oops'"]
    misplaced = "DEFINE A AS flag BETWEEN 2 AND 5 OR n > 1, B AS flag PATTERN A before B"
    assert errors(misplaced) == ["cannot compare boolean with integer"]


def test_returned_endpoints_and_durations() -> None:
    found = bound(f"{DEFINE} PATTERN A before B RETURN start(A), end(B) AS e, duration(C), avg(A.x), first(B.n), count(C), A.s, B").returns
    assert [column.name for column in found] == ["column_1", "e", "column_3", "avg_A_x", "first_B_n", "count_C", "s", "B"]
    assert found[0].expression == Endpoint("start", 0, timestamp("us"))
    assert found[1].expression == Endpoint("end", 1, timestamp("us"))
    assert [column.expression.type for column in found[2:5]] == [duration("us"), FLOAT, INTEGER]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DEFINE A AS n > 1, A AS x > 2, B AS flag PATTERN A before B", "two situations are called 'A'"),
        (f"{DEFINE} PATTERN A before D", "unknown variable 'D'"),
        (f"{DEFINE} PATTERN A before A", "A is related to itself: a match takes one situation of each name"),
        (f"{DEFINE} PATTERN A before B; A meets C", "the alternatives A before B; A meets C relate different pairs"),
        (f"{DEFINE} PATTERN A before B AND A meets B", "no relation satisfies all of A before B AND A meets B"),
        ("DEFINE A AS m > 1, B AS x > 2 PATTERN A before B", "unknown attribute 'm'"),
        ("DEFINE A AS n + 1, B AS x > 2 PATTERN A before B", "a condition is true or false; this one is integer"),
        (
            "DEFINE A AS n > 1, B AS x > avg(A.x) PATTERN A before B",
            "avg(A.x) has no place in DEFINE: DEFINE reads attributes of the current event, as attribute or alias.attribute",
        ),
        (
            "FROM s DEFINE A AS t.n > 1, B AS x > 2 PATTERN A before B",
            "t.n has no place in DEFINE: DEFINE reads attributes of the current event, as attribute or alias.attribute",
        ),
        ("DEFINE A AS flag AT LEAST 2 s AT MOST 1 s, B AS flag PATTERN A before B", "no situation A lasts so long and no longer"),
        (f"{DEFINE} PATTERN A before B RETURN start(A.n)", "start takes a situation: start(A)"),
        (f"{DEFINE} PATTERN A before B RETURN A.n AS detected_at", "two columns of the result are called 'detected_at'"),
    ],
)
def test_faults(text: str, message: str) -> None:
    assert errors(text) == [message]


def test_faults_of_options() -> None:
    assert errors(f"{DEFINE} PATTERN A before B", strategy="skip_till_any_match", allen="1984", timestamp="tss") == [
        "unknown value of allen '1984'",
        "strategy='skip_till_any_match' is for event patterns: a situation is a longest run of events",
        "unknown timestamp column 'tss'",
    ]


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        (f"{DEFINE} PATTERN A before B WITHIN 5 EVENTS", "a window of events over situations is not supported"),
        (
            "DEFINE " + ", ".join(f"A{k} AS flag" for k in range(11)) + " PATTERN A0 before A1",
            "a query over 11 situations is not supported",
        ),
    ],
)
def test_refusals(text: str, construct: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        bound(text)
    assert [diagnostic.message for diagnostic in caught.value.diagnostics] == [construct]

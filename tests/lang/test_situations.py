"""Queries over situations: from text to tree."""

from decimal import Decimal

import pytest

from gpu_cep.lang.ast import Aggregate, Binary, Call, Expression, Literal, Reference, ReturnItem, Source, Window
from gpu_cep.lang.ast_intervals import RELATIONS, Constraint, IntervalQuery, Relation, Situation
from gpu_cep.lang.durations import with_durations
from gpu_cep.lang.format import format_expression
from gpu_cep.lang.parser import parse

AGGRESSIVE = """
FROM CarSensors CS PARTITION BY CS.car_id
DEFINE A AS CS.accel > 8 at least 5 s, B AS CS.speed > 70 between 4s AND 30s, C AS CS.accel < -9 at least 3.5 s
PATTERN A meets B;A overlaps B;A starts B;A during B AND C during B;B finishes C AND A before C
WITHIN 5 MINUTES
RETURN first(B.car_id) AS id, avg(B.speed) AS avg_speed, start(A)
"""


def alternatives(text: str) -> Constraint:
    relations = (relation.split() for relation in text.split(";"))
    return Constraint(tuple(Relation(*relation) for relation in relations))


def test_listing_1() -> None:
    """The paper's query, without the units of its attributes."""
    assert parse(AGGRESSIVE) == IntervalQuery(
        (
            Situation("A", Binary(">", Reference("CS", "accel"), Literal(8)), Window(5, "seconds")),
            Situation("B", Binary(">", Reference("CS", "speed"), Literal(70)), Window(4, "seconds"), Window(30, "seconds")),
            Situation("C", Binary("<", Reference("CS", "accel"), Literal(-9)), Window(Decimal("3.5"), "seconds")),
        ),
        tuple(map(alternatives, ("A meets B;A overlaps B;A starts B;A during B", "C during B;B finishes C", "A before C"))),
        Source("CarSensors", "CS"),
        ("car_id",),
        Window(5, "minutes"),
        (
            ReturnItem(Aggregate("first", "B", "car_id"), "id"),
            ReturnItem(Aggregate("avg", "B", "speed"), "avg_speed"),
            ReturnItem(Call("start", (Reference("A", None),))),
        ),
    )


@pytest.mark.parametrize("relation", RELATIONS)
def test_relations(relation: str) -> None:
    query = parse(f"DEFINE A AS x, B AS y PATTERN A {relation.upper()} B")
    assert isinstance(query, IntervalQuery)
    assert query.constraints == (Constraint((Relation("A", relation, "B"),)),)
    assert query == parse(f"DEFINE A AS x, B AS y PATTERN A {relation.replace('-', '_')} B;")
    assert RELATIONS[RELATIONS[relation]] == relation


@pytest.mark.parametrize(
    ("bounds", "low", "high"),
    [
        ("", None, None),
        ("AT LEAST 5", Window(5, None), None),
        ("AT MOST 2 hours", None, Window(2, "hours")),
        ("AT LEAST 1 s AT MOST 2 s", Window(1, "seconds"), Window(2, "seconds")),
        ("AT LEAST INTERVAL '2' day", Window(2, "days"), None),
    ],
)
@pytest.mark.parametrize("condition", ["x", "at", "x > 80%", "x = 1 OR y BETWEEN 1 AND 2"])
def test_durations(condition: str, bounds: str, low: Window | None, high: Window | None) -> None:
    query = parse(f"DEFINE A AS {condition} {bounds} PATTERN A before A")
    assert isinstance(query, IntervalQuery)
    (situation,) = query.situations
    assert (situation.at_least, situation.at_most) == (low, high)


# The operands of the conditions below that are truth values, f among them.
BOOLEANS = {"f", "c.f", "x > 5", "x > 5 OR f", "x IN (1, 2)", "s LIKE 'a%'", "x IS NULL", "x BETWEEN 1 AND 2", "TRUE", "g(x)"}
BOOLEANS |= {"CASE WHEN x THEN NULL ELSE f END"}


def is_boolean(situation: str, expression: Expression) -> bool:
    assert situation == "A"
    return format_expression(expression) in BOOLEANS


@pytest.mark.parametrize(
    ("condition", "rest"),
    [
        ("f", "f"),
        ("g(x)", "g(x)"),
        ("NOT g(x)", "NOT g(x)"),
        ("(f)", "f"),
        ("c.f", "c.f"),
        ("NOT f", "NOT f"),
        ("NOT NOT (f)", "NOT NOT f"),
        ("x > 5", "x > 5"),
        ("(x > 5 OR f)", "x > 5 OR f"),
        ("x > 5 AND f", "x > 5 AND f"),
        ("x > 5 OR NOT f", "x > 5 OR NOT f"),
        ("x BETWEEN 1 AND 2 AND f", "x BETWEEN 1 AND 2 AND f"),
        ("(x IN (1, 2))", "x IN (1, 2)"),
        ("(s LIKE 'a%')", "s LIKE 'a%'"),
        ("CASE WHEN x THEN NULL ELSE f END", "CASE WHEN x THEN NULL ELSE f END"),
        ("(x IS NULL)", "x IS NULL"),
        ("(x BETWEEN 1 AND 2)", "x BETWEEN 1 AND 2"),
        ("TRUE", "TRUE"),
    ],
)
def test_between_behind_a_boolean_condition_is_its_duration(condition: str, rest: str) -> None:
    query = parse(f"FROM s c DEFINE A AS {condition} BETWEEN 2 AND 5 s PATTERN A before A")
    expected = parse(f"FROM s c DEFINE A AS {rest} AT LEAST 2 AT MOST 5 s PATTERN A before A")
    assert isinstance(query, IntervalQuery)
    assert with_durations(query, is_boolean) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "x BETWEEN 2 AND 5",
        "f NOT BETWEEN 2 AND 5",
        "f BETWEEN -2 AND 5",
        "f BETWEEN x AND 5",
        "f BETWEEN 2 AND 5 AT LEAST 3",
        "f BETWEEN TRUE AND TRUE",
        "f BETWEEN 2 AND 5 OR x > 1",
        "f + 1 BETWEEN 2 AND 5",
        "-x BETWEEN 2 AND 5",
        "CASE WHEN f THEN x ELSE 1 END BETWEEN 2 AND 5",
    ],
)
def test_between_stays_the_operator_elsewhere(condition: str) -> None:
    query = parse(f"DEFINE A AS {condition} PATTERN A before A")
    assert isinstance(query, IntervalQuery)
    assert with_durations(query, is_boolean) == query


def test_between_behind_a_bare_operand_is_the_operator() -> None:
    query = parse("DEFINE A AS x BETWEEN 4 s AND 30 s PATTERN A before A")
    assert isinstance(query, IntervalQuery)
    assert query.situations[0].at_least is None

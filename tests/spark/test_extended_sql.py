"""spark.sql with the extension: it answers MATCH_RECOGNIZE as sql() does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep.errors import CepError
from tests.spark.samples import as_set, physical_plan
from tests.spark.test_row_patterns import QUERIES, ROWS, assert_rows, clause, questions
from tests.statements import ALL, FALL, FALLS, STATEMENTS, TICKS

# Each clause is analysed by a process of Python: the fast suite leaves most of the forms to the texts that test_extension compares.
FORMS = ("over nested WITH", "right behind another", "twice", "in EXISTS", "brackets in texts")


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    # the extension's own function, whatever other tests have registered
    spark.sql("DROP TEMPORARY FUNCTION IF EXISTS gpu_match")
    spark.createDataFrame(TICKS).createOrReplaceTempView("ticks")
    yield spark
    spark.catalog.dropTempView("ticks")


def rows(found: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, found.collect()))


@pytest.mark.parametrize("name", [each if each in FORMS else pytest.param(each, marks=pytest.mark.full) for each in STATEMENTS])
@pytest.mark.surface
def test_a_clause_stands_for_its_rows(session: SparkSession, name: str) -> None:
    assert rows(session.sql(STATEMENTS[name])) == FALLS


@pytest.mark.parametrize("name", ["one row", "all rows", "odd names", *(pytest.param("descending", marks=pytest.mark.full),)])
def test_the_answer_is_that_of_match(session: SparkSession, name: str) -> None:
    session.createDataFrame(ROWS).createOrReplaceTempView("listed")
    text = clause(QUERIES[name])
    assert_rows(session.sql(f"SELECT * FROM listed {text}"), cep.match(ROWS, text))


@given(questions())
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much])
def test_any_question_is_answered_as_by_sql(session: SparkSession, question: Any) -> None:
    text, table = question
    session.createDataFrame(table).createOrReplaceTempView("asked")
    statement = f"SELECT * FROM asked {clause(text)}"
    assert as_set(session.sql(statement).toArrow()) == as_set(cep.sql(statement, spark=session).toArrow())


@pytest.mark.surface
def test_a_statement_as_a_whole(session: SparkSession) -> None:
    found = session.sql(f"""
        WITH falls (sym, high, low) AS (SELECT * FROM ticks {FALL} AS m)
        SELECT f.`sym`, max(high) - min(low) AS `fall`, map('a', '{{x}}')['a'] AS braces
        FROM falls f JOIN (SELECT * FROM ticks WHERE price > 0) {ALL} AS a (s, t, p) ON a.s = f.sym AND a.p = f.low
        GROUP BY f.sym ORDER BY f.sym DESC""")
    assert found.columns == ["sym", "fall", "braces"]
    assert list(map(tuple, found.collect())) == [("B", 1, "{x}"), ("A", 3, "{x}")]


@pytest.mark.parametrize("kind", ["TEMPORARY VIEW", "VIEW"])
def test_a_view_keeps_a_clause(session: SparkSession, kind: str) -> None:
    listed = ", ".join(map(str, zip(*TICKS.to_pydict().values(), strict=True)))
    try:
        session.sql(f"CREATE OR REPLACE {kind} falls AS SELECT * FROM (VALUES {listed}) AS t (ts, sym, price)\n{FALL} AS m")
        assert rows(session.sql("SELECT * FROM falls")) == FALLS
    finally:
        session.sql("DROP VIEW IF EXISTS falls")


def test_parameters_stand_around_a_clause(session: SparkSession) -> None:
    found = session.sql(f"SELECT * FROM (SELECT * FROM ticks WHERE sym = :sym) {FALL} AS m WHERE low > :low", {"sym": "A", "low": 2})
    assert rows(found) == [("A", 5, 3)]


SETTINGS = ("spark.sql.parser.escapedStringLiterals", "spark.sql.ansi.doubleQuotedIdentifiers")


@pytest.mark.parametrize("setting", SETTINGS)
def test_texts_in_a_clause_mean_the_same_whatever_they_mean_around_it(session: SparkSession, setting: str) -> None:
    listed = "(SELECT 1 AS ts, 'A' AS sym UNION ALL SELECT 2, concat('A', char(39), char(92), 'n'))"
    text = """MATCH_RECOGNIZE (ORDER BY "ts" MEASURES LAST(ts) AS "it's" PATTERN (A) DEFINE A AS sym = 'A''\\n' AND sym <> '"')"""
    session.conf.set(setting, True)
    try:
        found = session.sql(f"SELECT * FROM {listed} {text}")
        assert (found.columns, rows(found)) == (["it's"], [(2,)])
    finally:
        session.conf.unset(setting)


def test_only_the_columns_that_are_read_are_shuffled(session: SparkSession) -> None:
    session.sql("SELECT *, 'x' AS unread FROM ticks").createOrReplaceTempView("wide")
    plan = physical_plan(session.sql(f"SELECT low FROM wide {FALL} AS m"))
    assert "unread" not in next(line for line in plan.splitlines() if "named_struct" in line)
    assert plan.count("Exchange") == 1


@pytest.mark.parametrize("clause", [FALL.replace("D.price", "D.prize"), FALL.replace("PATTERN", "MUSTER")])
@pytest.mark.surface
def test_faults_of_a_clause_show_its_place_in_the_statement(session: SparkSession, clause: str) -> None:
    statement = f"SELECT '\U0001f600',\n*\n  FROM ticks {clause} AS m"
    with pytest.raises(CepError, match="line 3, column") as own:
        cep.sql(statement, spark=session)
    with pytest.raises(AnalysisException) as fault:
        session.sql(statement).schema  # noqa: B018
    assert str(own.value).splitlines()[0] in str(fault.value)


FAULTS = {
    "a table": (f"SELECT * FROM nix {FALL}", AnalysisException, "TABLE_OR_VIEW_NOT_FOUND"),
    "a correlation": (f"SELECT (SELECT 1 FROM (SELECT * FROM ticks WHERE ts = o.ts) {FALL}) FROM ticks o", AnalysisException, "o.*ts"),
    "lateral": (f"SELECT * FROM ticks a, LATERAL (SELECT a.ts, a.sym, a.price) {FALL}", AnalysisException, "a.*ts"),
    "no relation": (f"SELECT {FALL} FROM ticks", ParseException, "PARSE_SYNTAX_ERROR"),
    "not closed": (f"SELECT * FROM ticks {FALL[:-1]}", ParseException, "PARSE_SYNTAX_ERROR"),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.surface
def test_what_spark_cannot_answer_is_its_error(session: SparkSession, name: str) -> None:
    statement, error, message = FAULTS[name]
    with pytest.raises(error, match=f"(?s){message}"):
        session.sql(statement).schema  # noqa: B018


def test_a_function_that_the_session_has_registered_answers(session: SparkSession) -> None:
    statement = f"SELECT * FROM ticks {FALL.replace('price <', 'half(price) <')}"
    assert "half(price) <" in statement
    with pytest.raises(AnalysisException, match="half"):
        session.sql(statement)
    try:
        cep.register(session, functions={"half": lambda x: x / 2})
        expected = cep.match(TICKS, statement.partition(" ticks ")[2], functions={"half": lambda x: x / 2})
        assert as_set(session.sql(statement).toArrow()) == as_set(expected)
    finally:
        session.sql("DROP TEMPORARY FUNCTION IF EXISTS gpu_match")

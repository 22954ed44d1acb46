"""The extension of Spark's SQL: what its parser makes of statements, which it hands on to Spark's own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

import gpu_cep as cep
from gpu_cep.sql_statements import take_apart
from gpu_cep_spark.sql_extension import JAR
from tests.statements import FALL, STATEMENTS

ROOT = Path(__file__).resolve().parents[2]
CALL = "gpu_match(TABLE(SELECT * FROM "
# How the text of a clause is handed on.
PATTERN = re.compile(r"pattern => repeat\(char\(10\), \d+\)( \|\| (repeat\(char\(32\), \d+\)|char\(39\)|'[^']*'))+\)")


@pytest.fixture(scope="module")
def parsers(spark: SparkSession) -> tuple[Any, Any]:
    """The parser of the session, and Spark's own."""
    return spark._jsparkSession.sessionState().sqlParser(), spark._jvm.org.apache.spark.sql.execution.SparkSqlParser()  # type: ignore[union-attr]


def as_calls(spark: SparkSession, statement: str) -> str:
    return str(spark._jvm.gpu_cep.spark.RowPatterns.asCalls(statement))  # type: ignore[union-attr]


def test_the_jar_is_that_of_the_sources(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "spark_glue" / "java" / "build_jar.py", tmp_path / "built.jar"], check=True)
    assert (tmp_path / "built.jar").read_bytes() == JAR.read_bytes(), "run `make pages`"


@pytest.mark.parametrize("name", STATEMENTS)
def test_relations_and_clauses_are_those_that_sql_finds(spark: SparkSession, name: str) -> None:
    statement = STATEMENTS[name]
    clauses = take_apart(statement, "spark").clauses
    edits = [(each.rows[0], each.rows[0], CALL) for each in clauses]
    edits += [(len(each.text) - len(each.text.lstrip()), each.end, "), pattern => …)") for each in clauses]
    expected, at = "", 0
    for begin, end, text in sorted(edits):
        expected, at = expected + statement[at:begin] + text, end
    assert PATTERN.sub("pattern => …)", as_calls(spark, statement)) == expected + statement[at:]


WORDS = "FROM t MATCH_RECOGNIZE (PATTERN (A))"
HIDDEN = (
    f"'{WORDS}'", f"'it\\'s {WORDS}'", f"'it''s {WORDS}'", f'"{WORDS}"', f'"\\"{WORDS}"', "R'\\'", 'r"\\"', f"R'\"{WORDS}'",
    f"1 /* /* */ {WORDS} */", f"1 -- {WORDS}\n", f"1 -- a \\\n {WORDS}\n", f"1 AS `{WORDS}`", f"1 AS `a``{WORDS}`", "'('", "'$$'",
    "'/*'", "'--'",
)  # fmt: skip


@pytest.mark.parametrize("hidden", HIDDEN)
def test_texts_names_and_comments_hide_the_word(spark: SparkSession, parsers: tuple[Any, Any], hidden: str) -> None:
    plain, clause = f"SELECT {hidden}, 2 FROM t", "MATCH_RECOGNIZE (PATTERN (A B) DEFINE B AS x = ')' /* ( */ -- )\n)"
    assert as_calls(spark, plain) == plain
    found = as_calls(spark, f"{plain} {clause} AS m")
    assert PATTERN.sub("pattern => …)", found) == f"SELECT {hidden}, 2 FROM {CALL}t ), pattern => …) AS m"
    # Spark reads the words around it as we do
    assert parsers[1].parsePlan(found).toString().count("gpu_match") == 1


OTHERS = (
    "match_recognize(x) FROM t", "a, match_recognize(x, 'a (') FROM t", "* FROM t AS match_recognize (x, `y`)", "* FROM a match_recognize",
)  # fmt: skip


@pytest.mark.parametrize("text", OTHERS)
def test_other_uses_of_the_word_are_sparks(spark: SparkSession, parsers: tuple[Any, Any], text: str) -> None:
    assert as_calls(spark, f"SELECT {text}") == f"SELECT {text}"
    assert str(parsers[0].parsePlan(f"SELECT {text}")) == str(parsers[1].parsePlan(f"SELECT {text}"))


NOWHERE = (f"SELECT a, b {FALL} FROM t", f"SELECT {FALL} FROM t", f"SELECT * FROM t WHERE a {FALL}", f"f(t {FALL})")


@pytest.mark.parametrize("text", NOWHERE)
def test_a_clause_behind_no_relation_is_left_to_spark(spark: SparkSession, text: str) -> None:
    assert as_calls(spark, text) == text


def test_the_text_of_a_clause_is_handed_on_at_its_place(spark: SparkSession) -> None:
    for clause in (FALL, "MATCH_RECOGNIZE (PATTERN (A)\n DEFINE A AS x = '\\' OR \"it's\" = '\"\"''' OR `'\"` = '$x {y} $')"):
        statement = f"SELECT '\U0001f600'\n,\r\n 2 FROM t /* é\U0001f600 */ {clause}"
        pattern = as_calls(spark, statement).partition("pattern => ")[2].removesuffix(")")
        (line,) = spark.range(1).selectExpr(f"{pattern} AS pattern").first()  # type: ignore[misc]
        assert line == "\n\n" + " " * len(" 2 FROM t /* é\U0001f600 */ ") + clause


PLAIN = (
    "SELECT 1 AS a, 'x' || \"y\" FROM t JOIN u USING (k) WHERE a IN (SELECT b FROM v) -- c",
    "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT * FROM t",
    "INSERT INTO t VALUES (1, 'a')",
    "SHOW TABLES",
    "SET spark.sql.shuffle.partitions = 4",
    "BEGIN DECLARE x INT; SET x = 1; SELECT x; END",
    "FROM t |> WHERE a > 1 |> SELECT b",
)


@pytest.mark.parametrize("statement", PLAIN)
def test_the_plan_of_all_other_statements_is_sparks(parsers: tuple[Any, Any], statement: str) -> None:
    extended, own = parsers
    plans = [re.sub(r"#\d+|@[0-9a-f]+|[0-9a-f-]{36}", "", str(each.parsePlan(statement))) for each in (extended, own)]
    assert plans[0] == plans[1]


def test_without_the_extension_the_error_is_sparks(parsers: tuple[Any, Any]) -> None:
    assert parsers[0].parsePlan(STATEMENTS["a table"]).toString().count("gpu_match") == 1
    with pytest.raises(ParseException, match="PARSE_SYNTAX_ERROR"):
        parsers[1].parsePlan(STATEMENTS["a table"])


def test_every_method_of_a_parser_is_handed_on(spark: SparkSession, parsers: tuple[Any, Any]) -> None:
    reflected = spark._jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.parser.ParserInterface")  # type: ignore[union-attr]
    methods = [each for each in reflected.getMethods() if not each.getName().endswith("$")]
    assert len(methods) > 8
    own = [parsers[0].getClass().getMethod(each.getName(), each.getParameterTypes()) for each in methods]
    assert {each.getDeclaringClass().getName() for each in own} == {"gpu_cep.spark.Parser"}


@pytest.mark.full
@pytest.mark.usefixtures("worker_environment")
def test_a_client_without_python(tmp_path: Path) -> None:
    listed = "(VALUES (1, 'A', 5), (2, 'A', 3), (3, 'A', 4), (4, 'A', 2)) AS t (ts, sym, price)"
    conf = [part for name, value in cep.sql_conf().items() for part in ("--conf", f"{name}={value}")]
    command = [Path(pyspark.__file__).parent / "bin" / "spark-sql", "--master", "local[1]", "--conf", "spark.ui.enabled=false", *conf]
    run = subprocess.run(
        [*command, "-e", f"SELECT * FROM {listed} {FALL} AS m ORDER BY high"], cwd=tmp_path, env=os.environ, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert run.stdout.splitlines()[-2:] == ["A\t4\t2", "A\t5\t3"], run.stderr

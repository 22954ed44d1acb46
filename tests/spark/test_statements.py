"""sql(…, spark=…): every MATCH_RECOGNIZE of a statement is matched by gpu_match, and the rest is Spark's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep.errors import EventError, PatternError, UnsupportedError
from tests.spark.samples import physical_plan
from tests.statements import ALL, FALL, FALLS, STATEMENTS, TICKS


@pytest.fixture(scope="module")
def ticks(spark: SparkSession) -> DataFrame:
    frame = spark.createDataFrame(TICKS)
    frame.createOrReplaceTempView("ticks")
    return frame


def rows(found: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, found.collect()))


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_clause_stands_for_its_rows(spark: SparkSession, ticks: DataFrame, name: str) -> None:
    assert rows(cep.sql(STATEMENTS[name], spark=spark)) == FALLS


@pytest.mark.surface
def test_a_statement_as_a_whole(spark: SparkSession, ticks: DataFrame) -> None:
    statement = f"""
        WITH falls (sym, high, low) AS (SELECT * FROM ticks {FALL} AS m)
        SELECT f.`sym`, max(high) - min(low) AS `fall {{}}`, map('a', '{{x}}')['a'] AS braces
        FROM falls f JOIN (SELECT * FROM ticks WHERE price > 0) {ALL} AS a ON a.sym = f.sym AND a.price = f.low
        GROUP BY f.sym ORDER BY f.sym DESC"""
    found = cep.sql(statement, spark=spark)
    assert found.columns == ["sym", "fall {}", "braces"]
    assert list(map(tuple, found.collect())) == [("B", 1, "{x}"), ("A", 3, "{x}")]


@pytest.mark.surface
def test_dataframes_by_name(spark: SparkSession) -> None:
    given, more = spark.createDataFrame(TICKS), spark.createDataFrame(pa.table({"k": ["A"], "name": ["{one}"]}))
    clause = f"SELECT m.sym, name FROM given {FALL} AS m JOIN more ON k = sym"
    expected = [("A", "{one}")] * 2
    assert rows(cep.sql(clause, spark=spark, given=given, more=more)) == expected
    statement = f"WITH x AS (SELECT * FROM given) SELECT * FROM ({clause.replace('given', 'x')}) WHERE name <> '{{}}'"
    assert rows(cep.sql(statement, spark=spark, given=given, more=more)) == expected
    assert rows(cep.sql("SELECT '{}', count(*) FROM given", spark=spark, given=given)) == [("{}", 6)]
    assert rows(cep.sql("SELECT count(*) FROM given", spark, given=given)) == [(6,)]
    minutes = f"SELECT * FROM spark {FALL.replace('(S D)', '(S D) WITHIN 1 minute')}"
    assert rows(cep.sql(minutes, {"spark": given}, spark=spark, time_unit="minutes")) == FALLS
    assert rows(cep.sql(f"SELECT m.* FROM `a{{b` {FALL} AS m JOIN `a{{b` ON ts = 4", {"a{b": given}, spark=spark)) == FALLS
    with pytest.raises(UnsupportedError, match=r"by name in queries, not in EXPLAIN"):
        cep.sql(f"EXPLAIN {clause}", spark=spark, given=given, more=more)
    with pytest.raises(EventError, match=r"table given: sql.* takes DataFrames, not pyarrow.lib.Table"):
        cep.sql(clause, spark=spark, given=TICKS, more=more)  # type: ignore[arg-type]


@pytest.mark.surface
def test_no_view_is_left(spark: SparkSession, ticks: DataFrame) -> None:
    before = spark.sql("SHOW TABLES").collect()
    found = cep.sql(f"SELECT * FROM ticks {FALL} AS m", spark=spark)
    assert spark.sql("SHOW TABLES").collect() == before
    assert rows(found) == FALLS


@pytest.mark.parametrize("keeping", ["CREATE OR REPLACE TEMPORARY VIEW falls AS", "CACHE TABLE falls AS"])
def test_a_query_cannot_be_kept_by_name(spark: SparkSession, ticks: DataFrame, keeping: str) -> None:
    with pytest.raises(UnsupportedError, match=r"cannot keep a query .*(?s:.*)createOrReplaceTempView"):
        cep.sql(f"{keeping} SELECT * FROM ticks {FALL} AS m", spark=spark)
    cep.sql(f"SELECT * FROM ticks {FALL} AS m", spark=spark).createOrReplaceTempView("falls")
    assert rows(spark.sql("SELECT * FROM falls")) == FALLS


def test_other_statements_are_sparks(spark: SparkSession, ticks: DataFrame) -> None:
    assert rows(cep.sql("SELECT '{x}', count(*) FROM ticks", spark=spark)) == [("{x}", 6)]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        cep.sql("SELECT * FROM nix", spark=spark).collect()


def test_only_the_columns_that_are_read_are_shuffled(spark: SparkSession, tmp_path: Any) -> None:
    spark.createDataFrame(TICKS.append_column("unread", pa.nulls(6, pa.string()))).write.parquet(str(tmp_path / "t"))
    spark.read.parquet(str(tmp_path / "t")).createOrReplaceTempView("wide")
    plan = physical_plan(cep.sql(f"SELECT low FROM wide {FALL} AS m", spark=spark))
    assert "unread" not in plan
    assert plan.count("MapInArrow") == plan.count("Exchange") == 1


FAULTS = {
    "a column": (f"SELECT *\nFROM ticks {FALL.replace('D.price', 'D.prize')}", PatternError, "line 2, column 94: unknown column 'prize'"),
    "a table": (f"SELECT * FROM nix {FALL}", PatternError, "column 19: the relation .* fails: .*nix.* cannot be found"),
    "a correlation": (
        f"SELECT (SELECT max(low) FROM (SELECT * FROM ticks WHERE ts = o.ts) {FALL}) FROM ticks o", PatternError,
        "(?s)column 68: the relation .*o.*ts.* cannot be resolved.*hint: .*no columns",
    ),
    "lateral": (f"SELECT * FROM ticks a, LATERAL (SELECT a.ts) {FALL}", UnsupportedError, "LATERAL"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.surface
def test_faults_are_told_before_any_job(spark: SparkSession, ticks: DataFrame, name: str) -> None:
    statement, error, message = FAULTS[name]
    with pytest.raises(error, match=message):
        cep.sql(statement, spark=spark)


def test_names_in_quotes(spark: SparkSession) -> None:
    frame = spark.createDataFrame(TICKS.rename_columns(["a `time`", "the sym", "price"]))
    clause = (
        'MATCH_RECOGNIZE (PARTITION BY "the sym" ORDER BY `a ``time``` MEASURES LAST(price) AS "the low"'
        " PATTERN (S D) DEFINE D AS price < PREV(price))"
    )
    around = "WITH `odd names` AS (SELECT * FROM odd) SELECT `m`.`the sym`, `b c` FROM `odd names` {} AS `m` (`the sym`, `b c`)"
    found = cep.sql(around.format(clause), spark=spark, odd=frame)
    assert rows(found) == [(sym, low) for sym, _, low in FALLS]

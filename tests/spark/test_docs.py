"""What the docs show of Spark runs: the README and the first steps print what they show, and the SQL is SQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import gpu_cep as cep
from examples.chemo import chemo
from tests.docs.blocks import BLOCK, printed_and_shown

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/get-started.md"])
def test_a_page_prints_what_it_shows(spark: SparkSession, page: str) -> None:
    found = list(printed_and_shown(ROOT / page, spark=spark))
    assert any(shown for _, shown in found)
    for printed, shown in found:
        assert printed == shown


def test_the_sql_runs(spark: SparkSession) -> None:
    (query,) = (code for language, code in BLOCK.findall((ROOT / "docs" / "sql.md").read_text(encoding="utf-8")) if language == "sql")
    cep.register(spark)
    events = chemo().rename_columns(["pid", "type", "v", "unit", "ts"])
    spark.createDataFrame(events).selectExpr("*", "7 AS ward").createOrReplaceTempView("events")
    assert {tuple(row) for row in spark.sql(query).collect()} == {(1, 3400.0), (2, 4000.0)}

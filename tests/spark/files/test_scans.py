"""Which columns of a DataFrame are a scan of Parquet files, and when the plan that Spark keeps tells it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep_spark.files import scans
from gpu_cep_spark.files.places import NoScanError
from gpu_cep_spark.files.scans import find_scan
from gpu_cep_spark.narrowing.pushdown import read_columns
from tests.spark.conftest import CONNECT
from tests.spark.files.test_files import in_order, write

pytestmark = pytest.mark.skipif(CONNECT, reason="a client of Spark Connect does not see plans")


def test_the_plan_that_spark_keeps(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spark.read.parquet(write(in_order(), tmp_path / "t")).withColumns({"m": F.rand(), "number": F.col("n")})
    planned: list[DataFrame] = []

    def plan(df: DataFrame, names: Sequence[str]) -> DataFrame:
        planned.append(df)
        return read_columns(df, names)

    monkeypatch.setattr(scans, "read_columns", plan)

    def is_kept(df: DataFrame, *names: str) -> bool:
        planned.clear()
        with suppress(NoScanError, PySparkException):
            find_scan(df, names)
        return not planned

    names = ["number", "type", "ts"]
    assert is_kept(frame, *names)
    assert find_scan(frame, names) == find_scan(frame.select(names), names)
    assert not is_kept(frame, "m", *names)
    for moment in ("ts < unix_seconds(current_timestamp())", "current_timestamp() > timestamp'2020-01-01'"):
        assert not is_kept(frame.where(moment), *names)
    # a plan of all columns is an error
    assert not is_kept(frame.withColumn("none", F.expr("1 / 0")), *names)
    assert not is_kept(frame.select("*", F.lit("A").alias("TYPE")), *names)
    collated = spark.read.schema("ts long, n long, type string collate UTF8_LCASE").parquet(str(tmp_path / "t"))
    assert is_kept(collated, "ts", "n")
    assert not is_kept(collated, "ts", "type")


def test_columns_that_spark_computes_of_files(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.parquet(write(in_order(), tmp_path / "t")).select("*", "_metadata")
    assert find_scan(frame, ["ts", "type"]).columns == ("ts", "type")
    for read in (frame, frame.select("_metadata")):
        with pytest.raises(NoScanError, match="column '_metadata' is computed"):
            find_scan(read, ["_metadata"])
    with pytest.raises(NoScanError, match="its filter has"):
        find_scan(frame.where("_metadata.file_size > n"), ["ts"])


def test_columns_of_wide_files(spark: SparkSession, tmp_path: Path) -> None:
    """The JVM is asked for some columns at a time; of these, the last and the first ones are read."""
    width = 2 * scans._TOGETHER + 1
    pq.write_table(pa.table({f"c{number}": [number] for number in range(width)}), tmp_path / "wide.parquet")
    names = [f"c{number}" for number in (width - 1, scans._TOGETHER, scans._TOGETHER - 1, 0)]
    assert find_scan(spark.read.parquet(str(tmp_path / "wide.parquet")), names).columns == tuple(names)

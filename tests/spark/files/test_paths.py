"""Paths of Parquet files are matched as a DataFrame of them, also on Spark Connect."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

import gpu_cep as cep
from gpu_cep.errors import EventError, UnsupportedError
from gpu_cep_spark.files import scans as file_scans
from gpu_cep_spark.files.places import NoScanError
from tests.spark.conftest import CONNECT
from tests.spark.samples import as_set

pytestmark = pytest.mark.surface

QUERY = "PATTERN SEQ(A a, B b+) WITHIN 6"


def write(folder: Path) -> str:
    """Three files of events in the order of time, in which Spark says nothing of folders."""
    folder.mkdir(parents=True)
    for number in range(3):
        kinds = np.random.default_rng(number).choice(list("ABC"), 50)
        times = pa.array(np.arange(50 * number, 50 * number + 50) * 1_000_000, pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"ts": times, "type": kinds, "k": np.arange(50) % 3}), folder / f"part {number}.parquet", row_group_size=20)
    return str(folder)


def test_paths(spark: SparkSession, tmp_path: Path) -> None:
    folder = write(tmp_path / "t")
    query = f"{QUERY} seconds"
    expected = as_set(cep.gpu_match(spark.read.parquet(folder), query, scan="spark", partition_by="k").toArrow())
    assert expected
    listed = [tmp_path / "t" / f"part {number}.parquet" for number in range(3)]
    # a folder may have any name
    (tmp_path / "u.csv").mkdir()
    (tmp_path / "u.csv" / "last.parquet").write_bytes(listed[2].read_bytes())
    several = [tmp_path / "u.csv", f"{folder}/part [01].parquet"]
    for paths in (folder, tmp_path / "t", f"{folder}/*.parquet", listed, several):
        report = cep.RunReport()
        found = cep.gpu_match(spark, paths, query, scan="files", partition_by="k", report=report)
        assert as_set(found.toArrow()) == expected
        assert report.scan.startswith("tasks read files: ")


def test_what_are_no_paths(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(EventError, match="takes a path or a list of paths"):
        cep.gpu_match(spark, 3, QUERY)  # type: ignore[arg-type]
    with pytest.raises(EventError, match=r"reads Parquet, and b\.csv\.gz is another format; give the DataFrame spark\.read\.csv\("):
        cep.gpu_match(spark, ["a.parquet", "b.csv.gz"], QUERY)
    with pytest.raises(EventError, match="a session of Spark first"):
        cep.gpu_match("x.parquet", write(tmp_path / "t"), QUERY)  # type: ignore[arg-type]


@pytest.mark.skipif(not CONNECT, reason="a classic session sees plans")
def test_a_client_sees_no_plan(spark: SparkSession, tmp_path: Path) -> None:
    folder = write(tmp_path / "t")
    with pytest.raises(UnsupportedError, match="does not see the plan"):
        cep.gpu_match(spark.read.parquet(folder), f"{QUERY} seconds", scan="files")
    with pytest.raises(UnsupportedError, match="names of folders"):
        cep.gpu_match(spark, write(tmp_path / "day=1"), f"{QUERY} seconds", scan="files")


class ClientFrame:
    """What a client of Spark Connect knows of a DataFrame whose files lie elsewhere."""

    sparkSession = SimpleNamespace(  # noqa: N815
        conf=SimpleNamespace(get=lambda name, default: default),
        client=SimpleNamespace(get_configs=lambda *names: tuple(file_scans._REQUIRED[name] for name in names)),
    )
    schema = StructType().add("ts", "long")

    @staticmethod
    def inputFiles():  # noqa: N802
        return ["s3a://bucket/events.parquet"]


def test_a_client_of_spark_connect_reads_this_machines_files():
    with pytest.raises(NoScanError, match="not on this machine, and of a client of Spark Connect tasks read only those that are"):
        file_scans.scan_of_paths(ClientFrame(), ("ts",))

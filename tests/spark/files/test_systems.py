"""Files that are not on this machine are Spark's, unless scan='files' asks tasks to read them by Arrow or fsspec."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep.errors import EventError, UnsupportedError
from gpu_cep_spark.files.footers import read_footers
from gpu_cep_spark.files.places import NoScanError, open_place, places_of
from gpu_cep_spark.files.scans import find_scan
from tests.spark.conftest import CONNECT
from tests.spark.files.test_files import assert_same, in_order, small_pieces
from tests.spark.slices.test_slices import QUERIES

pytest.importorskip("fsspec")
pytestmark = pytest.mark.skipif(CONNECT, reason="a client of Spark Connect does not see plans")
# A file system of Hadoop's that reads this machine's files under any scheme; fsspec calls its own one local, and has none for pfile.
_HADOOP, KNOWN, UNKNOWN = "org.apache.hadoop.fs.ProxyLocalFileSystem", "local", "pfile"

__all__ = ["small_pieces"]


@pytest.fixture
def elsewhere(spark: SparkSession) -> Iterator[Any]:
    """Return a function that reads a folder as one of another file system."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    for scheme in (KNOWN, UNKNOWN):
        settings.set(f"fs.{scheme}.impl", _HADOOP)

    def read(folder: Path | str, scheme: str = KNOWN) -> DataFrame:
        return spark.read.parquet(f"{scheme}://{folder}")

    yield read
    for scheme in (KNOWN, UNKNOWN):
        settings.unset(f"fs.{scheme}.impl")


def files(folder: Path) -> str:
    folder.mkdir()
    for number in range(3):
        pq.write_table(in_order().slice(number * 140, 140), folder / f"part{number}.parquet", row_group_size=40)
    return str(folder)


@pytest.mark.parametrize("name", ["next", "both"])
def test_tasks_read_other_file_systems_if_asked_to(elsewhere: Any, tmp_path: Path, name: str) -> None:
    frame = elsewhere(files(tmp_path / "t"))
    assert assert_same(frame, QUERIES[name], partition_by="s")
    report = cep.RunReport()
    cep.gpu_match(frame, QUERIES[name], report=report)
    assert report.scan.startswith("Spark reads the events: its files are in the file system local:, which tasks read only if scan='files'")


def test_folders_of_keys_elsewhere(elsewhere: Any, tmp_path: Path) -> None:
    pq.write_to_dataset(in_order(200), str(tmp_path / "t"), partition_cols=["k"], row_group_size=50)
    assert assert_same(elsewhere(tmp_path / "t"), "PATTERN SEQ(A a, B b) WITHIN 4 EVENTS", partition_by="k")


def test_a_file_that_changes_elsewhere_is_named(elsewhere: Any, tmp_path: Path) -> None:
    found = cep.gpu_match(elsewhere(files(tmp_path / "t")), QUERIES["next"], scan="files")
    pq.write_table(in_order(seed=9), tmp_path / "t" / "part1.parquet")
    with pytest.raises(PySparkException, match=r"part1\.parquet: it has changed since the query was made"):
        found.collect()


def test_files_that_spark_sees_otherwise_are_refused(elsewhere: Any, tmp_path: Path) -> None:
    frame = elsewhere(files(tmp_path / "t"))
    scan = find_scan(frame, frame.columns, remote=True)
    assert scan.size == sum(path.stat().st_size for path in (tmp_path / "t").iterdir())
    assert read_footers(frame.sparkSession, scan, "ts", (), None).groups.rows.sum() == 400
    with pytest.raises(EventError, match=r"parquet and the others of its scan have .* bytes as Arrow finds them, and 7 as Spark"):
        read_footers(frame.sparkSession, replace(scan, size=7), "ts", (), None)


def test_unknown_file_systems(elsewhere: Any, tmp_path: Path) -> None:
    frame = elsewhere(files(tmp_path / "t"), UNKNOWN)
    with pytest.raises(EventError, match="neither Arrow nor fsspec has a file system for pfile://"):
        cep.gpu_match(frame, QUERIES["next"], scan="files")


def test_names_that_uris_escape(elsewhere: Any, tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    frame = elsewhere(files(tmp_path / "a b" / "t"))
    with pytest.raises(UnsupportedError, match="has characters that a URI must escape"):
        cep.gpu_match(frame, QUERIES["next"], scan="files")


def test_places() -> None:
    uris = ["file:///data/a%20b.parquet", "s3a://bucket/day=1/x.parquet"]
    assert places_of(uris, remote=True) == ("/data/a b.parquet", "s3a://bucket/day=1/x.parquet")
    with pytest.raises(NoScanError, match="in the file system s3a:"):
        places_of(uris, remote=False)
    with pytest.raises(NoScanError, match="a '\\?' or a '#'"):
        places_of(["s3a://bucket/x.parquet?y"], remote=True)


@pytest.mark.parametrize("root", ["local://", "memory://store"])
def test_paths_of_a_file_system(root: str) -> None:
    from fsspec import filesystem

    system, path = open_place(f"{root}/tmp/x=1/y.parquet")
    assert path.endswith("/tmp/x=1/y.parquet")
    assert type(system.handler.fs) is type(filesystem(root.partition(":")[0]))

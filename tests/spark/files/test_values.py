"""What tasks read of Parquet files is what Spark reads of them, however they were written."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep_spark.file_matching import _share
from gpu_cep_spark.files.footers import read_footers
from gpu_cep_spark.files.pieces import Piece
from gpu_cep_spark.files.places import NoScanError
from gpu_cep_spark.files.reading import Reading, read_share
from gpu_cep_spark.files.scans import find_scan
from gpu_cep_spark.schemas import arrow_schema
from tests.spark.conftest import CONNECT
from tests.spark.samples import as_set

pytestmark = pytest.mark.skipif(CONNECT, reason="a client of Spark Connect does not see plans")
ZONE = "Europe/Zurich"


def by_spark(frame: DataFrame) -> list[str]:
    return as_set(frame.toArrow().cast(arrow_schema(frame.schema, ZONE)))


def by_tasks(frame: DataFrame) -> list[str]:
    """The rows that a task reads of all row groups; raises NoScanError if Spark must read them."""
    scan = find_scan(frame, frame.columns)
    footers = read_footers(frame.sparkSession, scan, scan.columns[0], (), None)
    what = Reading(scan.schema, scan.columns, 0, None, scan.condition, ())
    share = _share(0, Piece(pa.array(range(len(footers.groups))).to_numpy(), WHOLE), scan, footers)
    read = read_share(what, share, Profile(), timed=False)
    found = pa.concat_tables(read) if len(footers.groups) else frame.limit(0).toArrow()
    return as_set(found.rename_columns(frame.columns).cast(arrow_schema(frame.schema, ZONE)))


MOMENTS = st.integers(-(10**15), 4 * 10**15)
# Types of Arrow, with the values that files get.
VALUES: Mapping[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint8(): st.integers(0, 255),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.uint64(): st.integers(0, 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=5),
    pa.large_string(): st.text(max_size=5),
    pa.dictionary(pa.int32(), pa.string()): st.sampled_from(["a", "b", "ü"]),
    pa.binary(): st.binary(max_size=5),
    pa.date32(): st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    pa.timestamp("us"): MOMENTS,
    pa.timestamp("ms"): MOMENTS.map(lambda each: each // 1000),
    pa.timestamp("ns"): MOMENTS.map(lambda each: 1000 * each),
    pa.timestamp("us", "UTC"): MOMENTS,
    pa.timestamp("ms", "America/New_York"): MOMENTS.map(lambda each: each // 1000),
    pa.decimal128(5, 2): st.decimals(-999, 999, places=2, allow_nan=False),
    pa.decimal128(18, 6): st.decimals(-(10**11), 10**11, places=6, allow_nan=False),
    pa.decimal128(38, 10): st.decimals(-(10**20), 10**20, places=10, allow_nan=False),
}
KEYS = [(), ("1", "007", "__HIVE_DEFAULT_PARTITION__"), ("a b", "x%2Fy", "é"), ("2024-01-31", "2024-02-01"), ("1.50", "2")]
COLUMNS = tuple(f"v{number}" for number in range(4))


def array_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)


@st.composite
def tables(draw: st.DrawFn, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """Some rows of a file, which may lack columns, have them in another order, or narrower."""
    rows = draw(st.integers(0, 12))
    held = draw(st.permutations([name for name in kinds if name == COLUMNS[0] or draw(st.integers(0, 4))]))
    columns = {}
    for name in held:
        kind = pa.int32() if kinds[name] == pa.int64() and not draw(st.integers(0, 3)) else kinds[name]
        columns[name] = array_of(draw(st.lists(st.none() | VALUES[kind], min_size=rows, max_size=rows)), kind)
    return pa.table(columns)


@st.composite
def writers(draw: st.DrawFn) -> dict[str, Any]:
    """Keywords of Arrow's writer."""
    return {
        "version": draw(st.sampled_from(["1.0", "2.4", "2.6"])),
        "compression": draw(st.sampled_from(["none", "snappy", "gzip", "zstd"])),
        "use_dictionary": draw(st.booleans()),
        "row_group_size": draw(st.integers(1, 12)),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "store_schema": draw(st.booleans()),
        "store_decimal_as_integer": draw(st.booleans()),
        "write_statistics": draw(st.booleans()),
        "coerce_timestamps": draw(st.sampled_from([None, None, "us"])),
        "allow_truncated_timestamps": True,
        "use_deprecated_int96_timestamps": draw(st.integers(0, 5)) == 0,
    }


@st.composite
def folders(draw: st.DrawFn) -> dict[str, tuple[pa.Table, dict[str, Any]]]:
    """Files by their paths, with how they are written."""
    kinds = {name: draw(st.sampled_from(list(VALUES))) for name in COLUMNS}
    keys = draw(st.sampled_from(KEYS))
    files = {}
    for number in range(draw(st.integers(1, 3))):
        folder = f"day={keys[number % len(keys)]}/" if keys else ""
        files[f"{folder}part {number}.parquet"] = (draw(tables(kinds)), draw(writers()))
    return files


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(files=folders(), merged=st.booleans())
def test_tasks_read_what_spark_reads(spark: SparkSession, tmp_path: Path, files: Any, merged: bool) -> None:
    root = tmp_path / "t"
    shutil.rmtree(root, ignore_errors=True)
    for name, (table, how) in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, root / name, **how)
    try:
        frame = spark.read.option("mergeSchema", merged).parquet(str(root))
        found = by_tasks(frame)
    except NoScanError as reason:
        event(str(reason).rpartition(", ")[2])
        return
    except (PySparkException, Py4JJavaError):
        event("Spark cannot read files of such types, or not together")
        return
    event("read")
    assert found == by_spark(frame)


ALL_TYPES = (
    "SELECT id AS n, CAST(id AS TINYINT) AS i8, CAST(id AS SMALLINT) AS i16, CAST(id AS INT) AS i32, id % 2 = 0 AS b, "
    "CAST(id AS FLOAT) AS f, CAST(id AS DOUBLE) / 3 AS d, concat('ü', id) AS s, CAST(concat('x', id) AS BINARY) AS raw, "
    "date_add(DATE'1500-01-01', CAST(id AS INT)) AS day, TIMESTAMP_MICROS(id * -1000000007) AS t, "
    "TIMESTAMP_NTZ'2024-10-27 02:30:00' + id * INTERVAL '1' HOUR AS tn, CAST(id AS DECIMAL(7, 2)) AS small, "
    "CAST(id AS DECIMAL(15, 4)) AS middle, CAST(id AS DECIMAL(30, 8)) AS large FROM RANGE(-50, 50)"
)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_what_spark_itself_wrote(spark: SparkSession, tmp_path: Path, legacy: bool, version: str) -> None:
    told = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS", "spark.sql.parquet.writeLegacyFormat": str(legacy).lower()}
    before = {name: spark.conf.get(name) for name in told}
    for name, value in told.items():
        spark.conf.set(name, value)
    spark.sql(ALL_TYPES).coalesce(1).write.option("parquet.writer.version", version).parquet(str(tmp_path / "t"))
    for name, value in before.items():
        spark.conf.set(name, str(value))
    frame = spark.read.parquet(str(tmp_path / "t"))
    assert by_tasks(frame) == by_spark(frame)


CONDITIONS = [
    "n > 3 AND s <> 'ü7'", "day < DATE'1500-01-20' OR n IN (1, 2, 40)", "t >= TIMESTAMP'1970-01-01 00:00:00'", "NOT b AND i8 <= 20",
    "small = 7.00 OR middle > 20.5", "tn < TIMESTAMP_NTZ'2024-10-28 00:00:00'", "b", "s IS NULL OR i16 < 0",
    "NOT (n IN (1, 2) OR s = 'ü3')",
    "n = 5 OR NULL", "i32 BETWEEN 3 AND 9", "large <> 4",
]  # fmt: skip


def test_filters_keep_what_spark_keeps(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    spark.sql(ALL_TYPES).withColumn("s", F.when(F.col("n") % 3 != 0, F.col("s"))).write.parquet(str(tmp_path / "t"))
    spark.conf.unset("spark.sql.parquet.outputTimestampType")
    frame = spark.read.parquet(str(tmp_path / "t"))
    read = 0
    for condition in CONDITIONS:
        kept = frame.where(condition)
        try:
            found = by_tasks(kept)
        except NoScanError:
            continue
        read += 1
        assert found == by_spark(kept), condition
    assert read >= len(CONDITIONS) - 3


def one_file(folder: Path, table: pa.Table, metadata: Mapping[bytes, bytes] | None = None) -> str:
    folder.mkdir()
    pq.write_table(table.replace_schema_metadata(metadata), folder / "a.parquet", store_schema=metadata is not None)
    return str(folder)


DAYS = pa.table({"n": [1, 2], "day": pa.array([dt.date(1400, 1, 1), dt.date(2024, 1, 1)])})


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({b"org.apache.spark.version": b"2.4.8"}, "today's calendar"),
        ({b"org.apache.spark.version": b"3.5.1", b"org.apache.spark.legacyDateTime": b""}, "today's calendar"),
        ({b"org.apache.spark.version": b"3.5.1"}, None),
        (None, None),
    ],
)
def test_dates_of_another_calendar_are_spark_s(spark: SparkSession, tmp_path: Path, metadata: Any, reason: str | None) -> None:
    frame = spark.read.parquet(one_file(tmp_path / "t", DAYS, metadata))
    if reason is None:
        assert by_tasks(frame) == by_spark(frame)
        return
    with pytest.raises(NoScanError, match=reason):
        by_tasks(frame)
    assert by_tasks(frame.select("n")) == by_spark(frame.select("n"))


@pytest.mark.parametrize(
    ("table", "schema", "reason"),
    [
        (pa.table({"N": [1]}), "n BIGINT", "is called 'N' in the file"),
        (pa.table([[1], [2]], ["n", "N"]), "n BIGINT", "several times|is called"),
        (pa.table({"n": pa.array([1], pa.uint16())}), "n INT", "rules of its own"),
        (pa.table({"n": pa.array([1.5], pa.float32())}), "n DOUBLE", "rules of its own"),
        (pa.table({"n": pa.array([{"x": 1}])}), "n STRUCT<x: BIGINT>", "has parts"),
        (pa.table({"n": pa.array([1], pa.timestamp("ns"))}), "n TIMESTAMP_NTZ", "rules of its own"),
        (pa.table({"n": pa.array([Decimal("1.50")])}), "n DECIMAL(9, 4)", "rules of its own"),
        (pa.table({"n": pa.array([b"x"])}), "n STRING", "rules of its own"),
    ],
)
def test_what_spark_converts_is_spark_s(spark: SparkSession, tmp_path: Path, table: pa.Table, schema: str, reason: str) -> None:
    with pytest.raises(NoScanError, match=reason):
        by_tasks(spark.read.schema(schema).parquet(one_file(tmp_path / "t", table)))


def test_columns_that_files_lack_are_null(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.schema("n BIGINT, more STRING, at TIMESTAMP").parquet(one_file(tmp_path / "t", pa.table({"n": [1, 2]})))
    assert by_tasks(frame) == by_spark(frame)

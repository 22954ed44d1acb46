"""Spark and tasks that read files find the same, whoever wrote them and by which settings of Spark they are read.

Who reads is as it is documented.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

import gpu_cep as cep
from gpu_cep.errors import EventError, UnsupportedError
from gpu_cep_spark import file_matching
from gpu_cep_spark.files import pieces as file_pieces
from gpu_cep_spark.files import scans as file_scans
from gpu_cep_spark.files.places import NoScanError
from tests.spark.conftest import CONNECT
from tests.spark.samples import as_set, matched_here

pytestmark = pytest.mark.skipif(CONNECT, reason="a client of Spark Connect does not see plans")

Write = Callable[[Path, Mapping[str, str]], str]
FILES = "tasks read files: "
COLUMNS = ("day", "at", "wall", "small", "middle", "word", "raw")
# Events of a thousand years, of which few bear on each other.
EVENTS = (
    "SELECT id AS ts, substr('ABC', CAST(pmod(hash(id), 3) AS INT) + 1, 1) AS type, "
    "date_add(DATE'1400-02-27', CAST(id * 9000 AS INT)) AS day, "
    "TIMESTAMP'1550-03-01 12:00:00 UTC' + id * INTERVAL '4321' DAY AS at, "
    "TIMESTAMP_NTZ'1581-03-01 12:00:00' + id * INTERVAL '4321' DAY AS wall, "
    "CAST(id AS DECIMAL(7, 2)) AS small, CAST(id * 100000000 AS DECIMAL(16, 4)) AS middle, "
    "IF(id % 7 = 0, NULL, concat('ü', id % 5)) AS word, CAST(concat('x', id) AS BINARY) AS raw FROM RANGE(0, 60, 1, 3)"
)


@pytest.fixture(autouse=True)
def few_rows_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_matching, "FEWEST_ROWS", 0)
    monkeypatch.setattr(file_pieces, "FEWEST_ROWS", 20)
    monkeypatch.setattr(file_pieces, "ROWS_OF_START", 20)
    monkeypatch.setattr(file_pieces, "CHEAP", 9.0)
    monkeypatch.setattr(file_pieces, "DEAREST", 9.0)
    monkeypatch.setattr(file_pieces, "HARDLY_LESS", 9.0)


@contextmanager
def told(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: str(spark.conf.get(name)) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Write:
    """Puts into a folder what Spark writes by some settings: three files, each of a share of the time.

    Spark writes them once; later they are copied.
    """
    known: dict[str, Path] = {}

    def write(folder: Path, settings: Mapping[str, str]) -> str:
        name = repr(settings)
        if name not in known:
            known[name] = tmp_path_factory.mktemp("written") / "t"
            with told(spark, settings):
                # the events have three partitions
                spark.sql(EVENTS).write.parquet(str(known[name]))
        shutil.copytree(known[name], folder)
        return str(folder)

    return write


def query_of(*columns: str) -> str:
    """A pattern that returns the columns of both events."""
    items = ", ".join(f"{variable}.{column} AS {variable}_{column}" for variable in "ab" for column in columns)
    return f"PATTERN SEQ(A a, B b) WHERE a.ts <> b.ts WITHIN 12 RETURN {items}"


def told_reader(frame: DataFrame, *columns: str) -> str:
    """Who reads the columns, in words; what tasks that read files find is what Spark's scan finds."""
    report, query = cep.RunReport(), query_of(*columns)
    found = cep.gpu_match(frame, query, report=report)
    if FILES not in report.scan:
        return report.scan
    assert found.dtypes == cep.gpu_match(frame, query, scan="spark").dtypes
    rows = as_set(found.toArrow())
    assert rows == as_set(matched_here(frame, query))
    assert rows
    return report.scan


PARQUET = "spark.sql.parquet."
MICROS = {f"{PARQUET}outputTimestampType": "TIMESTAMP_MICROS"}
MILLIS = {f"{PARQUET}outputTimestampType": "TIMESTAMP_MILLIS"}
INT96 = {f"{PARQUET}outputTimestampType": "INT96"}
REBASED = {f"{PARQUET}datetimeRebaseModeInWrite": "LEGACY"}
PLAIN = ("wall", "small", "middle", "word", "raw")


@pytest.mark.parametrize(
    ("settings", "columns", "reader"),
    [
        (MICROS, COLUMNS, FILES),
        (MILLIS, COLUMNS, FILES),
        ({**MICROS, f"{PARQUET}writeLegacyFormat": "true"}, COLUMNS, FILES),
        pytest.param({**MICROS, f"{PARQUET}compression.codec": "gzip"}, COLUMNS, FILES, marks=pytest.mark.full),
        (INT96, ("at",), "column 'at' is INT96"),
        (INT96, ("day", *PLAIN), FILES),
        pytest.param({**INT96, f"{PARQUET}int96RebaseModeInWrite": "LEGACY"}, ("at",), "column 'at' is INT96", marks=pytest.mark.full),
        ({**MICROS, **REBASED}, ("at",), "converts to today's calendar"),
        ({**MICROS, **REBASED}, ("day",), "converts to today's calendar"),
        pytest.param({**MILLIS, **REBASED}, ("at", "day"), "converts to today's calendar", marks=pytest.mark.full),
        ({**MICROS, **REBASED}, PLAIN, FILES),
    ],
)
def test_what_spark_wrote(
    spark: SparkSession, tmp_path: Path, written: Write, settings: dict[str, str], columns: tuple[str, ...], reader: str
) -> None:
    assert reader in told_reader(spark.read.parquet(written(tmp_path / "t", settings)), *columns)


@pytest.mark.parametrize("mode", ["LEGACY", "EXCEPTION"])
def test_readers_that_convert_calendars(spark: SparkSession, tmp_path: Path, written: Write, mode: str) -> None:
    frame = spark.read.option("datetimeRebaseMode", mode).parquet(written(tmp_path / "t", MICROS))
    assert "datetimerebasemode" in told_reader(frame, "day", "at")
    with told(spark, {f"{PARQUET}datetimeRebaseModeInRead": mode}):
        assert f"datetimeRebaseModeInRead={mode}" in told_reader(spark.read.parquet(str(tmp_path / "t")), "day", "at")


def test_texts_of_bounded_length(spark: SparkSession, tmp_path: Path, written: Write) -> None:
    folder = written(tmp_path / "t", MICROS)
    spark.sql(f"CREATE TABLE bounded (ts BIGINT, type STRING, word VARCHAR(4), day DATE) USING parquet LOCATION '{folder}'")
    spark.sql(f"CREATE TABLE padded (ts BIGINT, type STRING, word CHAR(4), day DATE) USING parquet LOCATION '{folder}'")
    try:
        for name in ("bounded", "padded"):
            assert "column 'word' is computed" in told_reader(spark.table(name), "word", "day")
        assert FILES in told_reader(spark.table("padded"), "day")
    finally:
        spark.sql("DROP TABLE bounded")
        spark.sql("DROP TABLE padded")


def test_schemas_that_have_grown(spark: SparkSession, tmp_path: Path, written: Write) -> None:
    folder = written(tmp_path / "t", MICROS)
    later = EVENTS.replace("SELECT id AS ts", "SELECT id + 60 AS ts, id AS more")
    with told(spark, MICROS):
        spark.sql(later).coalesce(1).write.mode("append").parquet(folder)
    assert FILES in told_reader(spark.read.option("mergeSchema", True).parquet(folder), "more", "word", "small")
    typed = spark.read.schema("ts BIGINT, type STRING, more BIGINT, small DECIMAL(7, 2), new STRING").parquet(folder)
    assert FILES in told_reader(typed, "more", "new", "small")
    wider = spark.read.schema("ts BIGINT, type STRING, small DECIMAL(9, 4)").parquet(folder)
    assert "rules of its own" in told_reader(wider, "small")
    assert "is called 'more' in the file" in told_reader(spark.read.schema("ts BIGINT, type STRING, MORE BIGINT").parquet(folder), "MORE")


def test_folders_named_by_hive(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    with told(spark, MICROS):
        spark.sql(EVENTS).coalesce(1).write.partitionBy("word").parquet(folder)
    assert FILES in told_reader(spark.read.parquet(folder), "word", "day")
    folder = str(tmp_path / "typed")
    with told(spark, MICROS):
        numbered = spark.sql(f"SELECT *, ts % 3 AS n FROM ({EVENTS})").coalesce(1)
        numbered.write.partitionBy("n").parquet(folder)
    assert FILES in told_reader(spark.read.parquet(folder), "n", "day")


def test_broken_and_missing_files_by_spark_s_settings(spark: SparkSession, tmp_path: Path, written: Write) -> None:
    folder = written(tmp_path / "t", MICROS)
    frame = spark.read.parquet(folder)
    paths = sorted(Path(folder).glob("*.parquet"))
    held = paths[1].read_bytes()
    paths[1].write_bytes(held[:-20])
    with pytest.raises(EventError, match=paths[1].name):
        cep.gpu_match(frame, query_of("word"))
    with told(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}):
        assert "ignoreCorruptFiles=true" in told_reader(spark.read.schema(frame.schema).parquet(folder), "word")
    paths[1].unlink()
    with pytest.raises(EventError, match=rf"{paths[1].name}.* there is no such file"):
        cep.gpu_match(frame, query_of("word"))
    with told(spark, {"spark.sql.files.ignoreMissingFiles": "true"}):
        assert "ignoreMissingFiles=true" in told_reader(frame, "word")
    # listed anew, the file is not asked for
    assert FILES in told_reader(spark.read.parquet(folder), "word")


def test_files_that_go_while_the_query_runs(spark: SparkSession, tmp_path: Path, written: Write) -> None:
    folder = written(tmp_path / "t", MICROS)
    found = cep.gpu_match(spark.read.parquet(folder), query_of("word"))
    gone = max(Path(folder).glob("*.parquet"))
    held = gone.read_bytes()
    gone.unlink()
    with pytest.raises(PySparkException, match=gone.name):
        found.collect()
    gone.write_bytes(held)
    # the same bytes again: the right answer
    assert as_set(found.toArrow()) == as_set(cep.gpu_match(spark.read.parquet(folder), query_of("word"), scan="spark").toArrow())
    pq.write_table(pq.read_table(gone).slice(1), gone)
    with pytest.raises(PySparkException, match=rf"{gone.name}: it has changed since the query was made"):
        found.collect()
    gone.write_bytes(held)


def test_files_that_spark_must_read_are_named_where_only_tasks_may(spark: SparkSession, tmp_path: Path, written: Write) -> None:
    frame = spark.read.parquet(written(tmp_path / "t", INT96))
    with pytest.raises(UnsupportedError, match=r"part-.*parquet, column 'at' is INT96"):
        cep.gpu_match(frame, query_of("at"), scan="files")


def test_hidden_files_are_none(spark: SparkSession, tmp_path: Path, written: Write) -> None:
    folder = tmp_path / "t"
    written(folder, MICROS)
    hidden = sorted(folder.glob("*.parquet"))[1]
    (folder / ".other.parquet").write_bytes(hidden.read_bytes())
    (folder / "_other.parquet").write_bytes(hidden.read_bytes())
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "other.parquet").write_bytes(hidden.read_bytes())
    frame = spark.read.parquet(str(folder))
    assert FILES in told_reader(frame, "word", "day")
    assert frame.count() == 60


@pytest.mark.parametrize(
    ("options", "paths", "rows"),
    [
        ({}, "{a,b}/*.parquet", 40),
        # Spark itself tells which files these are, as above
        pytest.param({}, "[!c]", 40, marks=pytest.mark.full),
        pytest.param({}, "?/part-*", 60, marks=pytest.mark.full),
        ({"pathGlobFilter": "*.par?uet"}, "a", 20),
        ({"pathGlobFilter": "*.none"}, "a", 0),
        ({"recursiveFileLookup": "true"}, "", 60),
        pytest.param({"modifiedAfter": "2000-01-01T00:00:00"}, "b", 20, marks=pytest.mark.full),
    ],
)
def test_globs_and_listings_are_spark_s(
    spark: SparkSession, tmp_path: Path, written: Write, options: dict[str, str], paths: str, rows: int
) -> None:
    folder = tmp_path / "t"
    for name, file in zip("abc", sorted(Path(written(folder, MICROS)).glob("*.parquet")), strict=True):
        (folder / name).mkdir()
        file.rename(folder / name / file.name)
    schema = spark.read.parquet(str(folder / "a")).schema
    frame = spark.read.schema(schema).options(**options).parquet(str(folder / paths))
    assert frame.count() == rows
    if rows:
        assert FILES in told_reader(frame, "word", "day")
    else:
        assert "no files" in reason(frame)


def reason(frame: DataFrame, *columns: str) -> str:
    """Why tasks cannot read the files of a frame."""
    with pytest.raises(UnsupportedError, match="scan='files' is not possible") as raised:
        cep.gpu_match(frame, query_of(*(columns or ("word",))), scan="files")
    return str(raised.value)


def test_files_that_spark_decrypts(spark: SparkSession, tmp_path: Path, written: Write) -> None:
    folder = written(tmp_path / "t", MICROS)
    factory = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
    told_by_option = spark.read.option("parquet.encryption.kms.client.class", "x").parquet(folder)
    assert "parquet.encryption.kms.client.class" in reason(told_by_option)
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("parquet.crypto.factory.class", factory)
    try:
        assert "decrypts files" in reason(spark.read.parquet(folder))
    finally:
        hadoop.unset("parquet.crypto.factory.class")
    assert FILES in told_reader(spark.read.parquet(folder), "word")


def test_columns_that_are_found_by_their_numbers(spark: SparkSession, tmp_path: Path) -> None:
    """Table formats with column mapping, and Iceberg, tell columns by the numbers that files hold."""
    numbered = [pa.field(name, kind, metadata={"PARQUET:field_id": str(place)}) for place, (name, kind) in enumerate(NUMBERED, 1)]
    table = pa.table([range(60), ["A", "B", "C"] * 20, [f"w{place % 5}" for place in range(60)]], schema=pa.schema(numbered))
    (tmp_path / "t").mkdir()
    pq.write_table(table, tmp_path / "t" / "a.parquet", row_group_size=10)
    types = StructType([StructField("ts", LongType(), metadata={"parquet.field.id": 1}), StructField("type", StringType())])
    renamed = types.add(StructField("renamed", StringType(), metadata={"parquet.field.id": 3}))
    with told(spark, {f"{PARQUET}fieldId.read.enabled": "true"}):
        frame = spark.read.schema(renamed).parquet(str(tmp_path / "t"))
        assert "fieldId.read.enabled=true" in told_reader(frame, "renamed")
        assert frame.where("renamed = 'w3'").count() == 12
    by_name = spark.read.schema(renamed).parquet(str(tmp_path / "t"))
    assert by_name.where("renamed IS NOT NULL").count() == 0
    assert FILES in told_reader(by_name, "renamed")


NUMBERED = (("ts", pa.int64()), ("type", pa.string()), ("word", pa.string()))


class Java:
    """An object of Spark's of some class; its methods return what they are told."""

    def __init__(self, kind: str, **methods: object) -> None:
        self.kind, self.methods = kind, methods

    def __getattr__(self, name: str) -> Any:
        return lambda: self.methods[name]

    def getClass(self) -> Java:  # noqa: N802
        return Java("java.lang.Class", getName=self.kind, getSimpleName=self.kind.rpartition(".")[2])


DELTA, ICEBERG = "org.apache.spark.sql.delta", "org.apache.iceberg.spark.source"
_SOURCES = "org.apache.spark.sql.execution.datasources"


@pytest.mark.parametrize(
    ("file_format", "listed"),
    [
        # deletion vectors and column mapping are in Delta's own class of the format
        (f"{DELTA}.DeltaParquetFileFormat", f"{DELTA}.files.TahoeLogFileIndex"),
        (f"{_SOURCES}.parquet.ParquetFileFormat", f"{DELTA}.files.TahoeLogFileIndex"),
        ("org.apache.spark.sql.execution.datasources.parquet.HoodieParquetFileFormat", f"{_SOURCES}.InMemoryFileIndex"),
    ],
)
def test_files_of_table_formats_are_no_plain_files(file_format: str, listed: str) -> None:
    relation = Java(f"{_SOURCES}.HadoopFsRelation", fileFormat=Java(file_format), location=Java(listed))
    with pytest.raises(NoScanError, match="and not as plain Parquet"):
        file_scans._check_relation(relation)


def test_scans_of_data_source_v2_are_spark_s(spark: SparkSession, tmp_path: Path, written: Write) -> None:
    """Iceberg's tables are such scans."""
    folder = written(tmp_path / "t", MICROS)
    with told(spark, {"spark.sql.sources.useV1SourceList": ""}):
        assert "a node DataSourceV2ScanRelation" in told_reader(spark.read.parquet(folder), "word", "day")
    assert FILES in told_reader(spark.read.parquet(folder), "word", "day")


def test_tables_of_the_catalog(spark: SparkSession, tmp_path: Path, written: Write) -> None:
    folder = written(tmp_path / "t", MICROS)
    spark.sql(f"CREATE TABLE plain (ts BIGINT, type STRING, word STRING, day DATE) USING parquet LOCATION '{folder}'")
    spark.sql(f"CREATE TABLE parted USING parquet PARTITIONED BY (type) LOCATION '{tmp_path / 'p'}' AS SELECT * FROM plain")
    spark.sql(f"CREATE TABLE bucketed USING parquet CLUSTERED BY (word) INTO 3 BUCKETS LOCATION '{tmp_path / 'b'}' AS SELECT * FROM plain")
    try:
        assert FILES in told_reader(spark.table("plain"), "word", "day")
        assert "catalog says which partitions" in told_reader(spark.table("parted"), "word", "day")
        told_reader(spark.table("bucketed"), "word", "day")
    finally:
        for name in ("parted", "bucketed", "plain"):
            spark.sql(f"DROP TABLE {name}")


def test_rows_and_columns_that_views_hide(spark: SparkSession, tmp_path: Path, written: Write) -> None:
    """A catalog's filters of rows and masks of columns stand in the plan as those of a view do."""
    spark.read.parquet(written(tmp_path / "t", MICROS)).createOrReplaceTempView("seen")
    by_user = spark.sql("SELECT * FROM seen WHERE coalesce(hash(word), 0) % 2 = 0 OR current_user() = 'nobody'")
    assert "only Spark computes" in told_reader(by_user, "word", "day")
    masked = spark.sql("SELECT ts, type, mask(word) AS word FROM seen")
    assert "column 'word' is computed" in told_reader(masked, "word")
    named = spark.read.parquet(str(tmp_path / "t")).selectExpr("*", "_metadata.file_name AS file")
    assert "column 'file' is computed" in told_reader(named, "file")

"""Both roads find the same, whoever wrote the files and by which settings of Spark they are read; who reads is as it is documented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep.errors import EventError, UnsupportedError
from gpu_cep_spark import file_matching, file_pieces
from tests.spark.conftest import CONNECT
from tests.spark.samples import as_set

pytestmark = pytest.mark.skipif(CONNECT, reason="a client of Spark Connect does not see plans")

FILES = "tasks read files: "
COLUMNS = ("day", "at", "wall", "small", "middle", "word", "raw")
# Events of a thousand years, of which few bear on each other.
EVENTS = (
    "SELECT id AS ts, substr('ABC', CAST(pmod(hash(id), 3) AS INT) + 1, 1) AS type, "
    "date_add(DATE'1400-02-27', CAST(id * 9000 AS INT)) AS day, "
    "TIMESTAMP'1550-03-01 12:00:00 UTC' + id * INTERVAL '4321' DAY AS at, "
    "TIMESTAMP_NTZ'1581-03-01 12:00:00' + id * INTERVAL '4321' DAY AS wall, "
    "CAST(id AS DECIMAL(7, 2)) AS small, CAST(id * 100000000 AS DECIMAL(16, 4)) AS middle, "
    "IF(id % 7 = 0, NULL, concat('ü', id % 5)) AS word, CAST(concat('x', id) AS BINARY) AS raw FROM RANGE(60)"
)


@pytest.fixture(autouse=True)
def few_rows_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_matching, "FEWEST_ROWS", 0)
    monkeypatch.setattr(file_pieces, "FEWEST_ROWS", 20)
    monkeypatch.setattr(file_pieces, "ROWS_OF_START", 20)
    monkeypatch.setattr(file_pieces, "CHEAP", 9.0)
    monkeypatch.setattr(file_pieces, "DEAREST", 9.0)


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


def written(spark: SparkSession, folder: Path, settings: Mapping[str, str], query: str = EVENTS) -> str:
    """Three files that Spark writes by these settings, each of a share of the time."""
    with told(spark, settings):
        for number in range(3):
            part = spark.sql(f"SELECT * FROM ({query}) WHERE ts >= {20 * number} AND ts < {20 * number + 20}").coalesce(1)
            part.write.mode("append").parquet(str(folder))
    return str(folder)


def query_of(*columns: str) -> str:
    """A pattern that returns the columns of both events."""
    items = ", ".join(f"{variable}.{column} AS {variable}_{column}" for variable in "ab" for column in columns)
    return f"PATTERN SEQ(A a, B b) WHERE a.ts <> b.ts WITHIN 12 RETURN {items}"


def road(frame: DataFrame, *columns: str) -> str:
    """Who reads the columns, in words; what is found is what Spark's road finds."""
    report, query = cep.RunReport(), query_of(*columns)
    found = cep.gpu_match(frame, query, report=report)
    expected = cep.gpu_match(frame, query, scan="spark")
    assert found.dtypes == expected.dtypes
    rows = as_set(found.toArrow())
    assert rows == as_set(expected.toArrow())
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
        ({**MICROS, f"{PARQUET}compression.codec": "gzip"}, COLUMNS, FILES),
        (INT96, ("at",), "column 'at' is INT96"),
        (INT96, ("day", *PLAIN), FILES),
        ({**INT96, f"{PARQUET}int96RebaseModeInWrite": "LEGACY"}, ("at",), "column 'at' is INT96"),
        ({**MICROS, **REBASED}, ("at",), "converts to today's calendar"),
        ({**MICROS, **REBASED}, ("day",), "converts to today's calendar"),
        ({**MILLIS, **REBASED}, ("at", "day"), "converts to today's calendar"),
        ({**MICROS, **REBASED}, PLAIN, FILES),
    ],
)
def test_what_spark_wrote(spark: SparkSession, tmp_path: Path, settings: dict[str, str], columns: tuple[str, ...], reader: str) -> None:
    assert reader in road(spark.read.parquet(written(spark, tmp_path / "t", settings)), *columns)


@pytest.mark.parametrize("mode", ["LEGACY", "EXCEPTION"])
def test_readers_that_convert_calendars(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    frame = spark.read.option("datetimeRebaseMode", mode).parquet(written(spark, tmp_path / "t", MICROS))
    assert "datetimerebasemode" in road(frame, "day", "at")
    with told(spark, {f"{PARQUET}datetimeRebaseModeInRead": mode}):
        assert f"datetimeRebaseModeInRead={mode}" in road(spark.read.parquet(str(tmp_path / "t")), "day", "at")


def test_texts_of_bounded_length(spark: SparkSession, tmp_path: Path) -> None:
    folder = written(spark, tmp_path / "t", MICROS)
    spark.sql(f"CREATE TABLE bounded (ts BIGINT, type STRING, word VARCHAR(4), day DATE) USING parquet LOCATION '{folder}'")
    spark.sql(f"CREATE TABLE padded (ts BIGINT, type STRING, word CHAR(4), day DATE) USING parquet LOCATION '{folder}'")
    try:
        for name in ("bounded", "padded"):
            assert "column 'word' is computed" in road(spark.table(name), "word", "day")
            assert FILES in road(spark.table(name), "day")
    finally:
        spark.sql("DROP TABLE bounded")
        spark.sql("DROP TABLE padded")


def test_schemas_that_have_grown(spark: SparkSession, tmp_path: Path) -> None:
    folder = written(spark, tmp_path / "t", MICROS)
    later = EVENTS.replace("SELECT id AS ts", "SELECT id + 60 AS ts, id AS more")
    with told(spark, MICROS):
        spark.sql(later).coalesce(1).write.mode("append").parquet(folder)
    assert FILES in road(spark.read.option("mergeSchema", True).parquet(folder), "more", "word", "small")
    typed = spark.read.schema("ts BIGINT, type STRING, more BIGINT, small DECIMAL(7, 2), new STRING").parquet(folder)
    assert FILES in road(typed, "more", "new", "small")
    wider = spark.read.schema("ts BIGINT, type STRING, small DECIMAL(9, 4)").parquet(folder)
    assert "rules of its own" in road(wider, "small")
    assert "is called 'more' in the file" in road(spark.read.schema("ts BIGINT, type STRING, MORE BIGINT").parquet(folder), "MORE")


def test_folders_named_by_hive(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    with told(spark, MICROS):
        spark.sql(EVENTS).coalesce(1).write.partitionBy("word").parquet(folder)
    assert FILES in road(spark.read.parquet(folder), "word", "day")
    folder = str(tmp_path / "typed")
    with told(spark, MICROS):
        numbered = spark.sql(f"SELECT *, ts % 3 AS n FROM ({EVENTS})").coalesce(1)
        numbered.write.partitionBy("n").parquet(folder)
    assert FILES in road(spark.read.parquet(folder), "n", "day")


def test_broken_and_missing_files_by_spark_s_settings(spark: SparkSession, tmp_path: Path) -> None:
    folder = written(spark, tmp_path / "t", MICROS)
    frame = spark.read.parquet(folder)
    paths = sorted(Path(folder).glob("*.parquet"))
    held = paths[1].read_bytes()
    paths[1].write_bytes(held[:-20])
    with pytest.raises(EventError, match=paths[1].name):
        cep.gpu_match(frame, query_of("word"))
    with told(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}):
        assert "ignoreCorruptFiles=true" in road(spark.read.schema(frame.schema).parquet(folder), "word")
    paths[1].unlink()
    with pytest.raises(EventError, match=rf"{paths[1].name}.* there is no such file"):
        cep.gpu_match(frame, query_of("word"))
    with told(spark, {"spark.sql.files.ignoreMissingFiles": "true"}):
        assert "ignoreMissingFiles=true" in road(frame, "word")
    # listed anew, the file is not asked for
    assert FILES in road(spark.read.parquet(folder), "word")


def test_files_that_go_while_the_query_runs(spark: SparkSession, tmp_path: Path) -> None:
    folder = written(spark, tmp_path / "t", MICROS)
    for scan in ("auto", "files"):
        found = cep.gpu_match(spark.read.parquet(folder), query_of("word"), scan=scan)
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


def test_files_that_spark_must_read_are_named_where_only_tasks_may(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.parquet(written(spark, tmp_path / "t", INT96))
    with pytest.raises(UnsupportedError, match=r"part-.*parquet, column 'at' is INT96"):
        cep.gpu_match(frame, query_of("at"), scan="files")

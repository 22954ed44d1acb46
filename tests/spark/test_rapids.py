"""Beside the RAPIDS Accelerator: what is configured, and what is said of columns that it does not take. (No plugin is loaded.)"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CalendarIntervalType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    YearMonthIntervalType,
)

import gpu_cep as cep
from gpu_cep.errors import PatternError
from gpu_cep_spark import rapids
from tests.spark.rapids_settings import TOLD

SAID = json.loads(TOLD.read_text(encoding="utf-8"))
DOCS = Path(__file__).resolve().parents[2] / "docs"

QUERY = "PARTITION BY key PATTERN SEQ(a, b) WITHIN 10 seconds"


def test_the_configuration() -> None:
    conf = cep.rapids_conf(cores=8, python_share=0.3, tasks_on_gpu=3)
    assert all(isinstance(name, str) and isinstance(value, str) for name, value in conf.items())
    assert conf["spark.plugins"] == "com.nvidia.spark.SQLPlugin"
    assert float(conf["spark.task.resource.gpu.amount"]) * 8 == 1
    pools = [float(conf[f"spark.rapids.{owner}memory.gpu.maxAllocFraction"]) for owner in ("", "python.")]
    assert pools == [0.6, 0.3]
    assert conf["spark.rapids.python.concurrentPythonWorkers"] == conf["spark.rapids.sql.concurrentGpuTasks"] == "3"


@pytest.mark.parametrize("python_share", [0.01, 0.4, 0.89])
def test_settings_are_those_of_the_plugin(python_share: float) -> None:
    conf = cep.rapids_conf(cores=4, python_share=python_share)
    told: dict[str, str] = SAID["settings"]
    own = {name: value for name, value in conf.items() if name.startswith("spark.rapids.")}
    assert own.keys() <= told.keys()
    switches = {name: value for name, value in own.items() if told[name] in ("true", "false")}
    assert set(switches.values()) <= {"true", "false"}
    for owner in ("", "python."):
        least, initial, most = (
            float((told | own).get(f"spark.rapids.{owner}memory.gpu.{bound}llocFraction", 0)) for bound in ("minA", "a", "maxA")
        )
        assert least < initial <= most


def test_the_pages_name_settings_of_the_plugin() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    named = set(re.findall(r"spark\.rapids\.[\w.]*\w", text))
    assert named
    assert named <= SAID["settings"].keys()


KINDS: dict[str, DataType] = {
    "BOOLEAN": BooleanType(), "BYTE": ByteType(), "SHORT": ShortType(), "INT": IntegerType(), "LONG": LongType(), "FLOAT": FloatType(),
    "DOUBLE": DoubleType(), "DATE": DateType(), "TIMESTAMP": TimestampType(), "STRING": StringType(), "DECIMAL": DecimalType(9, 2),
    "NULL": NullType(), "BINARY": BinaryType(), "CALENDAR": CalendarIntervalType(), "ARRAY": ArrayType(TimestampType()),
    "MAP": MapType(StringType(), StringType()), "STRUCT": StructType([StructField("t", TimestampType())]),
    "DAYTIME": DayTimeIntervalType(), "YEARMONTH": YearMonthIntervalType(),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_types_are_those_that_the_plugin_takes(name: str) -> None:
    told: str = SAID["types"][name]
    assert rapids._is_taken(KINDS[name], utc=True) == (not told.startswith("NS"))
    assert rapids._is_taken(KINDS[name], utc=False) == (told == "S")


def test_text_with_a_collation_does_not_travel() -> None:
    assert not rapids._is_taken(StringType("UTF8_LCASE"), utc=True)


@pytest.mark.parametrize("cores", range(1, 70))
def test_all_cores_can_have_tasks(cores: int) -> None:
    assert cores * float(cep.rapids_conf(cores=cores)["spark.task.resource.gpu.amount"]) <= 1


@pytest.mark.parametrize("numbers", [{"cores": 0}, {"cores": 2, "python_share": 0.9}, {"cores": 2, "tasks_on_gpu": 0}])
def test_numbers_that_make_no_sense(numbers: Any) -> None:
    with pytest.raises(PatternError, match=r"python_share between 0 and 0\.9"):
        cep.rapids_conf(**numbers)


def asked(spark: SparkSession, key: pa.Array, **options: Any) -> None:
    columns = {"ts": pa.array([1], pa.timestamp("us", "UTC")), "type": ["A"], "key": key, "blob": pa.array([b"x"])}
    cep.gpu_match(spark.createDataFrame(pa.table(columns)), QUERY, **options)


@pytest.fixture
def plugin(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    # a setting of the session is as good as the plugin itself: nothing is loaded after the start
    monkeypatch.setattr(rapids, "SETTING", "gpu_cep.test.plugins")
    spark.conf.set("gpu_cep.test.plugins", rapids.PLUGIN)


@pytest.mark.usefixtures("plugin")
def test_columns_that_do_not_travel_are_named_once(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    key = pa.array([1]).cast(pa.decimal128(19)).cast(pa.decimal128(9, 2))
    asked(spark, key)
    (record,) = caplog.records
    text = record.getMessage()
    assert record.levelname == "WARNING"
    assert text.startswith("the data of a Python stage cannot travel on GPU because gpu_match reads 'ts' (timestamp), reads 'key' (decimal")
    for part in ("reads 'blob' (binary)", "returns 'key' (decimal(9,2))", "returns 'a' (struct<", "let spark.sql.session.timeZone be UTC"):
        assert text.count(part) == 1


@pytest.mark.usefixtures("plugin")
def test_in_utc_timestamps_travel(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        asked(spark, pa.array(["k"]), columns=["type", "ts"])
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert not caplog.records


@pytest.mark.usefixtures("plugin")
def test_a_plugin_that_is_off_says_nothing(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    spark.conf.set("spark.rapids.sql.enabled", "false")
    try:
        asked(spark, pa.array([b"k"]).cast(pa.string()))
    finally:
        spark.conf.unset("spark.rapids.sql.enabled")
    assert not caplog.records


def test_without_the_plugin_nothing_is_said(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    asked(spark, pa.array(["k"]))
    assert not caplog.records

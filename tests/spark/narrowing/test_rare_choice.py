"""Only events near rare ones are shuffled by itself where that spares much, and what is chosen is said with its reason."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep.errors import UnsupportedError
from gpu_cep_spark.narrowing import rare_choice
from gpu_cep_spark.narrowing.rare_choice import Expected
from gpu_cep_spark.narrowing.rare_events import BITS
from tests.spark.conftest import CONNECT
from tests.spark.narrowing.test_rare_events import QUERIES, bursts
from tests.spark.samples import as_set

pytestmark = pytest.mark.skipif(CONNECT, reason="a client of Spark Connect sees no plans, so that all events are shuffled")


def test_explaining_says_what_is_chosen_and_why(spark: SparkSession) -> None:
    events, query = cep.events(spark.createDataFrame(bursts(4)), partition_by="s"), QUERIES["any"]
    read, limit = "Spark reads the events: ", "spark.sql.execution.arrow.maxBytesPerBatch"
    reasons = {
        "r": "events near those of r are shuffled: rare= names them",
        "auto": "all events are shuffled: it is not known how frequent which events are; rare= names variables with few",
        None: "all events are shuffled: rare=None",
    }
    for rare, reason in reasons.items():
        source = events.explain(query, rare=rare).source
        assert source.startswith(read), source
        assert f"; {reason}; Spark adds up the bytes of a batch anew for each row: {limit} = {2**31 - 1} spares that" in source, source
    spark.conf.set(limit, str(2**31 - 1))
    try:
        assert "bytes" not in events.explain(query).source
    finally:
        spark.conf.unset(limit)
    with pytest.raises(UnsupportedError, match="rare=r is not possible: the query has no window of time"):
        events.explain("PATTERN SEQ(A a, R r)", rare="r")
    assert events.explain("PATTERN SEQ(A a, R r)", output="indices").source == ""


@pytest.fixture
def few_rows_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rare_choice, "FEWEST_ROWS", 100)


def told(frame: DataFrame, query: str, **keywords: Any) -> str:
    """What auto says of the events in a file."""
    report = cep.RunReport()
    cep.gpu_match(frame, query, order_by="id", scan="spark", report=report, **keywords)
    return report.rare


def in_file(spark: SparkSession, table: pa.Table, folder: Path) -> DataFrame:
    pq.write_table(table, folder / "events.parquet")
    return spark.read.parquet(str(folder))


@pytest.mark.usefixtures("few_rows_suffice")
def test_auto_samples_files(spark: SparkSession, tmp_path: Path) -> None:
    table = bursts(6, rare=3)
    frame, events, query = in_file(spark, table, tmp_path), f"{table.num_rows:,}", "PATTERN SEQ(e, R r, f) WITHIN 8"
    branches, all_of_them = "PATTERN OR(SEQ(A a, R r), SEQ(R r, B b, NOT(C c))) WITHIN 8", "all events are shuffled: "
    begins = {
        query: f"events near those of r are shuffled: 3 of {events} sampled rows are such events, and 100% of all",
        "PATTERN SEQ(A a, B b) WITHIN 80": f"{all_of_them}of a, 412 of",
        "PATTERN SEQ(e, R r, f) WITHIN 20000": f"{all_of_them}of r, 3 of",
        "PATTERN SEQ(e, f) WHERE e.k = f.k WITHIN 8": f"{all_of_them}no condition with constants tells which events are rare",
        "PATTERN SEQ(R r, R r2) WITHIN 8": f"{all_of_them}only 0% of the rows are sent in any case",
    }
    for asked, begin in begins.items():
        assert told(frame, asked).startswith(begin), asked
    assert told(frame, query, prune=("filter",)) == f"{all_of_them}prune= or algorithm= leaves reach out"
    for asked in (query, branches):
        assert told(frame, asked, partition_by="s").startswith("events near those of r are shuffled")
        found = cep.gpu_match(frame, asked, order_by="id", partition_by="s", scan="spark")
        assert as_set(found.toArrow()) == as_set(cep.match(table, asked, order_by="id", partition_by="s")) != []


def test_auto_leaves_few_rows_and_unknown_sources_alone(spark: SparkSession, tmp_path: Path) -> None:
    query = "PATTERN SEQ(e, R r) WITHIN 8"
    assert told(in_file(spark, bursts(6, rare=3), tmp_path), query) == (
        "all events are shuffled: there are 1,383 rows, and of fewer than 1,000,000 that is quicker"
    )
    assert told(spark.createDataFrame(bursts(6)), query).startswith(
        "all events are shuffled: it is not known how frequent which events are; rare= names"
    )


def test_what_pays() -> None:
    """A third of all rows, and a million, must be spared."""
    usual = Expected(rows=10_000_000, sent=1.0, rare=1e-5, bins=1e4, together=1.0)
    assert usual.pays
    assert usual.spared == pytest.approx(math.exp(-100 * 3 / 1e4 - 100 * 3 / BITS))
    changes: dict[str, Any] = {"rows": 1_000_000, "sent": 0.3, "rare": 1e-2, "bins": 100}
    for name, value in changes.items():
        assert not replace(usual, **{name: value}).pays, name
    assert Expected(rows=10_000_000, sent=1.0, rare=1e-3, bins=1e4, together=1e-3).pays

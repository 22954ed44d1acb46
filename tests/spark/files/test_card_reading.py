"""Files that tasks read by cuDF, with a stand-in for it, have the matches that they have as Arrow reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep.engine.input.device.gpu_files import GpuFiles
from gpu_cep.engine.input.sources import source_of
from gpu_cep.errors import UnsupportedError
from gpu_cep_spark.files import pieces as file_pieces
from tests.requirements import require_modules
from tests.spark.cards import stage_on_card
from tests.spark.conftest import CONNECT
from tests.spark.files.test_files import INTERVALS, ROWS
from tests.spark.samples import as_set
from tests.spark.slices.test_slices import QUERIES, streams

pytestmark = pytest.mark.skipif(CONNECT, reason="a client of Spark Connect does not see plans")


@pytest.fixture(autouse=True)
def some_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few rows be some pieces, and let these read rows several times."""
    for name, value in {"FEWEST_ROWS": 100, "ROWS_OF_START": 100, "CHEAP": 9.0, "DEAREST": 9.0, "HARDLY_LESS": 9.0}.items():
        monkeypatch.setattr(file_pieces, name, value)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tasks find a card and cuDF."""
    require_modules("cupy")
    monkeypatch.setattr("gpu_cep_spark.jobs.make_stage", stage_on_card)


def write(table: pa.Table, folder: Path, **options: Any) -> str:
    """A folder of two files, of which the first has half of the rows."""
    folder.mkdir(exist_ok=True)
    half = table.num_rows // 2
    for number, part in enumerate((table.slice(0, half), table.slice(half))):
        pq.write_table(part, folder / f"{number}.parquet", **{"row_group_size": 40, "use_dictionary": ["word"], **options})
    return str(folder)


def events(*, timed: bool = True) -> pa.Table:
    """Events in the order of time, of which some tie, and some have no key and no time unless `timed`; one column is in dictionaries."""
    table = streams(ROWS, 1).sort_by("ts")
    times = pa.array(table["ts"].to_numpy(), mask=None if timed else np.arange(ROWS) % 50 == 7)
    zoned = pa.array(np.arange(ROWS) // 3).cast(pa.timestamp("us", "UTC"))
    added = {"at": zoned, "word": pa.array([f"word {e % 5}" for e in range(ROWS)])}
    return pa.table({**dict(zip(table.column_names, table.columns, strict=True)), "ts": times, **added})


def assert_same(frame: DataFrame, query: str, **options: Any) -> cep.RunReport:
    """Run a query with files that cuDF and that Arrow reads, which have the same matches; return the report of the first."""
    reports = cep.RunReport(), cep.RunReport()
    roads = zip(({"scan": "gpu_files", "engine": "gpu"}, {"scan": "files"}), reports, strict=True)
    found, expected = (cep.gpu_match(frame, query, report=report, **road, **options) for road, report in roads)
    assert found.dtypes == expected.dtypes
    rows = as_set(found.toArrow())
    assert rows == as_set(expected.toArrow()) != []
    by_card, by_host = (report.counts for report in reports)
    assert by_card["tasks"] == by_host["tasks"]
    assert by_card["rows read"] == by_host["rows read"]
    assert by_card["bytes read to cards"] > 0
    assert reports[0].engines.keys() == {"gpu"}
    return reports[0]


DISJOINT = {"after_match": "skip_past_last", "ties": "position"}


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize(("name", "options"), [
    ("both", {"partition_by": "s", "nulls": "drop", "output": "events", **DISJOINT}),
    ("any", {"partition_by": "s", "output": "count"}),
    ("returned", {"timestamp": "at"}),
])  # fmt: skip
def test_slices_on_cards(spark: SparkSession, tmp_path: Path, name: str, options: Any) -> None:
    frame = spark.read.parquet(write(events(timed="nulls" not in options), tmp_path / "t"))
    query = QUERIES[name].replace("WITHIN 6", "WITHIN 6 microseconds") if "timestamp" in options else QUERIES[name]
    report = assert_same(frame, query, **options)
    assert report.counts["tasks"] > 2, report.scan
    if name == "returned":
        by_arrow = "Arrow reads word (it is text in dictionaries, which cuDF would write out)"
        assert report.scan.endswith(f"; cuDF reads ts, type, s, k, n, at to the card; {by_arrow}")
        assert report.counts["bytes read"] > 0


@pytest.mark.usefixtures("card")
def test_one_piece_on_a_card(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FEWEST_ROWS", "ROWS_OF_START"):
        monkeypatch.setattr(file_pieces, name, ROWS)
    frame = spark.read.parquet(write(events(timed=False), tmp_path / "t"))
    for query in (INTERVALS, "PATTERN SEQ(A a, D d)"):
        assert "one piece" in assert_same(frame, query, partition_by="s", output="count", nulls="drop").scan
    with pytest.raises(PythonException, match=r"timestamp column 'ts' holds 8 NULLs in one partition of the events"):
        cep.gpu_match(frame, QUERIES["next"], scan="gpu_files").collect()


@pytest.mark.usefixtures("card")
def test_slices_that_do_not_fit_a_card(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.parquet(write(events(), tmp_path / "t"))
    message = r"of the card, of which 27,000 are allowed by gpu_memory\n.*scan='files' has Arrow read the files to the host"
    with pytest.raises(PythonException, match=message):
        cep.gpu_match(frame, "PATTERN SEQ(A a, D d)", scan="gpu_files", gpu_memory=27_000).collect()


@pytest.mark.usefixtures("card")
def test_files_that_change_are_noticed(spark: SparkSession, tmp_path: Path) -> None:
    found = cep.gpu_match(spark.read.parquet(write(events(), tmp_path / "t")), QUERIES["next"], scan="gpu_files")
    write(events(timed=False), tmp_path / "t")
    with pytest.raises(PythonException, match=r"\d\.parquet: it has changed since the query was made"):
        found.collect()


def test_tasks_without_a_card(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.parquet(write(events(), tmp_path / "t"))
    with pytest.raises(PythonException, match=r"EngineUnavailable: scan='gpu_files' is not available: .*; the pattern is PATTERN"):
        cep.gpu_match(frame, QUERIES["next"], scan="gpu_files").collect()


@pytest.mark.parametrize(("query", "options", "message"), [
    (QUERIES["next"], {"engine": "cpu"}, "reads to a card, which engine='cpu' does not use"),
    (QUERIES["next"], {"slices": 9}, "scan='gpu_files' cuts along row groups"),
    (INTERVALS, {"partition_by": "s"}, "is not possible: situations reach from slice to slice"),
    ("PATTERN SEQ(A a, B b) WITHIN 4 EVENTS", {"partition_by": "s"}, "is not possible: there are 2 pieces by a hash of keys"),
    ("MATCH_RECOGNIZE (ORDER BY ts PATTERN (A) DEFINE A AS n > 1)", {}, "scan='gpu_files' is not supported for MATCH_RECOGNIZE"),
])  # fmt: skip
def test_what_no_card_can_read(spark: SparkSession, tmp_path: Path, query: str, options: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        cep.gpu_match(spark.read.parquet(write(events(), tmp_path / "t")), query, scan="gpu_files", **options)


def test_gpu_files_are_given_by_path(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(write(events(), tmp_path / "t"))
    assert source is not None
    with pytest.raises(cep.EventError, match=r"give the path: .*scan='gpu_files'"):
        cep.gpu_match(spark, GpuFiles(source), QUERIES["next"])


def test_filters_of_the_frame_are_the_host_s(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.parquet(write(events(), tmp_path / "t"))
    searched = "gpu (cpu where an event leaves a choice) for phase 2"
    # this process has no card, and needs none
    for engine in ("auto", "gpu"):
        explained = str(cep.events(frame).explain(f"{QUERIES['next']} RETURN a.n", scan="gpu_files", engine=engine))
        assert explained.endswith("; cuDF reads ts, type, n to the card")
        assert f"engine     gpu for phase 1 (the card of each task), {searched}: tasks read the events to it" in explained.splitlines()
    assert "tasks read the events to it" not in str(cep.events(frame).explain(QUERIES["next"], scan="files"))
    for other, message in {
        frame.where("n > 7"): r"the DataFrame filters rows, which is done on the host\n.*scan='files' has Arrow",
        frame.limit(9): r"its plan has a node .*\n  hint: scan='auto' lets Spark read the events",
    }.items():
        with pytest.raises(UnsupportedError, match=message):
            cep.events(other).explain(QUERIES["next"], scan="gpu_files")

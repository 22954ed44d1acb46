"""Streams are cut where that is faster, by what is known without a job; shuffles have tasks for all cores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import gpu_cep as cep
from gpu_cep.analysis.options import Options
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from gpu_cep_spark.slices import stream_costs
from gpu_cep_spark.slices.choice import KnownStreams, SlicingChoice, choose_slicing
from gpu_cep_spark.slices.cut import Slicing
from gpu_cep_spark.slices.shuffle_tasks import FEWEST_BYTES, TASK_BYTES, bytes_in, cores_of, estimated_bytes, tasks_of_shuffle
from gpu_cep_spark.slices.statistics import count_rows, stream_shares
from gpu_cep_spark.slices.stream_costs import cost_of_slices, cost_of_whole, cutting_pays, fullest_core
from tests.spark.samples import as_set
from tests.spark.slices.test_slices import QUERIES, streams

MEBI, GIBI = 1 << 20, 1 << 30


def even(keys: int) -> list[float]:
    return [1 / keys] * keys


def zipf(keys: int) -> list[float]:
    weights = 1 / np.arange(1, keys + 1)
    return (weights / weights.sum()).tolist()


def choice(
    text: str, shares: Sequence[float] | None, span: int | None = None, cores: int | None = 2, tasks: int = 8,
    rows: int | None = None,
) -> SlicingChoice:  # fmt: skip
    plan = make_plan(text, streams(1, seed=0).schema, Options(), Settings())
    known = KnownStreams(cores, lambda: tasks, lambda: span, lambda: shares, lambda: rows, keyed=bool(plan.stream_keys))
    return choose_slicing(plan, "auto", None, known)


@pytest.mark.parametrize(
    ("shares", "cores", "cut"),
    [
        (even(1), 1, False),
        (even(1), 2, True),
        (even(1), 64, True),
        (even(2), 2, False),
        (even(2), 8, True),
        (even(10), 2, False),
        (even(10), 8, False),
        (even(10), 64, True),
        (even(50), 2, False),
        (even(50), 16, False),
        (even(1000), 64, False),
        (even(1_000_000)[:1000], 256, False),
        ([], 256, False),
        (zipf(2), 2, False),
        (zipf(50), 2, False),
        (zipf(50), 16, True),
        (zipf(1000), 4, False),
        (zipf(1000), 32, True),
        ([0.9, *[0.001] * 100], 2, True),
        ([0.9, *[0.001] * 100], 1, False),
    ],
)
def test_streams_are_cut_where_one_fills_a_core(shares: list[float], cores: int, cut: bool) -> None:
    assert cutting_pays(shares, cores, 1 / 16, math.inf, math.inf) == cut


@pytest.mark.parametrize(
    ("cores", "rows", "cut"), [(2, 0, False), (2, 1_000_000, False), (2, 8_000_000, True), (64, 100_000, False), (64, 8_000_000, True)]
)
def test_few_rows_are_not_worth_a_further_shuffle(cores: int, rows: int, cut: bool) -> None:
    assert cutting_pays(even(1), cores, 1 / 16, math.inf, rows) == cut
    query = "PARTITION BY k PATTERN SEQ(A a, B b) WITHIN 6"
    assert (choice(query, even(1), 10**6, cores=cores, rows=rows).slicing is not None) == cut


@given(st.lists(st.floats(0.001, 1), max_size=40), st.integers(1, 64), st.floats(0, 1), st.floats(0, 1000))
def test_costs_of_streams(weights: list[float], cores: int, copies: float, slices: float) -> None:
    shares = [weight / sum(weights) for weight in weights]
    fullest = fullest_core(shares, cores)
    assert max([1 / cores, *shares]) <= fullest <= 1 / cores + max(shares, default=0) + 1e-9
    assert cost_of_whole(shares, cores) >= 1 - 1e-9
    cost = cost_of_slices(shares, cores, copies, slices, 1e6)
    assert cost >= 1 + copies - 1e-9
    assert cost >= cost_of_slices(shares, cores, copies, 2 * slices, 1e6)
    assert cost >= cost_of_slices(shares, cores, copies, slices, 2e6)


def test_slices_need_streams_that_are_long() -> None:
    apart = "PARTITION BY k PATTERN SEQ(A a, B b) WITHIN 6"
    assert choice(apart, even(1), 96 * 64).slicing == Slicing(96, 6, looks_back=False)
    assert choice(apart, even(1), 1000 * 8 * 32).slicing == Slicing(1000, 6, looks_back=False)
    assert choice(apart, even(1), None).slicing == Slicing(96, 6, looks_back=False)
    assert choice(apart, even(1), 24).slicing is None


def test_streams_with_keys_are_cut_only_if_they_are_known() -> None:
    for keyed in ("PARTITION BY k PATTERN SEQ(A a, B b) WITHIN 6", "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 6"):
        assert choice(keyed, None, 10**6) == (None, "streams are whole: they have keys, and how large they are is not known")
        assert choice(keyed, even(50), 10**6) == (None, "streams are whole: the largest of a sample has 2.0% of the rows, for 2 cores")
        assert choice(keyed, [0.9], 10**6).why == "streams are cut: the largest of a sample has 90.0% of the rows, for 2 cores"
        assert choice(keyed, [0.9], 10**6, cores=None).slicing is not None
    assert choice("PATTERN SEQ(A a, B b) WITHIN 6", None, 0) == (Slicing(24, 6, looks_back=False), "streams are cut: they have no keys")


def test_a_negation_that_looks_back_doubles_the_copies() -> None:
    cut = [choice(f"PARTITION BY k PATTERN SEQ({form}A a, B b) WITHIN 6", even(1), 40 * 64).slicing for form in ("", "NOT(D d), ")]
    assert cut == [Slicing(40, 6, looks_back=False), None]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PATTERN SEQ(A a, B b)", "they cannot be cut without a window"),
        ("PATTERN SEQ(A a, B b) WITHIN 6 EVENTS", "slices of a window of events need a length"),
        ("PARTITION BY k DEFINE S AS n > 1, T AS n < 1 PATTERN S before T WITHIN 9", "situations with a key are not cut by themselves"),
    ],
)
def test_what_is_not_cut_by_itself(text: str, why: str) -> None:
    assert choice(text, even(1), 10**6) == (None, f"streams are whole: {why}")


def test_slices_are_shares_of_what_files_hold() -> None:
    lengths = {span: choice("PATTERN SEQ(A a, B b) WITHIN 6", None, span, tasks=2).slicing for span in (None, 0, 64_000)}
    assert {span: slicing.length for span, slicing in lengths.items() if slicing} == {None: 96, 0: 24, 64_000: 1000}
    counted = make_plan("PATTERN SEQ(A a, B b) WITHIN 6 EVENTS", streams(1, seed=0).schema, Options(), Settings())
    given_length = choose_slicing(counted, 1000, None, KnownStreams(2, lambda: 2, lambda: None, lambda: None, lambda: None, keyed=True))
    assert given_length == (Slicing(1000, 0, looks_back=False, behind=5), "streams are cut: slices=1000")


def test_a_sample_of_files_tells_how_large_streams_are(spark: SparkSession, tmp_path: Path) -> None:
    """A stream that is large in a few row groups only does not count."""
    random = np.random.default_rng(3)
    rows = 8_000
    hot, drifting = np.where(random.random(rows) < 0.6, 7, random.integers(100, 100_000, rows)), np.arange(rows) // 1_000
    names = pa.array([f"s{key}" for key in hot]).dictionary_encode()
    pq.write_table(pa.table({"hot": hot, "s": names, "drifting": drifting}), tmp_path / "a file.parquet", row_group_size=1_000)
    frame = spark.read.parquet(str(tmp_path))
    for keys in (["hot"], ["s"], ["hot", "s"]):
        shares = stream_shares(frame, keys)
        assert shares is not None
        assert len(shares) < 5
        assert shares[0] == pytest.approx(0.6, abs=0.05)
    assert count_rows(frame) == rows
    assert count_rows(spark.range(3).toDF("id")) is None
    assert stream_shares(frame, ["drifting"]) == []
    assert stream_shares(frame.withColumnRenamed("s", "other"), ["other"]) is None
    assert stream_shares(spark.range(3), ["id"]) is None


@pytest.mark.parametrize(
    ("size", "cores", "partitions", "tasks"),
    [
        (GIBI, 2, 200, 16),
        (100 * MEBI, 2, 200, 8),
        (100 * MEBI, 2, 5, 5),
        (100 * MEBI, 16, 4, 16),
        (100 * GIBI, 16, 200, 200),
        (20 * MEBI, 16, 200, 20),
        (2 * MEBI - 1, 2, 200, None),
        (2 * MEBI, 2, 200, 2),
        (None, 2, 8, 8),
        (None, 2, 200, None),
        (GIBI, None, 200, None),
    ],
)
def test_tasks_of_a_shuffle(size: int | None, cores: int | None, partitions: int, tasks: int | None) -> None:
    assert tasks_of_shuffle(size, cores, partitions) == tasks


@given(st.integers(0, 1 << 50), st.integers(1, 500), st.integers(1, 1000))
def test_tasks_keep_all_cores_busy_and_are_not_tiny(size: int, cores: int, partitions: int) -> None:
    tasks = tasks_of_shuffle(size, cores, partitions)
    if tasks is None:
        assert size < cores * FEWEST_BYTES
    else:
        assert cores <= tasks <= max(partitions, cores)
        assert tasks * FEWEST_BYTES <= size
        assert tasks * TASK_BYTES >= size or tasks == max(partitions, cores)


def test_sizes_in_words() -> None:
    told = {"8.0 EiB": 1 << 63, "17.2 MiB": 18_035_507, "80.0 B": 80, "1.5E+30 B": int(1.5e30), "3 parsecs": None}
    assert {text: bytes_in(f"Project [a], Statistics(sizeInBytes={text}, rowCount=7)") for text in told} == told
    assert bytes_in("Project [a]") is None


@pytest.mark.surface
def test_what_spark_knows_nothing_of_has_no_size(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "A")], "ts int, type string")
    assert (estimated_bytes(frame) or 0) < 1_000
    assert estimated_bytes(spark.range(100)) == 800


class Server:
    """A server of Spark Connect that counts how often it is asked for settings, and a client's session of it."""

    def __init__(self, **given: str) -> None:
        self.given, self.asked = given, 0

    @property
    def client(self) -> Server:
        return self

    def get_config_with_defaults(self, *pairs: tuple[str, str | None]) -> tuple[str | None, ...]:
        self.asked += 1
        return tuple(self.given.get(name.rpartition(".")[2], default) for name, default in pairs)


@pytest.mark.parametrize(
    ("given", "cores"),
    [
        ({"master": "local[3]"}, 3),
        ({"master": "local[4,2]"}, 4),
        ({"master": "yarn", "instances": "3", "cores": "4"}, 12),
        ({"master": "yarn", "cores": "4"}, None),
        ({}, None),
    ],
)
def test_a_server_is_asked_once_for_its_cores(given: dict[str, str], cores: int | None) -> None:
    servers = Server(**given), Server(master="local[7]")
    assert [cores_of(server) for server in servers * 2] == [cores, 7] * 2
    assert [server.asked for server in servers] == [1, 1]


@pytest.mark.surface
@pytest.mark.parametrize("slices", [None, 1_000])
def test_adaptive_execution_leaves_the_tasks(spark: SparkSession, tmp_path: Path, slices: int | None) -> None:
    rows = 180_000
    random = np.random.default_rng(4)
    events = pa.table(
        {"ts": np.arange(rows), "k": random.integers(0, 50, rows), "type": random.choice(list("AB"), rows), "x": random.random(rows)}
    )
    pq.write_table(events, tmp_path / "t", compression="none", use_dictionary=False)
    frame, report = spark.read.parquet(str(tmp_path / "t")), cep.RunReport()
    query = "PATTERN SEQ(A a, B b) WHERE a.x > 0.999 WITHIN 60"
    found = cep.gpu_match(frame, query, partition_by="k", report=report, slices=slices, scan="spark")
    assert as_set(found.toArrow()) == as_set(cep.match(events, query, partition_by="k"))
    assert cores_of(spark) == 2
    assert (estimated_bytes(frame) or 0) > 4 * MEBI
    assert report.counts["tasks"] == 4
    assert "slices=" in report.streams
    assert report.streams in str(report).splitlines()


# the fast suite cuts the others into slices of a given length
CUT = ("next", "contiguity of partitions", "leading", "both", "returned")


@pytest.mark.parametrize(
    "name", [name if name in CUT else pytest.param(name, marks=pytest.mark.full) for name in QUERIES if name != "no time"]
)
def test_auto_has_the_matches_of_whole_streams(
    spark: SparkSession, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """One stream has most of the rows: it is cut, and no match is lost or new."""
    monkeypatch.setattr(stream_costs, "ROWS_OF_SHUFFLE", 0)
    table = streams(200, seed=len(name))
    times = np.arange(200) // 4 * 64 + np.arange(200) % 4 - 300
    hot = np.where(np.arange(200) % 50 > 0, 1, 2)
    table = table.set_column(0, "ts", pa.array(times)).set_column(2, "s", pa.array(hot))
    pq.write_table(table, tmp_path / "t")
    frame, report = spark.read.parquet(str(tmp_path / "t")), cep.RunReport()
    found = cep.gpu_match(frame, QUERIES[name], partition_by="s", order_by="n", report=report)
    assert as_set(found.toArrow()) == as_set(cep.match(table, QUERIES[name], partition_by="s", order_by="n"))
    assert "streams are cut" in report.streams or "[k]" in QUERIES[name]


@pytest.mark.parametrize("options", [{"after_match": "skip_past_last"}, {"output": "events"}])
def test_streams_that_only_derived_keys_tell_apart_are_cut_as_one(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:  # fmt: skip
    query, events, report = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 6", streams(300, seed=2), cep.RunReport()
    pq.write_table(events, tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path / "t.parquet"))
    expected = cep.match(events, query, order_by="n", **options)
    assert expected.num_rows
    assert as_set(cep.gpu_match(frame, query, order_by="n", report=report, **options).toArrow()) == as_set(expected)
    assert report.streams == "streams are cut: they have no keys"

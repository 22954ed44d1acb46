"""Text that is only compared with a few constants is shuffled as codes."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import gpu_cep
from gpu_cep.analysis.options import Options
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from gpu_cep_spark.narrowing.codes import coded_columns
from tests.spark.samples import as_set, streams

EVENTS = streams(300, seed=5)
NAMES = EVENTS.schema.names


@pytest.mark.parametrize(
    ("text", "settings", "coded"),
    [
        ("PATTERN SEQ(A a, B b)", Settings(output="count"), {"type": ("A", "B")}),
        ("PATTERN SEQ(A a, B b) RETURN a.n AS n", Settings(), {"type": ("A", "B")}),
        ("PATTERN SEQ(a, b) WHERE a.type IN ('A', 'B') AND b.type = 'C'", Settings(output="count"), {"type": ("A", "B", "C")}),
        ("PATTERN SEQ(A a, B b) WHERE a.key = 'k1' AND b.key = 'k2'", Settings(output="count"), {"type": ("A", "B"), "key": ("k1", "k2")}),
        ("PATTERN SEQ(A a, B b) WHERE a.key = 'k1'", Settings(output="count"), {"type": ("A", "B")}),
        ("PATTERN SEQ(A a, B b) WHERE a.key = 'k1' AND b.key = 'k2' AND a.key <> b.key", Settings(output="count"), {"type": ("A", "B")}),
        ("PATTERN SEQ(a, b) WHERE a.type LIKE 'A%' AND b.type = 'B'", Settings(output="count"), {}),
        ("PATTERN SEQ(A a, b)", Settings(output="count"), {}),
        ("PATTERN SEQ(A a, B b) WHERE lower(a.type) = 'a'", Settings(output="count"), {}),
        ("PATTERN SEQ(A a, B b)", Settings(), {}),
        ("PATTERN SEQ(A a, B b) RETURN a.type AS t", Settings(), {}),
        ("PARTITION BY type PATTERN SEQ(A a, A b)", Settings(output="count"), {}),
        ("PATTERN SEQ(A a, B b)", Settings(output="count", prune=()), {}),
        ("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS", Settings(output="count"), {}),
    ],
)
def test_what_is_coded(text: str, settings: Settings, coded: dict[str, tuple[str, ...]]) -> None:
    codes = coded_columns(make_plan(text, EVENTS.schema, Options(), settings))
    assert {NAMES[number]: constants for number, constants in codes.items()} == coded


@pytest.mark.surface
def test_codes_reach_the_shuffle_and_change_nothing(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    text = "PATTERN SEQ(A a, B b+, C c) WHERE [key] AND a.key <> 'k4' WITHIN 40 RETURN a.n AS n, count(b) AS many, c.x AS x"
    found = gpu_cep.gpu_match(spark.read.parquet(str(tmp_path)), text)
    found.explain()
    assert "CASE WHEN" in capsys.readouterr().out
    local = gpu_cep.match(EVENTS, text)
    assert local.num_rows > 0
    assert as_set(found.toArrow()) == as_set(local)

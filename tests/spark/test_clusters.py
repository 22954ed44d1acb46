"""gpu_match without a driver in this process: over Spark Connect, and on executors in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = {
    "connect": "SparkSession.builder.remote('local[2]')",
    "local cluster": "SparkSession.builder.master('local-cluster[2,1,1024]').config('spark.ui.enabled', False)",
}
PROGRAM = """
from pyspark.sql import SparkSession

import gpu_cep as cep
from gpu_cep.testing.chemo import P1, chemo
from tests.spark.samples import QUERIES, as_set, streams

session = {session}.config("spark.sql.shuffle.partitions", 3).getOrCreate()
frame = session.createDataFrame(chemo())
found = cep.gpu_match(frame, P1, timestamp="T")
assert as_set(found.toArrow()) == as_set(cep.match(frame.toArrow(), P1, timestamp="T"))
events = streams(200, seed=1)
for output in ("matches", "count"):
    found = cep.gpu_match(session.createDataFrame(events), QUERIES["both"], output=output)
    assert as_set(found.toArrow()) == as_set(cep.match(events, QUERIES["both"], output=output))
cep.register(session)
session.createDataFrame(events).createOrReplaceTempView("events")
found = session.sql(f"SELECT * FROM gpu_match(TABLE(events), pattern => '{{QUERIES['both']}}')")
assert as_set(found.toArrow()) == as_set(cep.match(events, QUERIES["both"]))
print("the same matches")
session.stop()
"""


@pytest.mark.parametrize("kind", SESSIONS)
@pytest.mark.usefixtures("worker_environment")
def test_the_same_matches(kind: str) -> None:
    command = [sys.executable, "-c", PROGRAM.format(session=SESSIONS[kind])]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert "the same matches" in run.stdout, run.stderr

"""gpu_match without a driver in this process: over Spark Connect, and on executors in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = {
    "connect": "SparkSession.builder.remote('local[2]')",
    "local cluster": "SparkSession.builder.master('local-cluster[2,1,1024]').config('spark.ui.enabled', False).config(map=gpus)",
}
PROGRAM = """
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import gpu_cep as cep
from examples.chemo import P1, chemo
from tests.spark.clusters import GPU_CONF, devices_of_tasks, worker_conf
from tests.spark.samples import QUERIES, as_set, streams

gpus = GPU_CONF | worker_conf(Path(sys.argv[1]))
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
{more}
print("the same matches")
session.stop()
"""
# Where executors have GPUs, tasks use their own.
GPUS = """
assert devices_of_tasks(session) == [("1", 1)] * 4
events = streams(40, seed=3)
found = cep.gpu_match(session.createDataFrame(events), QUERIES["both"], engine="gpu", gpu_memory="1GiB")
assert as_set(found.toArrow()) == as_set(cep.match(events, QUERIES["both"], engine="cpu")) != []
"""


# executors in processes of their own run in test_faults, too
@pytest.mark.full
@pytest.mark.parametrize("kind", SESSIONS)
@pytest.mark.usefixtures("worker_environment")
def test_the_same_matches(kind: str, tmp_path: Path) -> None:
    program = PROGRAM.format(session=SESSIONS[kind], more=GPUS if kind == "local cluster" else "")
    command = [sys.executable, "-c", program, str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert "the same matches" in run.stdout, run.stderr

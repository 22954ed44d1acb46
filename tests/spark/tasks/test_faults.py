"""Workers and executors that die, tasks that fail, and tasks that are run twice: the matches stay the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.clusters import standalone
from tests.spark.conftest import ROOT

# One task of each job comes to harm between two batches of its result: the first that finds no mark.
PROGRAM = """
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import gpu_cep as cep
from gpu_cep_spark import jobs
from gpu_cep_spark.files import pieces
from tests.spark.clusters import GPU_CONF, devices_of_tasks
from tests.spark.quick import SETTINGS
from tests.spark.samples import QUERIES, as_set, streams

folder = Path(sys.argv[1])
session = (
    SparkSession.builder.master(sys.argv[2])
    .config("spark.ui.enabled", False)
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.executor.memory", "512m")
    .config("spark.sql.shuffle.partitions", 3)
    .config("spark.sql.adaptive.enabled", False)
    .config("spark.speculation", True)
    .config("spark.speculation.interval", "100ms")
    .config("spark.speculation.quantile", 0.5)
    .config("spark.speculation.minTaskRuntime", "2s")
    .config(map=GPU_CONF if sys.argv[2].startswith("spark:") else SETTINGS)
    .config("spark.python.daemon.module", "gpu_cep_spark.daemon")
    .getOrCreate()
)
make_stage = jobs.make_stage


def worker_dies():
    os.kill(os.getpid(), signal.SIGKILL)


def executor_dies():
    daemon = os.getppid()
    os.kill(int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)
    time.sleep(40)


def task_fails():
    raise OSError("the disk is on fire")


def task_hangs():
    time.sleep(40)


def harmed(harm, mark, work):
    stage = make_stage(work)

    def run(batches):
        for batch in stage(batches):
            yield batch.slice(0, 1)
            if not mark.exists():
                mark.touch()
                harm()
            yield batch.slice(1)

    return run


def same(events, name, **options):
    frame = session.createDataFrame(events).repartition(4)
    found = cep.gpu_match(frame, QUERIES[name], **options).toArrow()
    options.pop("worker_memory", None)
    assert as_set(found) == as_set(cep.match(events, QUERIES[name], **options | {"engine": "cpu"})) != [], name


def same_of_files(events, name, harm):
    mark, place = folder / "of files", str(folder / "events.parquet")
    pq.write_table(events.sort_by("ts"), place, row_group_size=30)
    pieces.FEWEST_ROWS, pieces.ROWS_OF_START, pieces.CHEAP, pieces.DEAREST, pieces.HARDLY_LESS = 20, 20, 9.0, 9.0, 9.0
    jobs.make_stage = partial(harmed, harm, mark)
    report = cep.RunReport()
    found = cep.gpu_match(session.read.parquet(place), QUERIES[name], scan="files", report=report).toArrow()
    assert as_set(found) == as_set(cep.match(events, QUERIES[name], engine="cpu")) != []
    assert mark.exists()
    assert "slices of time" in report.scan


events = streams(300, seed=7)
same_of_files(events, "both", worker_dies)
for harm in [globals()[name] for name in sys.argv[3:]]:
    mark = folder / harm.__name__
    jobs.make_stage = partial(harmed, harm, mark)
    same(events, "both", worker_memory="10kB", output="events" if harm is worker_dies else "matches")
    assert mark.exists(), harm
    print(harm.__name__, flush=True)
jobs.make_stage = make_stage
"""
# On the GPUs that tasks have, too.
ON_GPUS = """
assert devices_of_tasks(session) == [("1", 1)] * 4
same(streams(40, seed=8), "partition by", engine="gpu", gpu_memory="1GiB")
"""


def unharmed(folder: Path, master: str, program: str, *harms: str) -> list[str]:
    """The harms that a program survived."""
    command = [sys.executable, "-c", f"{program}\nsession.stop()", str(folder), master, *harms]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert run.returncode == 0, run.stderr[-5_000:]
    return run.stdout.split()


@pytest.mark.usefixtures("worker_environment")
def test_an_executor_that_dies_changes_no_match(tmp_path: Path) -> None:
    assert unharmed(tmp_path, "local-cluster[1,1,1024]", PROGRAM, "executor_dies") == ["executor_dies"]


@pytest.mark.full
@pytest.mark.usefixtures("worker_environment")
def test_what_tasks_suffer_changes_no_match(tmp_path: Path) -> None:
    harms = ["worker_dies", "task_fails", "task_hangs", "executor_dies"]
    with standalone(tmp_path, workers=2) as address:
        assert unharmed(tmp_path, address, PROGRAM + ON_GPUS, *harms) == harms

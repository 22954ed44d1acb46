"""The choice of an engine on a machine that has a device, be it simulated."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.engine.phase_one.engine_choice import choose_engine
from gpu_cep.engine.phase_one.engine_costs import bytes_per_event, calibrate
from gpu_cep.errors import EngineUnavailable
from gpu_cep_kernels.device.interface import Device
from tests.requirements import require_modules

ROOT = Path(__file__).resolve().parents[2]
PATTERN = "PARTITION BY key PATTERN SEQ(A a, B b+) WHERE prev(b.x) < b.x WITHIN 6 RETURN a.x AS low, max(b.x) AS high"
EVENTS = pa.table(
    {
        "ts": list(range(12)),
        "type": list("ABABBCABABBB"),
        "key": list("klklkkllkklk"),
        "x": [3.0, 1.0, 2.0, 5.0, 4.0, 9.0, 8.0, 7.0, 6.0, 2.5, 8.5, 1.5],
    }
)


def test_gpu_gives_the_matches_of_the_cpu():
    found = cep.match(EVENTS, PATTERN, engine="gpu")
    assert found.num_rows > 0
    assert found.equals(cep.match(EVENTS, PATTERN, engine="cpu"))


@pytest.mark.parametrize("gpu_memory", [1 << 20, "1MiB", "64GiB"])
def test_less_or_more_memory_gives_the_same_matches(gpu_memory):
    assert cep.match(EVENTS, PATTERN, engine="gpu", gpu_memory=gpu_memory).equals(cep.match(EVENTS, PATTERN, engine="cpu"))


def test_explain_names_the_device(device: Device):
    explained = cep.explain(EVENTS, PATTERN, engine="gpu")
    assert (explained.device, explained.reason) == (device.name, "engine='gpu'")
    assert "properties (phase 1, in bulk, gpu)" in str(explained)


def test_auto_never_takes_the_simulator(device: Device, caplog):
    if not device.simulated:
        pytest.skip("there is a card")
    plan = cep.explain(EVENTS, PATTERN).plan
    with caplog.at_level(logging.INFO, "gpu_cep"):
        chosen = choose_engine(plan, 10**9, bytes_per_event(plan))
    assert chosen.device is None
    assert "cannot run on GPU because CUDA is simulated" in chosen.reason


def test_the_device_can_be_measured(device: Device):
    found = calibrate(device)
    assert min(found.copy_rate, found.transfer_rate, found.latency) > 0


@pytest.mark.skipif(find_spec("cudf") is not None, reason="cuDF is installed")
def test_results_as_cudf_need_cudf():
    with pytest.raises(EngineUnavailable, match="result='cudf' is not available: No module named 'cudf'"):
        cep.match(EVENTS, PATTERN, result="cudf")


def test_results_as_cudf():
    pytest.importorskip("cudf")
    assert cep.match(EVENTS, PATTERN, result="cudf").to_arrow().to_pylist() == cep.match(EVENTS, PATTERN).to_pylist()


PROGRAM = """
from pyspark.sql import SparkSession

import gpu_cep as cep
from tests.spark.samples import QUERIES, as_set, streams

session = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", False)
    .config("spark.driver.memory", "1g")
    .config("spark.sql.shuffle.partitions", 2)
    .getOrCreate()
)
events = streams(60, seed=3)
for name in ("both", "partition by"):
    found = cep.gpu_match(session.createDataFrame(events), QUERIES[name], engine="gpu", gpu_memory="1GiB")
    assert as_set(found.toArrow()) == as_set(cep.match(events, QUERIES[name], engine="cpu")) != []
print("the same matches")
session.stop()
"""


@pytest.mark.full
def test_spark_gives_the_matches_of_the_cpu():
    require_modules("pyspark")
    roots = map(str, (ROOT, ROOT / "kernels", ROOT / "spark_glue"))
    # the workers, like this process, see a card or the simulator
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(roots)}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert "the same matches" in run.stdout, run.stderr

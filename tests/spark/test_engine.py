"""``engine=`` under Spark: the executors decide. (tests/gpu runs a query on executors that have a device.)"""

from __future__ import annotations

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import gpu_cep as cep
from gpu_cep_kernels.device.interface import DeviceUnavailable
from gpu_cep_kernels.device.selection import open_device
from tests.spark.samples import QUERIES, as_set, streams

pytestmark = pytest.mark.surface

EVENTS = streams(200, seed=4)


@pytest.fixture
def no_device():
    try:
        device = open_device()
    except DeviceUnavailable:
        return
    pytest.skip(f"there is a device: {device.name}")


@pytest.mark.usefixtures("no_device")
def test_gpu_fails_on_the_executor_with_the_cause(spark: SparkSession) -> None:
    frame = cep.gpu_match(spark.createDataFrame(EVENTS), QUERIES["both"], engine="gpu")
    with pytest.raises(PythonException) as caught:
        frame.collect()
    assert "gpu_cep.errors.EngineUnavailable: phase 1 cannot run on GPU because " in str(caught.value)
    assert "use engine='auto' or engine='cpu'" in str(caught.value)


@pytest.mark.parametrize("engine", ["auto", "cpu"])
def test_auto_and_cpu_run_without_a_device(spark: SparkSession, engine: str) -> None:
    found = cep.gpu_match(spark.createDataFrame(EVENTS), QUERIES["both"], engine=engine, gpu_memory="1GB")
    assert as_set(found.toArrow()) == as_set(cep.match(EVENTS, QUERIES["both"], engine="cpu")) != []

"""Clusters on loopback, whose workers have GPUs by the word of a script alone; what runs on them is CUDA's simulator."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark import TaskContext
from pyspark.sql import SparkSession

from gpu_cep_kernels.device import selection
from gpu_cep_spark.tasks.devices import use_device_of_task

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
DEPLOY = "org.apache.spark.deploy"
# Of an application: each executor has a GPU, and its tasks use it one at a time.
GPU_CONF = {
    "spark.executor.resource.gpu.amount": "1",
    "spark.task.resource.gpu.amount": "1",
    "spark.executorEnv.NUMBA_ENABLE_CUDASIM": "1",
}


def worker_conf(folder: Path) -> dict[str, str]:
    """The configuration of a worker with a GPU of address 1."""
    script = folder / "gpus"
    script.write_text("""#!/bin/sh\necho '{"name": "gpu", "addresses": ["1"]}'\n""")
    script.chmod(0o755)
    return {"spark.worker.resource.gpu.amount": "1", "spark.worker.resource.gpu.discoveryScript": str(script)}


def devices_of_tasks(session: SparkSession) -> list[tuple[str, int]]:
    """For each of some tasks the address of its GPU, and the number of the device that the engine would use of two."""
    rows = session.range(4, numPartitions=4).mapInArrow(_device_of_task, "address string, number long").collect()
    return [(row.address, row.number) for row in rows]


def _device_of_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None
    use_device_of_task(context, os.environ)
    yield pa.record_batch({"address": context.resources()["gpu"].addresses, "number": [selection._selections[0].number(2)]})


@contextmanager
def standalone(folder: Path, workers: int) -> Iterator[str]:
    """The address of a master and so many workers of one core and one GPU each; every worker has a host of its own, by name."""
    properties = folder / "worker.conf"
    properties.write_text("".join(f"{name} {value}\n" for name, value in worker_conf(folder).items()))
    size = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder), "--properties-file", str(properties)]
    with ExitStack() as processes:
        ports = ["--port", "0", "--webui-port", "0"]
        log = processes.enter_context(_running([f"{DEPLOY}.master.Master", "--host", "127.0.0.1", *ports], folder / "master.log"))
        address = _awaited(log, r"spark://127\.0\.0\.1:\d+")
        for number in range(1, workers + 1):
            command = [f"{DEPLOY}.worker.Worker", "--host", f"127.0.0.{number}", *ports, *size, address]
            log = processes.enter_context(_running(command, folder / f"worker{number}.log"))
            _awaited(log, "Successfully registered")
        yield address


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[Path]:
    with log.open("wb") as output:
        process = subprocess.Popen([str(SPARK_CLASS), *command], stdout=output, stderr=output, env=os.environ | {"SPARK_NO_DAEMONIZE": "1"})
    try:
        yield log
    finally:
        process.terminate()
        process.wait(300)


def _awaited(log: Path, line: str) -> str:
    """What matches in the log, once it is there."""
    end = time.monotonic() + 300
    while (found := re.search(line, log.read_text())) is None:
        if time.monotonic() > end:
            raise TimeoutError(log.read_text())
        time.sleep(0.1)
    return found[0]

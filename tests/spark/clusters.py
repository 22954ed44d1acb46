"""A standalone cluster on loopback, whose workers have GPUs by the word of a script alone."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
DEPLOY = "org.apache.spark.deploy"


def discovery_script(folder: Path, *addresses: str) -> Path:
    """A script that finds GPUs of these addresses, as Spark wants to hear of them."""
    script = folder / "gpus"
    listed = ", ".join(f'"{address}"' for address in addresses)
    script.write_text(f"""#!/bin/sh\necho '{{"name": "gpu", "addresses": [{listed}]}}'\n""")
    script.chmod(0o755)
    return script


@contextmanager
def standalone(folder: Path, workers: int) -> Iterator[str]:
    """The address of a master and so many workers of one core and one GPU each; every worker has a host of its own, by name."""
    properties = folder / "worker.conf"
    script = discovery_script(folder, "0")
    properties.write_text(f"spark.worker.resource.gpu.amount 1\nspark.worker.resource.gpu.discoveryScript {script}\n")
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
        process.wait(30)


def _awaited(log: Path, line: str) -> str:
    """What matches in the log, once it is there."""
    for _ in range(300):
        if (found := re.search(line, log.read_text())) is not None:
            return found[0]
        time.sleep(0.1)
    raise TimeoutError(log.read_text())

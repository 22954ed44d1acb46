"""A client without Python asks Spark's Thrift server, which has the extension, with MATCH_RECOGNIZE."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpu_cep as cep
from tests.spark.clusters import SPARK_CLASS
from tests.statements import FALL, FALLS, TICKS

pytestmark = pytest.mark.full

SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
SETTINGS = {"spark.master": "local[2]", "spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
SECONDS = 500


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("localhost", port)) == 0


@pytest.fixture(scope="module")
def url(worker_environment: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Thrift server of one process, which is started as sbin/start-thriftserver.sh starts it."""
    port, folder = free_port(), tmp_path_factory.mktemp("thrift")
    settings = SETTINGS | cep.sql_conf() | {"spark.sql.warehouse.dir": str(folder / "warehouse")}
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command = [str(SPARK_CLASS), "org.apache.spark.deploy.SparkSubmit", "--class", SERVER, *given, "spark-internal"]
    environment = os.environ | {"HIVE_SERVER2_THRIFT_PORT": str(port), "HIVE_SERVER2_THRIFT_BIND_HOST": "localhost"}
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, env=environment)
        try:
            begun = time.monotonic()
            while not listens(port):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() - begun < SECONDS, log.read_text()
                time.sleep(0.2)
            yield f"jdbc:hive2://localhost:{port}/default"
        finally:
            process.terminate()
            process.wait(SECONDS)


def asked(url: str, statement: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What the command line of Hive's driver for JDBC prints for a statement."""
    beeline = ["org.apache.hive.beeline.BeeLine", "-u", url, "-n", "anyone", "--silent=true", "--outputformat=csv2", "--showHeader=false"]
    (folder / "asked.sql").write_text(f"{statement};\n")
    return subprocess.run(
        [str(SPARK_CLASS), *beeline, "-f", str(folder / "asked.sql")], capture_output=True, text=True, timeout=SECONDS, check=False
    )  # fmt: skip


def test_rows_come_over_jdbc(url: str, tmp_path: Path) -> None:
    listed = ", ".join(map(str, zip(*TICKS.to_pydict().values(), strict=True)))
    found = asked(url, f"SELECT * FROM (SELECT * FROM VALUES {listed} AS t (ts, sym, price)) {FALL} AS m", tmp_path)
    assert found.returncode == 0, found.stderr
    # a line may begin with what the client prints for a prompt
    assert sorted(re.findall(r"[AB],\d+,\d+", found.stdout)) == [",".join(map(str, row)) for row in FALLS]


def test_faults_come_over_jdbc(url: str, tmp_path: Path) -> None:
    found = asked(url, f"SELECT * FROM (SELECT 1 AS ts, 'a' AS sym, 2 AS price) {FALL.replace('D.price', 'D.prize')} AS m", tmp_path)
    assert found.returncode != 0
    assert "unknown column 'prize'" in found.stderr

"""One small local Spark session for all tests on Spark, behind a Connect server if CEP_SPARK_CONNECT is set."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from gpu_cep.engine.streaming import decisive
from gpu_cep_spark import sql_conf
from gpu_cep_spark.reports import row_metrics, run_report
from gpu_cep_spark.streaming import packing, state
from gpu_cep_spark.streaming.checks import ROCKS, STORE
from tests.awkward import SPARK_BATCH, make_spark_awkward
from tests.spark.quick import SETTINGS, remember_names, share_daemons, warm_python
from tests.spark.streaming.live_sources import CHANGELOG

ROOT = Path(__file__).resolve().parents[2]
CONNECT = bool(os.environ.get("CEP_SPARK_CONNECT"))
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
    # for the compiled code of a whole suite, which would be thrown out of 48 MB and compiled again
    "-XX:ReservedCodeCacheSize=240m"
)
# Of rows that the driver has; more than there are cores.
LOCAL_PARTITIONS = 3
# those that start clusters and servers, and those that need a driver in this process
APART = ("test_clusters", "test_extension", "test_thrift_server", "tasks/test_faults", "tasks/test_handshake")
collect_ignore = [f"{name}.py" for name in APART] if CONNECT else []


@pytest.fixture(scope="session")
def worker_environment() -> None:
    """Lets workers start with this Python and find the packages of the checkout, and spares Java what only a long run repays."""
    roots = [str(ROOT), str(ROOT / "kernels"), str(ROOT / "spark_glue")]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("JDK_JAVA_OPTIONS", JAVA_OPTIONS)
    os.environ["PYTHONPATH"] = os.pathsep.join([*roots, *filter(None, [os.environ.get("PYTHONPATH")])])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Behind a server the fast suite runs again what touches the DataFrame's surface, the session and errors.

    It takes one set of parameters of each test: queries and options are not what a client does otherwise.
    """
    if not CONNECT or config.getoption("--full"):
        return
    repeated: dict[str, pytest.Item] = {}
    for item in items:
        if item.get_closest_marker("surface") and not item.get_closest_marker("full"):
            repeated.setdefault(item.nodeid.partition("[")[0], item)
    left_out = [item for item in items if item not in repeated.values()]
    config.hook.pytest_deselected(items=left_out)
    items[:] = repeated.values()


@pytest.fixture(scope="session", autouse=True)
def patience() -> None:
    """Lets reports wait for what Spark tells of an action behind its end, however busy the machine is."""
    row_metrics._PATIENCE = run_report._PATIENCE = 300.0


@pytest.fixture(scope="session")
def spark(worker_environment: None, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    if quick := not pytestconfig.getoption("--full"):
        os.environ["PYSPARK_PYTHON"] = warm_python(tmp_path_factory.mktemp("command"))
    builder = SparkSession.builder.remote("local[2]") if CONNECT else SparkSession.builder.master("local[2]")
    if quick:
        builder = builder.config(map=SETTINGS)
    if pytestconfig.getoption("--awkward"):
        make_spark_awkward()
        builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", SPARK_BATCH)
    session = (
        builder.appName("gpu_cep tests")
        .config(map=sql_conf())
        .config("spark.ui.enabled", False)
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", 4)
        .config("spark.sql.leafNodeDefaultParallelism", LOCAL_PARTITIONS)
        .config("spark.sql.session.timeZone", "Europe/Zurich")
        .getOrCreate()
    )
    with pytest.MonkeyPatch.context() as patched:
        if quick:
            remember_names(patched)
        if quick and not CONNECT:
            share_daemons(session)
        yield session
    session.stop()


@pytest.fixture(scope="module")
def rocks(spark: SparkSession) -> Iterator[None]:
    """Keeps the state of streams in RocksDB."""
    # of the state one partition and no snapshots: each costs a task and a worker in every micro-batch, and these the most
    given = {STORE: ROCKS, CHANGELOG: "true", "spark.sql.shuffle.partitions": "1"}
    before = {name: spark.conf.get(name, None) for name in given}
    for name, value in given.items():
        spark.conf.set(name, value)
    yield
    for name, set_before in before.items():
        spark.conf.unset(name) if set_before is None else spark.conf.set(name, set_before)


@pytest.fixture(scope="module")
def few_buckets() -> Iterator[None]:
    """Two buckets for each group, whose chunks are joined soon, so that each has many keys and its list is written anew."""
    with patch.object(packing, "BUCKETS_PER_PARTITION", 2), patch.object(state, "MOST_CHUNKS", 3):
        yield


@pytest.fixture(scope="module")
def decided_at_once() -> Iterator[None]:
    """Decided events are given up however few they are."""
    with patch.object(decisive, "_FEWEST", 0):
        yield

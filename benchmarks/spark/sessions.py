"""Open Spark for a measurement."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


@contextmanager
def spark_session(cores: int, memory: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a session on local cores whose driver has so much memory; it stops at the end."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quiet = {"spark.driver.memory": memory, "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.master(f"local[{cores}]").appName("gpu_cep benchmarks")
    session = builder.config(map={**quiet, **settings}).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()

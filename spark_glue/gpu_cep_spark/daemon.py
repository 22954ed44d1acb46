"""Fork Spark's Python workers from a process that has loaded the engine, if ``spark.python.daemon.module`` is this module.

Spark starts it once on each executor, in place of ``pyspark.daemon``. Without it each new worker loads the engine by itself.
"""

from __future__ import annotations

from importlib import import_module

import pyarrow as pa
from pyspark.daemon import manager

from gpu_cep_spark.tasks.worker_memory import spare_collections

LOADED = (
    "gpu_cep_spark.tasks.worker",
    "gpu_cep_spark.tasks.row_worker",
    "gpu_cep_spark.tasks.rule_worker",
    "gpu_cep_spark.streaming.processor",
)
"""The modules with what tasks do."""


def load() -> None:
    """Import what tasks need; workers need not collect it as garbage."""
    for module in LOADED:
        import_module(module)
    # pyarrow imports pandas with the first array, if it is installed
    pa.array([0])
    spare_collections()


if __name__ == "__main__":
    load()
    manager()

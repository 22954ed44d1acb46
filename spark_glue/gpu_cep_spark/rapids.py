"""Configure Spark for the RAPIDS Accelerator.

Warn of column types that its Python stage does not take. Sources: the plugin's configs.md,
rapids-udfs.md, supported_ops.md and MapInArrowExecShims.scala, of 26.08. Not tried on a cluster.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from gpu_cep.errors import PatternError

SETTING, PLUGIN = "spark.plugins", "com.nvidia.spark.SQLPlugin"
# The types that the plugin's mapInArrow takes, alone and inside arrays and structs; also timestamps, but in UTC only.
_TAKEN = (
    BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, DateType,
)  # fmt: skip
# The share of a GPU's memory that memory pools may take; CUDA's contexts need the rest.
MOST_SHARED = 0.9
_UTC = frozenset(("UTC", "Etc/UTC", "Z", "GMT", "+00:00"))

_log = logging.getLogger("gpu_cep")


def rapids_conf(*, cores: int, python_share: float = 0.4, tasks_on_gpu: int = 2) -> dict[str, bool | float | int | str | None]:
    """Return a configuration for a cluster with the RAPIDS Accelerator.

    It is for ``SparkSession.builder.config(map=…)`` or spark-submit. The
    plugin's jar, its discovery script and the packages must be set up on the
    cluster (docs/cluster.md). The configuration has not been tried on one.

    Parameters
    ----------
    cores
        The cores of an executor, which has one GPU.
    python_share
        The share of the GPU's memory for all Python workers together; most of the rest is the plugin's.
    tasks_on_gpu
        The most tasks that use the GPU at a time, in the plugin and in Python workers.

    Raises
    ------
    PatternError
        A number is out of range.
    """
    if cores < 1 or tasks_on_gpu < 1 or not 0 < python_share < MOST_SHARED:
        raise PatternError(f"rapids_conf takes cores and tasks_on_gpu of at least 1, and a python_share between 0 and {MOST_SHARED}")
    plugin_share = f"{MOST_SHARED - python_share:.3f}"
    return {
        SETTING: PLUGIN,
        "spark.executor.cores": str(cores),
        # the plugin wants one GPU for an executor; fractions let all its cores have tasks
        "spark.executor.resource.gpu.amount": "1",
        "spark.task.resource.gpu.amount": f"{math.floor(10_000 / cores) / 10_000:.4f}",
        "spark.rapids.sql.concurrentGpuTasks": str(tasks_on_gpu),
        # else the plugin lets more tasks in as it sees fit
        "spark.rapids.sql.concurrentGpuTasks.dynamic": "false",
        # the plugin does not start with a smaller share than this, a quarter if it is not set
        "spark.rapids.memory.gpu.minAllocFraction": "0",
        "spark.rapids.memory.gpu.allocFraction": plugin_share,
        "spark.rapids.memory.gpu.maxAllocFraction": plugin_share,
        # Python workers get CUDA_VISIBLE_DEVICES and a pool of RMM's, which gpu_cep allocates from
        "spark.rapids.sql.python.gpu.enabled": "true",
        "spark.rapids.python.memory.gpu.pooling.enabled": "true",
        "spark.rapids.python.memory.gpu.allocFraction": f"{python_share:.3f}",
        "spark.rapids.python.memory.gpu.maxAllocFraction": f"{python_share:.3f}",
        # cannot deadlock: gpu_match is one Python stage, so a task never waits for a second worker
        "spark.rapids.python.concurrentPythonWorkers": str(tasks_on_gpu),
        # the plugin's mapInArrow takes no other zone, and no large types
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.useLargeVarTypes": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    }


def warn_of_types(sent: DataFrame, names: Iterable[str], returned: StructType) -> None:
    """Log which columns have types that the plugin does not take, if it is on.

    With such columns Spark's own mapInArrow runs the stage.

    Parameters
    ----------
    sent
        The rows that the Python stage reads.
    names
        The user's names of the columns of `sent`.
    returned
        The schema of the rows that the stage returns.
    """
    conf = sent.sparkSession.conf
    if PLUGIN not in str(conf.get(SETTING, "")) or conf.get("spark.rapids.sql.enabled", "true") != "true":
        return
    utc = conf.get("spark.sql.session.timeZone", "") in _UTC
    columns = [(f"reads {name!r}", field.dataType) for name, field in zip(names, sent.schema.fields, strict=True)]
    columns += [(f"returns {field.name!r}", field.dataType) for field in returned.fields]
    faults = [f"{column} ({kind.simpleString()})" for column, kind in columns if not _is_taken(kind, utc)]
    if faults:
        remedy = "cast them, leave them out with RETURN or columns=, or let spark.sql.session.timeZone be UTC"
        _log.warning("the data of a Python stage cannot travel on GPU because gpu_match %s; %s", ", ".join(faults), remedy)


def _is_taken(kind: DataType, utc: bool) -> bool:
    match kind:
        case ArrayType(elementType=element):
            return _is_taken(element, utc)
        case StructType(fields=fields):
            return all(_is_taken(field.dataType, utc) for field in fields)
        case TimestampType():
            return utc
        case StringType():
            # the plugin compares bytes, and takes no collation
            return kind == StringType()
    return isinstance(kind, _TAKEN)

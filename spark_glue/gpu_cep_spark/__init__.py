"""Run gpu_cep on Spark: push filters down, shuffle by stream, and run the engine on every executor."""

from importlib.util import find_spec

from gpu_cep.errors import EngineUnavailable

if find_spec("pyspark") is None:
    raise EngineUnavailable("gpu_match and all else under Spark need PySpark, which is not installed: pip install 'gpu_cep[spark]'")

from gpu_cep_spark.bound_events import SparkEvents
from gpu_cep_spark.heartbeat_rows import heartbeats
from gpu_cep_spark.matching import gpu_match
from gpu_cep_spark.progress_tables import gpu_progress
from gpu_cep_spark.rapids import rapids_conf
from gpu_cep_spark.rule_matching import gpu_match_all
from gpu_cep_spark.run_report import RunReport
from gpu_cep_spark.sql import register
from gpu_cep_spark.sql_extension import sql_conf

__all__ = [
    "RunReport",
    "SparkEvents",
    "gpu_match",
    "gpu_match_all",
    "gpu_progress",
    "heartbeats",
    "rapids_conf",
    "register",
    "sql_conf",
]

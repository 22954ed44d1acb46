"""Run gpu_cep on Spark: push filters down, shuffle by stream, and run the engine on every executor."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from gpu_cep.errors import EngineUnavailable

if TYPE_CHECKING:
    from gpu_cep_spark.bound_events import SparkEvents
    from gpu_cep_spark.matching import gpu_match
    from gpu_cep_spark.progress_tables import gpu_progress
    from gpu_cep_spark.rapids import rapids_conf
    from gpu_cep_spark.reports.run_report import RunReport
    from gpu_cep_spark.rule_sets.matching import gpu_match_all
    from gpu_cep_spark.sql import register
    from gpu_cep_spark.sql_extension import sql_conf
    from gpu_cep_spark.streaming.heartbeat_rows import heartbeats

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

# as in pyproject.toml
_OLDEST = (4, 1)
_MODULES = {
    "RunReport": "reports.run_report",
    "SparkEvents": "bound_events",
    "gpu_match": "matching",
    "gpu_match_all": "rule_sets.matching",
    "gpu_progress": "progress_tables",
    "heartbeats": "streaming.heartbeat_rows",
    "rapids_conf": "rapids",
    "register": "sql",
    "sql_conf": "sql_extension",
}


def _check_pyspark() -> None:
    """Raise EngineUnavailable if PySpark is missing, or older than what is used of it."""
    needed, remedy = "gpu_match and all else under Spark need PySpark", "pip install 'gpu_cep[spark]'"
    if find_spec("pyspark") is None:
        raise EngineUnavailable(f"{needed}, which is not installed: {remedy}")
    from pyspark.version import __version__

    if tuple(map(int, __version__.split(".")[:2])) < _OLDEST:
        raise EngineUnavailable(f"{needed} {'.'.join(map(str, _OLDEST))} or newer, and {__version__} is installed: {remedy}")


_check_pyspark()


def __getattr__(name: str) -> Any:
    # imported on first use: the Python workers of tasks need none of them, and start sooner
    if name not in _MODULES:
        raise AttributeError(f"module 'gpu_cep_spark' has no attribute {name!r}")
    return getattr(import_module(f"gpu_cep_spark.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

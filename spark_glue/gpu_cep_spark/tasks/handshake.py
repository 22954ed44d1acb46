"""Send work to executors as bytes, which they unpickle only if their gpu_cep fits the driver's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

from gpu_cep import __version__
from gpu_cep.analysis.row_patterns.bound import ROW_PATTERN_VERSION
from gpu_cep.plan.event_plan import PLAN_VERSION
from gpu_cep.plan.interval_plan import INTERVAL_PLAN_VERSION
from gpu_cep_spark.tasks.row_worker import RowWork, match_rows
from gpu_cep_spark.tasks.rule_worker import RuleWork, match_rules_of_partition
from gpu_cep_spark.tasks.worker import Work, match_partition

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def make_stage(work: Work | RowWork | RuleWork) -> Stage:
    """Return the function that an executor runs on each Spark partition to find matches; it raises as that of :func:`send`."""
    match work:
        case RowWork():
            return send(partial(match_rows, work))
        case RuleWork():
            return send(partial(match_rules_of_partition, work))
    return send(partial(match_partition, work))


def send(run: Stage) -> Stage:
    """Return a function that does the same as `run` on executors.

    There it raises ImportError or EngineUnavailable as the function that :func:`as_bytes` returns.
    """
    unpack = as_bytes(run)

    # cloudpickle sends a nested function by value: the executor needs nothing of this module to load it
    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from unpack()(batches)

    return stage


def as_bytes(what: Any) -> Callable[[], Any]:
    """Return a function that gives `what` on executors.

    There it raises ImportError if the executor lacks gpu_cep, or a package that gpu_cep needs, and EngineUnavailable if
    the plans of the executor's gpu_cep have another version.
    """
    payload: bytes = cloudpickle.dumps(what)
    release, versions = __version__, (PLAN_VERSION, INTERVAL_PLAN_VERSION, ROW_PATTERN_VERSION)

    # nested, so that it travels by value
    def unpack() -> Any:
        import gc
        import pickle
        import socket
        from importlib import import_module

        where = f"the Python worker on {socket.gethostname()}"
        remedy = f"install the driver's release there, gpu_cep {release}"
        collects = gc.isenabled()
        # each collection would go through all modules imported so far
        gc.disable()
        try:
            import_module("gpu_cep_spark.tasks.worker")
            from gpu_cep.analysis.row_patterns import bound
            from gpu_cep.errors import EngineUnavailable
            from gpu_cep.plan import event_plan, interval_plan
        except ImportError as fault:
            raise ImportError(f"{where} cannot import gpu_cep: {fault}; {remedy}") from None
        finally:
            if collects:
                gc.enable()
        found = event_plan.PLAN_VERSION, interval_plan.INTERVAL_PLAN_VERSION, bound.ROW_PATTERN_VERSION
        if found != versions:
            raise EngineUnavailable(f"{where} has plans of version {found}, and the driver of {versions}; {remedy}")
        from gpu_cep_spark.tasks.worker_memory import spare_collections

        spare_collections()
        return pickle.loads(payload)

    return unpack

"""Send work to executors as bytes, which they unpickle only if their gpu_cep fits the driver's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark import cloudpickle

from gpu_cep import __version__
from gpu_cep.analysis.row_patterns.bound import ROW_PATTERN_VERSION
from gpu_cep.plan.event_plan import PLAN_VERSION
from gpu_cep.plan.interval_plan import INTERVAL_PLAN_VERSION
from gpu_cep_spark.row_worker import RowWork
from gpu_cep_spark.worker import Work

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def make_stage(work: Work | RowWork) -> Stage:
    """Return the function that an executor runs on each Spark partition.

    It raises ImportError if the executor lacks gpu_cep, or a package that
    gpu_cep needs. It raises EngineUnavailable if the plans of the executor's
    gpu_cep have another version.
    """
    payload: bytes = cloudpickle.dumps(work)
    release, versions = __version__, (PLAN_VERSION, INTERVAL_PLAN_VERSION, ROW_PATTERN_VERSION)

    # cloudpickle sends a nested function by value: the executor needs nothing of this module to load it
    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pickle
        import socket

        where = f"the Python worker on {socket.gethostname()}"
        remedy = f"install the driver's release there, gpu_cep {release}"
        try:
            from gpu_cep.analysis.row_patterns import bound
            from gpu_cep.errors import EngineUnavailable
            from gpu_cep.plan import event_plan, interval_plan
            from gpu_cep_spark import row_worker, worker
        except ImportError as fault:
            raise ImportError(f"{where} cannot import gpu_cep: {fault}; {remedy}") from None
        found = event_plan.PLAN_VERSION, interval_plan.INTERVAL_PLAN_VERSION, bound.ROW_PATTERN_VERSION
        if found != versions:
            raise EngineUnavailable(f"{where} has plans of version {found}, and the driver of {versions}; {remedy}")
        given = pickle.loads(payload)
        answer = row_worker.match_rows if isinstance(given, row_worker.RowWork) else worker.match_partition
        yield from answer(given, batches)

    return stage

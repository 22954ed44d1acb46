"""Run tests with settings that nobody would choose, and that change no match: tiny batches, no pruning, one thread, spilled events."""

from __future__ import annotations

from unittest import mock

from gpu_cep import keywords
from gpu_cep.engine.events import batches
from gpu_cep.engine.intervals import join
from gpu_cep.engine.windows import candidates
from gpu_cep.plan.settings import memory_bytes, pruning_steps
from gpu_cep_kernels.compile import launch

# Events of a batch, parts of a batch in which candidates are sought, situations of a chunk, and pairs of them that are looked at at a time.
EVENTS, PARTS, SITUATIONS, PAIRS = 3, 2, 2, 3
# The bytes that a Spark worker may take unless a test says so; a quarter is for events, so that more than a few are spilled.
WORKER_MEMORY = 4_000
# Rows that Spark sends at a time.
SPARK_BATCH = 1


def make_awkward() -> None:
    """Change the defaults of this process, for good."""
    batches.cut_batches.__defaults__ = (EVENTS, 1)
    mock.patch.multiple(candidates, BATCH=EVENTS, _PARTS=PARTS, _EVENTS_PER_PART=1).start()
    mock.patch.multiple(join, _CHUNK=SITUATIONS, _CANDIDATES=PAIRS).start()
    mock.patch.object(keywords, "pruning_steps", lambda prune: pruning_steps(prune is not True and prune)).start()
    mock.patch.object(launch, "available_threads", return_value=1).start()


def make_spark_awkward() -> None:
    """Change the defaults of queries on Spark that this process sends, for good."""
    from gpu_cep_spark import matching, sql

    for module in (matching, sql):
        mock.patch.object(module, "memory_bytes", lambda size, name: memory_bytes(size, name) or WORKER_MEMORY).start()

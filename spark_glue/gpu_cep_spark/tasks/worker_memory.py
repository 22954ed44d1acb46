"""Decide how much memory a Python worker takes for events, and what its garbage collections go through."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping

from pyspark import TaskContext

from gpu_cep.engine.accounting.host_memory import address_space, container_memory, free_memory

# The most memory of events and of what the engine computes from them, in multiples of the events' own size; measured, see
# benchmarks/results/worker-memory-amd-epyc-2026-11-22.md. Matches come on top: max_matches and the engine bound them.
WORKING = 4
# The share of free memory that workers leave to the JVM, whose heap may still grow, and to their matches.
LEFT = 1 / 2
# Spark sets this variable for each worker: its share of spark.executor.pyspark.memory in MiB. It limits the address space, not the
# memory in use.
LIMIT = "PYSPARK_EXECUTOR_MEMORY_MB"
# The least that a worker takes, even if less is left.
LEAST = 1 << 24
_EXECUTOR_CORES = "resource.executor.cores"
# Objects through which a collection goes in about five milliseconds.
FEW_OBJECTS = 10_000


def bytes_of_events(memory: int | None, environment: Mapping[str, str], tasks: int) -> int:
    """Return the most bytes of events that a worker holds at a time.

    Parameters
    ----------
    memory
        The bytes that the user grants the worker; None for Spark's limit or a share of the free memory.
    environment
        The environment variables of the worker's process.
    tasks
        The number of workers that share the free memory.
    """
    if memory is None and LIMIT in environment:
        memory = max(LEAST, (int(environment[LIMIT]) << 20) - address_space())
    return (int(free_memory() * (1 - LEFT)) // tasks if memory is None else memory) // WORKING


def tasks_at_once(context: TaskContext | None) -> int:
    """Return how many tasks like this one may share the memory of the container or the machine."""
    within = None if context is None or container_memory() is None else context.getLocalProperty(_EXECUTOR_CORES)
    cores = int(within) if within else os.cpu_count() or 1
    return max(1, cores // (1 if context is None else context.cpus()))


def spare_collections() -> None:
    """Exempt the objects that are alive from garbage collection, if they are many.

    A worker collects garbage after each task, and each time would go through all modules and
    loaded kernels, 80 ms long. What is garbage already is collected first, or it would stay for ever.
    """
    if len(gc.get_objects()) > FEW_OBJECTS:
        gc.collect()
        gc.freeze()

"""How much of a machine's memory a Python worker takes for events."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pyspark import TaskContext

from gpu_cep.engine.accounting.host_memory import container_memory, free_memory

# What events and what the engine makes of them take at most together, in sizes of the events; measured, see
# benchmarks/results/worker-memory-amd-epyc-2026-11-22.md. Matches come on top: max_matches and the engine bound them.
WORKING = 4
# Of the memory that is free, workers leave so much to the JVM, whose heap may still grow, and to their matches.
LEFT = 1 / 2
# Set by Spark for each worker, in MiB: its part of spark.executor.pyspark.memory. It bounds the address space, not the memory in use.
LIMIT = "PYSPARK_EXECUTOR_MEMORY_MB"
# What a worker takes, however little it is left.
LEAST = 1 << 24
_EXECUTOR_CORES = "resource.executor.cores"


def bytes_of_events(memory: int | None, environment: Mapping[str, str], tasks: int) -> int:
    """Bytes of events that a worker may hold at a time.

    Parameters
    ----------
    memory
        Bytes that are for the worker; None: what Spark says, or a share of what is free.
    environment
        Of the worker's process.
    tasks
        Workers that share what is free.
    """
    if memory is None and LIMIT in environment:
        memory = max(LEAST, (int(environment[LIMIT]) << 20) - address_space())
    return (int(free_memory() * (1 - LEFT)) // tasks if memory is None else memory) // WORKING


def tasks_at_once(context: TaskContext | None) -> int:
    """How many tasks such as this one may share the memory: of the executor's container, or of the machine."""
    within = None if context is None or container_memory() is None else context.getLocalProperty(_EXECUTOR_CORES)
    cores = int(within) if within else os.cpu_count() or 1
    return max(1, cores // (1 if context is None else context.cpus()))


def address_space() -> int:
    """Bytes that this process has mapped, used or not; 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0

"""Which GPU a task uses; nothing here asks CUDA for anything, so that a worker's first use of it comes after the choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pyspark import TaskContext

from gpu_cep.engine.phase_one.engine_choice import use_device


def device_index(visible: str | None, addresses: Sequence[str], partition: int, count: int) -> int:
    """The number, among the `count` devices that CUDA sees, of the one for a task.

    Parameters
    ----------
    visible
        CUDA_VISIBLE_DEVICES. Where it is set, CUDA numbers what it lists, and
        a task whose address is not listed takes turns with the others.
    addresses
        Of the GPUs that Spark gave to the task.
    partition
        The task's; without any address, partitions take turns.

    Raises
    ------
    ValueError
        The task's GPU is none that CUDA sees.
    """
    listed = [] if visible is None else [device.strip() for device in visible.split(",")]
    if visible is None and addresses:
        listed = [str(number) for number in range(count)]
        if addresses[0] not in listed:
            raise ValueError(f"the task was given GPU {addresses[0]!r}, and CUDA sees {', '.join(listed)}")
    place = listed.index(addresses[0]) if addresses and addresses[0] in listed else partition
    return place % count


def use_device_of_task(context: TaskContext | None, environment: Mapping[str, str]) -> None:
    """Let the engine use the task's GPU, should it use any."""
    gpu = None if context is None else context.resources().get("gpu")
    addresses, partition = (() if gpu is None else tuple(gpu.addresses)), 0 if context is None else context.partitionId()
    use_device(partial(device_index, environment.get("CUDA_VISIBLE_DEVICES"), addresses, partition), bool(addresses))

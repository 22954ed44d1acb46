"""Choose the GPU that a task uses.

This makes no call to CUDA, because a worker must not touch CUDA before the choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pyspark import TaskContext

from gpu_cep_kernels.device.selection import select_device


def device_index(visible: str | None, addresses: Sequence[str], partition: int, count: int) -> int:
    """Return the number of the task's device among the `count` devices that CUDA sees.

    Parameters
    ----------
    visible
        The value of CUDA_VISIBLE_DEVICES, or None. If it is set, CUDA numbers
        the devices that it lists; a task whose address is not listed then
        takes the device of its partition number.
    addresses
        The addresses of the GPUs that Spark gave to the task.
    partition
        The task's partition number; without an address, partitions take turns.

    Raises
    ------
    ValueError
        CUDA does not see the task's GPU.
    """
    listed = [] if visible is None else [device.strip() for device in visible.split(",")]
    if visible is None and addresses:
        listed = [str(number) for number in range(count)]
        if addresses[0] not in listed:
            raise ValueError(f"the task was given GPU {addresses[0]!r}, and CUDA sees {', '.join(listed)}")
    place = listed.index(addresses[0]) if addresses and addresses[0] in listed else partition
    return place % count


def use_device_of_task(context: TaskContext | None, environment: Mapping[str, str]) -> None:
    """Tell the engine which GPU is the task's, in case that it uses one."""
    gpu = None if context is None else context.resources().get("gpu")
    addresses, partition = (() if gpu is None else tuple(gpu.addresses)), 0 if context is None else context.partitionId()
    select_device(partial(device_index, environment.get("CUDA_VISIBLE_DEVICES"), addresses, partition), bool(addresses))

"""Run work on a device in pieces that its memory holds: smaller ones each time that an allocation fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.input.read_tables import is_resident
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory, TooLittleMemory, memory_of
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.run import Run
from gpu_cep_kernels.device.failures import DeviceLost, told_apart
from gpu_cep_kernels.device.interface import Device
from gpu_cep_kernels.device.selection import give_up_device

Result = TypeVar("Result")

# Below this, less memory will not help.
_LEAST_MEMORY = 1 << 20


def run_in_pieces(run: Run, device: Device, work: Callable[[DeviceRun, DeviceMemory], Result]) -> Result:
    """Return the result of `work`, done in pieces that fit the device's memory.

    If an allocation fails, it is done again in smaller pieces.

    Raises
    ------
    TooLittleMemory
        With the smallest pieces they still fail.
    DeviceLost
        CUDA failed; from now on this process can use no device.
    """
    if is_resident(run.columns.table):
        # the columns may still be computed in the caller's lane
        device.synchronize()

    def attempt(memory: DeviceMemory) -> tuple[DeviceRun, Result]:
        # what a failed attempt counted must not count
        budget, profile = replace(run.budget), Profile()
        attempted = DeviceRun(run.plan, run.columns, run.tables, run.reported, budget, run.threads, profile, device)
        return attempted, work(attempted, memory)

    done, result = in_smaller_pieces(device, memory_of(device, run.plan), attempt)
    done.profile.count_run("gpu")
    run.profile.merge(done.profile)
    run.budget.take_over(done.budget)
    return result


def in_smaller_pieces(device: Device, memory: DeviceMemory, work: Callable[[DeviceMemory], Result]) -> Result:
    """Return the result of `work` on a device, done in pieces that fit `memory`, or half as much each time that an allocation fails.

    Raises
    ------
    TooLittleMemory
        With the smallest pieces they still fail.
    DeviceLost
        CUDA failed; from now on this process can use no device.
    """
    while True:
        try:
            with told_apart(), device.lane(None):
                return work(memory)
        except DeviceLost as fault:
            give_up_device(str(fault))
            raise
        except MemoryError as fault:
            memory = memory.halve()
            if memory.bytes < _LEAST_MEMORY:
                raise TooLittleMemory(str(fault)) from fault

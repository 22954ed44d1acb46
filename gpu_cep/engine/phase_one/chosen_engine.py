"""Run phase 1, or other work that both can do, on the engine that is chosen for it; the CPU takes over from a device that cannot."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from gpu_cep.engine.input.read_tables import is_resident
from gpu_cep.engine.phase_one.device.card_memory import TooLittleMemory
from gpu_cep.engine.phase_one.device.on_device import phase_one_on_device
from gpu_cep.engine.phase_one.engine_choice import EngineChoice
from gpu_cep.engine.phase_one.on_cpu import order_on_cpu
from gpu_cep.engine.phase_one.run import EventRun, PhaseOne, Run
from gpu_cep.errors import EngineUnavailable
from gpu_cep_kernels.device.failures import DeviceLost
from gpu_cep_kernels.device.interface import Device

Result = TypeVar("Result")

_log = logging.getLogger("gpu_cep")


def phase_one(run: EventRun, chosen: EngineChoice) -> PhaseOne:
    """Run phase 1 on the chosen engine, and return the ordered events.

    If the device has too little memory, or CUDA fails, the CPU takes over, and the choice is told. It does
    not where the plan asks for the device, nor for events that lie on a device that is lost.

    Raises
    ------
    EngineUnavailable
        The device cannot be used, and the CPU may not take over.
    """
    return on_chosen(run, chosen, lambda: order_on_cpu(run), partial(phase_one_on_device, run, searches=chosen.searches))


def on_chosen(run: Run, chosen: EngineChoice, on_cpu: Callable[[], Result], on_device: Callable[[Device], Result]) -> Result:
    """Return what `on_device` finds on the chosen device, or `on_cpu`; the CPU takes over as :func:`phase_one` says."""
    if chosen.device is None:
        return on_cpu()
    try:
        return on_device(chosen.device)
    except (TooLittleMemory, DeviceLost) as fault:
        if run.plan.settings.engine == "gpu" or (is_resident(run.columns.table) and isinstance(fault, DeviceLost)):
            raise _unavailable(fault) from fault
        _log.warning("engine='auto' runs on the CPU: %s", _reason(fault))
        if chosen.rates is not None:
            chosen.rates.refuse(str(fault))
        return on_cpu()


@contextmanager
def telling_why() -> Iterator[None]:
    """Run the block, and raise EngineUnavailable where the device has too little memory for it, or CUDA fails."""
    try:
        yield
    except (TooLittleMemory, DeviceLost) as fault:
        raise _unavailable(fault) from fault


def _unavailable(fault: TooLittleMemory | DeviceLost) -> EngineUnavailable:
    """Return the error for a device with too little memory, or on which CUDA failed."""
    if isinstance(fault, DeviceLost):
        return EngineUnavailable(f"{_reason(fault)}; no later run of this process can use it: use engine='cpu', or a new process")
    return EngineUnavailable(f"{_reason(fault)}; use engine='auto', engine='cpu' or a larger gpu_memory")


def _reason(fault: TooLittleMemory | DeviceLost) -> str:
    """Return why phase 1 cannot run on the device."""
    if isinstance(fault, DeviceLost):
        return f"phase 1 cannot run on GPU because CUDA failed: {fault}"
    return f"phase 1 cannot run on GPU because its memory does not suffice: {fault}"

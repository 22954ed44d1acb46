"""Phase 1 of a run, on the engine that is chosen for it."""

from __future__ import annotations

import logging

from gpu_cep.engine.choice import bytes_per_event, choose_engine
from gpu_cep.engine.device.memory import TooLittleMemory
from gpu_cep.engine.device.road import phase_one_on_device
from gpu_cep.engine.phase_one import PhaseOne, Run, order_on_cpu
from gpu_cep.engine.tables import is_resident
from gpu_cep.errors import EngineUnavailable

_log = logging.getLogger("gpu_cep")


def phase_one(run: Run) -> PhaseOne:
    """Phase 1 on the engine that is chosen; a device without the memory for it leaves it to the CPU, unless it was asked for by name."""
    settings = run.plan.settings
    resident = is_resident(run.columns.table)
    device = choose_engine(run.plan, len(run.columns), bytes_per_event(run.plan), run.threads, resident=resident).device
    if device is None:
        return order_on_cpu(run)
    try:
        return phase_one_on_device(run, device)
    except TooLittleMemory as fault:
        reason = f"phase 1 cannot run on GPU because its memory does not suffice: {fault}"
        if settings.engine == "gpu":
            raise EngineUnavailable(f"{reason}; use engine='auto', engine='cpu' or a larger gpu_memory") from fault
        _log.warning("engine='auto' runs on the CPU: %s", reason)
        return order_on_cpu(run)

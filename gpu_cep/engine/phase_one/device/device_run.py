"""Define a run on a device."""

from __future__ import annotations

from gpu_cep.engine.phase_one.run import Run
from gpu_cep.records import record
from gpu_cep_kernels.device.interface import Device


@record()
class DeviceRun(Run):
    """A run on a device."""

    device: Device

"""Tests of this folder need a device: a card, or numba's CUDA simulator (NUMBA_ENABLE_CUDASIM=1)."""

from __future__ import annotations

import pytest

from gpu_cep_kernels.device.interface import DeviceUnavailable
from gpu_cep_kernels.device.selection import open_device
from tests.gpu.strict_arrays import StrictDevice
from tests.requirements import require_modules


@pytest.fixture(scope="session", autouse=True)
def device():
    """The device of this process."""
    try:
        return open_device()
    except DeviceUnavailable as fault:
        pytest.skip(f"needs a card, or NUMBA_ENABLE_CUDASIM=1: {fault}")


@pytest.fixture
def strict(device, monkeypatch):
    """A strict device in place of the simulator."""
    if not device.simulated:
        pytest.skip("a card's arrays are strict themselves")
    require_modules("cupy")
    import cupy

    found = StrictDevice(cupy)
    monkeypatch.setattr("gpu_cep_kernels.device.selection._find_device", lambda: found)
    return found

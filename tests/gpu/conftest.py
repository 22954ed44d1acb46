"""Tests of this folder need a device: a card, or numba's CUDA simulator (NUMBA_ENABLE_CUDASIM=1)."""

from __future__ import annotations

from functools import cache

import pytest

from gpu_cep_kernels.device.interface import DeviceUnavailable
from gpu_cep_kernels.device.selection import open_device
from tests.gpu.strict_arrays import StrictDevice
from tests.requirements import require_modules


@cache
def lacking() -> str:
    """Why this process has no device, empty if it has one."""
    try:
        open_device()
    except DeviceUnavailable as fault:
        return f"needs a card, or NUMBA_ENABLE_CUDASIM=1: {fault}"
    return ""


class WithoutDevice(pytest.Module):
    """A module that is skipped before it is imported: its thousands of tests would each be skipped by itself."""

    def collect(self):
        pytest.skip(lacking())


def pytest_pycollect_makemodule(module_path, parent):
    return WithoutDevice.from_parent(parent, path=module_path) if lacking() else None


@pytest.fixture(scope="session", autouse=True)
def device():
    """The device of this process."""
    return open_device()


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

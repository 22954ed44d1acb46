"""Why a card cannot be used, for each cause: stand-ins for the driver and for CuPy fail as the real ones do."""

from __future__ import annotations

import contextlib
import re
import sys
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from gpu_cep_kernels.device import cuda_device, selection
from gpu_cep_kernels.device.cuda_device import CudaDevice
from gpu_cep_kernels.device.interface import DeviceUnavailable, NoDevice
from gpu_cep_kernels.device.selection import open_device


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def cupy_that(devices: int | Exception) -> SimpleNamespace:
    """CuPy on a machine with so many devices, or where counting them fails."""

    def count() -> int:
        if isinstance(devices, Exception):
            raise devices
        return devices

    def properties(device: int) -> dict[str, object]:
        return {"name": b"a card", "multiProcessorCount": 2}

    runtime = SimpleNamespace(getDeviceCount=count, getDeviceProperties=properties, CUDARuntimeError=CUDARuntimeError)
    driver = SimpleNamespace()
    cuda = SimpleNamespace(runtime=runtime, driver=driver, Device=lambda number: SimpleNamespace(use=lambda: None), Stream=lambda **_: None)
    return SimpleNamespace(__version__="14.2.0", cuda=cuda, zeros=np.zeros)


@pytest.fixture
def driver(monkeypatch):
    """A driver is there, and so are the packages."""
    monkeypatch.setattr(cuda_device.ctypes, "CDLL", lambda name: None)
    monkeypatch.setattr(cuda_device.importlib.util, "find_spec", lambda name: object())


def refusal(kind: type[DeviceUnavailable]) -> str:
    with pytest.raises(DeviceUnavailable) as caught:
        CudaDevice(0)
    assert type(caught.value) is kind
    return str(caught.value)


def test_no_driver(monkeypatch):
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(cuda_device.ctypes, "CDLL", missing)
    monkeypatch.setitem(sys.modules, "cupy", None)  # it is not even imported
    assert refusal(NoDevice).startswith("there is no CUDA driver (")


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("installed", "message"),
    [
        ({"numba_cuda"}, "there is no cupy (pip install 'gpu_cep[gpu]')"),
        ({"cupy"}, "there is no numba-cuda (pip"),
        (set(), "there is no cupy and no numba-cuda (pip"),
    ],
)
def test_missing_packages(monkeypatch, installed, message):
    monkeypatch.setattr(cuda_device.importlib.util, "find_spec", lambda name: object() if name in installed else None)
    assert refusal(DeviceUnavailable).startswith(message)


@pytest.mark.usefixtures("driver")
def test_a_package_that_cannot_be_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert refusal(DeviceUnavailable).startswith("CuPy cannot be imported: ")


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("devices", "kind", "message"),
    [
        (CUDARuntimeError(100, "cudaErrorNoDevice: none detected"), NoDevice, "CuPy 14.2.0 cannot use the CUDA driver: cudaErrorNoDevice"),
        (CUDARuntimeError(35, "cudaErrorInsufficientDriver: too old"), DeviceUnavailable, "cannot use the CUDA driver: cudaErrorInsuff"),
        (0, NoDevice, "the CUDA driver sees no device (CUDA_VISIBLE_DEVICES may hide it)"),
    ],
)
def test_no_device_or_a_driver_that_is_too_old(monkeypatch, devices, kind, message):
    monkeypatch.setitem(sys.modules, "cupy", cupy_that(devices))
    assert message in refusal(kind)


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("step", ["_open", "_runs_a_kernel"])
def test_whatever_fails_when_a_kernel_is_tried(monkeypatch, step):
    def fail(self: CudaDevice) -> bool:
        raise MemoryError("out of memory")

    monkeypatch.setitem(sys.modules, "cupy", cupy_that(1))
    monkeypatch.setattr(CudaDevice, step, fail)
    assert re.fullmatch(
        r"a trial kernel failed \(numba-cuda [\d.]+, numba [\d.]+, numpy [\d.]+\): MemoryError: out of memory", refusal(DeviceUnavailable)
    )


@pytest.mark.usefixtures("driver")
def test_a_kernel_that_gives_a_wrong_result(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", cupy_that(1))
    monkeypatch.setattr(CudaDevice, "_runs_a_kernel", lambda self: False)
    assert refusal(DeviceUnavailable) == "a trial kernel gave a wrong result"


def test_the_cause_that_is_kept_keeps_no_callers_alive(monkeypatch):
    def fail() -> None:
        raise NoDevice("there is no card")

    def call() -> weakref.ref[np.ndarray]:
        table = np.arange(3)
        with contextlib.suppress(NoDevice):
            open_device()
        return weakref.ref(table)

    monkeypatch.setattr(selection, "simulated", lambda: False)
    monkeypatch.setattr(selection, "count_devices", fail)
    selection._count_cards.cache_clear()
    try:
        assert all(call()() is None for _ in range(2))
    finally:
        selection._count_cards.cache_clear()

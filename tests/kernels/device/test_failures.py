"""Failures of CUDA: out of memory and a lost device are told apart, for the errors of CuPy and of numba."""

from __future__ import annotations

import pytest

from gpu_cep_kernels.compile.jit import simulated
from gpu_cep_kernels.device import selection
from gpu_cep_kernels.device.failures import DeviceLost, cuda_code, note_kernel, told_apart
from gpu_cep_kernels.device.interface import DeviceUnavailable
from tests.requirements import require_modules


class OfCupy(RuntimeError):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class OfNumba(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code


KINDS = pytest.mark.parametrize("kind", [OfCupy, OfNumba])


def raised(fault: Exception) -> Exception:
    try:
        with told_apart():
            raise fault
    except Exception as found:
        return found


@KINDS
@pytest.mark.parametrize(("code", "expected"), [(2, MemoryError), (700, DeviceLost), (719, DeviceLost)])
def test_they_are_told_apart(kind, code, expected):
    found = raised(kind(code, "what CUDA says"))
    assert type(found) is expected
    assert "what CUDA says" in str(found)


@pytest.mark.parametrize("fault", [OfCupy(1, "invalid value"), OfNumba(209, "no binary"), ValueError("no good"), SystemExit(700)])
def test_others_stay_as_they_are(fault):
    with pytest.raises(type(fault)) as caught, told_apart():
        raise fault
    assert caught.value is fault


def test_cupys_own_want_of_memory_stays_as_it_is():
    class OutOfMemoryError(MemoryError):
        status = 2

    assert type(raised(OutOfMemoryError("2 GiB"))) is OutOfMemoryError


def test_the_launch_is_named():
    fault = OfNumba(700, "illegal address")
    note_kernel(fault, "window_ends")
    assert "at the launch of window_ends, and with CUDA_LAUNCH_BLOCKING=1" in str(raised(fault))
    harmless = ValueError()
    note_kernel(harmless, "window_ends")
    assert not hasattr(harmless, "__notes__")


@pytest.mark.skipif(simulated(), reason="the simulator raises no errors of CUDA")
def test_numbas_errors_have_their_numbers_there():
    require_modules("numba_cuda")
    from numba.cuda.cudadrv.driver import CudaAPIError

    assert cuda_code(CudaAPIError(700, "illegal address")) == 700


def test_a_lost_device_is_not_opened_again(monkeypatch):
    monkeypatch.setattr(selection, "_lost", [])
    selection.give_up_device("an illegal address")
    with pytest.raises(DeviceUnavailable, match=r"CUDA failed before in this process \(an illegal address\)"):
        selection.open_device()

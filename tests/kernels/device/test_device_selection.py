"""Which of several cards a process uses; stand-ins for the driver, for CuPy and for two cards."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from gpu_cep_kernels.device import cuda_device, selection
from gpu_cep_kernels.device.cuda_device import CudaDevice
from gpu_cep_kernels.device.interface import DeviceUnavailable, NoDevice
from gpu_cep_kernels.device.selection import open_device, select_device

CACHES = (selection._count_cards, selection._open_card)


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch):
    monkeypatch.setattr(selection, "simulated", lambda: False)
    monkeypatch.setattr(selection, "_selections", [selection._Selection()])
    for cache in CACHES:
        cache.cache_clear()
    yield
    for cache in CACHES:
        cache.cache_clear()


@pytest.fixture
def used(monkeypatch):
    """The numbers of the cards, of two, that become current, in order."""
    numbers = []
    runtime = SimpleNamespace(
        getDeviceCount=lambda: 2,
        getDeviceProperties=lambda number: {"name": b"card %d" % number, "multiProcessorCount": 2},
        CUDARuntimeError=RuntimeError,
    )
    cuda = SimpleNamespace(
        runtime=runtime, driver=None, Device=lambda number: SimpleNamespace(use=lambda: numbers.append(number)), Stream=lambda **_: None
    )
    monkeypatch.setattr(cuda_device.ctypes, "CDLL", lambda name: None)
    monkeypatch.setattr(cuda_device.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(__version__="14.2.0", cuda=cuda, zeros=np.zeros))
    monkeypatch.setattr(CudaDevice, "_runs_a_kernel", lambda self: True)
    return numbers


def test_the_first_card_unless_another_is_selected(used):
    assert open_device().name == "card 0"
    select_device(lambda count: count - 1, True)
    assert open_device().name == "card 1"
    assert used[-1] == 1


def test_a_card_is_opened_once_and_made_current_each_time(used):
    select_device(lambda count: 1, True)
    first = open_device()
    select_device(lambda count: 0, True)
    open_device()
    select_device(lambda count: 1, True)
    assert open_device() is first
    assert used == [1, 1, 0, 0, 1]


def test_the_cards_are_not_counted_before_one_is_needed(used, monkeypatch):
    def counted():
        raise AssertionError

    monkeypatch.setattr(selection, "count_devices", counted)
    select_device(lambda count: 1, True)
    assert used == []


@pytest.mark.usefixtures("used")
def test_none_of_the_cards():
    def refuse(count):
        raise ValueError(f"the task was given GPU '7', and CUDA sees {count}")

    select_device(refuse, True)
    with pytest.raises(DeviceUnavailable, match="the task was given GPU '7', and CUDA sees 2"):
        open_device()


@pytest.mark.parametrize(("promised", "kind"), [(False, NoDevice), (True, DeviceUnavailable)])
def test_no_card_is_a_fault_only_where_one_was_promised(promised, kind, monkeypatch):
    def count():
        raise NoDevice("there is no CUDA driver")

    monkeypatch.setattr(selection, "count_devices", count)
    select_device(lambda count: 0, promised)
    with pytest.raises(DeviceUnavailable, match="there is no CUDA driver") as caught:
        open_device()
    assert type(caught.value) is kind
    assert ("though the task was given one" in str(caught.value)) == promised

"""RAPIDS' memory pool, with a stand-in for RMM."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from gpu_cep_kernels.device import rmm_pool


class Pool:
    def pool_size(self) -> int:
        return 5_000


def install(monkeypatch, resource: object) -> object:
    """RMM as a worker finds it, with this resource for the current device; returns its allocator for CuPy."""
    allocator = object()
    modules = {name: ModuleType(name) for name in ("rmm", "rmm.allocators", "rmm.allocators.cupy")}
    modules["rmm"].mr = SimpleNamespace(get_current_device_resource=lambda: resource)
    modules["rmm.allocators.cupy"].rmm_cupy_allocator = allocator
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return allocator


@pytest.fixture
def adopted():
    return []


@pytest.fixture
def cupy(adopted):
    return SimpleNamespace(cuda=SimpleNamespace(set_allocator=adopted.append))


def test_arrays_come_from_the_pool(monkeypatch, cupy, adopted):
    allocator = install(monkeypatch, Pool())
    rmm_pool.adopt_pool(cupy)
    assert adopted == [allocator]


def test_without_a_pool_arrays_come_from_cupy(monkeypatch, cupy, adopted):
    install(monkeypatch, object())
    rmm_pool.adopt_pool(cupy)
    assert adopted == []


def test_without_rmm_nothing_is_imported(monkeypatch, cupy, adopted):
    monkeypatch.delitem(sys.modules, "rmm", raising=False)
    rmm_pool.adopt_pool(cupy)
    assert adopted == []
    assert "rmm" not in sys.modules


@pytest.mark.parametrize(("limit", "expected"), [(None, 5_700), ("0", 5_700), ("3000", 3_000)])
def test_the_pool_is_bounded_as_the_plugin_says(monkeypatch, limit, expected):
    monkeypatch.delenv(rmm_pool.LIMIT, raising=False)
    if limit is not None:
        monkeypatch.setenv(rmm_pool.LIMIT, limit)
    assert rmm_pool.pool_bytes(Pool(), 700) == expected

"""The page on a worker's memory: less memory gives the same result, and takes less."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def worker_memory(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("worker_memory")


def test_less_memory_gives_the_same_result(worker_memory: ModuleType) -> None:
    least, most = (worker_memory.measured(60_000, allowed, "count") for allowed in (1 << 20, worker_memory.UNBOUNDED))
    assert least.input_bytes == most.input_bytes > 1 << 20
    assert least.output_bytes == most.output_bytes > 0
    assert worker_memory.table([least, most]).count("60,000") == 2

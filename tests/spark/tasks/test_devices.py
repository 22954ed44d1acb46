"""Which GPU a task uses (test_clusters and test_faults ask executors whose GPUs a script has found)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gpu_cep_kernels.device import selection
from gpu_cep_spark.tasks.devices import device_index, use_device_of_task
from tests.spark.conftest import ROOT


@pytest.mark.parametrize(
    ("visible", "addresses", "partition", "count", "expected"),
    [
        # what RAPIDS sets for its workers: one device
        ("3", ("3",), 5, 1, 0),
        ("3", (), 5, 1, 0),
        ("GPU-8f2e", ("0",), 5, 1, 0),
        # CUDA numbers what is listed
        ("2,3", ("3",), 4, 2, 1),
        ("2, 3", (), 4, 2, 0),
        ("2,3", (), 5, 2, 1),
        # the task's own
        (None, ("1",), 0, 2, 1),
        (None, ("0", "1"), 3, 2, 0),
        # turns
        (None, (), 5, 4, 1),
        (None, (), 0, 1, 0),
    ],
)
def test_the_number_of_the_device(visible: str | None, addresses: tuple[str, ...], partition: int, count: int, expected: int) -> None:
    assert device_index(visible, addresses, partition, count) == expected


def test_a_gpu_that_cuda_does_not_see() -> None:
    with pytest.raises(ValueError, match="the task was given GPU '4', and CUDA sees 0, 1"):
        device_index(None, ("4",), 0, 2)


def test_without_spark_devices_are_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    selections = [selection._Selection()]
    monkeypatch.setattr(selection, "_selections", selections)
    use_device_of_task(None, {"CUDA_VISIBLE_DEVICES": "1,0"})
    assert (selections[0].number(2), selections[0].promised) == (0, False)


NO_CUDA = """
import sys

import gpu_cep_spark.tasks.worker
from gpu_cep_spark.tasks.devices import use_device_of_task

use_device_of_task(None, {})
print("cupy" in sys.modules, "libcuda" in open("/proc/self/maps").read())
"""


@pytest.mark.usefixtures("worker_environment")
def test_a_worker_uses_no_cuda_before_it_has_work() -> None:
    run = subprocess.run([sys.executable, "-c", NO_CUDA], cwd=ROOT, capture_output=True, text=True, timeout=100, check=True)
    assert run.stdout.split() == ["False", "False"]

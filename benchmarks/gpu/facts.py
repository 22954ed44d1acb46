"""What the GPU check ran on: the device, its driver, the versions, and the speeds that floors are made of."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.gpu.clock import COPIED, SIMULATED_BYTES, copy_bandwidth, host_bandwidth, staged_bandwidth, upload_bandwidth
from benchmarks.gpu.findings import Check, Finding, row
from benchmarks.gpu.versions import PACKAGES
from benchmarks.record.machine import commit, package_version, processor_name
from gpu_cep.engine.accounting.host_memory import free_memory
from gpu_cep_kernels.device.interface import Device


@dataclass(frozen=True, slots=True)
class Fact:
    what: str
    value: str | float

    def cells(self) -> dict[str, str]:
        shown = f"{self.value / 1e9:,.1f} GB/s" if isinstance(self.value, float) else self.value
        return {"what": self.what, "value": shown}


def run(check: Check) -> Iterator[Finding]:
    """Yield the facts, one row each."""
    for what, value in _facts(check.device).items():
        yield row("Facts", Fact(what, value))
    size = SIMULATED_BYTES if check.device.simulated else COPIED
    yield row("Facts", Fact("copy in device memory, read and written", copy_bandwidth(check.device)))
    yield row("Facts", Fact("copy to the device from pinned memory", upload_bandwidth(check.device)))
    yield row("Facts", Fact("copy to the device from ordinary memory, by way of pinned memory", staged_bandwidth(check.device)))
    yield row("Facts", Fact("copy in the host's memory by all threads, bytes read", host_bandwidth(size)))


def _facts(device: Device) -> dict[str, str]:
    facts = {"device": device.name, "free memory": f"{device.free_memory() / 2**30:.1f} GiB"}
    if not device.simulated:
        facts |= _versions_of(device)
    facts["processor"] = f"{processor_name()}, {len(os.sched_getaffinity(0))} cores"
    facts["free memory of the host"] = f"{free_memory() / 2**30:.1f} GiB"
    facts["commit"], facts["Python"] = commit(), platform.python_version()
    return facts | {package: package_version(package) for package in PACKAGES}


def _versions_of(device: Device) -> dict[str, str]:
    runtime = device.xp.cuda.runtime
    properties = runtime.getDeviceProperties(device.xp.cuda.Device().id)
    return {
        "compute capability": f"{properties['major']}.{properties['minor']}",
        "CUDA, driver": _version(runtime.driverGetVersion()),
        "CUDA, runtime": _version(runtime.runtimeGetVersion()),
        "driver": _driver(),
    }


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"

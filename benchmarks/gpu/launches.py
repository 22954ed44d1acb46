"""What a launch costs the host, and how many blocks of a kernel a card holds at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.gpu.findings import Check, Finding, in_time, row
from gpu_cep_kernels.device.cuda_device import THREADS_PER_BLOCK
from gpu_cep_kernels.device.interface import Device
from gpu_cep_kernels.device.packing import to_device
from tests.kernel_cases import KernelCase
from tests.kernel_cases.calls import Call, arrays_in

SIZE = 3
REPEATS, QUICK_REPEATS = 200, 1


@dataclass(frozen=True, slots=True)
class Launch:
    """The seconds of the host for one launch of a kernel with so many arrays, which it does not wait for."""

    kernel: str
    arrays: int
    seconds: float

    def cells(self) -> dict[str, str]:
        return {"kernel": self.kernel, "arrays": str(self.arrays), "host, per launch": f"{1e6 * self.seconds:,.0f} µs"}


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The registers and bytes of local memory of one thread, and how many blocks a card runs at a time; `slotted`: each has scratch."""

    kernel: str
    slotted: bool
    registers: int
    local: int
    blocks: int

    def cells(self) -> dict[str, str]:
        figures = {"registers": self.registers, "local bytes": self.local, "blocks at a time": self.blocks}
        return {"kernel": self.kernel, "slots": "yes" if self.slotted else "", **{name: f"{found:,}" for name, found in figures.items()}}


def launches(check: Check, cases: Sequence[KernelCase]) -> Iterator[Finding]:
    """Yield both tables, for the first case of each kernel; on the simulator a card holds nothing."""
    first = {f"{case.kernel.__name__}, launched": case for case in reversed(cases) if _made(case, 1).size}
    yield from in_time(check, first, partial(_launched, check))


def _made(case: KernelCase, slots: int) -> Call:
    """Return a call of few indices; some cases have none then."""
    return case.make(SIZE, np.random.default_rng(SIZE), slots)


def _launched(check: Check, case: KernelCase) -> Iterator[Finding]:
    device, name = check.device, case.kernel.__name__
    call = _made(case, device.slots(SIZE))
    arguments = to_device(device, call.arguments)
    seconds = host_seconds(device, case, call.size, arguments, QUICK_REPEATS if check.quick else REPEATS)
    yield row("Host time of a launch", Launch(name, len([*arrays_in(call.arguments)]), seconds))
    if not device.simulated:
        compiled = next(iter(case.kernel.cuda.overloads.values()))
        yield row("Blocks at a time", occupancy(case, compiled))


def host_seconds(device: Device, case: KernelCase, size: int, arguments: tuple[Any, ...], repeats: int) -> float:
    """Return the seconds of a launch, of so many behind each other; the first, which compiles, does not count."""
    device.launch(case.kernel, size, *arguments)
    device.synchronize()
    begin = time.perf_counter()
    for _ in range(repeats):
        device.launch(case.kernel, size, *arguments)
    spent = time.perf_counter() - begin
    device.synchronize()
    return spent / repeats


def occupancy(case: KernelCase, compiled: Any) -> Occupancy:
    """Return what numba says of a compiled kernel."""
    # the grid that a cooperative launch may have is the one that runs at a time
    blocks = int(compiled.max_cooperative_grid_blocks(THREADS_PER_BLOCK))
    return Occupancy(case.kernel.__name__, case.kernel.slotted, int(compiled.regs_per_thread), int(compiled.local_mem_per_thread), blocks)

"""Every kernel compiled once, in as many processes as there are cores: later parts find machine code on disk, and measure no compiler."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.gpu.conformance import CORNERS, compare
from benchmarks.gpu.findings import Check, Finding, row
from benchmarks.gpu.side_by_side import outcomes, processes
from gpu_cep_kernels.compile.launch import available_threads
from gpu_cep_kernels.device.packing import to_device
from gpu_cep_kernels.device.selection import open_device
from tests.compile_kernels import types_of
from tests.kernel_cases import CASES, KernelCase

# Few indices: what counts is the compiler.
SIZE = 3


@dataclass(frozen=True, slots=True)
class Warmed:
    """So many calls in processes side by side, each of which compiled what it ran."""

    calls: int
    processes: int
    seconds: float
    slowest: str
    slowest_seconds: float

    def cells(self) -> dict[str, str]:
        return {
            "calls": str(self.calls),
            "processes": str(self.processes),
            "wall time": f"{self.seconds:,.1f} s",
            "slowest": f"{self.slowest}, {self.slowest_seconds:,.1f} s",
        }


def run(check: Check) -> Iterator[Finding]:
    """Yield corner queries, then the kernels: those of most tables first, which compile longest."""
    names = list(check.asked(dict.fromkeys((*CORNERS, *_kernel_cases()))))
    count = min(available_threads(), len(names))
    begin, spent = time.monotonic(), dict[str, float]()

    def note_seconds(name: str, seconds: float) -> list[Finding]:
        spent[name] = seconds
        return []

    with processes(count) as pool:
        yield from outcomes({pool.submit(call, name): name for name in names}, check.deadline.left, note_seconds)
    if spent:
        slowest = max(spent, key=lambda name: spent[name])
        yield row("Calls that compile", Warmed(len(spent), count, time.monotonic() - begin, slowest, spent[slowest]))


def _kernel_cases() -> dict[str, int]:
    """Return the first case of each kernel and each set of array types, by name, as numbers of the table."""
    distinct: dict[tuple[str, str], int] = {}
    sizes: dict[int, int] = {}
    for number, case in enumerate(CASES):
        types = _types(case.make(SIZE, np.random.default_rng(0), 1).arguments)
        sizes[number] = len(types)
        distinct.setdefault((case.kernel.__name__, types), number)
    return {CASES[number].name: number for number in sorted(distinct.values(), key=lambda number: -sizes[number])}


def _types(value: object) -> str:
    """Return the types of arguments, as far as machine code differs by them."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.ndim}"
    return f"({', '.join(map(_types, value))})" if isinstance(value, tuple) else type(value).__name__


def call(name: str) -> float:
    """Ask a corner's first query on both engines, or compile a kernel, in a process of the pool; the seconds that it took."""
    begin = time.monotonic()
    if name in CORNERS:
        compare(next(iter(CORNERS[name].cases([{}]))), output="indices")
    else:
        _compile(next(case for case in CASES if case.name == name))
    return time.monotonic() - begin


def _compile(case: KernelCase) -> None:
    """Compile a kernel for the CPU, as conformance asks it, too, and run it once on the device if that can."""
    case.kernel.compiled.compile(types_of(case))
    if case.kernel.parallel:
        device = open_device()
        made = case.make(SIZE, np.random.default_rng(0), device.slots(SIZE))
        device.launch(case.kernel, made.size, *to_device(device, made.arguments))
        device.synchronize()

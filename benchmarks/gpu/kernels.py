"""Every parallel kernel in the table of cases: the device's outputs against the CPU's, and its time against its floor.

A kernel joins by a case of its own in :mod:`tests.kernel_cases`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.gpu.clock import copy_bandwidth, device_seconds
from benchmarks.gpu.findings import Check, Deadline, Finding, fault, in_time, note, row
from benchmarks.gpu.floors import COPY_SHARE, Timed
from benchmarks.gpu.launches import launches
from benchmarks.gpu.primitives import PRIMITIVES, time_primitive
from benchmarks.gpu.side_by_side import outcomes, processes
from gpu_cep_kernels.compile.launch import available_threads
from gpu_cep_kernels.device.interface import Device
from gpu_cep_kernels.device.packing import to_device
from gpu_cep_kernels.device.selection import open_device
from tests.kernel_cases import CASES, Call, KernelCase, bytes_moved
from tests.kernel_cases.calls import arrays_in, written

# Of masks, windows and compaction a share of the copy's speed is asked for; of the primitives, that is "compaction".
TARGETED = (
    "judge_events", "judge_further", "mark_kept", "span_lanes", "compact_events",
    "find_faults", "pack_events", "mark_packs", "fill_windows", "window_ends",
)  # fmt: skip
COMPARED_SIZES = (1, 300, 5_000)
MOVED = 1 << 28  # bytes that a timed call moves, about
# Events, or whatever else a call is made for; with fewer of one byte the launch would be measured.
FEWEST, MOST = 1_000_000, 1 << 28
SAMPLE = 1 << 12  # indices from which bytes per index are told
QUICK_SIZES, QUICK_TIMED = (40,), 64
REPEATS = 10
# Of the time, for the comparison of outputs.
COMPARING_SHARE = 0.5
SEED = 2026


@dataclass(frozen=True, slots=True)
class Agreement:
    """A kernel whose cases gave the CPU's outputs on the device."""

    kernel: str
    cases: int
    calls: int

    def cells(self) -> dict[str, str]:
        return {"kernel": self.kernel, "cases": str(self.cases), "calls compared": str(self.calls)}


def run(check: Check) -> Iterator[Finding]:
    """Yield outputs first, since the time of a wrong kernel means nothing; then times, kernels with a target and first cases first."""
    parallel = [case for case in CASES if case.kernel.parallel]
    names = dict.fromkeys(case.kernel.__name__ for case in parallel)
    by_kernel = {name: [case for case in parallel if case.kernel.__name__ == name] for name in names}
    yield from _comparisons(check, by_kernel)
    yield from launches(check, parallel)
    speed = copy_bandwidth(check.device)
    yield note(f"A copy in the device's memory, measured beside these, reads and writes {speed / 1e9:,.1f} GB/s.")
    yield from in_time(check, {f"{case.name}, primitive": case for case in PRIMITIVES}, partial(time_primitive, check, speed))
    in_turn = sorted(_by_turns(by_kernel.values()), key=lambda case: case.kernel.__name__ not in TARGETED)
    timed = {f"{case.name}, timed": case for case in in_turn if case.reads}
    yield from in_time(check, timed, partial(_timed, check, speed))


def _by_turns(groups: Iterable[list[KernelCase]]) -> list[KernelCase]:
    ranked = [(place, case) for cases in groups for place, case in enumerate(cases)]
    return [case for _, case in sorted(ranked, key=lambda each: each[0])]


def _comparisons(check: Check, by_kernel: Mapping[str, list[KernelCase]]) -> Iterator[Finding]:
    """Yield whether outputs agree, kernel by kernel, in half of the time at most; on a card in processes side by side."""
    check = check.until(Deadline.after(COMPARING_SHARE * check.deadline.left))
    sizes = QUICK_SIZES if check.quick else COMPARED_SIZES
    if check.device.simulated:
        yield from in_time(check, {name: name for name in by_kernel}, partial(compared, sizes=sizes))
        return
    names = list(check.asked(by_kernel))
    with processes(available_threads()) as pool:
        called = {pool.submit(compared, name, sizes): name for name in names}
        yield from outcomes(called, check.deadline.left, lambda name, found: found)


def compared(kernel: str, sizes: Sequence[int]) -> list[Finding]:
    """Return whether the outputs of a kernel's cases agree; any process may ask."""
    device, cases = open_device(), [case for case in CASES if case.kernel.parallel and case.kernel.__name__ == kernel]
    wrong = [f"{case.name}, {size:,} indices" for case in cases for size in sizes if not agrees(device, case, size)]
    if wrong:
        return [fault(f"other outputs than on the CPU: {'; '.join(wrong)}")]
    return [row("Kernels with the CPU's outputs, bit for bit", Agreement(kernel, len(cases), len(cases) * len(sizes)))]


def agrees(device: Device, case: KernelCase, size: int) -> bool:
    """Return whether device and CPU write the same bits (any NaN is like any other)."""
    slots = device.slots(size)
    ours, theirs = (case.make(size, np.random.default_rng(SEED), slots) for _ in range(2))
    on_device = to_device(device, ours.arguments)
    device.launch(case.kernel, ours.size, *on_device)
    case.kernel(0, theirs.size, *([0] if case.kernel.slotted else []), *theirs.arguments)
    found = written(case, Call(ours.size, _on_host(device, on_device)))
    return all(map(_same_bits, arrays_in(tuple(found)), arrays_in(tuple(written(case, theirs)))))


def _on_host(device: Device, value: Any) -> Any:
    if isinstance(value, tuple):
        parts = [_on_host(device, part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return device.download(value) if isinstance(value, device.xp.ndarray) else value


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    known = ~np.isnan(one)
    return bool(np.array_equal(known, ~np.isnan(other)) and one[known].tobytes() == other[known].tobytes())


def _timed(check: Check, speed: float, case: KernelCase) -> Iterator[Finding]:
    device, random = check.device, np.random.default_rng(SEED)
    size = _timed_size(check, case)
    call = case.make(size, random, device.slots(size))
    arguments = to_device(device, call.arguments)
    seconds = device_seconds(device, lambda: device.launch(case.kernel, call.size, *arguments), 1 if check.quick else REPEATS)
    target = COPY_SHARE if case.kernel.__name__ in TARGETED and not device.simulated else None
    yield row("Kernels against their floors", Timed(case.name, call.size, bytes_moved(case, call), seconds, speed, target))


def _timed_size(check: Check, case: KernelCase) -> int:
    if check.quick:
        return QUICK_TIMED
    sample = case.make(SAMPLE, np.random.default_rng(SEED), check.device.slots(SAMPLE))
    return int(np.clip(MOVED * SAMPLE // bytes_moved(case, sample), FEWEST, MOST))

"""The benchmarks' questions on both engines, over events enough for many blocks, chunks and batches: whole tables are compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
import pyarrow as pa

from benchmarks.baselines.measure import OUTPUTS, Case, events_of, match_count, run_match
from benchmarks.gpu.findings import Check, Deadline, Finding, fault, in_time, row
from benchmarks.gpu.large_rows import compared_rows, large_rows
from benchmarks.gpu.large_situations import compared, large_situations
from benchmarks.gpu.phase_one import on_device, plan_of
from benchmarks.workloads.questions import WORKLOADS, Workload
from gpu_cep.engine.answers import answer
from gpu_cep_kernels.compile.launch import available_threads
from gpu_cep_kernels.device.interface import Device

SIZES, QUICK_SIZES = (1_000_000, 10_000_000), (1_200,)
# What every workload takes at least: less is refused, so that few events are never cut.
LEAST_MEMORY = 1 << 20
EVENTS_PER_STREAM = 100
# Of the time, for interval patterns, and of what these leave, for row patterns.
SITUATIONS_SHARE, ROWS_SHARE = 0.25, 0.2
SEED = 2026


@dataclass(frozen=True, slots=True)
class Variation:
    """What is done to a workload: ties between most events, rows in no order, a bound on the device's memory in bytes per event.

    `resident`: the GPU's events are on the device, text as codes.
    """

    name: str
    tied: bool = False
    shuffled: bool = False
    memory: int | None = None
    resident: bool = False


# The bounds are chosen so that kept events fit the device but not one batch, and so that they do not fit it.
VARIATIONS = (
    Variation("as it comes"),
    Variation("most events tie", tied=True),
    Variation("rows in no order", shuffled=True),
    Variation("events on the device", resident=True),
    Variation("cut into batches", memory=40),
    Variation("spilled to the host", memory=8),
    Variation("spilled, tied, in no order", tied=True, shuffled=True, memory=8),
)


@dataclass(frozen=True, slots=True)
class LargeCase:
    workload: Workload
    variation: Variation
    size: int

    @property
    def name(self) -> str:
        return f"{self.workload.name}, {self.size:,} events, {self.variation.name}"


@dataclass(frozen=True, slots=True)
class LargeAgreement:
    """Both engines gave the same tables, counts and row numbers."""

    workload: str
    variation: str
    events: int
    matches: int

    def cells(self) -> dict[str, str]:
        return {"workload": self.workload, "events": f"{self.events:,}", "variation": self.variation, "matches": f"{self.matches:,}"}


def run(check: Check) -> Iterator[Finding]:
    """Yield every interval pattern, row pattern and workload in every variation, the smallest size first."""
    sizes = QUICK_SIZES if check.quick else SIZES
    cases = [LargeCase(workload, variation, size) for size, variation, workload in product(sizes, VARIATIONS, WORKLOADS.values())]
    situations = large_situations(sizes)
    for_situations = check.until(Deadline.after(SITUATIONS_SHARE * check.deadline.left))
    yield from in_time(for_situations, {case.name: case for case in situations}, compared)
    for_rows = check.until(Deadline.after(ROWS_SHARE * check.deadline.left))
    yield from in_time(for_rows, {case.name: case for case in large_rows(sizes)}, compared_rows)
    yield from in_time(check, {case.name: case for case in cases}, partial(_compared, check.device))


def _compared(device: Device, large: LargeCase) -> Iterator[Finding]:
    workload = replace(large.workload, smallest_gap=0, largest_gap=1) if large.variation.tied else large.workload
    case = Case(workload, large.size, 1 if workload.key is None else large.size // EVENTS_PER_STREAM)
    events = _shuffled(events_of(case)) if large.variation.shuffled else events_of(case)
    matches = 0
    for output in OUTPUTS:
        expected, found = run_match(case, events, output, available_threads(), engine="cpu"), _on_gpu(device, large, case, events, output)
        if not found.equals(expected):
            counts = " on the CPU, ".join(f"{match_count(table, output):,}" for table in (expected, found))
            yield fault(f"{large.name}, output={output!r}: other tables, of {counts} matches on the GPU")
            return
        matches = match_count(expected, output)
    yield row("Same tables", LargeAgreement(workload.name, large.variation.name, large.size, matches))


def _on_gpu(device: Device, large: LargeCase, case: Case, events: pa.Table, output: str) -> pa.Table:
    if large.variation.resident:
        resident = on_device(events, device)
        return answer(plan_of(case, resident.schema, output), resident)
    limit = None if large.variation.memory is None else max(LEAST_MEMORY, large.variation.memory * large.size)
    return run_match(case, events, output, available_threads(), engine="gpu", gpu_memory=limit)


def _shuffled(events: pa.Table) -> pa.Table:
    return events.take(pa.array(np.random.default_rng(SEED).permutation(events.num_rows)))

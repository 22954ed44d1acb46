"""The benchmarks' questions at full size: GPU against CPU, with events in host memory and on the device, and phase 1 alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from floors import best_seconds
from gpu_clock import upload_bandwidth
from gpu_findings import Check, Finding, fault, in_time, note, row
from gpu_phase_one import PhaseOneTime, on_device, plan_of, time_phase_one, transferred_bytes
from measure import Case, events_of, match_count, run_match
from workloads import WORKLOADS, Workload

from gpu_cep.engine.budget import memory_for_results
from gpu_cep.engine.run import execute
from gpu_cep_kernels.device import Device
from gpu_cep_kernels.launch import available_threads

OUTPUT = "count"
REPEATS = 3
# Bytes per event that generating and matching takes at most, on the host and on the device.
HOST_BYTES, DEVICE_BYTES = 150, 80
# Smaller runs come first: one compiles, from the time of the other that of the whole is told.
COMPILED, REHEARSED_SHARE = 10_000, 20
QUICK_EVENTS = 1_000


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """The best wall times of a whole call on one question."""

    workload: str
    events: int
    matches: int
    threads: int
    cpu: float
    gpu: float
    gpu_resident: float
    transfer: float

    def cells(self) -> dict[str, str]:
        return {
            "workload": self.workload,
            "events": f"{self.events:,}",
            "matches": f"{self.matches:,}",
            f"CPU, {self.threads} threads": _rate(self.events, self.cpu),
            "GPU, from Arrow": _rate(self.events, self.gpu),
            "of transfer speed": f"{self.transfer / self.gpu:.0%}",
            "GPU / CPU": f"{self.cpu / self.gpu:.1f} ×",
            "GPU, events on the device": _rate(self.events, self.gpu_resident),
            "on the device / CPU": f"{self.cpu / self.gpu_resident:.1f} ×",
        }


def _rate(events: int, seconds: float) -> str:
    return f"{events / seconds / 1e6:,.0f} M/s"


@dataclass(frozen=True, slots=True)
class Pending:
    """A workload, and how many are to be measured from it on."""

    workload: Workload
    left: int


def run(check: Check) -> Iterator[Finding]:
    """Each workload with as many events as memory and its share of the time allow."""
    speed = upload_bandwidth(check.device)
    yield note(f"The transfer's own speed, from pinned memory, measured beside these: {speed / 1e9:,.1f} GB/s.")
    pending = {name: Pending(workload, len(WORKLOADS) - place) for place, (name, workload) in enumerate(WORKLOADS.items())}
    yield from in_time(check.deadline, pending, partial(_measured, check, speed))


def _measured(check: Check, speed: float, pending: Pending) -> Iterator[Finding]:
    measure = partial(_at_size, check.device, speed, pending.workload)
    if check.quick:
        yield from measure(QUICK_EVENTS)
        return
    seconds = check.deadline.left / pending.left
    begin = time.monotonic()
    list(measure(COMPILED))
    most = affordable(check, seconds - (time.monotonic() - begin), measure)
    if most < check.events:
        yield note(f"{pending.workload.name}: {most:,} events instead of {check.events:,}, for want of time or memory.")
    yield from measure(most)


def affordable(check: Check, seconds: float, measure: Callable[[int], Iterator[Finding]]) -> int:
    """As many events as were asked for, or fewer if the machine's memory, or a rehearsal's time, says so."""
    fit = min(check.events, memory_for_results(1) // HOST_BYTES, check.device.free_memory() // DEVICE_BYTES)
    rehearsed = max(COMPILED, fit // REHEARSED_SHARE)
    begin = time.monotonic()
    list(measure(rehearsed))
    spent = time.monotonic() - begin
    in_time = int(rehearsed * max(0.0, seconds - spent) / spent)
    return max(rehearsed, min(fit, in_time))


def _at_size(device: Device, speed: float, workload: Workload, size: int) -> Iterator[Finding]:
    """All measurements of one workload; the counts are compared before anything is told."""
    case = Case(workload, size, workload.streams if size > workload.streams else 1)
    events, threads = events_of(case), available_threads()
    plan = plan_of(case, events.schema, OUTPUT)
    resident = on_device(events, device)
    resident_plan = plan_of(case, resident.schema, OUTPUT)
    contestants: dict[str, Callable[[], pa.Table]] = {
        "CPU": lambda: run_match(case, events, OUTPUT, threads, engine="cpu"),
        "GPU": lambda: run_match(case, events, OUTPUT, threads, engine="gpu"),
        "GPU, events on the device": lambda: execute(resident_plan, resident, threads=threads),
    }
    counts = {name: match_count(answer(), OUTPUT) for name, answer in contestants.items()}
    if len(set(counts.values())) > 1:
        yield fault(f"{workload.name}, {size:,} events, matches: {counts}")
        return
    cpu, gpu, gpu_resident = (best_seconds(answer, REPEATS) for answer in contestants.values())
    transfer = transferred_bytes(plan, events) / speed
    yield row("Whole calls, output='count'", EndToEnd(workload.name, size, counts["CPU"], threads, cpu, gpu, gpu_resident, transfer))
    encoding = best_seconds(events["type"].dictionary_encode, REPEATS) if workload.plain_types else 0.0
    spent, stages = _best_phase_one(partial(time_phase_one, plan, events, device))
    yield row("Phase 1 alone", PhaseOneTime(workload.name, "host memory", size, spent, stages, transfer, encoding, device.simulated))
    spent, stages = _best_phase_one(partial(time_phase_one, resident_plan, resident, device))
    yield row("Phase 1 alone", PhaseOneTime(workload.name, "device memory", size, spent, stages, 0.0, 0.0, device.simulated))


def _best_phase_one(measure: Callable[[], tuple[float, dict[str, float]]]) -> tuple[float, dict[str, float]]:
    return min((measure() for _ in range(REPEATS)), key=lambda timed: timed[0])

"""The benchmarks' questions at full size: GPU against CPU, with events in host memory and on the device, and phase 1 alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from benchmarks.baselines.floors import best_seconds
from benchmarks.baselines.measure import Case, Disagreement, events_of, match_count, run_match
from benchmarks.gpu.clock import upload_bandwidth
from benchmarks.gpu.findings import Check, Deadline, Finding, in_turn, note, row
from benchmarks.gpu.phase_one import PhaseOneTime, on_device, plan_of, time_phase_one, transferred_bytes
from benchmarks.workloads.questions import WORKLOADS, Workload
from gpu_cep.engine.accounting.match_budget import memory_for_results
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.answers import answer
from gpu_cep_kernels.compile.launch import available_threads
from gpu_cep_kernels.device.interface import Device

OUTPUT = "count"
WHOLE_CALLS = "Whole calls, output='count'"
# The CPU is measured once more behind the call that is counted, since its calls take long.
REPEATS, CPU_REPEATS = 3, 1
# Above so many events those of a tenth are repeated: drawing all takes longer than matching them.
DRAWN, PARTS = 10_000_000, 10
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
            f"CPU, {self.threads} threads": rate(self.events, self.cpu),
            "GPU, from Arrow": rate(self.events, self.gpu),
            "of transfer speed": f"{self.transfer / self.gpu:.0%}",
            "GPU / CPU": f"{self.cpu / self.gpu:.1f} ×",
            "GPU, events on the device": rate(self.events, self.gpu_resident),
            "on the device / CPU": f"{self.cpu / self.gpu_resident:.1f} ×",
        }


class Contestants(NamedTuple):
    """A whole call on the CPU, on the GPU from Arrow, and on the GPU with the events there."""

    cpu: Callable[[], pa.Table]
    gpu: Callable[[], pa.Table]
    gpu_resident: Callable[[], pa.Table]


def rate(events: int, seconds: float) -> str:
    """Return millions of events per second."""
    return f"{events / seconds / 1e6:,.0f} M/s"


def run(check: Check) -> Iterator[Finding]:
    """Yield each workload with as many events as memory and its share of the time allow."""
    speed = upload_bandwidth(check.device)
    yield note(f"The transfer's own speed, from pinned memory, measured beside these: {speed / 1e9:,.1f} GB/s.")
    yield from in_turn(check, WORKLOADS, partial(_measured, check, speed))


def _measured(check: Check, speed: float, workload: Workload, deadline: Deadline) -> Iterator[Finding]:
    measure = partial(_at_size, check.device, speed, workload)
    if check.quick:
        yield from measure(QUICK_EVENTS)
        return
    list(measure(COMPILED))
    most = affordable(check, deadline.left, measure)
    if most < check.events:
        yield note(f"{workload.name}: {most:,} events instead of {check.events:,}, for want of time or memory.")
    yield from measure(most)


def affordable(check: Check, seconds: float, measure: Callable[[int], Iterator[Finding]]) -> int:
    """Return how many events are taken: as many as were asked for, or fewer if memory, or a rehearsal's time, says so."""
    fit = fitting(check)
    rehearsed = max(COMPILED, fit // REHEARSED_SHARE)
    begin = time.monotonic()
    list(measure(rehearsed))
    spent = time.monotonic() - begin
    in_time = int(rehearsed * max(0.0, seconds - spent) / spent)
    return max(rehearsed, min(fit, in_time))


def fitting(check: Check) -> int:
    """Return how many events are taken: as many as were asked for, or fewer if the host's or the device's memory says so."""
    return min(check.events, memory_for_results(1) // HOST_BYTES, check.device.free_memory() // DEVICE_BYTES)


def _at_size(device: Device, speed: float, workload: Workload, size: int) -> Iterator[Finding]:
    """Yield all measurements of one workload; the counts are compared before anything is told."""
    case = Case(workload, size, workload.streams if size > workload.streams else 1)
    events, threads = many_events(case), available_threads()
    size = events.num_rows
    plan = plan_of(case, events.schema, OUTPUT)
    resident = on_device(events, device)
    resident_plan = plan_of(case, resident.schema, OUTPUT)
    contestants = Contestants(
        cpu=lambda: run_match(case, events, OUTPUT, threads, engine="cpu"),
        gpu=lambda: run_match(case, events, OUTPUT, threads, engine="gpu"),
        gpu_resident=lambda: answer(resident_plan, resident, resources=Resources(threads)),
    )
    transfer = transferred_bytes(plan, events) / speed
    yield row(WHOLE_CALLS, whole_call(workload.name, size, threads, contestants, transfer))
    encoding = best_seconds(events["type"].dictionary_encode, REPEATS) if workload.plain_types else 0.0
    spent, stages = _best_phase_one(partial(time_phase_one, plan, events, device))
    yield row("Phase 1 alone", PhaseOneTime(workload.name, "host memory", size, spent, stages, transfer, encoding, device.simulated))
    spent, stages = _best_phase_one(partial(time_phase_one, resident_plan, resident, device))
    yield row("Phase 1 alone", PhaseOneTime(workload.name, "device memory", size, spent, stages, 0.0, 0.0, device.simulated))


def whole_call(name: str, size: int, threads: int, contestants: Contestants, transfer: float) -> EndToEnd:
    """Return the best times of each contestant; all must count the same matches.

    `transfer` is the least that the events take to the device.

    Raises
    ------
    Disagreement
        They do not.
    """
    timed = [_counted(answer, CPU_REPEATS if who == "cpu" else REPEATS) for who, answer in contestants._asdict().items()]
    counts, (cpu, gpu, gpu_resident) = [count for count, _ in timed], [seconds for _, seconds in timed]
    if len(set(counts)) > 1:
        raise Disagreement(f"{name}, {size:,} events, matches: {dict(zip(Contestants._fields, counts, strict=True))}")
    return EndToEnd(name, size, counts[0], threads, cpu, gpu, gpu_resident, transfer)


def _counted(answer: Callable[[], pa.Table], repeats: int) -> tuple[int, float]:
    """Return the matches of an answer, and the shortest time of it and of `repeats` more."""
    begin = time.perf_counter()
    matches = match_count(answer(), OUTPUT)
    return matches, min(time.perf_counter() - begin, best_seconds(answer, repeats))


def many_events(case: Case) -> pa.Table:
    """Return the events of a case in one chunk; of many, those of a tenth over and over, each time later."""
    if case.events <= DRAWN:
        return events_of(case)
    part = events_of(replace(case, events=case.events // PARTS))
    times = part["ts"].chunk(0)
    span = times[-1].as_py() + case.workload.largest_gap
    shifted = [part.set_column(0, "ts", pa.array(times.to_numpy() + number * span)) for number in range(PARTS)]
    return pa.concat_tables(shifted).combine_chunks()


def _best_phase_one(measure: Callable[[], tuple[float, dict[str, float]]]) -> tuple[float, dict[str, float]]:
    return min((measure() for _ in range(REPEATS)), key=lambda timed: timed[0])

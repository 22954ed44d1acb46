"""From how many events on the GPU wins: every question at sizes that grow tenfold, on both engines, until time or memory is short."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.gpu.clock import upload_bandwidth
from benchmarks.gpu.end_to_end import Contestants, EndToEnd, fitting, whole_call
from benchmarks.gpu.findings import Check, Deadline, Finding, in_turn, note, row
from benchmarks.gpu.phase_one import on_device, transferred_bytes
from benchmarks.gpu.questions import QUESTIONS, Question
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.answers import answer
from gpu_cep.engine.phase_one.engine_choice import FEWEST_EVENTS
from gpu_cep.engine.phase_one.engine_costs import Calibration, break_even, calibrate, work_of
from gpu_cep_kernels.compile.launch import available_threads
from gpu_cep_kernels.device.interface import Device

LEAST, FACTOR = 10_000, 10
QUICK_SIZES = (200, 400)
CALLS, TURNS = "Whole calls by size, output='count'", "From which size on the GPU wins"


@dataclass(frozen=True, slots=True)
class Turn:
    """The sizes between which a question was measured, and those from which on the GPU wins (None: not up to the largest).

    `auto` is the size from which on ``engine="auto"`` takes the device, by what it measures on this machine (None: it never does).
    """

    question: str
    least: int
    most: int
    from_arrow: int | None
    on_device: int | None
    auto: int | None

    def cells(self) -> dict[str, str]:
        return {
            "question": self.question,
            "from Arrow": self.shown(self.from_arrow),
            "events on the device": self.shown(self.on_device),
            "`auto` takes the GPU from": "never" if self.auto is None else about(self.auto),
            "measured": f"{self.least:,} to {self.most:,} events",
        }

    def shown(self, size: int | None) -> str:
        """Return a size from which on the GPU wins, for readers."""
        if size is None:
            return f"not up to {self.most:,}"
        return f"{size:,} or fewer" if size == self.least else f"about {about(size)}"


def about(size: int) -> str:
    """Return a size to two digits: it is interpolated, or reckoned."""
    return f"{float(f'{size:.2g}'):,.0f}"


def turning_size(sizes: Sequence[int], cpu: Sequence[float], gpu: Sequence[float]) -> int | None:
    """Return the size from which on `gpu` takes less time than `cpu` at all larger sizes; None: it does not at the largest.

    Between two sizes the logarithm of the ratio of both times is taken for linear in that of the size; `sizes` ascend.
    """
    gained = np.log(np.asarray(cpu, float) / np.asarray(gpu, float))
    behind = np.flatnonzero(gained <= 0)
    if not behind.size:
        return sizes[0]
    last = int(behind[-1])
    if last == len(sizes) - 1:
        return None
    before, after = sizes[last : last + 2]
    share = float(-gained[last] / (gained[last + 1] - gained[last]))
    return min(after, math.ceil(before * math.pow(after / before, share)))


def run(check: Check) -> Iterator[Finding]:
    """Yield each question at all sizes that its share of the time, and memory, allow."""
    speed, calibration = upload_bandwidth(check.device), calibrate(check.device)
    yield from in_turn(check, QUESTIONS, partial(measured, check, speed, calibration))


def measured(check: Check, speed: float, calibration: Calibration, question: Question, deadline: Deadline) -> Iterator[Finding]:
    """Yield a question's calls at all sizes that there is time for until `deadline`, and where the GPU begins to win."""
    sizes = QUICK_SIZES if check.quick else sizes_up_to(fitting(check))
    # untimed, since it compiles
    call_at(check.device, speed, question, sizes[0])
    calls: list[EndToEnd] = []
    spent = 0.0
    for size in sizes:
        if calls and spent * size / calls[-1].events > deadline.left:
            yield note(f"{question.name}: not more than {calls[-1].events:,} events, for want of time.")
            break
        begin = time.monotonic()
        calls.append(call_at(check.device, speed, question, size))
        spent = time.monotonic() - begin
        yield row(CALLS, calls[-1])
    yield row(TURNS, turn(calls, threshold(question, calibration)))


def sizes_up_to(most: int) -> list[int]:
    """Return the sizes to measure at; the smallest in any case."""
    steps = math.floor(math.log(max(most, LEAST) / LEAST, FACTOR) + 1e-9)
    return [LEAST * FACTOR**step for step in range(steps + 1)]


def call_at(device: Device, speed: float, question: Question, size: int) -> EndToEnd:
    """Return what all contestants take for a planned question over so many events; `speed` is the transfer's, in bytes per second."""
    events, threads = question.events(size), available_threads()
    resident = on_device(events, device)
    contestants = Contestants(
        cpu=lambda: answer(question.plan(size, events.schema, "cpu"), events, resources=Resources(threads)),
        gpu=lambda: answer(question.plan(size, events.schema, "gpu"), events, resources=Resources(threads)),
        gpu_resident=lambda: answer(question.plan(size, resident.schema, "gpu"), resident, resources=Resources(threads)),
    )
    transfer = transferred_bytes(question.plan(size, events.schema, "gpu"), events) / speed
    return whole_call(question.name, size, threads, contestants, transfer)


def turn(calls: Sequence[EndToEnd], auto: int | None) -> Turn:
    """Return where the GPU begins to win, from one question's calls by size."""
    sizes, cpu = [call.events for call in calls], [call.cpu for call in calls]
    from_arrow, on_the_device = (turning_size(sizes, cpu, gpu) for gpu in ([c.gpu for c in calls], [c.gpu_resident for c in calls]))
    return Turn(calls[0].workload, sizes[0], sizes[-1], from_arrow, on_the_device, auto)


def threshold(question: Question, calibration: Calibration) -> int | None:
    """Return the number of events from which on ``engine="auto"`` takes the device; None: it never does."""
    plan = question.plan(LEAST, question.events(1).schema, "auto")
    found = break_even(calibration, work_of(plan, LEAST, None, available_threads()))
    return None if found is None else max(FEWEST_EVENTS, found)

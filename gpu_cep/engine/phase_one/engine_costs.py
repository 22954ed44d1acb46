"""Estimate what a plan takes on either engine, from the speed of this machine and recorded benchmarks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_

import numpy as np

from gpu_cep.analysis.types import Kind
from gpu_cep.plan.event_plan import Plan
from gpu_cep.plan.interval_plan import AnyPlan, IntervalPlan
from gpu_cep_kernels.device.interface import Device, DeviceUnavailable, HostArray
from gpu_cep_kernels.phase_one.ordering import gather

# Seconds of phase 1 on one thread, in multiples of copying the columns that it reads; from the floors and stages of
# benchmarks/results/amd-epyc-2-cores-2026-11-21.json. Of workloads of one kind the quickest counts, in favour of the CPU.
KEEPING_ALL = 17.0  # medical_dense: no event is filtered out
KEEPING_SOME = 3.3  # stocks
# Algorithms that look at no windows.
_NEED_NO_WINDOWS = frozenset(("lazy_chain", "lazy_tree", "join_tree"))
WITHOUT_WINDOWS = 2.0  # selective: the lazy chain needs labels and order only
# Of situations a pass over events finds the few at which one begins or ends: no more than a copy, in favour of the CPU.
SITUATIONS = 1.0

# Share of phase 1 that threads do not divide. A second thread makes the median question 1.5 times as fast, which is a share of a third
# (benchmarks/results/kinds-amd-epyc-2026-11-28.json): this is less, in favour of the CPU.
UNDIVIDED = 0.25

# Launches in phase 1, whose latency is the cost that does not grow with the events. The benchmarks' questions make 15 to 27 calls of
# kernels and array functions, and 5 to 8 waits (benchmarks/results/gpu-traffic.md); a sort and a scan are several launches.
LAUNCHES = 50
# The same for situations, whose joins take more calls the more names there are (`drivers` in that record).
SITUATION_LAUNCHES = 150

# Bytes that are copied to measure rates (into fresh memory, as the floors are measured), and how often: the quickest time counts.
_SAMPLE = 1 << 26
_REPEATS = 3

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The speed of this machine.

    `copy_rate` is the bytes per second of a copy by one thread. `transfer_rate` is that of a
    transfer to the device. `latency` is the seconds of a launch.
    """

    copy_rate: float
    transfer_rate: float
    latency: float


@dataclass(frozen=True, slots=True)
class PhaseOneWork:
    """The size of phase 1 of a run: events, bytes read per event, and threads of the CPU.

    `copies` is the time that it takes on one thread, as a multiple of copying these bytes. `launches` are those of a GPU.
    """

    events: int
    row_bytes: int
    copies: float
    threads: int
    launches: int = LAUNCHES


@dataclass(frozen=True, slots=True)
class Costs:
    """The expected seconds of phase 1 on the CPU, and of moving the events to the GPU."""

    cpu: float
    gpu: float


def work_of(plan: AnyPlan, events: int, row_bytes: int | None, threads: int) -> PhaseOneWork:
    """Return the work of a plan over so many events of `row_bytes` (None: as :func:`bytes_per_event`)."""
    launches = SITUATION_LAUNCHES if isinstance(plan, IntervalPlan) else LAUNCHES
    return PhaseOneWork(events, bytes_per_event(plan) if row_bytes is None else row_bytes, copies_worth(plan), threads, launches)


def bytes_per_event(plan: Plan) -> int:
    """Return the bytes per event that phase 1 of `plan` reads: 4 for a code of text, 8 for other values."""
    types = [attribute.type for attribute in plan.query.schema.attributes] + [computed.type for computed in plan.query.computed]
    return sum(4 if types[column].kind is Kind.STRING else 8 for column in plan.bulk_columns)


def copies_worth(plan: AnyPlan) -> float:
    """Return the time of phase 1 on one thread, as a multiple of copying the columns that it reads."""
    if isinstance(plan, IntervalPlan):
        return SITUATIONS
    decided = reduce(or_, (planned.bits for planned in plan.properties), 0)
    # a variable without properties takes any event
    if "filter" not in plan.pruning or decided != (1 << len(plan.query.variables)) - 1:
        return KEEPING_ALL
    return WITHOUT_WINDOWS if not _NEED_NO_WINDOWS.isdisjoint(plan.contenders) else KEEPING_SOME


def _cpu_seconds(calibration: Calibration, work: PhaseOneWork) -> float:
    """Return the seconds that the CPU takes for a byte (Amdahl's law)."""
    return work.copies / calibration.copy_rate * (UNDIVIDED + (1 - UNDIVIDED) / work.threads)


def costs(calibration: Calibration, work: PhaseOneWork) -> Costs:
    """Return the expected costs of the work at the measured speeds."""
    size = work.events * work.row_bytes
    return Costs(
        cpu=size * _cpu_seconds(calibration, work),
        gpu=work.launches * calibration.latency + size / calibration.transfer_rate,
    )


def break_even(calibration: Calibration, work: PhaseOneWork) -> int | None:
    """Return the number of events above which the GPU is faster; None if it never is."""
    fixed = work.launches * calibration.latency
    gained = work.row_bytes * (_cpu_seconds(calibration, work) - 1 / calibration.transfer_rate)
    return math.ceil(fixed / gained) if gained > 0 else None


def calibrate(device: Device, clock: Clock = time.perf_counter) -> Calibration:
    """Measure copies, transfers and launches, in some tens of milliseconds.

    Raises
    ------
    DeviceUnavailable
        The device fails at it.
    """
    sample = np.full(_SAMPLE // 8, 1, np.int64)
    try:
        return Calibration(
            copy_rate=_SAMPLE / _quickest(sample.copy, clock),
            transfer_rate=_SAMPLE / _quickest(partial(_transfer, device, sample), clock),
            latency=_quickest(_launch_action(device), clock),
        )
    except Exception as fault:
        # whatever a driver or an allocator throws: the CPU can take over
        raise DeviceUnavailable(f"measuring its speed failed: {type(fault).__name__}: {fault}") from fault


def _transfer(device: Device, sample: HostArray) -> None:
    """Upload the sample, and wait."""
    device.upload(sample)
    device.synchronize()


def _launch_action(device: Device) -> Callable[[], None]:
    """Return a function that launches a kernel over one index, and waits."""
    rows = device.upload(np.zeros(1, np.int64))
    values, found = device.upload(np.ones(1, np.int64)), device.upload(np.zeros(1, np.int64))

    def launch() -> None:
        device.launch(gather, 1, rows, 0, values, found)
        device.synchronize()

    return launch


def _quickest(action: Callable[[], object], clock: Clock) -> float:
    """Return the shortest time of several runs in seconds, after one run that does not count."""
    action()
    seconds = []
    for _ in range(_REPEATS):
        begin = clock()
        action()
        seconds.append(clock() - begin)
    return min(seconds)

"""Choose the engine that runs phase 1 of a plan, and give the reason.

``auto`` takes a usable GPU if moving the events there takes less time than phase 1 on the CPU. The
speeds of a transfer, a launch and a copy on the host are measured once per process. The time of
phase 1 on the CPU is a multiple of a copy's time, taken from recorded benchmarks.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial, reduce
from operator import or_

import numpy as np

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.events.batches import BATCH
from gpu_cep.errors import EngineUnavailable
from gpu_cep.plan.algorithms import algorithm_named
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.compile.launch import available_threads
from gpu_cep_kernels.device.interface import Device, DeviceUnavailable, HostArray, NoDevice
from gpu_cep_kernels.device.selection import open_device, select_device
from gpu_cep_kernels.phase_one.ordering import gather

# Seconds of phase 1 on one thread, in multiples of copying the columns that it reads; from the floors and stages of
# benchmarks/results/amd-epyc-2-cores-2026-11-21.json. Of workloads of one kind the quickest counts, in favour of the CPU.
KEEPING_ALL = 17.0  # medical_dense: no event is filtered out
KEEPING_SOME = 3.3  # stocks
# Algorithms that look at no windows.
_NEED_NO_WINDOWS = frozenset(("lazy_chain", "lazy_tree", "join_tree"))
WITHOUT_WINDOWS = 2.0  # selective: the lazy chain needs labels and order only

# Launches in phase 1, whose latency is the cost that does not grow with the events. The benchmarks' questions make 15 to 27 calls of
# kernels and array functions, and 5 to 8 waits (benchmarks/results/gpu-traffic.md); a sort and a scan are several launches.
LAUNCHES = 50

# Bytes that are copied to measure rates (into fresh memory, as the floors are measured), and how often: the quickest time counts.
_SAMPLE = 1 << 26
_REPEATS = 3

_log = logging.getLogger("gpu_cep")

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Choice:
    """The device that runs phase 1 (None: the CPU does), and the reason in one line."""

    device: Device | None
    reason: str


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
class Work:
    """The size of phase 1 of a run: events, bytes read per event, and threads of the CPU.

    `copies` is the time that it takes on one thread, as a multiple of copying these bytes.
    """

    events: int
    row_bytes: int
    copies: float
    threads: int


@dataclass(frozen=True, slots=True)
class Costs:
    """The expected seconds of phase 1 on the CPU, and of moving the events to the GPU."""

    cpu: float
    gpu: float

    @property
    def gpu_pays(self) -> bool:
        """Return whether the GPU is expected to be faster."""
        return self.gpu < self.cpu


def choose_engine(plan: EventPlan, events: int, row_bytes: int, threads: int | None = None, *, resident: bool = False) -> Choice:
    """Return the engine for phase 1 of `plan`.

    Parameters
    ----------
    events
        How many there are.
    row_bytes
        Bytes per event that phase 1 reads, and that a device would receive (see :func:`bytes_per_event`).
    threads
        Threads that the CPU would use; None: all cores that the process may use.
    resident
        Whether the events lie on the device already.

    Raises
    ------
    EngineUnavailable
        The plan asks for the GPU, and it cannot be used.
    """
    engine = plan.settings.engine
    if engine == "gpu":
        return Choice(require_device(), "engine='gpu'")
    if engine == "cpu":
        return Choice(None, "engine='cpu'")
    work = Work(events, row_bytes, copies_worth(plan), threads or available_threads())
    return _choose_automatically(plan, work, resident)


def require_device() -> Device:
    """Return the device, for callers that cannot use the CPU.

    Raises
    ------
    EngineUnavailable
        With the cause: no driver, no card, a package is missing, or versions do not fit together.
    """
    try:
        return open_device()
    except DeviceUnavailable as fault:
        raise EngineUnavailable(f"phase 1 cannot run on GPU because {fault}; use engine='auto' or engine='cpu'") from fault


def use_device(number: Callable[[int], int], promised: bool) -> None:
    """Choose one of several devices for the later runs of this process.

    The parameters are those of :func:`select_device`.
    """
    select_device(number, promised)


def bytes_per_event(plan: EventPlan) -> int:
    """Return the bytes per event that phase 1 of `plan` reads: 4 for a code of text, 8 for other values."""
    types = [attribute.type for attribute in plan.query.schema.attributes] + [computed.type for computed in plan.query.computed]
    return sum(4 if types[column].kind is Kind.STRING else 8 for column in plan.bulk_columns)


def _choose_automatically(plan: EventPlan, work: Work, resident: bool) -> Choice:
    """Return the engine that is expected to be faster."""
    if not any("gpu" in algorithm_named(name).engines for name in plan.contenders):
        return _on_cpu(logging.INFO, f"algorithm={plan.algorithm!r} cannot run on GPU because it has no phase 1")
    if work.events < BATCH and not resident:
        # opening a device takes longer than the whole run
        return Choice(None, f"{BATCH:,} events and more are worth looking for a GPU")
    try:
        device = open_device()
        if device.simulated:
            return _on_cpu(logging.INFO, "phase 1 cannot run on GPU because CUDA is simulated (NUMBA_ENABLE_CUDASIM is set)")
        return Choice(device, f"the events lie on {device.name}") if resident else _cheaper(device, _calibration(), work)
    except DeviceUnavailable as fault:
        level = logging.INFO if isinstance(fault, NoDevice) else logging.WARNING
        return _on_cpu(level, f"phase 1 cannot run on GPU because {fault}")


def _cheaper(device: Device, calibration: Calibration, work: Work) -> Choice:
    """Return the engine with the lower expected cost; the reason names the break-even point."""
    threshold = break_even(calibration, work)
    against = f"phase 1 on {work.threads} thread{'s' * (work.threads > 1)}"
    if threshold is None:
        return _on_cpu(logging.INFO, f"the transfer to {device.name} takes longer than {against}, whatever the number of events")
    rule = f"the transfer to {device.name} takes less time than {against} from about {threshold:,} events of {work.row_bytes} bytes on"
    return Choice(device, rule) if costs(calibration, work).gpu_pays else _on_cpu(logging.INFO, rule)


def _on_cpu(level: int, reason: str) -> Choice:
    """Choose the CPU, and log the reason once."""
    _log_once(level, reason)
    return Choice(None, reason)


@cache
def _log_once(level: int, reason: str) -> None:
    """Log a reason the first time that it is given."""
    _log.log(level, "engine='auto' runs on the CPU: %s", reason)


def copies_worth(plan: EventPlan) -> float:
    """Return the time of phase 1 on one thread, as a multiple of copying the columns that it reads."""
    decided = reduce(or_, (planned.bits for planned in plan.properties), 0)
    # a variable without properties takes any event
    if "filter" not in plan.pruning or decided != (1 << len(plan.query.variables)) - 1:
        return KEEPING_ALL
    return WITHOUT_WINDOWS if not _NEED_NO_WINDOWS.isdisjoint(plan.contenders) else KEEPING_SOME


def costs(calibration: Calibration, work: Work) -> Costs:
    """Return the expected costs of the work at the measured speeds."""
    size = work.events * work.row_bytes
    return Costs(
        cpu=size * work.copies / calibration.copy_rate / work.threads,
        gpu=LAUNCHES * calibration.latency + size / calibration.transfer_rate,
    )


def break_even(calibration: Calibration, work: Work) -> int | None:
    """Return the number of events above which the GPU is faster; None if it never is."""
    fixed = LAUNCHES * calibration.latency
    gained = work.row_bytes * (work.copies / calibration.copy_rate / work.threads - 1 / calibration.transfer_rate)
    return math.ceil(fixed / gained) if gained > 0 else None


def _calibration() -> Calibration:
    """Return the speed of this machine, measured once per process.

    If the measurement failed, its error is raised again on each call.
    """
    found = _calibrate_once()
    if isinstance(found, DeviceUnavailable):
        raise found.anew()
    return found


@cache
def _calibrate_once() -> Calibration | DeviceUnavailable:
    """Measure the speed of this machine; return the error instead if the device fails."""
    try:
        return calibrate(open_device())
    except DeviceUnavailable as fault:
        return fault.anew()


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

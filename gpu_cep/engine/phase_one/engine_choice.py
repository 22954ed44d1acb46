"""Choose the engine that answers a plan, and give the reason.

``auto`` takes a usable GPU if the plan takes less time there. Its time on both engines is measured by trials
and by runs (:mod:`gpu_cep.engine.phase_one.engine_rates`). Until then it is estimated: the GPU's time is that
of moving the events there, the CPU's a multiple of a copy's time, taken from recorded benchmarks. The speeds
of a transfer, a launch and a copy on the host are measured once per process.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import cache

from gpu_cep.engine.phase_one.engine_costs import Calibration, Costs, PhaseOneWork, break_even, calibrate, costs, work_of
from gpu_cep.engine.phase_one.engine_rates import PARTS, TRIAL, EngineRates, Pace, Timing, TrialOutcome, Way, fit_pace, rates_of
from gpu_cep.errors import CepError, EngineUnavailable
from gpu_cep.plan.algorithms import algorithm_named
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.interval_plan import AnyPlan
from gpu_cep.records import record
from gpu_cep_kernels.compile.ahead import compile_ahead
from gpu_cep_kernels.compile.launch import threads_of
from gpu_cep_kernels.device.interface import Device, DeviceUnavailable, NoDevice
from gpu_cep_kernels.device.selection import open_device

_log = logging.getLogger("gpu_cep")

# With fewer events, opening a device takes longer than the whole run.
FEWEST_EVENTS = 1 << 17


@record()
class EngineChoice:
    """The device that runs phase 1 (None: the CPU does), and the reason in one line.

    `searches`: whether the device also searches the windows that it can search.
    `rates`: where the time of the run is remembered (None: nowhere).
    """

    device: Device | None
    reason: str
    searches: bool = True
    rates: EngineRates | None = None

    @property
    def way(self) -> Way:
        """Return how the plan is answered."""
        return Way.CPU if self.device is None else Way.GPU if self.searches else Way.GPU_THEN_CPU


# Returns the seconds that the first events of a run take in the way of a choice; None if its device could not answer.
Measure = Callable[[EngineChoice, int], float | None]


def choose_engine(
    plan: AnyPlan, events: int, row_bytes: int | None = None, threads: int | None = None, *, resident: bool = False,
    measure: Measure | None = None,
) -> EngineChoice:  # fmt: skip
    """Return the engine for `plan`.

    Parameters
    ----------
    events
        How many there are.
    row_bytes
        Bytes per event that phase 1 reads, and that a device would receive
        (None: as :func:`gpu_cep.engine.phase_one.engine_costs.bytes_per_event`).
    threads
        Threads that the CPU would use; None: all cores that the process may use.
    resident
        Whether the events lie on the device already.
    measure
        Tries an engine on the first events, where that is worth its time (None: nothing is tried).

    Raises
    ------
    EngineUnavailable
        The plan asks for the GPU, and it cannot be used.
    """
    engine = plan.settings.engine
    if engine == "gpu":
        return EngineChoice(require_device(), "engine='gpu'")
    if engine == "cpu":
        return EngineChoice(None, "engine='cpu'")
    if not runs_on_gpu(plan):
        return _on_cpu(logging.INFO, f"algorithm={plan.algorithm!r} cannot run on GPU because it has no phase 1")
    if events < FEWEST_EVENTS and not resident:
        return EngineChoice(None, f"{FEWEST_EVENTS:,} events and more are worth looking for a GPU")
    return _choose_automatically(plan, work_of(plan, events, row_bytes, threads_of(threads)), resident, measure)


def runs_on_gpu(plan: AnyPlan) -> bool:
    """Return whether an algorithm that may answer `plan` has a phase 1, which a device can run."""
    return not isinstance(plan, EventPlan) or any("gpu" in algorithm_named(name).engines for name in plan.contenders)


def has_device() -> bool:
    """Return whether there is a device that can be used."""
    try:
        open_device()
    except DeviceUnavailable:
        return False
    return True


def require_device() -> Device:
    """Return the device, for callers that cannot use the CPU; other processes begin to compile what they launch.

    Raises
    ------
    EngineUnavailable
        With the cause: no driver, no card, a package is missing, or versions do not fit together.
    """
    compile_ahead()
    try:
        return open_device()
    except DeviceUnavailable as fault:
        raise EngineUnavailable(f"phase 1 cannot run on GPU because {fault}; use engine='auto' or engine='cpu'") from fault


def ways_of(plan: AnyPlan) -> tuple[Way, ...]:
    """Return the ways in which `plan` can be answered; of equally quick ones the first is taken."""
    # the walk's kernels are not loaded where no device is found
    from gpu_cep.engine.phase_one.device.searched_plans import searches_windows

    searched = isinstance(plan, EventPlan) and searches_windows(plan)
    return (Way.CPU, Way.GPU, Way.GPU_THEN_CPU) if searched else (Way.CPU, Way.GPU)


def _choose_automatically(plan: AnyPlan, work: PhaseOneWork, resident: bool, measure: Measure | None) -> EngineChoice:
    """Return the engine that is expected to be faster."""
    try:
        device = open_device()
        if device.simulated:
            return _on_cpu(logging.INFO, "phase 1 cannot run on GPU because CUDA is simulated (NUMBA_ENABLE_CUDASIM is set)")
        if resident:
            return EngineChoice(device, f"the events lie on {device.name}")
        return _Contest(device, _calibration(), work, ways_of(plan), rates_of(plan.fingerprint(), work.threads)).decide(measure)
    except DeviceUnavailable as fault:
        level = logging.INFO if isinstance(fault, NoDevice) else logging.WARNING
        return _on_cpu(level, f"phase 1 cannot run on GPU because {fault}")


@record()
class _Contest:
    """The engines that can answer a plan, and what is known of their speed."""

    device: Device
    calibration: Calibration
    work: PhaseOneWork
    ways: tuple[Way, ...]
    rates: EngineRates

    def decide(self, measure: Measure | None) -> EngineChoice:
        """Return the way with the lowest expected time, after a trial if one is due."""
        announced = ""
        if self._may_win:
            compile_ahead()
            if measure is None:
                announced = f"; engines are first tried on {self._tried:,} events" if self.rates.is_due(self.work.events) else ""
            elif self.rates.begin_trial(self.work.events):
                self.rates.end_trial(self._try(measure))
        choice = self._choice(min(self.ways, key=self._seconds), f"{self._reason()}{announced}")
        if choice.device is None:
            _log_once(logging.INFO, self._told())
        return choice

    @property
    def _costs(self) -> Costs:
        return costs(self.calibration, self.work)

    @property
    def _may_win(self) -> bool:
        """Return whether the CPU takes longer than the transfer, which the GPU cannot do without."""
        return self._costs.gpu < self._seconds(Way.CPU)

    @property
    def _tried(self) -> int:
        """Return on how many events engines are tried."""
        return min(TRIAL, self.work.events)

    def _seconds(self, way: Way) -> float:
        """Return the time that is measured, or else estimated; infinite if neither can be said."""
        pace = self.rates.paces.get(way)
        if pace is not None:
            return pace.seconds(self.work.events)
        return {Way.CPU: self._costs.cpu, Way.GPU: self._costs.gpu}.get(way, math.inf)

    def _choice(self, way: Way, reason: str) -> EngineChoice:
        return EngineChoice(None if way is Way.CPU else self.device, reason, way is not Way.GPU_THEN_CPU, self.rates)

    def _try(self, measure: Measure) -> TrialOutcome:
        """Measure the pace of each way over the first events, until the GPU cannot win any more, or could not answer."""
        for way in self.ways:
            if way is not Way.CPU and not self._may_win:
                return TrialOutcome.BROKEN_OFF
            try:
                pace = self._measure(way, measure)
            except CepError:
                # the run itself raises what is wrong with it
                return TrialOutcome.FAULTY
            if pace is None:
                return TrialOutcome.MEASURED
            self.rates.learn(way, pace)
        return TrialOutcome.MEASURED

    def _measure(self, way: Way, measure: Measure) -> Pace | None:
        """Return the pace of a way; None if its device could not answer."""
        choice, few = self._choice(way, "a trial"), self._tried // PARTS
        timings = []
        # the first call compiles and loads kernels
        for events in (few, few, self._tried):
            seconds = measure(choice, events)
            if seconds is None:
                return None
            timings.append(Timing(events, seconds))
        return fit_pace(*timings[1:])

    def _reason(self) -> str:
        """Return the reason for the choice in one line."""
        if self.rates.failure:
            return f"{self.device.name} could not answer this plan: {self.rates.failure}"
        return self._measured_reason() if self.rates.paces else self._estimated_reason()

    def _measured_reason(self) -> str:
        """Return what is measured of each way; of the GPU at least what the transfer takes."""
        threads, paces = _threads(self.work), self.rates.paces
        names = {Way.CPU: threads, Way.GPU: self.device.name, Way.GPU_THEN_CPU: f"{self.device.name} and then {threads}"}
        told = [f"{names[way]} {paces[way]}" for way in self.ways if way in paces]
        if Way.GPU not in paces:
            told.append(f"the transfer to {self.device.name} {1e3 * self._costs.gpu:,.1f} ms")
        return f"measured for this plan: {', '.join(told)}"

    def _estimated_reason(self) -> str:
        """Return the break-even point of the estimates."""
        threshold, against = break_even(self.calibration, self.work), f"phase 1 on {_threads(self.work)}"
        if threshold is None:
            return f"the transfer to {self.device.name} takes longer than {against}, whatever the number of events"
        size = f"{threshold:,} events of {self.work.row_bytes} bytes"
        return f"the transfer to {self.device.name} takes less time than {against} from about {size} on"

    def _told(self) -> str:
        """Return the reason for the CPU as it is logged: the same one for all runs of a plan that measurements decide."""
        if self.rates.failure or not self.rates.paces:
            return self._reason()
        return f"by what was measured, it takes less time for this plan than {self.device.name}"


def _threads(work: PhaseOneWork) -> str:
    return f"{work.threads} thread{'s' * (work.threads > 1)}"


def _on_cpu(level: int, reason: str) -> EngineChoice:
    """Choose the CPU, and log the reason once."""
    _log_once(level, reason)
    return EngineChoice(None, reason)


@cache
def _log_once(level: int, reason: str) -> None:
    """Log a reason the first time that it is given."""
    _log.log(level, "engine='auto' runs on the CPU: %s", reason)


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

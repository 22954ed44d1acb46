"""Remember for this process how fast each engine answers a plan.

Trials over the first events of a run measure it, and so do the runs themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from threading import Lock
from typing import NamedTuple

# Events of a trial, and the share of them in its first part: two sizes tell what a run takes whatever its events are.
TRIAL, PARTS = 1 << 20, 8
# Events of a plan after which engines are first tried, and after which they are tried again. A trial costs a part of what these take.
FIRST, AGAIN = 16 * TRIAL, 256 * TRIAL
# Plans that are remembered.
_PLANS = 64


class Way(Enum):
    """How a plan is answered: on the CPU, on the GPU, or on the GPU but for the search of candidate windows."""

    CPU = "cpu"
    GPU = "gpu"
    GPU_THEN_CPU = "gpu, then cpu"


class TrialOutcome(Enum):
    """How a trial ended.

    MEASURED: all ways were measured, or the GPU could not answer. BROKEN_OFF: the GPU could not win any more.
    FAULTY: the events are at fault, or have too many matches.
    """

    MEASURED = "measured"
    BROKEN_OFF = "broken off"
    FAULTY = "faulty"


class Timing(NamedTuple):
    """The seconds that a run over so many events took."""

    events: int
    seconds: float


class Pace(NamedTuple):
    """The seconds of a run whatever its events are, and the seconds of each event."""

    fixed: float
    each: float

    def seconds(self, events: int) -> float:
        """Return the seconds of a run over so many events."""
        return self.fixed + events * self.each

    def scaled(self, factor: float) -> Pace:
        """Return the pace of runs that take `factor` times as long."""
        return Pace(self.fixed * factor, self.each * factor)

    def __str__(self) -> str:
        beside = f" and {1e3 * self.fixed:,.1f} ms a run" if self.fixed >= 5e-5 else ""
        return f"{1e9 * self.each:,.1f} ns an event{beside}"


# The pace of an engine that could not answer.
NEVER = Pace(math.inf, 0.0)


def fit_pace(small: Timing, large: Timing) -> Pace:
    """Return the pace that two runs of different sizes show.

    >>> fit_pace(Timing(100, 3.0), Timing(200, 4.0))
    Pace(fixed=2.0, each=0.01)
    """
    each = (large.seconds - small.seconds) / (large.events - small.events)
    if each <= 0:
        # the clock tells no difference
        return Pace(0.0, large.seconds / large.events)
    return Pace(max(0.0, small.seconds - small.events * each), each)


@dataclass
class EngineRates:
    """What is known of one plan: the pace of each way that was measured. Threads share it.

    - failure: why the GPU could not answer (empty: it could).
    - events: those of runs since engines were last tried.
    - tried: whether they were tried.
    """

    paces: dict[Way, Pace] = field(default_factory=dict)
    failure: str = ""
    events: int = 0
    tried: bool = False
    _trying: bool = field(default=False, repr=False, compare=False)
    _begun: set[Way] = field(default_factory=set, repr=False, compare=False)
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def is_due(self, events: int) -> bool:
        """Return whether engines are tried before a run over so many events."""
        return self.events + events >= (AGAIN if self.tried else FIRST)

    def begin_trial(self, events: int) -> bool:
        """Count the events of a run, and return whether its thread is to try engines first; one thread at a time does."""
        with self._lock:
            due = self.is_due(events) and not self._trying
            self.events += events
            self._trying |= due
            return due

    def end_trial(self, outcome: TrialOutcome) -> None:
        """End the trial that was begun; after one that was broken off, the next run may begin another."""
        with self._lock:
            self._trying = False
            self.events = self.events if outcome is TrialOutcome.BROKEN_OFF else 0
            self.tried |= outcome is TrialOutcome.MEASURED

    def learn(self, way: Way, pace: Pace) -> None:
        """Remember what a trial has measured."""
        with self._lock:
            self._begun.add(way)
            self.paces[way] = pace
            self.failure = "" if way is Way.GPU else self.failure

    def record(self, way: Way, events: int, seconds: float) -> None:
        """Remember what a run took; not the first one, which compiles and loads kernels.

        A pace that was known moves half of the way, since one run may be disturbed.
        """
        with self._lock:
            known, begun = self.paces.get(way), way in self._begun
            self._begun.add(way)
            if known is not None and 0.0 < known.seconds(events) < math.inf:
                self.paces[way] = known.scaled((1 + seconds / known.seconds(events)) / 2)
            elif known is None and begun:
                self.paces[way] = Pace(0.0, seconds / events)

    def refuse(self, reason: str) -> None:
        """Remember that the GPU could not answer; it is tried again only with the next trial."""
        with self._lock:
            self.failure, self.tried, self.events = reason, True, 0
            self.paces |= {Way.GPU: NEVER, Way.GPU_THEN_CPU: NEVER}


@lru_cache(maxsize=_PLANS)
def rates_of(plan: str, threads: int) -> EngineRates:
    """Return what is known of the plan of this fingerprint, where the CPU uses so many threads."""
    return EngineRates()

"""Define the input of a run over events or situations, and the result of its phase 1."""

from __future__ import annotations

from typing import NamedTuple

from gpu_cep.engine.accounting.match_budget import Budget
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.matches import Matches
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.reported import Reported
from gpu_cep.engine.events.runs import ContiguousMatches
from gpu_cep.engine.events.start_counts import StartCounts
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.plan.event_plan import EventPlan, Plan
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep.records import record
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.rules.tables import ColumnBank


@record()
class Run:
    """A plan with the columns of its events, which matches are reported, and the bounds of what the run may take."""

    plan: Plan
    columns: EventColumns
    tables: tuple[MatcherTables, ...]
    reported: Reported
    budget: Budget
    threads: int
    profile: Profile


@record()
class EventRun(Run):
    """A run of an event pattern."""

    plan: EventPlan


@record()
class IntervalRun(Run):
    """A run of a query over situations."""

    plan: IntervalPlan


class JoinInputs(NamedTuple):
    """Hold on a device what joins read of all ordered events: times, and what conditions read (None: that is on the host alone)."""

    times: Array
    bank: ColumnBank | None


@record()
class PhaseOne:
    """The ordered events; also their matches, if labels decided these on a device.

    `found` are the matches, as numbers of the `ordered` events; `runs` are the same as ranges of these.
    `counted` are the numbers of matches, at ascending events. All are None if matchers are still to run.
    `device` is the device on which it ran (None: the CPU). `joins_on` is the device on which matchers join events
    (None: the CPU), and `inputs` are what joins read there of all events, where there is room.
    """

    ordered: OrderedEvents
    found: Matches | None = None
    counted: StartCounts | None = None
    device: Device | None = None
    joins_on: Device | None = None
    inputs: JoinInputs | None = None
    runs: ContiguousMatches | None = None

    @property
    def leaves_windows(self) -> bool:
        """Return whether matchers are still to search windows: all that were judged, or those that a device has left."""
        return (self.found is None and self.counted is None) or self.ordered.starts is not None

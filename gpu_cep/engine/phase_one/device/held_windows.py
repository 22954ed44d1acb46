"""Hold the candidate windows of a batch on a card with no events but theirs, to be walked or searched through (phase 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpu_cep.engine.lowering.overflow import ConditionOverflow
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.phase_one.device.card_memory import PIECE
from gpu_cep.engine.phase_one.device.windows import DeviceWindows
from gpu_cep.engine.windows.placed_windows import Candidates, candidate_ends
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.automaton.chain_negations import ChainNegations
from gpu_cep_kernels.automaton.chain_windows import ChainConditions
from gpu_cep_kernels.automaton.enumeration import CandidateWindows
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.device.primitives import covered_events
from gpu_cep_kernels.phase_one.window_conditions import NextEvents
from gpu_cep_kernels.rules.tables import ColumnBank, Conditions

# Bytes per held event: its number, what follows it, and where it is used.
_HELD = 8 + 4 + 1 + 4


# Bytes of a walk or a search in any case, in arrays: tables, bank, runs, scratch, matches and what is computed of them.
FIXED = 128 * PIECE


class WindowBytes(NamedTuple):
    """The bytes that a walk or a search takes beside :data:`FIXED`: per window of a call, per slot of a launch, and per held event."""

    window: int
    slot: int
    event: int


@dataclass(frozen=True, slots=True)
class HeldWindows:
    """The candidate windows of a batch and their events, on a card; events are numbered among these.

    ``events[e]`` is the number of event e in the batch. `negations` are those of the branch (None:
    it has none). Events that they may rule out before matches begin are held, too.
    """

    events: Array
    following: NextEvents
    starts: Array
    ends: Array
    negations: ChainNegations | None = None


def hold_windows(windows: DeviceWindows, candidates: Candidates, beside: Array | None = None) -> HeldWindows:
    """Return the candidate windows, at least one, with no events but theirs and those flagged `beside` them."""
    xp, size = windows.place.xp, int(windows.limits.clock.size)
    ends = candidate_ends(windows, candidates)
    held = covered_events(xp, candidates.starts, ends, size)
    if beside is not None:
        held |= beside
    events = xp.flatnonzero(held)
    before = xp.zeros(size + 2, np.int32)
    before[1:-1] = xp.cumsum(held, dtype=np.int32)
    before[-1] = events.size
    # what follows an event is held if one window has both; else the next held event stands for it, behind that window
    occurrence = xp.full((windows.next_events.occurrence.shape[0], events.size + 2), events.size, np.int32)
    occurrence[:, : events.size] = before[xp.take(windows.next_events.occurrence, events, axis=1)]
    after = before[windows.next_events.after[events]] if windows.next_events.after.size else windows.next_events.after
    return HeldWindows(events, NextEvents(after, occurrence), before[candidates.starts].astype(np.int64), before[ends])


def conditions_without_bank(tables: MatcherTables) -> Conditions:
    """Return the conditions of a branch before it is known which events they read; :meth:`OpenedWindows.with_bank` adds these."""
    nothing = np.empty(0, np.uint64)
    bank = ColumnBank(np.empty((0, 0), np.int64), np.empty((0, 0)), nothing, nothing, np.empty((0, 0, 0)))
    return Conditions(tables.conditions, tables.aggregates, tables.programs, bank, 0)


def bytes_of_held(tables: MatcherTables, plan: EventPlan) -> int:
    """Return the bytes that a held event takes, without those of negations."""
    columns = len(plan.layout.ints) + len(plan.layout.floats) + len(plan.layout.derived)
    return _HELD + 4 * len(tables.pattern.order) + 8 * columns + 16 + 8 * 64 * len(plan.layout.vectors)


@dataclass(frozen=True, slots=True)
class OpenedWindows:
    """The held windows of a batch, which begins at ordered event `low`, with the tables of a branch and what its conditions read."""

    device: Device
    tables: MatcherTables
    held: HeldWindows
    bank: ColumnBank
    low: int

    @property
    def variables(self) -> int:
        """Return the number of variables."""
        return len(self.tables.pattern.order)

    def windows(self, low: int, high: int) -> CandidateWindows:
        """Return the windows [low, high)."""
        return CandidateWindows(self.held.starts[low:high], self.held.ends[low:high])

    def event_of(self, held: Array) -> int:
        """Return the ordered event that is the first of some held ones."""
        return int(self.held.events[held][0]) + self.low

    def longest_first(self, windows: CandidateWindows, of: Array | None = None) -> Array:
        """Return the numbers of windows, or `of` some of them, by length, so that the threads of a block take about as long."""
        starts, ends = windows if of is None else (windows.starts[of], windows.ends[of])
        order = self.device.xp.argsort(starts - ends, kind="stable")
        return order if of is None else of[order]

    def with_bank(self, conditions: ChainConditions) -> ChainConditions:
        """Return conditions with what they read of the held events."""
        return conditions._replace(bank=self.bank)

    def places(self, windows: CandidateWindows, found: Array, sizes: Array) -> tuple[Array, int]:
        """Return where what each of the windows `found` has of so many `sizes` begins, by window, and how many there are together."""
        xp = self.device.xp
        ends, places = xp.cumsum(sizes), xp.empty(windows.starts.size, np.int64)
        places[found] = ends - sizes
        return places, int(ends[-1])

    def refuse_overflow(self, windows: CandidateWindows, faults: Array) -> None:
        """Raise ConditionOverflow for the first window in which a condition overflowed.

        ``faults[w]`` is 0, or 1 plus that condition.
        """
        failed = self.device.xp.flatnonzero(faults)[:1]
        if failed.size:
            raise ConditionOverflow(self.tables.branch.conditions[int(faults[failed][0]) - 1], self.event_of(windows.starts[failed]))

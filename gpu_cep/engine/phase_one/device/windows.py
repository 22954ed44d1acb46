"""Find candidate windows on the device, by the necessary match conditions, and their events."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from gpu_cep.analysis.bound import CountWindow
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import Batch, window_length
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.own_events import Own
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.phase_one.device.order_events import streams_of_range
from gpu_cep.engine.windows.placed_windows import Candidates, PlacedWindows, candidate_ends, keep_candidates
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.device.interface import Array, Device, to_device
from gpu_cep_kernels.device.primitives import covered_events, later_events, marked_events, next_occurrences, prefix_counts
from gpu_cep_kernels.phase_one.window_conditions import NextEvents
from gpu_cep_kernels.phase_one.windows import WindowLimits
from gpu_cep_kernels.rules.tables import PatternTable


@dataclass(frozen=True, slots=True)
class DevicePattern:
    """A query's plan and tables, with the pattern's table on the device."""

    plan: EventPlan
    tables: MatcherTables
    pattern: PatternTable
    own: Own

    @property
    def variables(self) -> int:
        """Return the number of positive variables."""
        return len(self.tables.pattern.order)


def pattern_on_device(plan: EventPlan, tables: MatcherTables, own: Own, device: Device) -> DevicePattern:
    """Return the pattern with its table on the device."""
    return DevicePattern(plan, tables, to_device(device, tables.pattern), own.on(device))


@dataclass(frozen=True, slots=True)
class DeviceWindows(PlacedWindows):
    """The windows of a batch on the device, with the variables of its one branch; `starts` can begin a match."""

    starts: Array


def windows_on_device(
    query: DevicePattern, batch: Batch, times: Array, labels: Array, rows: Array | None, offsets: Indices, device: Device, profile: Profile
) -> DeviceWindows:
    """Return the windows of a batch (thesis Def. 4.3), and the starts of matches (Condition 5.2).

    `times`, `labels` and `rows` are those of the batch's events; `offsets` are those of all
    streams. If `rows` is None, all events are own.
    """
    xp, plan = device.xp, query.plan
    size, owned = batch.high - batch.low, batch.own - batch.low
    with profile.stage("windows"):
        streams, stream_end = streams_of_range(device, offsets, batch.low, batch.high)
        strict = plan.query.ties == "strict"
        after = later_events(xp, times, streams) if strict else xp.empty(0, xp.int32)
        counted = isinstance(plan.query.window, CountWindow)
        clock = xp.arange(size, dtype=xp.uint64) if counted else times
    with profile.stage("occurrences"):
        occurrence = next_occurrences(xp, labels, query.variables)
    with profile.stage("starts"):
        starts = xp.flatnonzero(marked_events(labels[:, :owned], query.tables.minimal))
        if rows is not None:
            starts = starts[query.own.holds(times[starts], rows[starts])]
    profile.add("windows", int(starts.size))
    limits = WindowLimits(clock, stream_end, window_length(plan, times.dtype))
    return DeviceWindows(device, labels, limits, NextEvents(after, occurrence), starts)


def prune_on_device(query: DevicePattern, windows: DeviceWindows, profile: Profile) -> Candidates:
    """Return the candidates left by the steps ``summary`` and ``chain`` of the plan."""
    count = partial(prefix_counts, windows.place.xp, windows.labels, query.variables)
    return keep_candidates(query.plan, windows, windows.starts, count, query.pattern, query.tables.fewest, profile)


def mark_covered(windows: DeviceWindows, candidates: Candidates) -> Array:
    """Return for each event of the batch whether it is in a candidate window."""
    ends = candidate_ends(windows, candidates)
    return covered_events(windows.place.xp, candidates.starts, ends, windows.limits.clock.size)

"""Find candidate windows on the device, by the necessary match conditions, and their events."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_cep.analysis.bound import CountWindow
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import Batch, window_length
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.own_events import Own
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.phase_one.device.order_events import streams_of_range
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.device.interface import Array, Device, to_device
from gpu_cep_kernels.device.primitives import covered_events, later_events, marked_events, next_occurrences, prefix_counts
from gpu_cep_kernels.phase_one.window_conditions import NextEvents, chain_windows, judge_windows
from gpu_cep_kernels.phase_one.windows import WindowLimits, window_ends
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
class DeviceWindows:
    """The windows of a batch and their starts, on the device.

    The fields are those of :class:`gpu_cep.engine.windows.candidates.BranchWindows`.
    """

    device: Device
    labels: Array
    limits: WindowLimits
    next_events: NextEvents
    starts: Array

    def ends(self, starts: Array, inside: Array) -> Array:
        """Return where the windows of `starts` end; `inside` is an event of each window."""
        found = self.device.xp.empty(starts.size, self.device.xp.int32)
        self.device.launch(window_ends, starts.size, starts, inside, self.limits, found)
        return found


@dataclass(frozen=True, slots=True)
class DeviceCandidates:
    """The starts (int64) of the candidate windows.

    `earliest` is the earliest event of each variable in them, if the chained condition was tested.
    """

    starts: Array
    earliest: Array | None


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


def prune_on_device(query: DevicePattern, windows: DeviceWindows, profile: Profile) -> DeviceCandidates:
    """Return the candidates left by the steps ``summary`` and ``chain`` of the plan."""
    candidates = DeviceCandidates(windows.starts, None)
    if "summary" in query.plan.pruning:
        with profile.stage("summary"):
            candidates = _keep_summarised(query, windows)
        profile.add("summarised", int(candidates.starts.size))
    if "chain" in query.plan.pruning:
        with profile.stage("chain"):
            candidates = keep_chained_on_device(query, windows, candidates.starts, exact=False)
    return candidates


def keep_chained_on_device(query: DevicePattern, windows: DeviceWindows, starts: Array, *, exact: bool) -> DeviceCandidates:
    """Return those of `starts` whose windows satisfy the chained condition."""
    device, xp = windows.device, windows.device.xp
    earliest, holds = xp.empty((query.variables + 1, starts.size), xp.int32), xp.empty(starts.size, xp.bool_)
    device.launch(chain_windows, starts.size, starts, windows.limits, windows.next_events, query.pattern, exact, earliest, holds)
    kept = xp.flatnonzero(holds)
    return DeviceCandidates(starts[kept], xp.take(earliest[: query.variables], kept, axis=1))


def _keep_summarised(query: DevicePattern, windows: DeviceWindows) -> DeviceCandidates:
    """Return the starts of the windows that hold enough events of each variable."""
    device, xp, starts = windows.device, windows.device.xp, windows.starts
    counts = prefix_counts(xp, windows.labels, query.variables)
    holds = xp.empty(starts.size, xp.bool_)
    device.launch(
        judge_windows, starts.size, starts, windows.ends(starts, starts), windows.next_events, query.pattern, query.tables.fewest,
        counts, holds,
    )  # fmt: skip
    return DeviceCandidates(starts[holds], None)


def mark_covered(windows: DeviceWindows, candidates: DeviceCandidates) -> Array:
    """Return for each event of the batch whether it is in a candidate window."""
    starts = candidates.starts
    inside = starts if candidates.earliest is None else candidates.earliest.max(axis=0)
    return covered_events(windows.device.xp, starts, windows.ends(starts, inside), windows.limits.clock.size)

"""Find candidate windows on the device, by the necessary match conditions, and their events."""

from __future__ import annotations

from functools import partial

import numpy as np

from gpu_cep.analysis.bound import CountWindow
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import Batch, window_length
from gpu_cep.engine.events.label_words import words_for
from gpu_cep.engine.events.own_events import WHOLE, Own
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.phase_one.device.event_sources import EventSource
from gpu_cep.engine.phase_one.device.tiles import firsts_behind, groups_of, numbers_before, parts_of, tiles_of
from gpu_cep.engine.windows.placed_windows import Candidates, PlacedWindows, candidate_ends, keep_candidates
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.records import record
from gpu_cep_kernels.device.interface import Array, Device, HostArray
from gpu_cep_kernels.device.packing import to_device
from gpu_cep_kernels.device.primitives import covered_events, prefix_counts
from gpu_cep_kernels.phase_one.branch_labels import renumber_labels
from gpu_cep_kernels.phase_one.window_conditions import NextEvents
from gpu_cep_kernels.phase_one.window_tiles import (
    BEGIN,
    ENDS,
    STARTS,
    STREAMS,
    BatchColumns,
    WindowColumns,
    fill_windows,
    fold_bits,
    mark_packs,
)
from gpu_cep_kernels.phase_one.windows import WindowLimits
from gpu_cep_kernels.rules.tables import PatternTable


@record()
class DevicePattern:
    """A branch's plan and tables, with its pattern's table on the device.

    `wanted` are the words of the variables whose events can start a match, by the branch's numbers.
    `renumbered` has the query's numbers of its variables (None: they are the branch's). `tied`: whether
    events of one time are in no order, and there are some.
    """

    plan: EventPlan
    tables: MatcherTables
    pattern: PatternTable
    own: Own
    wanted: Array
    renumbered: Array | None
    tied: bool

    @property
    def variables(self) -> int:
        """Return the number of positive variables."""
        return len(self.tables.pattern.order)

    def own_labels(self, labels: Array, device: Device) -> Array:
        """Return labels of the query as labels of the branch, whose variables have its numbers."""
        if self.renumbered is None:
            return labels
        words = words_for(len(self.tables.branch.variables))
        own = device.xp.empty((len(words), labels.shape[1]), words[0].kind)
        device.launch(renumber_labels, labels.shape[1], self.renumbered, labels, own)
        return own


def patterns_on_device(
    plan: EventPlan, tables: tuple[MatcherTables, ...], own: Own, source: EventSource, device: Device
) -> tuple[DevicePattern, ...]:  # fmt: skip
    """Return the patterns of all branches, with their tables on the device, to be searched for in the events of `source`."""
    tied, there = plan.query.ties == "strict" and source.has_ties(), own.on(device)
    return tuple(_pattern_on_device(plan, branch, there, device, tied=tied) for branch in tables)


def _pattern_on_device(plan: EventPlan, tables: MatcherTables, own: Own, device: Device, *, tied: bool) -> DevicePattern:
    """Return the pattern of a branch; `own` is on the device."""
    branch = tables.branch
    words = words_for(len(branch.variables))
    minimal = sum(1 << v for v, before in enumerate(branch.before) if not before)
    wanted = np.array([word.own(minimal) for word in words], words[0].kind)
    variables = np.array(branch.variables, np.uint64)
    same = branch.variables == tuple(range(len(plan.query.variables)))
    pattern, wanted, variables = to_device(device, (tables.pattern, wanted, variables[:0] if same else variables))
    return DevicePattern(plan, tables, pattern, own, wanted, None if same else variables, tied)


@record()
class DeviceWindows(PlacedWindows):
    """The windows of a batch on the device, with the variables of its one branch; `starts` can begin a match.

    Stream s of the batch has its windows from ``first_starts[s]`` on.
    """

    starts: Array
    first_starts: Array


def windows_on_device(query: DevicePattern, batch: Batch, source: EventSource, device: Device, profile: Profile) -> DeviceWindows:
    """Return the windows of a batch (thesis Def. 4.3), and the starts of matches (Condition 5.2)."""
    xp, plan, size = device.xp, query.plan, batch.high - batch.low
    times, labels = source.part(batch.low, batch.high)
    labels = query.own_labels(labels, device)
    streams = source.streams(batch.low, batch.high)
    columns = BatchColumns(streams, times if query.tied else times[:0], labels, query.wanted, batch.own - batch.low)
    with profile.stage("windows"):
        bits, rows = xp.empty((query.variables - BEGIN, tiles_of(size)), np.uint32), query.variables - ENDS
        table, groups = xp.empty((rows, tiles_of(size)), np.uint64), xp.empty((rows, groups_of(size)), np.int32)
        packs = bits.view(np.uint8)
        device.launch(mark_packs, packs.shape[1], columns, packs)
        device.launch(fold_bits, table.shape[1], bits, table, groups)
        found = device.download(groups)
    with profile.stage("occurrences"):
        filled = _room(query, device, size, found)
        device.launch(fill_windows, (rows - 1) * parts_of(size), table, device.upload(_carried(found)), filled)
    with profile.stage("starts"):
        starts, first_starts = filled.starts, filled.first_starts
        if query.own != WHOLE:
            starts = starts[query.own.holds(times[starts], source.rows(batch.low, batch.high)[starts])]
            first_starts = xp.searchsorted(starts, filled.begins).astype(np.int32)
    profile.add("windows", int(starts.size))
    clock = xp.arange(size, dtype=xp.uint64) if isinstance(plan.query.window, CountWindow) else times
    limits = WindowLimits(clock, filled.stream_end, window_length(plan, times.dtype))
    return DeviceWindows(device, labels, limits, NextEvents(filled.after, filled.occurrence), starts, first_starts)


def _room(query: DevicePattern, device: Device, size: int, groups: HostArray) -> WindowColumns:
    """Return room for what is found for a batch of so many events."""
    xp, streams = device.xp, int(groups[STREAMS].sum())
    return WindowColumns(
        stream_end=xp.empty(size, np.int32),
        after=xp.empty(size + 1 if query.tied else 0, np.int32),
        occurrence=xp.empty((query.variables, size + 2), np.int32),
        starts=xp.empty(int(groups[STARTS].sum()), np.int64),
        begins=xp.empty(streams, np.int32),
        first_starts=xp.empty(streams, np.int32),
    )


def _carried(groups: HostArray) -> HostArray:
    """Return for each group the first events behind it, and the numbers before it."""
    firsts, numbers = groups[:STREAMS], groups[STREAMS:]
    before = [numbers_before(own) for own in numbers]
    return np.concatenate([firsts_behind(firsts), np.array(before, np.int32)])


def prune_on_device(query: DevicePattern, windows: DeviceWindows, profile: Profile) -> Candidates:
    """Return the candidates left by the steps ``summary`` and ``chain`` of the plan."""
    count = partial(prefix_counts, windows.place.xp, windows.labels, query.variables)
    return keep_candidates(query.plan, windows, windows.starts, count, query.pattern, query.tables.fewest, profile)


def mark_covered(windows: DeviceWindows, candidates: Candidates) -> Array:
    """Return for each event of the batch whether it is in a candidate window."""
    ends = candidate_ends(windows, candidates)
    return covered_events(windows.place.xp, candidates.starts, ends, windows.limits.clock.size)

"""Find the windows of a batch on the host, and the candidates among them (phase 1, third stage)."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import BATCH, Batch, window_clock
from gpu_cep.engine.events.label_words import Words, by_word
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import WHOLE, Own
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.lowering.jump_tables import JumpIndexes
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.windows.placed_windows import Candidates, PlacedWindows, keep_candidates
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import slices
from gpu_cep_kernels.device.interface import HOST
from gpu_cep_kernels.device.primitives import marked_events
from gpu_cep_kernels.phase_one.kept_rows import SPARE
from gpu_cep_kernels.phase_one.window_conditions import NextEvents, prefix_counts, select_starts
from gpu_cep_kernels.phase_one.windows import WindowLimits, mark_streams, next_occurrences
from gpu_cep_kernels.rules.tables import Places

# The most parts that a large batch is divided into, and the fewest events for each. The number of threads plays no part, so that
# work and errors do not depend on it.
_PARTS, _EVENTS_PER_PART = 64, BATCH // 4


@record()
class BatchWindows(PlacedWindows):
    """The windows of a batch on the host, with all of the query's variables.

    `judged`: a device has tested the necessary match conditions. The ordered events then have the
    starts of candidate windows only.
    """

    judged: bool


@record()
class BranchWindows(BatchWindows):
    """The windows of a batch for one branch of the plan.

    `next_events` have only the branch's variables, in their order. `starts` are the events that
    can begin a match. `indexes` are those by which the automaton jumps.
    """

    starts: Indices
    indexes: JumpIndexes


@record()
class CountedWindows(BranchWindows):
    """The windows of a branch, with counts for the step ``summary``.

    ``counts[v, e]`` events before e have the bit of the branch's variable v.
    """

    counts: Places


def match_windows(plan: EventPlan, ordered: OrderedEvents, batch: Batch, profile: Profile) -> BatchWindows:
    """Return the windows of a batch (thesis Def. 4.3)."""
    labels, times = ordered.labels[:, batch.low : batch.high], ordered.times[batch.low : batch.high]
    size = len(times)
    with profile.stage("windows"):
        first, last = ordered.offsets.searchsorted([batch.low, batch.high - 1], side="right").tolist()
        stream_end, after = new_values(size, np.int32), new_values(size + 1, np.int32)
        ties = mark_streams(batch.low, ordered.offsets, first - 1, last, times, stream_end, after)
        clock, length = window_clock(plan, ordered, batch.low, batch.high)
    with profile.stage("occurrences"):
        # those of negated variables are found in another way
        occurrence = new_values((len(plan.query.positives), size + 2), np.int32)
        for word, found in by_word(labels, occurrence):
            next_occurrences(word, len(found), found)
    untied = plan.query.ties == "position" or ties == 0
    next_events = NextEvents(after[:0] if untied else after, occurrence)
    return BatchWindows(HOST, labels, WindowLimits(clock, stream_end, length), next_events, ordered.starts is not None)


def branch_windows(
    windows: BatchWindows, ordered: OrderedEvents, batch: Batch, tables: MatcherTables, own: Own, profile: Profile
) -> BranchWindows:
    """Return the windows of a batch for a branch.

    Their starts are events of `own` that can begin a match (Condition 5.2).
    """
    with profile.stage("starts"):
        starts = _starts(ordered, batch, windows.labels[:, : batch.own - batch.low], tables)
        if own != WHOLE:
            starts = starts[own.among(ordered, batch.low + starts)]
    if not windows.judged:
        profile.add("windows", len(starts))
    occurrence = _rows_of(windows.next_events.occurrence, tables.branch.positives)
    indexes = JumpIndexes(tables.jumps, ordered.bank, batch.low, occurrence)
    own_events = NextEvents(windows.next_events.after, occurrence)
    return BranchWindows(windows.place, windows.labels, windows.limits, own_events, windows.judged, starts, indexes)


def _fields(windows: BatchWindows) -> dict[str, Any]:
    """Return the windows' fields by name."""
    return {field.name: getattr(windows, field.name) for field in fields(windows)}


def _rows_of(table: Places, variables: tuple[int, ...]) -> Places:
    """Return the rows of some variables; they are copied only if not contiguous."""
    first, last = variables[0], variables[-1] + 1
    return table[first:last] if last - first == len(variables) else table[list(variables)]


def _starts(ordered: OrderedEvents, batch: Batch, labels: Words, tables: MatcherTables) -> Indices:
    """Return the batch's own events that can begin a match; `labels` are those of its own events."""
    if ordered.starts is not None:
        judged = ordered.starts.of_branch[tables.number]
        first, last = np.searchsorted(judged, [batch.low, batch.own])
        return judged[first:last] - batch.low
    starts = np.empty(labels.shape[1] + SPARE, np.int64)
    return starts[: select_starts(marked_events(labels, tables.minimal), starts)]


def divide_starts(windows: BranchWindows, batch: Batch) -> list[BranchWindows]:
    """Return the windows in parts for threads, each with some of the starts.

    There is one part, unless one stream makes a batch of many events.
    """
    parts = count_parts(batch)
    if parts == 1:
        return [windows]
    return [replace(windows, starts=windows.starts[low:high]) for low, high in slices(len(windows.starts), parts)]


def count_parts(batch: Batch) -> int:
    """Return the number of parts into which threads divide a batch.

    It is one, unless one stream makes a batch of many events.
    """
    events = batch.own - batch.low
    return 1 if events <= BATCH else min(events // _EVENTS_PER_PART, _PARTS)


def count_for_summary(plan: EventPlan, windows: BranchWindows, tables: MatcherTables, profile: Profile) -> BranchWindows:
    """Return the windows with the counts for the step ``summary``, if that step is still to be taken."""
    if windows.judged or isinstance(windows, CountedWindows) or "summary" not in plan.pruning:
        return windows
    with profile.stage("summary"):
        return CountedWindows(**_fields(windows), counts=_count_labels(windows, tables))


def _count_labels(windows: BranchWindows, tables: MatcherTables) -> Places:
    """Return how many events before each have the bit of each of the branch's variables, [variable, event]."""
    bits = tables.branch.positives
    counts = np.empty((bits[-1] + 1, windows.next_events.occurrence.shape[1]), np.int32)
    for word, own in by_word(windows.labels, counts):
        prefix_counts(word, len(own), own)
    return _rows_of(counts, bits)


def prune_windows(plan: EventPlan, windows: BranchWindows, tables: MatcherTables, profile: Profile) -> Candidates:
    """Return the candidates that the plan's steps ``summary`` and ``chain`` leave.

    If a device has judged the windows, these are all starts.
    """
    if windows.judged:
        return Candidates(windows.starts, None)

    def count() -> Places:
        return windows.counts if isinstance(windows, CountedWindows) else _count_labels(windows, tables)

    return keep_candidates(plan, windows, windows.starts, count, tables.pattern, tables.fewest, profile)

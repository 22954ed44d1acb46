"""Find the windows of a batch, and the candidates among them (phase 1, third stage).

Candidates satisfy the necessary match conditions.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import BATCH, Batch, window_clock
from gpu_cep.engine.events.label_words import Words, by_word
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import WHOLE, Own
from gpu_cep.engine.lowering.jump_tables import JumpIndexes
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.compile.launch import slices
from gpu_cep_kernels.device.primitives import marked_events
from gpu_cep_kernels.phase_one.window_conditions import NextEvents, chain_windows, judge_windows, keep_windows, prefix_counts, select_starts
from gpu_cep_kernels.phase_one.windows import WindowLimits, mark_streams, next_occurrences, window_ends
from gpu_cep_kernels.rules.tables import Places

# The most parts that a large batch is divided into, and the fewest events for each. The number of threads plays no part, so that
# work and errors do not depend on it.
_PARTS, _EVENTS_PER_PART = 64, BATCH // 4


@dataclass(frozen=True, slots=True)
class BatchWindows:
    """The events of a batch, numbered from its first, and the windows that start at them.

    ``labels[word, e]`` is the label of event e. `limits` say where windows end, `next_events` which
    events follow e, for each of the query's variables. `judged`: a device has tested the necessary
    match conditions. The ordered events then have the starts of candidate windows only.
    """

    labels: Words
    limits: WindowLimits
    next_events: NextEvents
    judged: bool

    def ends(self, starts: Indices, inside: Indices | Places | None = None) -> Places:
        """Return where the windows of `starts` end.

        `inside` is an event of each window, from which on the end is sought (None: the start).
        """
        found = np.empty(len(starts), np.int32)
        window_ends(0, len(starts), starts, starts if inside is None else inside, self.limits, found)
        return found


@dataclass(frozen=True, slots=True)
class BranchWindows(BatchWindows):
    """The windows of a batch for one branch of the plan.

    `next_events` have only the branch's variables, in their order. `starts` are the events that
    can begin a match. `indexes` are those by which the automaton jumps.
    """

    starts: Indices
    indexes: JumpIndexes


@dataclass(frozen=True, slots=True)
class CountedWindows(BranchWindows):
    """The windows of a branch, with counts for the step ``summary``.

    ``counts[v, e]`` events before e have the bit of the branch's variable v.
    """

    counts: Places


@dataclass(frozen=True, slots=True)
class Candidates:
    """The starts of the windows that satisfy the tested necessary match conditions.

    ``earliest[variable, candidate]`` is the event that the chained condition found. `earliest` is
    None if that was not the last condition tested.
    """

    starts: Indices
    earliest: Places | None


def candidate_ends(windows: BatchWindows, candidates: Candidates) -> Places:
    """Return where the candidates' windows end."""
    inside = None if candidates.earliest is None else candidates.earliest.max(axis=0, initial=0)
    return windows.ends(candidates.starts, inside)


def match_windows(plan: EventPlan, ordered: OrderedEvents, batch: Batch, profile: Profile) -> BatchWindows:
    """Return the windows of a batch (thesis Def. 4.3)."""
    labels, times = ordered.labels[:, batch.low : batch.high], ordered.times[batch.low : batch.high]
    size = len(times)
    with profile.stage("windows"):
        first, last = (int(place) for place in np.searchsorted(ordered.offsets, [batch.low, batch.high - 1], side="right"))
        stream_end, after = np.empty(size, np.int32), np.empty(size + 1, np.int32)
        ties = mark_streams(batch.low, ordered.offsets, first - 1, last, times, stream_end, after)
        clock, length = window_clock(plan, ordered, batch.low, batch.high)
    with profile.stage("occurrences"):
        # those of negated variables are found in another way
        occurrence = np.empty((len(plan.query.positives), size + 2), np.int32)
        for word, found in by_word(labels, occurrence):
            next_occurrences(word, len(found), found)
    untied = plan.query.ties == "position" or ties == 0
    next_events = NextEvents(after[:0] if untied else after, occurrence)
    return BatchWindows(labels, WindowLimits(clock, stream_end, length), next_events, ordered.starts is not None)


def branch_windows(
    windows: BatchWindows, ordered: OrderedEvents, batch: Batch, tables: MatcherTables, own: Own, profile: Profile
) -> BranchWindows:
    """Return the windows of a batch for a branch.

    Their starts are events of `own` that can begin a match (Condition 5.2).
    """
    with profile.stage("starts"):
        starts = _starts(ordered, batch, windows.labels[:, : batch.own - batch.low], tables)
        if own != WHOLE:
            events = batch.low + starts
            starts = starts[own.holds(ordered.times[events], ordered.rows[events])]
    if not windows.judged:
        profile.add("windows", len(starts))
    occurrence = _rows_of(windows.next_events.occurrence, tables.branch.positives)
    indexes = JumpIndexes(tables.jumps, ordered.bank, batch.low, occurrence)
    own_events = windows.next_events._replace(occurrence=occurrence)
    return BranchWindows(**{**_fields(windows), "next_events": own_events}, starts=starts, indexes=indexes)


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
        first, last = np.searchsorted(ordered.starts, [batch.low, batch.own])
        return ordered.starts[first:last] - batch.low
    starts = np.empty(labels.shape[1] + 1, np.int64)
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
        bits = tables.branch.positives
        counts = np.empty((bits[-1] + 1, windows.next_events.occurrence.shape[1]), np.int32)
        for word, own in by_word(windows.labels, counts):
            prefix_counts(word, len(own), own)
        return CountedWindows(**_fields(windows), counts=_rows_of(counts, bits))


def prune_windows(plan: EventPlan, windows: BranchWindows, tables: MatcherTables, profile: Profile) -> Candidates:
    """Return the candidates that the plan's steps ``summary`` and ``chain`` leave.

    If a device has judged the windows, these are all starts.
    """
    candidates = Candidates(windows.starts, None)
    if windows.judged:
        return candidates
    windows = count_for_summary(plan, windows, tables, profile)
    if isinstance(windows, CountedWindows):
        with profile.stage("summary"):
            candidates = Candidates(_keep_summarised(windows, tables), None)
        profile.add("summarised", len(candidates.starts))
    if "chain" in plan.pruning:
        with profile.stage("chain"):
            candidates = keep_chained(windows, candidates.starts, tables, exact=False)
    profile.add("candidates", len(candidates.starts))
    return candidates


def keep_chained(windows: BatchWindows, starts: Indices, tables: MatcherTables, *, exact: bool) -> Candidates:
    """Return those of `starts` whose windows satisfy the chained condition.

    With `exact`, the condition finds the match itself where labels decide matches.
    """
    variables = len(tables.pattern.order)
    earliest, holds = np.empty((variables + 1, len(starts)), np.int32), np.empty(len(starts), np.bool_)
    chain_windows(0, len(starts), starts, windows.limits, windows.next_events, tables.pattern, exact, earliest, holds)
    kept = np.empty(len(starts) + 1, np.int64)
    count = keep_windows(holds, starts, earliest[:variables], kept)
    return Candidates(kept[:count], earliest[:variables, :count])


def _keep_summarised(windows: CountedWindows, tables: MatcherTables) -> Indices:
    """Return the starts of the windows that hold enough events of each variable."""
    starts = windows.starts
    holds = np.empty(len(starts), np.bool_)
    judge_windows(0, len(starts), starts, windows.ends(starts), windows.next_events, tables.pattern, tables.fewest, windows.counts, holds)
    return starts[holds]

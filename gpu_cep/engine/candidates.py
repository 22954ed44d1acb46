"""Phase 1, third stage: match windows and necessary match conditions of one batch, all starts at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.bound import CountWindow, TimeWindow
from gpu_cep.engine.batches import Batch, window_length
from gpu_cep.engine.patterns import MatcherTables
from gpu_cep.engine.profile import Profile
from gpu_cep.engine.streams import OrderedEvents
from gpu_cep.plan.plan import Plan
from gpu_cep_kernels.summary import prefix_counts, select_candidates, select_chained, select_starts
from gpu_cep_kernels.windows import count_windows, mark_ties, next_occurrences, stream_ends, time_windows

Indices = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Windows:
    """The events of a batch, numbered from its first.

    Event e's window is [e, ends[e]); ``after[e]`` is the first event that e
    is before (empty where that is always the next); ``occurrence[v, e]`` the
    first event from e on whose label has bit v. `starts` are the events a
    match may still start with.
    """

    labels: npt.NDArray[np.uint64]
    ends: Places
    after: Places
    occurrence: Places
    starts: Indices


def match_windows(plan: Plan, ordered: OrderedEvents, batch: Batch, tables: MatcherTables, profile: Profile) -> Windows:
    """The windows of a batch and the starts that can begin a match at all (thesis Def. 4.3, Condition 5.2)."""
    labels = ordered.labels[batch.low : batch.high]
    times = ordered.times[batch.low : batch.high]
    size = len(labels)
    with profile.stage("windows"):
        stream_end = np.empty(size, np.int32)
        first_stream = int(np.searchsorted(ordered.offsets, batch.low, side="right")) - 1
        stream_ends(batch.low, ordered.offsets, first_stream, stream_end)
        ends = _window_ends(plan, ordered, times, stream_end)
        after = np.empty(size, np.int32)
        if plan.query.ties == "position" or mark_ties(times, stream_end, after) == 0:
            after = np.empty(0, np.int32)
    with profile.stage("occurrences"):
        occurrence = np.empty((len(tables.pattern.before), size + 1), np.int32)
        next_occurrences(labels, len(tables.pattern.before), occurrence)
    with profile.stage("starts"):
        starts = np.empty(batch.own - batch.low + 1, np.int64)
        starts = starts[: select_starts(0, batch.own - batch.low, labels, tables.minimal, starts)]
    profile.add("windows", len(starts))
    return Windows(labels, ends, after, occurrence, starts)


def _window_ends(plan: Plan, ordered: OrderedEvents, times: npt.NDArray[np.generic], stream_end: Places) -> Places:
    ends = np.empty_like(stream_end)
    match plan.query.window:
        case None:
            return np.minimum(stream_end, len(times), dtype=np.int32)
        case CountWindow(events=events):
            count_windows(np.minimum(stream_end, len(times), dtype=np.int32), min(events, len(times)), ends)
        case TimeWindow(length=length):
            time_windows(times, stream_end, window_length(ordered, length), ends)
    return ends


def prune_windows(plan: Plan, windows: Windows, tables: MatcherTables, profile: Profile) -> Indices:
    """The candidates: starts whose windows satisfy the necessary match conditions that the plan tests."""
    starts = windows.starts
    if "chain" in plan.steps:
        with profile.stage("chain"):
            starts = chained_starts(windows, tables)[0]
        profile.add("chained", len(starts))
    if "summary" in plan.steps:
        with profile.stage("summary"):
            starts = _summarised(windows, starts, tables)
        profile.add("summarised", len(starts))
    profile.add("candidates", len(starts))
    return starts


def chained_starts(windows: Windows, tables: MatcherTables) -> tuple[Indices, Places]:
    """The starts that satisfy the chained condition and, for each, the first event that each variable could bind."""
    starts, pattern = windows.starts, tables.pattern
    selected = np.empty(len(starts) + 1, np.int64)
    earliest = np.empty((len(starts) + 1, len(pattern.order)), np.int32)
    count = select_chained(
        starts, windows.ends, windows.after, pattern.order, pattern.direct, windows.occurrence, earliest, selected
    )  # fmt: skip
    return selected[:count], earliest[:count]


def _summarised(windows: Windows, starts: Indices, tables: MatcherTables) -> Indices:
    pattern = tables.pattern
    counts = np.empty(windows.occurrence.shape, np.int32)
    prefix_counts(windows.labels, len(pattern.order), counts)
    selected = np.empty(len(starts) + 1, np.int64)
    count = select_candidates(
        starts, windows.ends, windows.after, pattern.direct, pattern.minimum, tables.fewest, windows.occurrence, counts, selected
    )  # fmt: skip
    return selected[:count]

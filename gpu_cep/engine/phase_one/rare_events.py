"""Label only the events near a rare event, if every match binds one (phase 1, first stage).

All events of a match, and all between them, are at most a window's length from each of its events.
So is every other event that decides about the match. It lies in the window of the match's first
event. If a negation looks back, it may also lie in the window that ends with the last event. An
event too far from all rare events can therefore be dropped without changing the matches. One pass
over the timestamps finds these events, whatever the streams. The timestamps must not fall from row
to row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.batches import window_length
from gpu_cep.engine.events.label_words import Words, count_by_variable
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.sampling import spread_places
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.pieces import Pieces
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.phase_one.label_events import BLOCK, LabelledRows, Labeller, make_labeller
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.compile.launch import blocks, slices, spread
from gpu_cep_kernels.device.primitives import marked_events, merged_words
from gpu_cep_kernels.phase_one.kept_rows import SPARE
from gpu_cep_kernels.phase_one.ordering import DISORDERED, gather, order_faults
from gpu_cep_kernels.phase_one.rare_events import Nearness, find_spans, keep_spans
from gpu_cep_kernels.rules.tables import Places

# The samples, and the events of each, that are labelled to see which variables are rare.
_SAMPLES, _SAMPLE_ROWS = 32, 1 << 11
# Nanoseconds, measured on one core: to look at the time of an event, to find the span of a rare one, and what a dropped event spares
# later.
_LOOK, _RARE, _SPARED = 1.0, 40.0, 25.0
# Rows on either side of a border of pieces that are joined at first, how many times as many are next, and the most.
_BESIDE, _MORE, _MOST_BESIDE = 1 << 12, 8, 1 << 17

# Where spans of rows begin, and where they end.
Spans = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RareEvents:
    """The rare variables, and how far from their events the events of a match can be.

    `variables` is a bit mask; every match binds one of these variables. Other events that matter
    are at most the length `before` earlier and the length `after` later.
    """

    variables: int
    before: np.uint64 | np.float64
    after: np.uint64 | np.float64


def label_near_rare(
    plan: Plan, columns: EventColumns, tables: tuple[MatcherTables, ...], times: Pieces, threads: int
) -> LabelledRows | None:  # fmt: skip
    """Label the events, and drop those that are too far from all rare events; None if that hardly pays.

    A sample decides whether it pays. Row numbers ascend over all parts. Nothing is dropped if times
    fall from one row to the next.
    """
    if "reach" not in plan.pruning or len(columns) < _SAMPLES * _SAMPLE_ROWS:
        return None
    labels_of = make_labeller(plan, columns)
    reach = _choose_rare(plan, labels_of, tables, times)
    if reach is None:
        return None
    parts = spread(lambda span: _label_slice(labels_of, reach, times, *span), slices(len(columns), threads), threads)
    ascending = all(part.ascending for part in parts)
    begins, ends = _merge_spans([part.reached for part in parts]) if ascending else (np.zeros(1, np.int64), np.full(1, len(columns)))
    keeps_all = "filter" not in plan.pruning
    return LabelledRows.of(spread(lambda part: _keep_rows(part, begins, ends, keeps_all), parts, threads))


@dataclass(frozen=True, slots=True)
class _LabelledSlice:
    """The labels of the rows from `low` on.

    `reached` are the spans of rows near the slice's rare events. `ascending`: no time is less than
    the one before.
    """

    low: int
    labels: Words
    reached: Spans
    ascending: bool


def _choose_rare(plan: Plan, labels_of: Labeller, tables: tuple[MatcherTables, ...], times: Pieces) -> RareEvents | None:
    """Choose the rare variables by a sample of the events; return None if dropping does not pay."""
    size = len(times)
    begins = spread_places(size - _SAMPLE_ROWS + 1, _SAMPLES)
    sampled = times.at(begins)
    first, last = times.at(np.array([0, size - 1])).tolist()
    lasted = last - first
    if (sampled[1:] < sampled[:-1]).any() or not 0 < lasted < math.inf:
        return None
    labels = np.concatenate([labels_of.labels(low, low + _SAMPLE_ROWS) for low in begins.tolist()], axis=1)
    counts = count_by_variable(labels, len(plan.query.variables))
    reach = _rare_of_branches(plan, tables, counts, times.dtype)
    kept = 1.0 if "filter" not in plan.pruning else np.count_nonzero(merged_words(labels)) / labels.shape[1]
    rare = np.count_nonzero(marked_events(labels, reach.variables)) / labels.shape[1]
    # so many rare events reach another event on average, if times are random
    reaching = rare * size * (float(reach.before) + float(reach.after)) / lasted
    dropped = (kept - rare) * math.exp(-reaching)
    return reach if _SPARED * dropped > _LOOK + _RARE * rare else None


def _rare_of_branches(
    plan: Plan, tables: tuple[MatcherTables, ...], counts: Indices, times: np.dtype[np.generic]
) -> RareEvents:  # fmt: skip
    """Return the rarest variable of each branch, and the lengths to search before and after its events."""
    length = window_length(plan, times)
    variables, before, after = 0, False, False
    for branch in tables:
        positives = branch.branch.positives
        v = int(np.argmin(counts[list(positives)]))
        variables |= 1 << positives[v]
        # the first or last event of a match has no others on that side, unless negations look beyond
        others, closed = len(positives) - 1, branch.pattern.maximum[v] == 1 and not branch.branch.negations
        before |= not (closed and branch.pattern.precedes[v].sum() == others)
        after |= not (closed and branch.pattern.precedes[:, v].sum() == others)
    nothing = type(length)(0)
    return RareEvents(variables, length if before else nothing, length if after else nothing)


def _label_slice(labels_of: Labeller, reach: RareEvents, times: Pieces, low: int, high: int) -> _LabelledSlice:
    """Label the rows [low, high), and find the spans of rows near their rare events."""
    labels = labels_of.room(high - low)
    reached, ascending = [], True
    for start, end in blocks(low, high, BLOCK):
        block = labels[:, start - low : end - low]
        labels_of.fill(start, end, block)
        ascending = ascending and not _falls(times, max(start - 1, 0), end)
        # while the times are near
        reached.append(_find_spans(reach, np.flatnonzero(marked_events(block, reach.variables) != 0) + start, times))
    return _LabelledSlice(low, labels, np.concatenate(reached, axis=1), ascending)


def _falls(times: Pieces, low: int, high: int) -> bool:
    """Return whether the time of one of the rows [low, high) is less than that of the row before."""
    parts = times.parts(low, high)
    inside = any(order_faults(0, len(part), part) & DISORDERED for part in parts)
    return inside or any(after[0] < before[-1] for before, after in pairwise(parts))


def _find_spans(reach: RareEvents, rare: Indices, times: Pieces) -> Spans:
    """Return, as [begin or end, event], the span of rows near enough to each rare event to matter."""
    spans = np.empty((2, len(rare)), np.int64)
    for own, begin, piece in times.cut(rare):
        rows, end = rare[own], begin + len(piece)
        found = _spans_among(reach, rows, begin, piece)
        # these may go on in other pieces
        for border, reached in ((begin, found[0]), (end, found[1])):
            cut_off = np.flatnonzero(reached == border) if 0 < border < len(times) else rows[:0]
            if len(cut_off):
                found[:, cut_off] = _spans_across(reach, rows[cut_off], times)
        spans[:, own] = found
    return spans


def _spans_across(reach: RareEvents, rare: Indices, times: Pieces) -> Spans:
    """Return the spans of rare events beside a border of pieces, whose rows ascend; few rows on either side are joined first."""
    beside, settled = _BESIDE, False
    while not settled:
        low, high = max(0, int(rare[0]) - beside), min(len(times), int(rare[-1]) + 1 + beside)
        values = times.between(low, high) if high - low <= _MOST_BESIDE else times.whole[low:high]
        begins, ends = spans = _spans_among(reach, rare, low, values)
        settled = (low == 0 or begins[0] > low) and (high == len(times) or ends[-1] < high)
        beside *= _MORE
    return spans


def _spans_among(reach: RareEvents, rare: Indices, begin: int, times: Array) -> Spans:
    """Return the spans as :func:`_find_spans` does, of rows that have `times`; the first one is number `begin`."""
    clock = times if times.dtype.kind == "f" else times.view(np.uint64)
    spans = np.empty((2, len(rare)), np.int64)
    first, last = np.zeros(len(rare), np.int64), np.full(len(rare), len(times))
    find_spans(0, len(rare), rare - begin, first, last, Nearness(clock, reach.before, reach.after), *spans)
    spans += begin
    return spans


def _merge_spans(reached: Sequence[Spans]) -> Spans:
    """Merge spans that overlap or touch; their begins ascend, and so do their ends."""
    begins, ends = np.concatenate(reached, axis=1)
    opens, closes = np.ones(len(begins), np.bool_), np.ones(len(ends), np.bool_)
    opens[1:] = closes[:-1] = begins[1:] > ends[:-1]
    return np.stack([begins[opens], ends[closes]])


def _keep_rows(part: _LabelledSlice, begins: Indices, ends: Indices, keeps_all: bool) -> tuple[Places, Words]:
    """Return the rows of the slice that lie in the spans and have a label, and their labels.

    With `keeps_all`, rows without a label are kept, too.
    """
    words, size = part.labels.shape
    here = slice(np.searchsorted(ends, part.low, side="right"), np.searchsorted(begins, part.low + size))
    begins, ends = np.clip(begins[here] - part.low, 0, size), np.clip(ends[here] - part.low, 0, size)
    places = np.empty(int((ends - begins).sum()) + SPARE, np.int32)
    count = keep_spans(begins, ends, merged_words(part.labels), keeps_all, places)
    labels = np.empty((words, count), part.labels.dtype)
    for word, kept in zip(part.labels, labels, strict=True):
        gather(0, count, places, 0, word, kept)
    rows = places[:count]
    rows += part.low
    return rows, labels

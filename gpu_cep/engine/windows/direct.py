"""Read matches off the chained condition, for patterns whose matches labels alone decide."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.label_words import Words, any_overlap, restrict_labels
from gpu_cep.engine.events.matches import Counts, Matches, matches_at, ones
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.windows.candidates import BatchWindows, BranchWindows
from gpu_cep.engine.windows.placed_windows import Candidates, PlacedWindows, keep_chained
from gpu_cep.identity import Identity
from gpu_cep.plan.event_plan import EventPlan, PlannedBranch
from gpu_cep.records import record
from gpu_cep_kernels.device.interface import Array
from gpu_cep_kernels.device.primitives import label_flags
from gpu_cep_kernels.labels_decide.direct import bind_events, bind_singles, count_bindings
from gpu_cep_kernels.matches.flat_matches import FlatMatches, match_offsets
from gpu_cep_kernels.matches.negations import NegatedEvents, keep_by_negations
from gpu_cep_kernels.phase_one.window_conditions import NextEvents
from gpu_cep_kernels.phase_one.windows import next_occurrences
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import NegationTable, PatternTable

_NOT_READ = np.empty((0, 0), np.int32)


def is_deterministic(plan: EventPlan, windows: BatchWindows, tables: MatcherTables) -> bool:
    """Return whether no event of the batch can bind to two variables that are available at a time."""
    return labels_decide(
        tables.pattern, bool(windows.next_events.after.size), lambda: may_share_events(plan, windows.labels, tables.branch)
    )


def may_share_events(plan: EventPlan, labels: Words, branch: PlannedBranch) -> bool:
    """Return whether some event may bind to two variables of a branch."""
    alone = len(plan.branches) == 1 and not branch.negations
    return any_overlap(labels if alone else restrict_labels(labels, branch.positives))


def labels_decide(pattern: PatternTable, tied: bool, overlap: Callable[[], bool]) -> bool:
    """Return whether no event can bind to two variables that are available at a time.

    That is so if labels do not `overlap`, or if variables that bind one event follow one another.
    Where events tie, a quantified variable must not have two successors either. Else the one that
    is bound first would decide whether the variable binds further events.
    """
    shape = _shape(Identity(pattern))
    return not (tied and shape.forks) and (shape.singles_in_a_row or not overlap())


class _Shape(NamedTuple):
    """What of a pattern bears on whether labels decide its matches.

    `forks`: a variable of many events has two successors. `singles_in_a_row`: variables of one event follow one another.
    """

    forks: bool
    singles_in_a_row: bool


@lru_cache(maxsize=256)
def _shape(pattern: Identity[PatternTable]) -> _Shape:
    """Return the shape of a pattern; the tables of a plan are asked for in each batch."""
    table = pattern.value
    forks = (table.maximum == UNBOUNDED) & (np.diff(table.following_first) > 1)
    in_a_row = np.array_equal(table.precedes.sum(axis=0)[table.order], np.arange(len(table.order)))
    return _Shape(bool(forks.any()), in_a_row and bool((table.maximum == 1).all()))


def count_bound(windows: PlacedWindows, candidates: Candidates, pattern: PatternTable) -> Array:
    """Return how many events the match of each candidate binds to each variable, [match, variable]."""
    starts, earliest = candidates.starts, candidates.earliest
    assert earliest is not None
    counts = windows.place.xp.empty(earliest.shape[::-1], np.int32)
    windows.place.launch(
        count_bindings, len(starts), starts, windows.limits, pattern, windows.next_events.occurrence, earliest, counts
    )  # fmt: skip
    return counts


def bind_counted(windows: PlacedWindows, candidates: Candidates, counts: Array, offsets: Array, base: int) -> Array:
    """Return the events of the candidates' matches, each plus `base`.

    `counts` are those of :func:`count_bound`. Match m's events begin at ``offsets[m]``; the last
    offset is the end.
    """
    events = windows.place.xp.empty(int(offsets[-1]), np.int64)
    occurrence = windows.next_events.occurrence
    windows.place.launch(bind_events, len(candidates.starts), base, offsets, counts, occurrence, candidates.earliest, events)
    return events


@record()
class DirectMatcher:
    """Finds the one match of each window that satisfies the exact chained condition, on the host."""

    tables: MatcherTables

    def candidates(self, windows: BranchWindows) -> Candidates:
        """Return the starts of the matches."""
        return keep_chained(windows, windows.starts, self.tables.pattern, exact=True)

    def counts(self, windows: BatchWindows, candidates: Candidates) -> Counts:
        """Return how many events each match binds to each variable, [match, variable]."""
        if self.tables.of_singles:
            return ones(len(candidates.starts), len(self.tables.pattern.maximum))
        counts: Counts = count_bound(windows, candidates, self.tables.pattern)
        return counts

    def find(self, batch: Batch, windows: BatchWindows, candidates: Candidates, counts: Counts) -> Matches:
        """Return the matches of the candidates; `counts` are those of :meth:`counts`."""
        first = candidates.starts + batch.low
        if counts.strides == (0, 0):
            events = new_values(counts.shape, np.int64)
            bind_singles(0, len(first), batch.low, candidates.earliest, events)
            return Matches(first, counts, events.ravel())
        offsets = np.empty(len(first) + 1, np.int64)
        match_offsets(counts, offsets)
        return matches_at(first, counts, bind_counted(windows, candidates, counts, offsets, batch.low), offsets)


def negation_lookup(batch: Batch, windows: BatchWindows, branch: PlannedBranch, negations: NegationTable) -> NegatedEvents:
    """Return what :func:`drop_ruled_out` looks up in a batch."""
    occurrence = new_values((len(negations.variable), windows.labels.shape[1] + 2), np.int32)
    for n, variable in enumerate(negations.variable.tolist()):
        if negations.after_first[n] < negations.after_first[n + 1]:
            next_occurrences(label_flags(windows.labels, branch.variables[variable]), 1, occurrence[n : n + 1])
    return NegatedEvents(batch.low, NextEvents(windows.next_events.after, occurrence))


def drop_ruled_out(matches: Matches, negations: NegationTable, negated: NegatedEvents) -> Matches:
    """Return the matches, all of the batch of `negated`, that no negation rules out; each variable binds one event."""
    kept, near = np.empty(len(matches) + 1, np.int64), np.zeros(len(negations.variable) + 1, np.int64)
    number = keep_by_negations(FlatMatches(matches.offsets, _NOT_READ, matches.events), negations, negated, near, kept)
    return matches if number == len(matches) else matches.reorder(kept[:number])

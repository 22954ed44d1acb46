"""Read the matches of a contiguous sequence off its lifted labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.accounting.match_budget import Account
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import Batch, window_clock
from gpu_cep.engine.events.matches import Counts, Indices, Matches
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep.engine.events.runs import ContiguousMatches
from gpu_cep.engine.events.start_counts import StartCounts
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.matchers.search import Search
from gpu_cep.engine.windows.candidates import count_parts
from gpu_cep.engine.windows.lifted_labels import (
    LiftedLabels,
    NeighbourEvents,
    counts_by_ends,
    first_singles,
    labels_leave_a_choice,
    lift_labels,
    sequence_over,
    variable_bits,
)
from gpu_cep.plan.event_plan import EventPlan, PlannedBranch
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.device.interface import HOST
from gpu_cep_kernels.labels_decide.runs import (
    Sequence,
    count_bound,
    find_last_events,
    find_repeats,
    keep_matches,
    select_entering,
)
from gpu_cep_kernels.matches.disjoint import drop_containing, take_apart
from gpu_cep_kernels.rules.cut import KEEP_DISJOINT


class _Windows(NamedTuple):
    """The table of the sequence that kernels read matches from, and the clock and length of its windows."""

    sequence: Sequence
    clock: npt.NDArray[np.generic]
    length: np.generic


@record()
class Contiguous:
    """The matcher of a batch whose lifted labels decide all matches: at most one begins at each event."""

    search: Search
    labels: LiftedLabels

    def find(self, batch: Batch) -> Matches:
        """Return the matches that start in the batch, in order of first event; not those that `after_match` never takes."""
        runs = self.runs(batch)
        account_for(len(runs), runs.bound, runs.first.item, self.search.budget, self.search.profile)
        with self.search.profile.stage("matching"):
            return runs.matches()

    def runs(self, batch: Batch) -> ContiguousMatches:
        """Return the matches that :meth:`find` returns, as ranges of events; they are not accounted for."""
        with self.search.profile.stage("matching"):
            windows = self._windows(batch)
            starts, last = self._matches(batch, windows)
            if self.search.kept_matches == KEEP_DISJOINT:
                starts, last = self._keep_disjoint(batch, starts, last)
            counts = self._counts(batch, starts, last, windows)
            return ContiguousMatches(_numbered_from(batch.low, starts), _numbered_from(batch.low, last), counts)

    def count(self, batch: Batch) -> StartCounts:
        """Return 1 for each match, at its start."""
        with self.search.profile.stage("matching"):
            starts, _ = self._matches(batch, self._windows(batch))
        first = starts + batch.low
        account_for(len(first), 0, first.item, self.search.budget, self.search.profile)
        return StartCounts(first, np.ones(len(first), np.int64))

    def _windows(self, batch: Batch) -> _Windows:
        """Return the sequence and the windows of a batch."""
        clock, length = window_clock(self.search.plan, self.search.ordered, batch.low, batch.high)
        return _Windows(sequence_over(HOST, self.search.tables, self.labels, find_repeats), clock, length)

    def _matches(self, batch: Batch, windows: _Windows) -> tuple[Indices, npt.NDArray[np.int32]]:
        """Return the events of the batch at which matches start that are asked for, and the last event of each."""
        own, ordered, tables, (sequence, clock, length) = self.search.own, self.search.ordered, self.search.tables, windows
        prefix = variable_bits(tables, sequence.enters)[: first_singles(tables)]
        starts = new_values(batch.own - batch.low + 1, np.int64)
        starts = starts[: select_entering(batch.own - batch.low, sequence.enters, prefix, starts)]
        if own != WHOLE:
            starts = starts[own.among(ordered, batch.low + starts)]
        last = new_values(len(starts), np.int32)
        self._share(batch, len(starts), lambda span: find_last_events(*span, starts, clock, length, sequence, last))
        count = keep_matches(starts, last)
        return starts[:count], last[:count]

    def _counts(self, batch: Batch, starts: Indices, last: npt.NDArray[np.int32], windows: _Windows) -> Counts:
        """Return how many events each match binds to each variable, [match, variable]."""
        counts = counts_by_ends(self.search.tables, starts, last)
        if counts is not None:
            return counts
        sequence, clock, length = windows
        bound: Counts = new_values((len(starts), len(sequence.mask)), np.int32)
        self._share(batch, len(starts), lambda span: count_bound(*span, starts, clock, length, sequence, bound))
        return bound

    def _keep_disjoint(self, batch: Batch, starts: Indices, last: npt.NDArray[np.int32]) -> tuple[Indices, npt.NDArray[np.int32]]:
        """Return the starts and last events of the matches that may be taken where matches must not overlap."""
        drop_containing(last)
        count = keep_matches(starts, last)
        starts, last = starts[:count], last[:count]
        offsets = self.search.ordered.offsets
        whole = offsets[offsets.searchsorted(batch.low)] == batch.low
        # else matches of an earlier part of the stream, of other branches or of other streams may overlap with these
        if whole and len(self.search.plan.branches) == 1 and self.search.own == WHOLE and not self.search.plan.derived:
            taken = np.empty(count + 1, np.int64)
            taken = taken[: take_apart(starts, last, taken)]
            starts, last = starts[taken], last[taken]
        return starts, last

    def _share(self, batch: Batch, size: int, work: Callable[[tuple[int, int]], None]) -> None:
        """Do ``work((low, high))`` over [0, size); threads share a batch of many events."""
        spread(work, slices(size, count_parts(batch)), self.search.threads)


def _numbered_from(low: int, events: npt.NDArray[np.signedinteger[Any]]) -> Indices:
    """Return the numbers that some events of a batch have among all; the batch begins with event `low`."""
    numbers: Indices = new_values(len(events), np.int64)
    np.add(events, low, out=numbers)
    return numbers


def read_contiguous(search: Search, batch: Batch) -> Contiguous | None:
    """Return the matcher of a batch whose lifted labels decide the matches; None if they do not.

    They may, as :func:`may_read_contiguous` says; they do not if an event may repeat a variable and also enter the next one.
    """
    with search.profile.stage("lift"):
        labels = lift_labels(search.tables, _neighbour_events(search, batch))
        return None if labels is None or labels_leave_a_choice(search.tables, labels) else Contiguous(search, labels)


def _neighbour_events(search: Search, batch: Batch) -> NeighbourEvents:
    """Return the events of a batch."""
    ordered, events = search.ordered, slice(batch.low, batch.high)
    (words,) = ordered.labels[:, events]
    low, high = ordered.offsets.searchsorted([batch.low, batch.high])
    begins, times = ordered.offsets[low:high] - batch.low, ordered.times[events]
    strict = search.plan.query.ties == "strict"
    return NeighbourEvents(HOST, words, begins, times if strict else times[:0], ordered.bank, batch.low)


def may_read_contiguous(plan: EventPlan, branch: PlannedBranch, ordered: OrderedEvents) -> bool:
    """Return whether lifted labels may decide a branch's matches."""
    return "lift" in plan.pruning and branch.lifted is not None and ordered.starts is None


def account_for(matches: int, bound: int, first_of: Callable[[int], int], budget: Account, profile: Profile) -> None:
    """Account for so many matches, which bind so many events together; `first_of` returns the first event of one.

    Raises
    ------
    BudgetExceeded
        They are more than the budget allows.
    """
    profile.add("matches", matches)
    if matches:
        budget.spend(matches, bound, 0, lambda match: first_of(min(match, matches - 1)))

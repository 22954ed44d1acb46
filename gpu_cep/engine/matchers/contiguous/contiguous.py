"""Read the matches of a contiguous sequence off its lifted labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.batches import Batch, window_clock
from gpu_cep.engine.events.matches import Indices, Matches, ones
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep.engine.matchers.contiguous.lifted_labels import LiftedLabels, lift_labels
from gpu_cep.engine.matchers.search import Search
from gpu_cep.engine.windows.candidates import count_parts
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.labels_decide.runs import (
    Sequence,
    count_bound,
    drop_containing,
    find_last_events,
    find_repeats,
    list_events,
    select_all,
    select_apart,
)
from gpu_cep_kernels.matches.flat_matches import match_offsets
from gpu_cep_kernels.rules.cut import KEEP_DISJOINT


@dataclass(frozen=True, slots=True)
class Contiguous:
    """The matcher of a batch whose lifted labels decide all matches: at most one begins at each event."""

    search: Search
    labels: LiftedLabels

    def find(self, batch: Batch) -> Matches:
        """Return the matches that start in the batch, in order of first event; not those that `after_match` never takes."""
        with self.search.profile.stage("matching"):
            sequence, clock, length = self._sequence(batch)
            starts = self._select(batch, self._last_events(batch, sequence, clock, length))
            counts = ones(len(starts), len(sequence.mask))
            if len(sequence.until):
                counts = np.empty(counts.shape, np.int32)
                self._share(batch, len(starts), lambda span: count_bound(*span, starts, clock, length, sequence, counts))
            offsets = np.empty(len(starts) + 1, np.int64)
            match_offsets(counts, offsets)
            self._spend(batch, starts, int(offsets[-1]))
            events = np.empty(int(offsets[-1]), np.int64)
            self._share(batch, len(starts), lambda span: list_events(*span, batch.low, starts, offsets, events))
        self.search.profile.add("matches", len(starts))
        return Matches(starts + batch.low, counts, events)

    def count(self, batch: Batch) -> tuple[Indices, Indices]:
        """Return the starts of the matches (ascending), and 1 for each."""
        with self.search.profile.stage("matching"):
            starts = _all_starts(self._last_events(batch, *self._sequence(batch)))
            self._spend(batch, starts, 0)
        self.search.profile.add("matches", len(starts))
        return starts + batch.low, np.ones(len(starts), np.int64)

    def _sequence(self, batch: Batch) -> tuple[Sequence, npt.NDArray[np.generic], np.generic]:
        """Return what a match is read off, and the clock and the length of its window."""
        pattern, positives = self.search.tables.pattern, self.search.tables.branch.positives
        enters, repeats = self.labels.enters, self.labels.repeats
        mask = np.array([1 << v for v in positives], np.uint64).astype(enters.dtype)
        quantified = np.flatnonzero(pattern.maximum != 1)
        row = np.full(len(mask), -1, np.int64)
        row[quantified] = np.arange(len(quantified))
        until = np.empty((len(quantified), len(enters) + 2), np.int32)
        for k, v in enumerate(quantified):
            find_repeats(repeats, mask[v], until[k])
        clock, length = window_clock(self.search.plan, self.search.ordered, batch.low, batch.high)
        return Sequence(enters, mask, row, until, pattern.minimum, pattern.maximum), clock, length

    def _last_events(self, batch: Batch, sequence: Sequence, clock: npt.NDArray[np.generic], length: np.generic) -> npt.NDArray[np.int32]:
        """Return the last event of the match that starts at each of the batch's own events; −1 where none is asked for."""
        last = np.empty(batch.own - batch.low, np.int32)
        self._share(batch, len(last), lambda span: find_last_events(*span, clock, length, sequence, last))
        own, ordered = self.search.own, self.search.ordered
        if own != WHOLE:
            events = slice(batch.low, batch.own)
            last[~own.holds(ordered.times[events], ordered.rows[events])] = -1
        return last

    def _select(self, batch: Batch, last: npt.NDArray[np.int32]) -> Indices:
        """Return the starts of the matches, at least of those that `after_match` takes."""
        search = self.search
        if search.kept_matches != KEEP_DISJOINT:
            return _all_starts(last)
        drop_containing(last)
        # matches of other branches, of other slices and of other streams' parts may stand between these
        if len(search.plan.branches) > 1 or search.own != WHOLE or search.plan.derived:
            return _all_starts(last)
        starts = np.empty(len(last) + 1, np.int64)
        whole = bool((search.ordered.offsets == batch.low).any())
        return starts[: select_apart(last, whole, starts)]

    def _share(self, batch: Batch, size: int, work: Callable[[tuple[int, int]], None]) -> None:
        """Do ``work((low, high))`` over [0, size); threads share a batch of many events."""
        spread(work, slices(size, count_parts(batch)), self.search.threads)

    def _spend(self, batch: Batch, starts: Indices, events: int) -> None:
        """Account for a match at each of the starts; together they bind so many `events`."""
        if len(starts):
            self.search.budget.spend(len(starts), events, 0, lambda match: batch.low + int(starts[min(match, len(starts) - 1)]))


def read_contiguous(search: Search, batch: Batch) -> Contiguous | None:
    """Return the matcher of a batch whose lifted labels decide the matches; None if they do not.

    They do not if an event may repeat a variable and also enter the next one.
    """
    if "lift" not in search.plan.pruning or search.tables.branch.lifted is None or search.ordered.starts is not None:
        return None
    with search.profile.stage("lift"):
        labels = lift_labels(search, batch)
        return None if labels is None or _overlap(search, labels) else Contiguous(search, labels)


def _overlap(search: Search, labels: LiftedLabels) -> bool:
    """Return whether some event may repeat a variable, and enter the next one instead."""
    pattern, positives = search.tables.pattern, search.tables.branch.positives
    return any(
        bool(((labels.repeats >> positives[v]) & (labels.enters >> positives[v + 1]) & 1).any())
        for v in range(len(positives) - 1)
        if pattern.maximum[v] != pattern.minimum[v]
    )


def _all_starts(last: npt.NDArray[np.int32]) -> Indices:
    """Return the events at which a match starts."""
    starts = np.empty(len(last) + 1, np.int64)
    return starts[: select_all(last, starts)]

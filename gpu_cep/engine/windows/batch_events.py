"""Hold the events of a batch, with indexes that are built when an algorithm first asks for them."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property

import numpy as np

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.label_words import Words, count_by_variable
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import Own
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.windows.candidates import BatchWindows, BranchWindows, branch_windows, match_windows
from gpu_cep.engine.windows.direct import is_deterministic
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.records import record
from gpu_cep_kernels.phase_one.input_buffers import InputBuffers, fill_buffers
from gpu_cep_kernels.rules.scalars import LABEL_BITS


@record(slots=False)
class BranchEvents:
    """A batch's events as one branch sees them; `made` is the profile of finding its windows."""

    plan: EventPlan
    tables: MatcherTables
    windows: BranchWindows
    made: Profile

    @cached_property
    def decided_by_labels(self) -> bool:
        """Return whether matches are read off the labels, without a walk through the windows."""
        return self.tables.reads_directly and is_deterministic(self.plan, self.windows, self.tables)


@record(slots=False)
class BatchEvents:
    """A batch of the ordered events, with its indexes.

    An index is built on first use, once for all branches and algorithms.
    """

    plan: EventPlan
    ordered: OrderedEvents
    batch: Batch
    profile: Profile
    _branches: dict[int, BranchEvents] = field(default_factory=dict, repr=False)

    @property
    def labels(self) -> Words:
        """Return the labels of the batch's events, [word, event]."""
        return self.ordered.labels[:, self.batch.low : self.batch.high]

    @cached_property
    def windows(self) -> BatchWindows:
        """Return the batch's windows without starts; all branches share them."""
        return match_windows(self.plan, self.ordered, self.batch, self.profile)

    def branch(self, tables: MatcherTables, own: Own) -> BranchEvents:
        """Return the events as the branch with these tables sees them; only the matches that start in `own` are asked for."""
        # tables live as long as the searches that ask, and are costly to compare
        if id(tables) not in self._branches:
            made = self.profile.apart()
            windows = branch_windows(self.windows, self.ordered, self.batch, tables, own, made)
            self._branches[id(tables)] = BranchEvents(self.plan, tables, windows, made)
        return self._branches[id(tables)]

    @cached_property
    def counts(self) -> Indices:
        """Return how many events satisfy the properties of each variable, negated variables last."""
        with self.profile.stage("buffers"):
            return count_by_variable(self.labels, len(self.plan.query.variables))

    def counts_of(self, variables: tuple[int, ...]) -> Indices:
        """Return the numbers of events of some variables."""
        return self.counts[list(variables)]

    def buffers_of(self, variables: tuple[int, ...]) -> InputBuffers:
        """Return the input buffers of some variables: the events that satisfy their properties."""
        if len(variables) == len(self.counts):
            return self._buffers
        first = self._buffers.first
        parts = [self._buffers.events[first[v] : first[v + 1]] for v in variables]
        return InputBuffers(offsets([len(part) for part in parts]), np.concatenate([*parts, np.zeros(1, np.int32)]))

    @cached_property
    def _buffers(self) -> InputBuffers:
        """Return the input buffers of all variables."""
        counts = self.counts
        with self.profile.stage("buffers"):
            return input_buffers(self.labels, counts)


def input_buffers(labels: Words, counts: Indices) -> InputBuffers:
    """Return the input buffers of all variables: for each the events that have its label bit.

    ``counts[v]`` is the number of events of variable v.
    """
    first = offsets(counts)
    events = np.empty(int(first[-1]) + 1, np.int32)
    for k, word in enumerate(labels):
        fill_buffers(word, first[LABEL_BITS * k : LABEL_BITS * (k + 1) + 1], events)
    return InputBuffers(first, events)

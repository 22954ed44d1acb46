"""The events of a batch, indexed for whatever looks for matches among them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.label_words import Words, count_by_variable
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.lowering.pattern_tables import offsets
from gpu_cep.engine.windows.candidates import BatchWindows, match_windows
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.phase_one.input_buffers import InputBuffers, fill_buffers
from gpu_cep_kernels.rules.scalars import LABEL_BITS


@dataclass(frozen=True)
class BatchEvents:
    """A batch of the ordered events; what is asked of it is found once, for all branches and algorithms."""

    plan: EventPlan
    ordered: OrderedEvents
    batch: Batch
    profile: Profile

    @property
    def labels(self) -> Words:
        """Which variables' properties each event satisfies: [word, event]."""
        return self.ordered.labels[:, self.batch.low : self.batch.high]

    @cached_property
    def windows(self) -> BatchWindows:
        """The windows, which have no starts yet: they are the same for all branches."""
        return match_windows(self.plan, self.ordered, self.batch, self.profile)

    @cached_property
    def counts(self) -> Indices:
        """How many events satisfy the properties of each variable, the negated ones behind the others."""
        with self.profile.stage("buffers"):
            return count_by_variable(self.labels, len(self.plan.query.variables))

    def counts_of(self, variables: tuple[int, ...]) -> Indices:
        """The counts of some variables."""
        return self.counts[list(variables)]

    def buffers_of(self, variables: tuple[int, ...]) -> InputBuffers:
        """The events that satisfy the properties of some variables."""
        if len(variables) == len(self.counts):
            return self._buffers
        first = self._buffers.first
        parts = [self._buffers.events[first[v] : first[v + 1]] for v in variables]
        return InputBuffers(offsets([len(part) for part in parts]), np.concatenate([*parts, np.zeros(1, np.int32)]))

    @cached_property
    def _buffers(self) -> InputBuffers:
        counts = self.counts
        with self.profile.stage("buffers"):
            return input_buffers(self.labels, counts)


def input_buffers(labels: Words, counts: Indices) -> InputBuffers:
    """The input buffers of so many variables, which have so many events."""
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    events = np.empty(int(first[-1]) + 1, np.int32)
    for k, word in enumerate(labels):
        fill_buffers(word, first[LABEL_BITS * k : LABEL_BITS * (k + 1) + 1], events)
    return InputBuffers(first, events)

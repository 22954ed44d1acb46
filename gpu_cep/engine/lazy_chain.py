"""The lazy chain automaton over the batches: no windows, no candidates, only the events that rare ones need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from gpu_cep.engine.batches import Batch, window_clock
from gpu_cep.engine.labels import Words, by_word
from gpu_cep.engine.matches import Indices, Matches, concatenated
from gpu_cep.engine.sampling import NOTHING, Sample, evenly_spread
from gpu_cep.engine.search import ConditionOverflow, Search
from gpu_cep_kernels.lazy_chain import Chain, ChainMatches, InputBuffers, Streams, count_labels, enumerate_chain, fill_buffers, new_chain
from gpu_cep_kernels.rules import LABEL_BITS
from gpu_cep_kernels.tables import DEPTH, ERROR_CONDITION, FINISHED, MATCHES, OUTPUT_FULL, OVERFLOWED, STEPS, STEPS_SPENT, Run, new_run

# Events filtered between two returns to Python, so that a long enumeration can be interrupted and its budget checked.
_STEPS_PER_CALL = 1 << 22
# Matches that the first buffer holds, and events that one holds at most.
_SMALLEST_OUTPUT, _LARGEST_OUTPUT = 1 << 12, 1 << 24


@dataclass(frozen=True, slots=True)
class LazyChain:
    """Finds matches of single variables under skip_till_any_match from the rarest variable on."""

    search: Search

    def find(self, batch: Batch) -> Matches:
        """The matches that start in the batch, in order of first event, last event and bindings."""
        enumeration = self._begin(batch)
        with self.search.profile.stage("matching"):
            parts = [] if enumeration is None else list(enumeration.matches())
            matches = concatenated(parts, self._variables).sorted_by_starts(batch.low, batch.own)
        self.search.profile.add("matches", len(matches))
        return matches

    def count(self, batch: Batch) -> tuple[Indices, Indices]:
        """The first event of a match in each stream of the batch that has one, and the number of that stream's matches."""
        enumeration = self._begin(batch)
        with self.search.profile.stage("matching"):
            starts, totals = (np.empty(0, np.int64), np.empty(0, np.int64)) if enumeration is None else enumeration.count()
        self.search.profile.add("matches", int(totals.sum()))
        return starts, totals

    @property
    def _variables(self) -> int:
        return len(self.search.tables.pattern.order)

    def sample(self, batch: Batch, pivots: int, steps: int) -> Sample:
        """What some of the rarest variable's events take: at most so many, and as many as little more than so many `steps` suffice for."""
        enumeration = self._begin(batch)
        return NOTHING if enumeration is None else enumeration.sample(pivots, steps)

    def _begin(self, batch: Batch) -> _Enumeration | None:
        """The enumeration from the rarest variable's events on; None if some variable has no event."""
        labels = self.search.ordered.labels[:, batch.low : batch.high]
        with self.search.profile.stage("buffers"):
            counts = frequencies(labels, self._variables)
            pivots = int(counts.min())
            self.search.profile.add("pivots", pivots)
            if not pivots:
                return None
            buffers = input_buffers(labels, counts)
        pattern = self.search.tables.pattern
        chain = new_chain(np.argsort(counts, kind="stable"), buffers, pattern, batch.own - batch.low)
        run = new_run(self._variables, pattern, self.search.conditions(batch))
        run.earlier[:] = -1  # a single variable has no earlier event
        return _Enumeration(self.search, batch, buffers, chain, run)


def frequencies(labels: Words, variables: int) -> Indices:
    """How many events satisfy the properties of each variable."""
    counts = np.empty(variables, np.int64)
    for word, own in by_word(labels, counts):
        count_labels(word, own)
    return counts


def input_buffers(labels: Words, counts: Indices) -> InputBuffers:
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    events = np.empty(int(first[-1]) + 1, np.int32)
    for k, word in enumerate(labels):
        fill_buffers(word, first[LABEL_BITS * k : LABEL_BITS * (k + 1) + 1], events)
    return InputBuffers(first, events)


@dataclass(frozen=True, slots=True)
class _Enumeration:
    """One batch's run of the kernel: `chain` and `run` say how far it has come."""

    search: Search
    batch: Batch
    buffers: InputBuffers
    chain: Chain
    run: Run

    def matches(self) -> list[Matches]:
        """All matches, as they are found."""
        variables = len(self.chain.order)
        capacity = _SMALLEST_OUTPUT
        found = []
        status = OUTPUT_FULL
        while status != FINISHED:
            output = ChainMatches(np.empty(capacity, np.int64), np.empty((capacity, variables), np.int64), np.empty(0, np.int64))
            status = self._advance(output, counting=False)
            taken = int(self.run.state[MATCHES])
            first, events = output.starts[:taken] + self.batch.low, output.events[:taken].ravel()
            part = Matches(first, np.ones((taken, variables), np.int32), events)
            self._spend(taken, len(part.events), part.first.item)
            found.append(part)
            capacity = min(4 * capacity, _LARGEST_OUTPUT // variables)
        return found

    def count(self) -> tuple[Indices, Indices]:
        """The first start of a match in each stream that has one, and the number of its matches."""
        output = self._counts()
        starts, totals = output.starts, output.totals
        status, spent = STEPS_SPENT, 0
        while status != FINISHED:
            status = self._advance(output, counting=True)
            counted = int(totals.sum())
            self._spend(counted - spent, 0, partial(_stream_start, self.batch.low, starts, totals, spent))
            spent = counted
        matched = totals > 0
        return starts[matched] + self.batch.low, totals[matched]

    def sample(self, pivots: int, steps: int) -> Sample:
        """What some of the pivots take, at most so many, and as many as little more than so many `steps` suffice for."""
        begin, stop = int(self.chain.cursor[0]), int(self.chain.stop[0])
        places = begin + evenly_spread(stop - begin, pivots)
        events = self.buffers.events.copy()
        events[begin : begin + len(places)] = events[places]
        self.chain.stop[0] = begin + len(places)
        output = self._counts()
        replace(self, buffers=self.buffers._replace(events=events))._advance(output, counting=True, steps=steps)
        tried = int(self.chain.cursor[0]) - begin
        matches = int(output.totals.sum())
        return Sample(stop - begin, tried, int(self.run.state[STEPS]), matches, matches * len(self.chain.order))

    def _counts(self) -> ChainMatches:
        """No matches yet in any stream of the batch."""
        first, last = np.searchsorted(self.search.ordered.offsets, [self.batch.low, self.batch.high - 1], side="right")
        starts, totals = np.full(last - first + 1, self.batch.high, np.int64), np.zeros(last - first + 1, np.int64)
        return ChainMatches(starts, np.empty((0, len(self.chain.order)), np.int64), totals)

    def _advance(self, output: ChainMatches, *, counting: bool, steps: int = _STEPS_PER_CALL) -> int:
        search, batch, tables = self.search, self.batch, self.search.tables
        times = search.ordered.times[batch.low : batch.high]
        clock, length = window_clock(search.plan, search.ordered, batch.low, batch.high)
        streams = Streams(search.ordered.offsets, times, clock, length, search.plan.query.ties == "strict")
        status = enumerate_chain(
            self.buffers, streams, batch.own - batch.low, tables.pattern, search.conditions(batch),
            counting, steps, self.chain, self.run, output,
        )  # fmt: skip
        if status == OVERFLOWED:
            condition = tables.branch.conditions[int(self.run.state[ERROR_CONDITION]) - 1]
            raise ConditionOverflow(condition, self._start(int(self.run.state[DEPTH]) + 1))
        return int(status)

    def _start(self, depth: int) -> int:
        """The first of the events at the top `depth` places of the stack."""
        return self.batch.low + int(self.run.event[:depth].min())

    def _spend(self, matches: int, events: int, match_start: Callable[[int], int]) -> None:
        """Account for what was found since the last time; ``match_start(i)`` is the first event of match i of it."""

        def start_of(match: int) -> int:
            return match_start(match) if match < matches else self._start(max(int(self.run.state[DEPTH]), 1))

        self.search.budget.spend(matches, events, int(self.run.state[STEPS]), start_of)
        self.run.state[STEPS] = self.run.state[MATCHES] = 0


def _stream_start(low: int, starts: Indices, totals: Indices, spent: int, match: int) -> int:
    """The first start of a match in the stream of match `match` behind the first `spent`."""
    return low + int(starts[np.searchsorted(np.cumsum(totals), spent + match, side="right")])

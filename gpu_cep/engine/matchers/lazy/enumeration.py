"""One batch's run of a lazy automaton: the kernels called until they have finished, with room made and the budget spent in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches, ones
from gpu_cep.engine.events.sampling import NOTHING, Sample, evenly_spread, scattered
from gpu_cep.engine.matchers.search import ConditionOverflow, Search
from gpu_cep_kernels.lazy.chain import Chain, ChainMatches, enumerate_chain, enumerate_negated_chain
from gpu_cep_kernels.lazy.iteration_tables import Iterations, IterationTable, lengthen_path, new_iterations, widen_lists
from gpu_cep_kernels.lazy.iterations import enumerate_iterations
from gpu_cep_kernels.phase_one.input_buffers import InputBuffers, Streams
from gpu_cep_kernels.rules.tables import (
    CANDIDATE,
    DEPTH,
    ERROR_CONDITION,
    EVENTS,
    FINISHED,
    MATCHES,
    OUTPUT_FULL,
    OVERFLOWED,
    PATH_FULL,
    PHASE,
    STEPS,
    STEPS_SPENT,
    Conditions,
    EventPath,
    MatchTable,
    deepen_path,
    new_path,
)

# Events filtered between two returns to Python, so that a long enumeration can be interrupted and its budget checked.
_STEPS_PER_CALL = 1 << 22
# Matches that the first buffer holds at least, for each pivot, and at most; and events that any holds at most.
_SMALLEST_OUTPUT, _EACH_PIVOT, _FIRST_OUTPUT, _LARGEST_OUTPUT = 1 << 12, 1 << 6, 1 << 17, 1 << 24
# Events that bindings of quantified variables have together at first, and for which their lists have room.
_PATH, _ROOM = 64, 1 << 12
# The same of a sample, which ends where more is needed.
_SAMPLED_PATH = 1 << 10


class Enumeration(Protocol):
    """The matches of one batch."""

    def sample(self, pivots: int, steps: int) -> tuple[Sample, Sample]:
        """What single variables take from some of the pivots, and quantified ones from some of the rows that these give."""

    def matches(self) -> list[Matches]:
        """All matches, as they are found."""

    def count(self) -> tuple[Indices, Indices]:
        """The first event of a match in each stream of the batch, and the number of that stream's matches."""


@dataclass(frozen=True, slots=True)
class Chained:
    """The enumeration of single variables: `chain` and `run` say how far it has come."""

    search: Search
    batch: Batch
    buffers: InputBuffers
    streams: Streams
    conditions: Conditions
    chain: Chain
    run: EventPath
    starting: bool

    def matches(self) -> list[Matches]:
        """All matches, as they are found."""
        variables = len(self.chain.order)
        # memory that nothing is written to is not taken
        pivots = int(self.chain.stop[0] - self.chain.cursor[0])
        capacity = min(max(_SMALLEST_OUTPUT, _EACH_PIVOT * pivots), _FIRST_OUTPUT, _LARGEST_OUTPUT // variables)
        found = []
        status = OUTPUT_FULL
        while status != FINISHED:
            output = ChainMatches(np.empty(capacity, np.int64), np.empty((capacity, variables), np.int64), np.empty(0, np.int64))
            status = self.advance(output, counting=False)
            taken = int(self.run.state[MATCHES])
            first, events = output.starts[:taken] + self.batch.low, output.events[:taken].ravel()
            part = Matches(first, ones(taken, variables), events)
            self._spend(taken, len(part.events), part.first.item)
            found.append(part)
            capacity = min(4 * capacity, _LARGEST_OUTPUT // variables)
        return found

    def count(self) -> tuple[Indices, Indices]:
        """The first event of a match in each stream of the batch, and the number of that stream's matches."""
        starts, totals = no_counts(self.search, self.batch)
        output = ChainMatches(starts, np.empty((0, len(self.chain.order)), np.int64), totals)
        status, spent = STEPS_SPENT, 0
        while status != FINISHED:
            status = self.advance(output, counting=True)
            counted = int(totals.sum())
            self._spend(counted - spent, 0, partial(stream_start, self.batch.low, starts, totals, spent))
            spent = counted
        return starts, totals

    def sample(self, pivots: int, steps: int) -> tuple[Sample, Sample]:
        """What some of the pivots take; there are no quantified variables."""
        return self.sampled_rows(pivots, steps)[0], NOTHING

    def sampled_rows(self, pivots: int, steps: int) -> tuple[Sample, Indices]:
        """What some of the pivots take, at most so many, and as many as little more than so many `steps` suffice for; and their rows."""
        begin, stop = int(self.chain.cursor[0]), int(self.chain.stop[0])
        places = begin + evenly_spread(stop - begin, pivots)
        events = self.buffers.events.copy()
        events[begin : begin + len(places)] = events[places]
        self.chain.stop[0] = begin + len(places)
        output = self._rows_output()
        replace(self, buffers=self.buffers._replace(events=events)).advance(output, counting=False, steps=steps)
        tried, matches = int(self.chain.cursor[0]) - begin, int(self.run.state[MATCHES])
        sample = Sample(stop - begin, tried, int(self.run.state[STEPS]), matches, matches * len(self.chain.order))
        return sample, output.events[:matches]

    def _rows_output(self) -> ChainMatches:
        rows = np.empty((_SMALLEST_OUTPUT, len(self.chain.order)), np.int64)
        return ChainMatches(np.empty(_SMALLEST_OUTPUT, np.int64), rows, np.empty(0, np.int64))

    def rows(self) -> Iterator[Indices]:
        """The partial matches, as [row, variable], in parts that are overwritten."""
        output = self._rows_output()
        status = OUTPUT_FULL
        while status != FINISHED:
            status = self.advance(output, counting=False)
            taken = int(self.run.state[MATCHES])
            self._spend(0, 0, output.starts.item)
            yield output.events[:taken]

    def advance(self, output: ChainMatches, *, counting: bool, steps: int | None = None) -> int:
        """Go on; returns why it stopped."""
        search, batch, tables = self.search, self.batch, self.search.tables
        enumerate_matches = enumerate_negated_chain if len(self.chain.judged) else enumerate_chain
        status = enumerate_matches(
            self.buffers, self.streams, batch.own - batch.low, tables.pattern, self.conditions, search.negations,
            self.starting, counting, steps or _STEPS_PER_CALL, self.chain, self.run, output,
        )  # fmt: skip
        if status == OVERFLOWED:
            raise overflow(search, self.run, self._start(int(self.run.state[DEPTH]) + 1))
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


@dataclass(frozen=True, slots=True)
class Iterated:
    """The enumeration of quantified variables behind that of single ones, which binds the variables `fixed`."""

    chained: Chained
    fixed: Indices
    order: Indices
    uses: IterationTable

    def matches(self) -> list[Matches]:
        """All matches, as they are found."""
        low, found = self.chained.batch.low, []
        for output, run in self._calls(self._table, counting=False):
            taken, filled = int(run.state[MATCHES]), int(run.state[EVENTS])
            part = Matches(output.starts[:taken] + low, output.counts[:taken].copy(), output.events[:filled] + low)
            self._spend(run, taken, filled, part.first.item)
            found.append(part)
        return found

    def count(self) -> tuple[Indices, Indices]:
        """The first event of a match in each stream of the batch, and the number of that stream's matches."""
        starts, totals = no_counts(self.chained.search, self.chained.batch)
        output = MatchTable(starts, np.empty((0, len(self.chained.chain.order)), np.int32), np.empty(0, np.int64), totals)
        spent = 0
        for _, run in self._calls(lambda size, path: output, counting=True):
            counted = int(totals.sum())
            self._spend(run, counted - spent, 0, partial(stream_start, self.chained.batch.low, starts, totals, spent))
            spent = counted
        return starts, totals

    def sample(self, pivots: int, steps: int) -> tuple[Sample, Sample]:
        """What the single variables take from some of the pivots, and the quantified ones from some of their rows."""
        single, rows = self.chained.sampled_rows(pivots, steps)
        found = len(rows)
        rows = rows[scattered(found, pivots)]
        run, stack = self._scratch(_SAMPLED_PATH)
        if found:
            self._advance(rows, stack, run, self._table(_SMALLEST_OUTPUT, len(run.event)), counting=False, steps=steps)
        tried = min(int(run.state[CANDIDATE]) + 1, len(rows))
        places = round(single.all_matches)
        return single, Sample(places, tried, int(run.state[STEPS]), int(run.state[MATCHES]), int(run.state[EVENTS]))

    def _scratch(self, path: int) -> tuple[EventPath, Iterations]:
        """What the kernel works with, where quantified variables bind so many events together."""
        search, chained = self.chained.search, self.chained
        run = new_path(len(self.fixed) + path, search.tables.pattern, search.conditions(chained.batch))
        return run, new_iterations(self.fixed, self.order, len(run.event), max(_ROOM, _ROOM * path // _PATH), chained.chain.needs)

    def _table(self, size: int, path: int) -> MatchTable:
        """Room for so many matches, one of them of a path of that length."""
        variables, fewest = len(self.chained.chain.order), self.chained.search.tables.fewest
        events = np.empty(size * (fewest + 2) + path, np.int64)
        return MatchTable(np.empty(size, np.int64), np.empty((size, variables), np.int32), events, np.empty(0, np.int64))

    def _calls(self, table: Callable[[int, int], MatchTable], *, counting: bool) -> Iterator[tuple[MatchTable, EventPath]]:
        """What each call of the kernel wrote, and where it stopped."""
        chained = self.chained
        run, stack = self._scratch(_PATH)
        size = _SMALLEST_OUTPUT
        output = table(size, len(run.event))
        for rows in chained.rows():
            run.state[[CANDIDATE, DEPTH, PHASE]] = 0
            status = OUTPUT_FULL
            while status != FINISHED:
                status = self._advance(rows, stack, run, output, counting=counting)
                yield output, run
                if status == PATH_FULL and run.state[DEPTH] + 1 < len(run.event):
                    stack = widen_lists(stack)
                elif status == PATH_FULL:
                    run, stack = deepen_path(run), lengthen_path(stack)
                elif status == OUTPUT_FULL:
                    size = max(1, min(4 * size, _LARGEST_OUTPUT // (chained.search.tables.fewest + 2)))
                    output = table(size, len(run.event))

    def _advance(
        self, rows: Indices, stack: Iterations, run: EventPath, output: MatchTable, *, counting: bool, steps: int | None = None
    ) -> int:
        chained, search, batch = self.chained, self.chained.search, self.chained.batch
        status = enumerate_iterations(
            rows, chained.buffers, chained.streams, batch.own - batch.low, search.tables.pattern, search.conditions(batch),
            self.uses, search.negations, chained.starting, counting, steps or _STEPS_PER_CALL, stack, run, output,
        )  # fmt: skip
        if status == OVERFLOWED:
            raise overflow(search, run, self._start(run))
        return int(status)

    def _start(self, run: EventPath) -> int:
        """The first of the events that are bound."""
        return self.chained.batch.low + int(run.event[: max(int(run.state[DEPTH]), 1)].min())

    def _spend(self, run: EventPath, matches: int, events: int, match_start: Callable[[int], int]) -> None:
        """Account for what was found since the last time; ``match_start(i)`` is the first event of match i of it."""

        def start_of(match: int) -> int:
            return match_start(match) if match < matches else self._start(run)

        self.chained.search.budget.spend(matches, events, int(run.state[STEPS]), start_of)
        run.state[[STEPS, MATCHES, EVENTS]] = 0


def no_counts(search: Search, batch: Batch) -> tuple[Indices, Indices]:
    """The first event of a match in each stream of a batch, and their number, before any is found."""
    first, last = np.searchsorted(search.ordered.offsets, [batch.low, batch.high - 1], side="right")
    return np.full(last - first + 1, batch.high, np.int64), np.zeros(last - first + 1, np.int64)


def overflow(search: Search, run: EventPath, start: int) -> ConditionOverflow:
    """The error of the condition that could not be computed."""
    return ConditionOverflow(search.tables.branch.conditions[int(run.state[ERROR_CONDITION]) - 1], start)


def stream_start(low: int, starts: Indices, totals: Indices, spent: int, match: int) -> int:
    """The first start of a match in the stream of match `match` behind the first `spent`."""
    return low + int(starts[np.searchsorted(np.cumsum(totals), spent + match, side="right")])

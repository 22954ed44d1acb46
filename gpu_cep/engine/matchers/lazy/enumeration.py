"""Run a lazy automaton's kernels over one batch until they finish.

Between their calls, the budget is spent and room is made for longer paths and more matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches, ones
from gpu_cep.engine.events.sampling import NOTHING, WorkSample, scatter_places, spread_places
from gpu_cep.engine.events.start_counts import StartCounts
from gpu_cep.engine.matchers.match_tables import failed_condition, new_count_table, new_match_table
from gpu_cep.engine.matchers.search import Search, entry_of_match
from gpu_cep.records import record
from gpu_cep_kernels.lazy.chain import ChainStack, LazyMatches, enumerate_chain, enumerate_negated_chain
from gpu_cep_kernels.lazy.iteration_tables import (
    Iterations,
    IterationTable,
    LazyMode,
    lengthen_path,
    new_iterations,
    widen_lists,
)
from gpu_cep_kernels.lazy.iterations import enumerate_iterations
from gpu_cep_kernels.phase_one.input_buffers import Buffered, InputBuffers, Streams
from gpu_cep_kernels.rules.path_arrays import deepen_path, new_path
from gpu_cep_kernels.rules.tables import Conditions, Criteria, EventPath, MatchTable, PathState, Status

# Steps between two returns to Python, where an enumeration can be interrupted and its budget checked.
_STEPS_PER_CALL = 1 << 22
# Matches of the first output: at least, for each pivot, and at most. Then the most events of any output.
_SMALLEST_OUTPUT, _EACH_PIVOT, _FIRST_OUTPUT, _LARGEST_OUTPUT = 1 << 12, 1 << 6, 1 << 17, 1 << 24
# Events that quantified variables may bind together at first, and events that lists have room for.
_PATH, _ROOM = 64, 1 << 12
# Events that quantified variables may bind together in a sample, which ends if they need more.
_SAMPLED_PATH = 1 << 10


class Enumeration(Protocol):
    """An enumeration of the matches of one batch, or of some of its pivots."""

    def sample(self, pivots: int, steps: int) -> tuple[WorkSample, WorkSample]:
        """Return a sample of the work on single variables, and one on quantified ones.

        The first begins at some pivots, the second at some rows that these give.
        """

    def matches(self) -> list[Matches]:
        """Return all matches, in the order in which they are found."""

    def count(self) -> StartCounts:
        """Return the number of matches of each stream of the batch, at the first event of one.

        Events are numbered from the batch's first.
        """


@record()
class ChainEnumeration:
    """The enumeration of single variables: `chain` and `run` say how far it has come.

    If it is `starting`, each pivot begins the match and has its own order of variables.
    """

    search: Search
    batch: Batch
    buffers: InputBuffers
    streams: Streams
    conditions: Conditions
    chain: ChainStack
    run: EventPath
    starting: bool

    def matches(self) -> list[Matches]:
        """Return all matches, in the order in which they are found."""
        variables = len(self.chain.order)
        # memory is taken only where it is written
        pivots = int(self.chain.stop[0] - self.chain.cursor[0])
        capacity = min(max(_SMALLEST_OUTPUT, _EACH_PIVOT * pivots), _FIRST_OUTPUT, _LARGEST_OUTPUT // variables)
        found = []
        status = Status.OUTPUT_FULL
        while status != Status.FINISHED:
            output = LazyMatches(np.empty(capacity, np.int64), np.empty((capacity, variables), np.int64), np.empty(0, np.int64))
            status = self.advance(output, counting=False)
            taken = int(self.run.state[PathState.MATCHES])
            first, events = output.starts[:taken] + self.batch.low, output.events[:taken].ravel()
            self._spend(taken, len(events), first.item)
            found.append(Matches(first, ones(taken, variables), events))
            capacity = min(4 * capacity, _LARGEST_OUTPUT // variables)
        return found

    def count(self) -> StartCounts:
        """Return the number of matches of each stream of the batch, at the first event of one."""
        starts, totals = new_stream_counts(self.search, self.batch)
        output = LazyMatches(starts, np.empty((0, len(self.chain.order)), np.int64), totals)
        status, spent = Status.STEPS_SPENT, 0
        while status != Status.FINISHED:
            status = self.advance(output, counting=True)
            counted = int(totals.sum())
            self._spend(counted - spent, 0, partial(first_in_stream, self.batch.low, starts, totals, spent))
            spent = counted
        return StartCounts(starts, totals)

    def sample(self, pivots: int, steps: int) -> tuple[WorkSample, WorkSample]:
        """Return a sample of the work on some pivots, and an empty one: there are no quantified variables."""
        return self.sample_rows(pivots, steps)[0], NOTHING

    def sample_rows(self, pivots: int, steps: int) -> tuple[WorkSample, Indices]:
        """Return a sample of the work on some pivots, and the rows that they give, as [row, variable].

        There are at most `pivots` pivots; the sample ends a little after `steps` steps.
        """
        begin, stop = int(self.chain.cursor[0]), int(self.chain.stop[0])
        places = begin + spread_places(stop - begin, pivots)
        events = self.buffers.events.copy()
        events[begin : begin + len(places)] = events[places]
        self.chain.stop[0] = begin + len(places)
        output = self._new_rows()
        replace(self, buffers=self.buffers._replace(events=events)).advance(output, counting=False, steps=steps)
        tried, matches = int(self.chain.cursor[0]) - begin, int(self.run.state[PathState.MATCHES])
        sample = WorkSample(stop - begin, tried, int(self.run.state[PathState.STEPS]), matches, matches * len(self.chain.order))
        return sample, output.events[:matches]

    def _new_rows(self) -> LazyMatches:
        """Return room for rows."""
        rows = np.empty((_SMALLEST_OUTPUT, len(self.chain.order)), np.int64)
        return LazyMatches(np.empty(_SMALLEST_OUTPUT, np.int64), rows, np.empty(0, np.int64))

    def rows(self) -> Iterator[Indices]:
        """Yield the partial matches that bind the single variables, as [row, variable].

        Each array is overwritten by the next.
        """
        output = self._new_rows()
        status = Status.OUTPUT_FULL
        while status != Status.FINISHED:
            status = self.advance(output, counting=False)
            taken = int(self.run.state[PathState.MATCHES])
            self._spend(0, 0, output.starts.item)
            yield output.events[:taken]

    def advance(self, output: LazyMatches, *, counting: bool, steps: int | None = None) -> Status:
        """Search on for a little more than `steps` steps, and return why the search stopped."""
        search, batch, tables = self.search, self.batch, self.search.tables
        enumerate_matches = enumerate_negated_chain if len(self.chain.judged) else enumerate_chain
        criteria = Criteria(tables.pattern, self.conditions, search.negations)
        mode = LazyMode(batch.own - batch.low, self.starting, counting, steps or _STEPS_PER_CALL)
        status = enumerate_matches(Buffered(self.buffers, self.streams), criteria, mode, self.chain, self.run, output)
        if status == Status.OVERFLOWED:
            raise search.overflow(failed_condition(self.run), self._first_bound(int(self.run.state[PathState.DEPTH]) + 1))
        return status

    def _first_bound(self, depth: int) -> int:
        """Return the first of the events that are bound down to a depth, as an ordered event."""
        return self.batch.low + int(self.run.event[:depth].min())

    def _spend(self, matches: int, events: int, match_start: Callable[[int], int]) -> None:
        """Account for matches and steps since the last call; ``match_start(i)`` is match i's first event."""

        def start_of(match: int) -> int:
            return match_start(match) if match < matches else self._first_bound(max(int(self.run.state[PathState.DEPTH]), 1))

        self.search.budget.spend(matches, events, int(self.run.state[PathState.STEPS]), start_of)
        self.run.state[PathState.STEPS] = self.run.state[PathState.MATCHES] = 0


@record()
class IterationEnumeration:
    """The enumeration of quantified variables, for each row of the chain.

    A row binds the variables `fixed`; the others are bound in the given
    `order`. `uses` says when their events decide conditions.
    """

    chained: ChainEnumeration
    fixed: Indices
    order: Indices
    uses: IterationTable

    def matches(self) -> list[Matches]:
        """Return all matches, in the order in which they are found."""
        low, found = self.chained.batch.low, []
        for output, run in self._outputs(self._new_output, counting=False):
            taken, filled = int(run.state[PathState.MATCHES]), int(run.state[PathState.EVENTS])
            part = Matches(output.starts[:taken] + low, output.counts[:taken].copy(), output.events[:filled] + low)
            self._spend(run, taken, filled, part.first.item)
            found.append(part)
        return found

    def count(self) -> StartCounts:
        """Return the number of matches of each stream of the batch, at the first event of one."""
        starts, totals = new_stream_counts(self.chained.search, self.chained.batch)
        output = new_count_table(totals, self.chained.search.variable_count, starts)
        spent = 0
        for _, run in self._outputs(lambda size, path: output, counting=True):
            counted = int(totals.sum())
            self._spend(run, counted - spent, 0, partial(first_in_stream, self.chained.batch.low, starts, totals, spent))
            spent = counted
        return StartCounts(starts, totals)

    def sample(self, pivots: int, steps: int) -> tuple[WorkSample, WorkSample]:
        """Return a sample of the work on single variables, and one on quantified ones."""
        single, rows = self.chained.sample_rows(pivots, steps)
        found = len(rows)
        rows = rows[scatter_places(found, pivots)]
        run, stack = self._scratch(_SAMPLED_PATH)
        if found:
            self._advance(rows, stack, run, self._new_output(_SMALLEST_OUTPUT, len(run.event)), counting=False, steps=steps)
        tried = min(int(run.state[PathState.CANDIDATE]) + 1, len(rows))
        places = round(single.all_matches)
        return single, WorkSample(
            places, tried, int(run.state[PathState.STEPS]), int(run.state[PathState.MATCHES]), int(run.state[PathState.EVENTS])
        )

    def _scratch(self, path: int) -> tuple[EventPath, Iterations]:
        """Return what the kernel works with if quantified variables bind `path` events together."""
        search, chained = self.chained.search, self.chained
        run = new_path(len(self.fixed) + path, search.tables.pattern, search.conditions(chained.batch))
        return run, new_iterations(self.fixed, self.order, len(run.event), max(_ROOM, _ROOM * path // _PATH), chained.chain.needs)

    def _new_output(self, matches: int, path: int) -> MatchTable:
        """Return room for so many matches, one of which may bind `path` events."""
        search = self.chained.search
        return new_match_table(matches, matches * (search.tables.fewest + 2) + path, search.variable_count)

    def _outputs(self, new_output: Callable[[int, int], MatchTable], *, counting: bool) -> Iterator[tuple[MatchTable, EventPath]]:
        """Yield what each call of the kernel wrote, and its state.

        ``new_output(matches, path)`` gives room for matches, one of which binds `path` events.
        """
        chained = self.chained
        run, stack = self._scratch(_PATH)
        size = _SMALLEST_OUTPUT
        output = new_output(size, len(run.event))
        for rows in chained.rows():
            run.state[[PathState.CANDIDATE, PathState.DEPTH, PathState.PHASE]] = 0
            status = Status.OUTPUT_FULL
            while status != Status.FINISHED:
                status = self._advance(rows, stack, run, output, counting=counting)
                yield output, run
                if status == Status.PATH_FULL and run.state[PathState.DEPTH] + 1 < len(run.event):
                    stack = widen_lists(stack)
                elif status == Status.PATH_FULL:
                    run, stack = deepen_path(run), lengthen_path(stack)
                elif status == Status.OUTPUT_FULL:
                    size = max(1, min(4 * size, _LARGEST_OUTPUT // (chained.search.tables.fewest + 2)))
                    output = new_output(size, len(run.event))

    def _advance(
        self, rows: Indices, stack: Iterations, run: EventPath, output: MatchTable, *, counting: bool, steps: int | None = None
    ) -> Status:
        """Search on for a little more than `steps` steps, and return why the search stopped."""
        chained, search, batch = self.chained, self.chained.search, self.chained.batch
        buffered = Buffered(chained.buffers, chained.streams)
        criteria = Criteria(search.tables.pattern, search.conditions(batch), search.negations)
        mode = LazyMode(batch.own - batch.low, chained.starting, counting, steps or _STEPS_PER_CALL)
        status = enumerate_iterations(rows, buffered, criteria, self.uses, mode, stack, run, output)
        if status == Status.OVERFLOWED:
            raise search.overflow(failed_condition(run), self._first_bound(run))
        return status

    def _first_bound(self, run: EventPath) -> int:
        """Return the first of the events that are bound, as an ordered event."""
        return self.chained.batch.low + int(run.event[: max(int(run.state[PathState.DEPTH]), 1)].min())

    def _spend(self, run: EventPath, matches: int, events: int, match_start: Callable[[int], int]) -> None:
        """Account for matches and steps since the last call; ``match_start(i)`` is match i's first event."""

        def start_of(match: int) -> int:
            return match_start(match) if match < matches else self._first_bound(run)

        self.chained.search.budget.spend(matches, events, int(run.state[PathState.STEPS]), start_of)
        run.state[[PathState.STEPS, PathState.MATCHES, PathState.EVENTS]] = 0


def new_stream_counts(search: Search, batch: Batch) -> StartCounts:
    """Return, for each stream of a batch, what counting begins with.

    That is the end of the batch in place of a match's first event, and 0 matches.
    """
    streams = search.stream_count(batch)
    return StartCounts(np.full(streams, batch.high, np.int64), np.zeros(streams, np.int64))


def first_in_stream(low: int, starts: Indices, totals: Indices, spent: int, match: int) -> int:
    """Return the first event of a match, as an ordered event, in the stream of match `spent` + `match`."""
    return low + int(starts[entry_of_match(totals, spent + match)])

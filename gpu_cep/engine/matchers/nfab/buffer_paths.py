"""Read matches off the buffer of NFA^b; threads share the ends of a long batch of one stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches, concatenate_matches
from gpu_cep.engine.events.start_counts import StartCounts
from gpu_cep.engine.matchers.match_tables import failed_condition, new_count_table, new_match_table
from gpu_cep.engine.matchers.search import Search
from gpu_cep.engine.windows.candidates import count_parts
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.nfab.buffer_paths import BufferPaths, BufferWalk, PathEnds, deepen_walk, enumerate_paths, new_walk
from gpu_cep_kernels.nfab.match_buffer import MatchBuffer
from gpu_cep_kernels.rules.path_arrays import deepen_path, new_path
from gpu_cep_kernels.rules.tables import Conditions, Criteria, EventPath, MatchTable, PathState, Status

# Steps between two returns to Python, where a long walk can be interrupted and its budget checked.
_STEPS_PER_CALL = 1 << 20
# Events of a path that there is room for at first, and matches that a call writes at most.
_PATH, _LARGEST_OUTPUT = 64, 1 << 22
# Spans of ends for each thread: some ends have many more matches than others.
_SPANS_PER_THREAD = 4

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class BatchPaths:
    """The paths of a batch's buffer with their ends.

    ``earliest[e]`` is the first event whose window holds event e.
    """

    search: Search
    batch: Batch
    buffer: MatchBuffer
    ends: PathEnds
    earliest: Indices
    conditions: Conditions

    def matches(self) -> Matches:
        """Return all matches, in the order of their ends."""
        return concatenate_matches(self._read_spans(self._read_matches, _SPANS_PER_THREAD), self.search.variable_count)

    def count(self) -> StartCounts:
        """Return how many matches start at each event, ascending."""
        totals = np.zeros(len(self.earliest), np.int64)
        # each span takes an array over all events, so there is only one for each thread
        for starts, counts in self._read_spans(self._count_matches, 1):
            totals[starts] += counts
        starts = np.flatnonzero(totals)
        return StartCounts(starts, totals[starts])

    def _read_spans(self, read: Callable[[tuple[int, int]], _Read], spans_per_thread: int) -> list[_Read]:
        """Return what `read` gives for each span of ends, from the first to the last."""
        threads = self.search.threads
        return spread(read, slices(len(self.ends.node), spans_per_thread * threads if count_parts(self.batch) > 1 else 1), threads)

    def _read_matches(self, span: tuple[int, int]) -> Matches:
        """Return the matches that end in a span of ends."""
        reader, capacity, status, found = self._reader(span), span[1] - span[0] + 16, Status.OUTPUT_FULL, []
        variables, events_per_match = self.search.variable_count, self.search.tables.fewest + 2
        while status != Status.FINISHED:
            output = new_match_table(capacity, capacity * events_per_match + len(reader.walk.node), variables)
            status, taken, filled = reader.advance(output, counting=False)
            low = self.batch.low
            found.append(Matches(output.starts[:taken] + low, output.counts[:taken], output.events[:filled] + low))
            if status == Status.OUTPUT_FULL:
                capacity = min(2 * capacity, _LARGEST_OUTPUT)
        return concatenate_matches(found, variables)

    def _count_matches(self, span: tuple[int, int]) -> StartCounts:
        """Return how many of the matches that end in a span of ends start at each event."""
        totals = np.zeros(len(self.earliest), np.int64)
        output = new_count_table(totals, self.search.variable_count)
        reader, status = self._reader(span), Status.OUTPUT_FULL
        while status != Status.FINISHED:
            status, _, _ = reader.advance(output, counting=True)
        starts = np.flatnonzero(totals)
        return StartCounts(starts, totals[starts])

    def _reader(self, span: tuple[int, int]) -> _PathReader:
        run = new_path(_PATH, self.search.tables.pattern, self.conditions)
        run.state[PathState.CANDIDATE] = span[0]
        return _PathReader(self, span[1], run, new_walk(_PATH))


@dataclass(slots=True)
class _PathReader:
    """Reads the matches of a span of ends, up to the one before `end`.

    `run` and `walk` say how far it has come.
    """

    paths: BatchPaths
    end: int
    run: EventPath
    walk: BufferWalk

    def advance(self, output: MatchTable, *, counting: bool) -> tuple[Status, int, int]:
        """Read on; returns why it stopped, and the numbers of matches and of events that it wrote.

        If it stopped at a path that is too long, there is more room from now on.
        """
        paths, search, state = self.paths, self.paths.search, self.run.state
        read = BufferPaths(paths.buffer, PathEnds(*(column[: self.end] for column in paths.ends)))
        criteria = Criteria(search.tables.pattern, paths.conditions, search.negations)
        status = enumerate_paths(paths.earliest, counting, _STEPS_PER_CALL, read, criteria, self.walk, self.run, output)
        if status == Status.OVERFLOWED:
            raise search.overflow(failed_condition(self.run), paths.batch.low + int(self.run.event[0]))
        matches, events = int(state[PathState.MATCHES]), int(state[PathState.EVENTS])
        search.budget.spend(matches, events, int(state[PathState.STEPS]), partial(self._start_of, output.starts[:matches]))
        state[PathState.STEPS] = state[PathState.MATCHES] = state[PathState.EVENTS] = 0
        if status == Status.PATH_FULL:
            self.run, self.walk = deepen_path(self.run), deepen_walk(self.walk)
        return status, matches, events

    def _start_of(self, starts: Indices, match: int) -> int:
        """Return the first event of a match that was written, or else the start that the reader has come to."""
        if match < len(starts):
            return self.paths.batch.low + int(starts[match])
        buffer, current = self.paths.buffer, min(int(self.run.state[PathState.CANDIDATE]), self.end - 1)
        return self.paths.batch.low + int(buffer.latest[self.paths.ends.node[current]])

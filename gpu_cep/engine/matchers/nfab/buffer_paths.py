"""Matches read off the buffer of NFA^b: the ends of one stream's long batch are divided among threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches, concatenated
from gpu_cep.engine.matchers.search import ConditionOverflow, Search
from gpu_cep.engine.windows.candidates import parts_of
from gpu_cep.plan.event_plan import PlannedCondition
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.nfab.buffer_paths import PathEnds, Walk, deepen_walk, enumerate_paths, new_walk
from gpu_cep_kernels.nfab.match_buffer import MatchBuffer
from gpu_cep_kernels.rules.tables import (
    CANDIDATE,
    ERROR_CONDITION,
    EVENTS,
    FINISHED,
    MATCHES,
    OUTPUT_FULL,
    OVERFLOWED,
    PATH_FULL,
    STEPS,
    Conditions,
    EventPath,
    MatchTable,
    deepen_path,
    new_path,
)

# Steps back from an end between two returns to Python: a long walk can be interrupted, its budget checked.
_STEPS_PER_CALL = 1 << 20
_PATH = 64
_LARGEST_OUTPUT = 1 << 22
# Parts for each thread: some ends have many more matches than others.
_PARTS_PER_THREAD = 4

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of a batch's buffer, and where they end; ``earliest[e]`` is the first event whose window holds e."""

    search: Search
    batch: Batch
    buffer: MatchBuffer
    ends: PathEnds
    earliest: Indices
    conditions: Conditions

    def matches(self) -> Matches:
        """All matches, as they are found."""
        return concatenated(self._of_parts(self._matches_of, _PARTS_PER_THREAD), self._variables)

    def count(self) -> tuple[Indices, Indices]:
        """The events at which matches start, and how many start at each."""
        totals = np.zeros(len(self.earliest), np.int64)
        # each part has a number for every event: there are no more than threads
        for starts, counts in self._of_parts(self._counts_of, 1):
            totals[starts] += counts
        starts = np.flatnonzero(totals)
        return starts, totals[starts]

    @property
    def _variables(self) -> int:
        return len(self.search.tables.pattern.order)

    def _of_parts(self, found_in: Callable[[tuple[int, int]], _Found], parts_per_thread: int) -> list[_Found]:
        """What is found in some of the ends and in the next ones, up to the last."""
        threads = self.search.threads
        return spread(found_in, slices(len(self.ends.node), parts_per_thread * threads if parts_of(self.batch) > 1 else 1), threads)

    def _matches_of(self, part: tuple[int, int]) -> Matches:
        reader, capacity, status, found = self._reader(part), part[1] - part[0] + 16, OUTPUT_FULL, []
        while status != FINISHED:
            output = MatchTable(
                starts=np.empty(capacity, np.int64),
                counts=np.empty((capacity, self._variables), np.int32),
                events=np.empty(capacity * (self.search.tables.fewest + 2) + len(reader.walk.node), np.int64),
                totals=np.empty(0, np.int64),
            )
            status, taken, filled = reader.advance(output, counting=False)
            low = self.batch.low
            found.append(Matches(output.starts[:taken] + low, output.counts[:taken], output.events[:filled] + low))
            if status == OUTPUT_FULL:
                capacity = min(2 * capacity, _LARGEST_OUTPUT)
        return concatenated(found, self._variables)

    def _counts_of(self, part: tuple[int, int]) -> tuple[Indices, Indices]:
        nothing, totals = np.empty(0, np.int64), np.zeros(len(self.earliest), np.int64)
        output = MatchTable(nothing, np.empty((0, self._variables), np.int32), nothing, totals)
        reader, status = self._reader(part), OUTPUT_FULL
        while status != FINISHED:
            status, _, _ = reader.advance(output, counting=True)
        starts = np.flatnonzero(totals)
        return starts, totals[starts]

    def _reader(self, part: tuple[int, int]) -> _Reader:
        run = new_path(_PATH, self.search.tables.pattern, self.conditions)
        run.state[CANDIDATE] = part[0]
        return _Reader(self, part[1], run, new_walk(_PATH))


@dataclass(slots=True)
class _Reader:
    """Reads the matches that end at some ends, up to the one before `end`: `run` and `walk` say how far it has come."""

    paths: Paths
    end: int
    run: EventPath
    walk: Walk

    def advance(self, output: MatchTable, *, counting: bool) -> tuple[int, int, int]:
        """Read on, with more room where paths need it; returns why it stopped, and how many matches and events were written."""
        paths, search, state = self.paths, self.paths.search, self.run.state
        status = enumerate_paths(
            self.end, paths.earliest, counting, _STEPS_PER_CALL, paths.buffer, paths.ends,
            search.tables.pattern, paths.conditions, search.negations, self.walk, self.run, output,
        )  # fmt: skip
        if status == OVERFLOWED:
            raise overflow(search, paths.batch, self.run, int(self.run.event[0]))
        matches, events = int(state[MATCHES]), int(state[EVENTS])
        search.budget.spend(matches, events, int(state[STEPS]), partial(self._start_of, output.starts[:matches]))
        state[STEPS] = state[MATCHES] = state[EVENTS] = 0
        if status == PATH_FULL:
            self.run, self.walk = deepen_path(self.run), deepen_walk(self.walk)
        return int(status), matches, events

    def _start_of(self, starts: Indices, match: int) -> int:
        """The first event of a match that was written, or about where the reading stands."""
        if match < len(starts):
            return self.paths.batch.low + int(starts[match])
        buffer, current = self.paths.buffer, min(int(self.run.state[CANDIDATE]), self.end - 1)
        return self.paths.batch.low + int(buffer.latest[self.paths.ends.node[current]])


def overflow(search: Search, batch: Batch, run: EventPath, start: int) -> ConditionOverflow:
    """The overflow that ended `run`, in a window that starts at an event of the batch."""
    condition: PlannedCondition = search.tables.branch.conditions[int(run.state[ERROR_CONDITION]) - 1]
    return ConditionOverflow(condition, batch.low + start)

"""Run NFA^b over a batch: one pass follows all runs, then matches are read off the shared buffer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpu_cep.engine.accounting.match_budget import BudgetExceeded
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches
from gpu_cep.engine.events.start_counts import StartCounts
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.lowering.pattern_tables import STRATEGY
from gpu_cep.engine.matchers.match_tables import failed_condition
from gpu_cep.engine.matchers.nfab.buffer_counts import FilledBuffer, count_on_buffer, every_path_matches
from gpu_cep.engine.matchers.nfab.buffer_paths import BatchPaths
from gpu_cep.engine.matchers.search import Search
from gpu_cep.engine.windows.batch_events import BranchEvents
from gpu_cep.engine.windows.candidates import BatchWindows, BranchWindows, branch_windows, prune_windows
from gpu_cep.engine.windows.state_counts import sum_counts
from gpu_cep.plan.event_plan import PlannedCondition
from gpu_cep_kernels.nfab.buffer_paths import PathEnds, path_ends
from gpu_cep_kernels.nfab.growth import EventWindows, grow_runs
from gpu_cep_kernels.nfab.match_buffer import LINKED, MatchBuffer, MatchEnds, new_buffer, new_ends
from gpu_cep_kernels.nfab.merged_runs import FLOATS, INTS, VECTORS, MergedRuns, ReadTable, new_runs
from gpu_cep_kernels.nfab.pass_runs import Pass, PassState
from gpu_cep_kernels.rules.path_arrays import double_rows, new_path, new_values
from gpu_cep_kernels.rules.tables import ONCE, AggregateValues, Conditions, EventPath, EventTable, PatternTable, Status

# Offers of events to runs between two returns to Python, where the pass can be interrupted.
_STEPS_PER_CALL = 1 << 20
# The fewest nodes, links and ends that there is room for at first, and the runs.
_FEWEST_NODES, _FIRST_RUNS = 1 << 12, 1 << 7
# The fewest points of a trace.
_TRACE_POINTS = 16

# The bank that each instruction loads from.
_BANKS = {"load_int": INTS, "load_float": FLOATS, "load_vector": VECTORS}


@dataclass(frozen=True, slots=True)
class Nfab:
    """Finds a branch's matches by NFA^b, under every strategy but the robust one, which looks ahead."""

    search: Search

    def find_in(self, batch: Batch, branch: BranchEvents) -> Matches:
        """Return the matches that start in the batch, in order of first event, last event and bindings."""
        finished = _run_pass(self.search, batch, branch.windows)
        with self.search.profile.stage("matching"):
            matches = finished.paths().matches().sort_by_starts(batch.low, batch.own)
        self.search.profile.add("matches", len(matches))
        return matches

    def count_in(self, batch: Batch, branch: BranchEvents) -> StartCounts:
        """Return the numbers of matches, at ascending events.

        Where every path is a match and all are kept, those of a stream are counted at the first of their starts.
        """
        by_stream = self.search.plan.settings.keeps_all and every_path_matches(self.search)
        finished = _run_pass(self.search, batch, branch.windows)
        with self.search.profile.stage("matching"):
            starts, totals = finished.count_paths() if by_stream else finished.paths().count()
        self.search.profile.add("matches", sum_counts(totals))
        return StartCounts(starts + batch.low, totals)

    def sample(self, batch: Batch, branch: BranchWindows, starts: Indices, end: int, offers: int) -> Indices:
        """Return int64 [point, 2]: an event of the batch, and how often earlier events were offered to runs.

        Runs begin at `starts`. The pass ends before event `end`, or once a few
        more than `offers` offers were made. `branch` are the branch's windows.
        """
        return _new_pass(self.search, batch, branch, starts, None, end).trace(end, offers)


class BufferTooLarge(Exception):
    """The buffer of a pass has more nodes than it may have."""


class BatchBuffer(NamedTuple):
    """The buffer of a batch, and where its paths end."""

    buffer: MatchBuffer
    ends: PathEnds


def build_buffer(search: Search, batch: Batch, windows: BatchWindows, most_nodes: int) -> BatchBuffer:
    """Return the buffer after a pass over all events of the batch.

    Raises
    ------
    BufferTooLarge
        It has more than `most_nodes` nodes, and more than there is room for at first.
    """
    branch = branch_windows(windows, search.ordered, batch, search.tables, search.own, search.profile)
    finished = _run_pass(search, batch, branch, most_nodes)
    # links are numbered apart from nodes
    nodes, links = int(finished.state[PassState.NODES]), int(finished.state[PassState.LINKS])
    buffer = MatchBuffer(*(array[: links if name in LINKED else nodes] for name, array in finished.room.buffer._asdict().items()))
    return BatchBuffer(buffer, finished.ends())


def _run_pass(search: Search, batch: Batch, branch: BranchWindows, most_nodes: int | None = None) -> _BatchPass:
    """Return the pass after it has taken all events of the batch; `most_nodes` bounds its buffer."""
    candidates = prune_windows(search.plan, branch, search.tables, search.profile)
    finished = _new_pass(search, batch, branch, candidates.starts, most_nodes)
    with search.profile.stage("matching"):
        finished.take_all()
    search.profile.add("nodes", int(finished.state[PassState.NODES]))
    return finished


class _Room(NamedTuple):
    """The arrays that a pass writes into; they grow."""

    buffer: MatchBuffer
    aggregates: AggregateValues
    ends: MatchEnds
    runs: MergedRuns


@dataclass
class _BatchPass:
    """A pass over one batch: `room` and `state` say how far it has come.

    `windows` are the branch's. ``earliest[e]`` is the first event whose window
    holds event e. ``starting[e]`` says whether runs begin at e. `reads` are
    the columns that conditions read. `most_nodes` bounds the buffer (None:
    memory alone does).
    """

    search: Search
    batch: Batch
    windows: BranchWindows
    earliest: Indices
    starting: np.ndarray[Any, np.dtype[np.bool_]]
    events: EventTable
    conditions: Conditions
    reads: ReadTable
    scratch: EventPath
    room: _Room
    state: Indices
    most_nodes: int | None

    def take_all(self) -> None:
        """Take all events of the batch."""
        status = Status.STEPS_SPENT
        while status != Status.FINISHED:
            status = self._advance(len(self.earliest), _STEPS_PER_CALL)
            self.search.budget.spend(0, 0, int(self.state[PassState.OFFERED]), lambda _: self._current)
            self.state[PassState.OFFERED] = 0

    def trace(self, end: int, offers: int) -> Indices:
        """Take events before `end` until `offers` offers are made.

        Returns int64 [point, 2]: an event, and the offers made before it.
        """
        found, status = [(0, 0)], Status.STEPS_SPENT
        while status != Status.FINISHED and found[-1][1] < offers:
            status = self._advance(end, offers // _TRACE_POINTS)
            found.append((min(int(self.state[PassState.EVENT]), end), int(self.state[PassState.OFFERED])))
        return np.array(found, np.int64)

    def _advance(self, end: int, offers: int) -> Status:
        """Take events before `end` until a few more than `offers` offers are made.

        Returns why the kernel stopped. Unless it has finished, there is now
        room for at least one more event.
        """
        tables, strategy = self.search.tables, STRATEGY[self.search.plan.strategy]
        buffer, aggregates, ends, runs = self.room
        scratch = self.scratch._replace(event=buffer.event, bound_to=buffer.bound_to, earlier=buffer.earlier, aggregates=aggregates)
        windows = EventWindows(self.earliest, self.windows.limits.stream_end, self.starting)
        work = Pass(scratch, buffer, runs, self.reads, ends, self.state)
        status = grow_runs(end, windows, strategy, offers, self.events, tables.pattern, self.conditions, work)
        if status == Status.OVERFLOWED:
            raise self.search.overflow(failed_condition(self.scratch), self.batch.low + int(self.state[PassState.FAULT]))
        if status != Status.FINISHED:
            self._make_room()
        return status

    def paths(self) -> BatchPaths:
        """Return the paths of the buffer, once all events are taken."""
        return BatchPaths(self.search, self.batch, self.room.buffer, self.ends(), self.earliest, self.conditions)

    def ends(self) -> PathEnds:
        """Return where the paths of the buffer end, once all events are taken."""
        return path_ends(int(self.state[PassState.NODES]), int(self.state[PassState.ENDS]), self.room.buffer, self.room.ends)

    def count_paths(self) -> StartCounts:
        """Return the number of matches of each stream that has any, at the first of their starts."""
        batch, search = self.batch, self.search

        def spend(matches: int, steps: int, start_of: Callable[[int], int]) -> None:
            search.budget.spend(matches, 0, steps, lambda match: batch.low + start_of(match))

        filled = FilledBuffer(self.room.buffer, self.room.ends, int(self.state[PassState.NODES]), int(self.state[PassState.ENDS]))
        return count_on_buffer(filled, self.earliest, self.windows.limits.stream_end, search.stream_count(batch), spend)

    @property
    def _current(self) -> int:
        """Return the ordered event that the pass has come to."""
        return self.batch.low + min(int(self.state[PassState.EVENT]), len(self.earliest) - 1)

    def _make_room(self) -> None:
        """Double the arrays that may be too small for what one more event adds.

        Raises
        ------
        BufferTooLarge
            The buffer would have more than `most_nodes`.
        BudgetExceeded
            The arrays take more memory than the budget allows.
        """
        buffer, aggregates, ends, runs = self.room
        state = self.state
        most = (int(state[PassState.ACTIVE]) + 1) * runs.bound.shape[1]
        if state[PassState.NODES] + most > len(buffer.event) or state[PassState.LINKS] + most > len(buffer.node):
            if self.most_nodes is not None and len(buffer.event) > self.most_nodes:
                raise BufferTooLarge
            buffer = MatchBuffer(*(double_rows(array) for array in buffer))
            aggregates = AggregateValues(*(double_rows(array, 1) for array in aggregates))
        if state[PassState.ENDS] + most + state[PassState.ACTIVE] > len(ends.node):
            ends = MatchEnds(*(double_rows(array) for array in ends))
        if most > state[PassState.FREE] or state[PassState.ACTIVE] + most > len(runs.active):
            runs = _double_runs(runs, state)
        self.room = _Room(buffer, aggregates, ends, runs)
        taken = sum(array.nbytes for part in self.room for array in part)
        if taken > self.search.budget.memory:
            memory = f"{self.search.budget.memory / 2**30:.1f} GiB"
            raise BudgetExceeded(self._current, f"the runs and the match buffer of nfab take more than {memory}; use a narrower pattern")


def _new_pass(
    search: Search, batch: Batch, windows: BranchWindows, starts: Indices, most_nodes: int | None, end: int | None = None
) -> _BatchPass:
    """Return a pass over the events of a batch before `end` (None: over all), at its first event; runs begin at `starts`."""
    tables = search.tables
    size = windows.next_events.occurrence.shape[1] - 2 if end is None else end
    events = np.arange(size)
    starting = np.zeros(size, np.bool_)
    starting[starts] = True
    conditions = search.conditions(batch)
    reads = _read_table(search)
    state = np.zeros(len(PassState), np.int64)
    state[PassState.FREE], state[PassState.FAULT], state[PassState.FIRST] = _FIRST_RUNS, -1, -1
    state[PassState.CUTS] = search.nfab_cuts_runs
    return _BatchPass(
        search=search,
        batch=batch,
        windows=windows,
        earliest=np.searchsorted(windows.ends(events), events, side="right").astype(np.int64),
        starting=starting,
        events=search.event_table(batch, windows),
        conditions=conditions,
        reads=reads,
        scratch=new_path(1, tables.pattern, conditions),
        room=_new_room(size, tables.pattern, conditions, _signature_length(tables.pattern, conditions, reads)),
        state=state,
        most_nodes=most_nodes,
    )


def _read_table(search: Search) -> ReadTable:
    """Return the columns that the branch's conditions read, as their programs load them."""
    tables = search.tables
    found = [_loads(condition) for condition in tables.branch.conditions]
    flat = np.array([read for own in found for read in own], np.int64).reshape(-1, 3)
    listed = tables.conditions
    decides = np.zeros((len(found), len(listed.first) - 1), np.bool_)
    decides[listed.listed, np.repeat(np.arange(len(listed.first) - 1), np.diff(listed.first))] = True
    once = np.zeros_like(decides)
    once[np.repeat(np.arange(len(found)), np.diff(listed.part_first)), listed.variable] = listed.spread == ONCE
    return ReadTable(
        first=offsets([len(own) for own in found]),
        bank=flat[:, 0].copy(),
        column=flat[:, 1].copy(),
        role=flat[:, 2].copy(),
        decides=decides,
        once=once,
        live=np.zeros(len(found), np.int64),
        open=np.zeros(len(tables.pattern.order), np.bool_),
    )


def _loads(condition: PlannedCondition) -> list[tuple[int, int, int]]:
    """Return (bank, column, role) of each load of a condition's program, each once."""
    loads = ((_BANKS[name], column, role) for name, _, column, role in condition.program.code if name in _BANKS)
    return list(dict.fromkeys(loads))


def _signature_length(pattern: PatternTable, conditions: Conditions, reads: ReadTable) -> int:
    """Return the most words that the signature of a run can have."""
    values = np.diff(conditions.aggregates.first)[conditions.table.variable]
    return 2 * len(pattern.order) + 3 * len(reads.role) + int((1 + 4 * values).sum()) + 1


def _new_room(size: int, pattern: PatternTable, conditions: Conditions, words: int) -> _Room:
    """Return room for a node, a link and an end for each of `size` events, or for more.

    What is not written takes no memory.
    """
    variables, values, nodes = len(pattern.order), len(conditions.aggregates.step), max(size, _FEWEST_NODES)
    return _Room(new_buffer(nodes), new_values(values, nodes), new_ends(nodes), new_runs(_FIRST_RUNS, variables, words))


def _double_runs(runs: MergedRuns, state: Indices) -> MergedRuns:
    """Return room for twice as many runs; the numbers of the new ones are free."""
    number = len(runs.active)
    kept = runs._replace(**{name: double_rows(array) for name, array in runs._asdict().items() if name != "buckets"})
    free = int(state[PassState.FREE])
    kept.free[free : free + number] = np.arange(number, 2 * number)
    state[PassState.FREE] = free + number
    return kept

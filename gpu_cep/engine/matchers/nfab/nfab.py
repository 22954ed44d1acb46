"""NFA^b over the batches: all runs at once in one pass, then the matches from the shared buffer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpu_cep.engine.accounting.budget import BudgetExceeded
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches
from gpu_cep.engine.lowering.pattern_tables import STRATEGY, offsets
from gpu_cep.engine.matchers.nfab.buffer_counts import counted_on_buffer, decided_by_paths
from gpu_cep.engine.matchers.nfab.buffer_paths import Paths, overflow
from gpu_cep.engine.matchers.search import Search
from gpu_cep.engine.windows.candidates import Windows, branch_windows, prune_windows
from gpu_cep.engine.windows.state_counts import sum_of
from gpu_cep.plan.event_plan import PlannedCondition
from gpu_cep_kernels.nfab.buffer_paths import PathEnds, path_ends
from gpu_cep_kernels.nfab.growth import grow_runs
from gpu_cep_kernels.nfab.match_buffer import LINKED, MatchBuffer, MatchEnds, new_buffer, new_ends
from gpu_cep_kernels.nfab.merged_runs import FLOATS, INTS, VECTORS, MergedRuns, ReadTable, new_runs
from gpu_cep_kernels.nfab.pass_runs import ACTIVE, CUTS, ENDS, EVENT, FAULT, FIRST, FREE, LINKS, NODES, OFFERED, PASS_STATE, Pass
from gpu_cep_kernels.rules.tables import (
    FINISHED,
    ONCE,
    OVERFLOWED,
    AggregateValues,
    Conditions,
    EventPath,
    EventTable,
    PatternTable,
    double_rows,
    new_path,
    new_values,
)

# Offers of an event to a run between two returns to Python: a long pass can be interrupted, its budget checked.
_STEPS_PER_CALL = 1 << 20
# The fewest nodes, links and ends, and the runs, that there is room for at first.
_FEWEST_NODES, _RUNS = 1 << 12, 1 << 7
# In so many parts a sample is traced, at least.
_TRACED = 16

_BANKS = {"load_int": INTS, "load_float": FLOATS, "load_vector": VECTORS}


@dataclass(frozen=True, slots=True)
class Nfab:
    """Finds the matches of a branch by NFA^b, under every strategy but the robust one, which looks ahead."""

    search: Search

    def find_in(self, batch: Batch, shared: Windows) -> Matches:
        """The matches that start in the batch, in order of first event, last event and bindings."""
        grown = _grown(self.search, batch, shared)
        with self.search.profile.stage("matching"):
            matches = grown.paths().matches().sorted_by_starts(batch.low, batch.own)
        self.search.profile.add("matches", len(matches))
        return matches

    def count_in(self, batch: Batch, shared: Windows) -> tuple[Indices, Indices]:
        """Starts of matches, ascending, and the number of matches at each: all of a stream at its first one, where paths decide them."""
        grown = _grown(self.search, batch, shared)
        with self.search.profile.stage("matching"):
            starts, totals = grown.count_paths() if decided_by_paths(self.search) else grown.paths().count()
        self.search.profile.add("matches", sum_of(totals))
        return starts + batch.low, totals

    def sample(self, batch: Batch, windows: Windows, starts: Indices, end: int, offers: int) -> Indices:
        """How often the first events of the batch are offered to runs that begin at `starts`: [event, offers before it], for some events.

        As many as little more than so many `offers` suffice for, and none from `end` on.
        """
        return _new_pass(self.search, batch, windows, starts, None).trace(end, offers)


class BufferTooLarge(Exception):
    """The buffer of a pass has more nodes than were asked for."""


class GrownBuffer(NamedTuple):
    """The buffer of a batch, and where its paths end."""

    buffer: MatchBuffer
    ends: PathEnds


def grown_buffer(search: Search, batch: Batch, shared: Windows, most_nodes: int) -> GrownBuffer:
    """The buffer once all events of the batch are taken.

    Raises
    ------
    BufferTooLarge
        It has more than `most_nodes`, and the fewest that there is room for.
    """
    grown = _grown(search, batch, shared, most_nodes)
    # links are numbered apart from nodes
    nodes, links = int(grown.state[NODES]), int(grown.state[LINKS])
    buffer = MatchBuffer(*(array[: links if name in LINKED else nodes] for name, array in grown.room.buffer._asdict().items()))
    return GrownBuffer(buffer, grown.ends())


def _grown(search: Search, batch: Batch, shared: Windows, most_nodes: int | None = None) -> _Pass:
    windows = branch_windows(shared, search.ordered, batch, search.tables, search.own, search.profile)
    candidates = prune_windows(search.plan, windows, search.tables, search.profile)
    grown = _new_pass(search, batch, windows, candidates.starts, most_nodes)
    with search.profile.stage("matching"):
        grown.run()
    search.profile.add("nodes", int(grown.state[NODES]))
    return grown


class _Room(NamedTuple):
    """What a pass writes, in arrays that grow."""

    buffer: MatchBuffer
    aggregates: AggregateValues
    ends: MatchEnds
    runs: MergedRuns


@dataclass
class _Pass:
    """One batch's pass: `room` and `state` say how far it has come; `most_nodes` bounds its buffer, if that is to be bounded."""

    search: Search
    batch: Batch
    windows: Windows
    earliest: Indices
    starting: np.ndarray[Any, np.dtype[np.bool_]]
    events: EventTable
    conditions: Conditions
    reads: ReadTable
    scratch: EventPath
    room: _Room
    state: Indices
    most_nodes: int | None

    def run(self) -> None:
        """Take all events."""
        status = -1
        while status != FINISHED:
            status = self._advance(len(self.earliest), _STEPS_PER_CALL)
            self.search.budget.spend(0, 0, int(self.state[OFFERED]), lambda _: self._current)
            self.state[OFFERED] = 0

    def trace(self, end: int, offers: int) -> Indices:
        """Take events before `end`, as long as offers last: [event, offers before it], for some of them."""
        found, status = [(0, 0)], -1
        while status != FINISHED and found[-1][1] < offers:
            status = self._advance(end, offers // _TRACED)
            found.append((min(int(self.state[EVENT]), end), int(self.state[OFFERED])))
        return np.array(found, np.int64)

    def _advance(self, end: int, offers: int) -> int:
        """Take events before `end`, with little more than so many offers to runs, and make room for more; returns why it stopped."""
        tables, strategy = self.search.tables, STRATEGY[self.search.plan.strategy]
        buffer, aggregates, ends, runs = self.room
        scratch = self.scratch._replace(event=buffer.event, bound_to=buffer.bound_to, earlier=buffer.earlier, aggregates=aggregates)
        status = grow_runs(
            end, self.earliest, self.windows.stream_end, self.starting, strategy, offers,
            self.events, tables.pattern, self.conditions, self.reads, Pass(scratch, buffer, runs, ends, self.state),
        )  # fmt: skip
        if status == OVERFLOWED:
            raise overflow(self.search, self.batch, self.scratch, int(self.state[FAULT]))
        if status != FINISHED:
            self._make_room()
        return int(status)

    def paths(self) -> Paths:
        """The paths of the buffer, once all events are taken."""
        return Paths(self.search, self.batch, self.room.buffer, self.ends(), self.earliest, self.conditions)

    def ends(self) -> PathEnds:
        """Where these paths end."""
        return path_ends(int(self.state[NODES]), int(self.state[ENDS]), self.room.buffer, self.room.ends)

    def count_paths(self) -> tuple[Indices, Indices]:
        """The first start of a match in each stream that has one, and the number of its matches, none of which is read off."""
        batch = self.batch
        first, last = np.searchsorted(self.search.ordered.offsets, [batch.low, batch.high - 1], side="right")

        def spend(matches: int, steps: int, start_of: Callable[[int], int]) -> None:
            self.search.budget.spend(matches, 0, steps, lambda match: batch.low + start_of(match))

        nodes, ends = int(self.state[NODES]), int(self.state[ENDS])
        streams = int(last - first) + 1
        buffer, matched = self.room.buffer, self.room.ends
        return counted_on_buffer(buffer, matched, nodes, ends, self.earliest, self.windows.stream_end, streams, spend)

    @property
    def _current(self) -> int:
        """The event that the pass has come to."""
        return self.batch.low + min(int(self.state[EVENT]), len(self.earliest) - 1)

    def _make_room(self) -> None:
        """Double what may not hold all that one more event adds."""
        buffer, aggregates, ends, runs = self.room
        state = self.state
        most = (int(state[ACTIVE]) + 1) * runs.bound.shape[1]
        if state[NODES] + most > len(buffer.event) or state[LINKS] + most > len(buffer.node):
            if self.most_nodes is not None and len(buffer.event) > self.most_nodes:
                raise BufferTooLarge
            buffer = MatchBuffer(*(double_rows(array) for array in buffer))
            aggregates = AggregateValues(*(double_rows(array, 1) for array in aggregates))
        if state[ENDS] + most + state[ACTIVE] > len(ends.node):
            ends = MatchEnds(*(double_rows(array) for array in ends))
        if most > state[FREE] or state[ACTIVE] + most > len(runs.active):
            runs = _more_runs(runs, state)
        self.room = _Room(buffer, aggregates, ends, runs)
        taken = sum(array.nbytes for part in self.room for array in part)
        if taken > self.search.budget.memory:
            memory = f"{self.search.budget.memory / 2**30:.1f} GiB"
            raise BudgetExceeded(self._current, f"the runs and the match buffer of nfab take more than {memory}; use a narrower pattern")


def _new_pass(search: Search, batch: Batch, windows: Windows, starts: Indices, most_nodes: int | None) -> _Pass:
    tables = search.tables
    size = windows.occurrence.shape[1] - 2
    events = np.arange(size)
    starting = np.zeros(size, np.bool_)
    starting[starts] = True
    conditions = search.conditions(batch)
    reads = _read_table(search)
    state = np.zeros(PASS_STATE, np.int64)
    state[FREE], state[FAULT], state[FIRST] = _RUNS, -1, -1
    state[CUTS] = search.passes_cut
    return _Pass(
        search=search,
        batch=batch,
        windows=windows,
        earliest=np.searchsorted(windows.ends(events), events, side="right").astype(np.int64),
        starting=starting,
        events=search.events(batch, windows),
        conditions=conditions,
        reads=reads,
        scratch=new_path(1, tables.pattern, conditions),
        room=_new_room(size, tables.pattern, conditions, _signature_words(tables.pattern, conditions, reads)),
        state=state,
        most_nodes=most_nodes,
    )


def _read_table(search: Search) -> ReadTable:
    """What the branch's conditions read, as their programs load it."""
    tables = search.tables
    found = [_reads(condition) for condition in tables.branch.conditions]
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


def _reads(condition: PlannedCondition) -> list[tuple[int, int, int]]:
    """(bank, column, role) of each load of a condition's program, once."""
    loads = ((_BANKS[name], column, role) for name, _, column, role in condition.program.code if name in _BANKS)
    return list(dict.fromkeys(loads))


def _signature_words(pattern: PatternTable, conditions: Conditions, reads: ReadTable) -> int:
    """How long the signature of a run can be."""
    known = np.diff(conditions.aggregates.first)[conditions.table.variable]
    return 2 * len(pattern.order) + 3 * len(reads.role) + int((1 + 4 * known).sum()) + 1


def _new_room(size: int, pattern: PatternTable, conditions: Conditions, words: int) -> _Room:
    """Room for a node, a link and an end for each of `size` events, if not more; what is not written takes no memory."""
    variables, values, nodes = len(pattern.order), len(conditions.aggregates.step), max(size, _FEWEST_NODES)
    return _Room(new_buffer(nodes), new_values(values, nodes), new_ends(nodes), new_runs(_RUNS, variables, words))


def _more_runs(runs: MergedRuns, state: Indices) -> MergedRuns:
    """Twice as many runs; the numbers of the new ones are free."""
    number = len(runs.active)
    kept = runs._replace(**{name: double_rows(array) for name, array in runs._asdict().items() if name != "buckets"})
    free = int(state[FREE])
    kept.free[free : free + number] = np.arange(number, 2 * number)
    state[FREE] = free + number
    return kept

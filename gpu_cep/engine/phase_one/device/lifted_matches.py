"""Read the matches of a contiguous sequence off its lifted labels on a card, batch by batch.

They come back as ranges of events, with the events that they bind; not those that `after_match` never takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate

import numpy as np

from gpu_cep.analysis.bound import CountWindow
from gpu_cep.engine.accounting.match_budget import Meter
from gpu_cep.engine.events.batches import Batch, window_length
from gpu_cep.engine.events.matches import Counts, Indices, ones
from gpu_cep.engine.events.own_events import WHOLE, Own
from gpu_cep.engine.events.runs import ContiguousMatches, concatenate_runs
from gpu_cep.engine.events.start_counts import StartCounts
from gpu_cep.engine.events.window_names import name_windows
from gpu_cep.engine.lowering.column_programs import is_column_program
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory
from gpu_cep.engine.phase_one.device.condition_columns import bank_on_device
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.disjoint_matches import begins_stream, decides_alone, disjoint_matches, keeps_disjoint
from gpu_cep.engine.phase_one.device.event_sources import CopiedEvents, EventSource, unite_copies
from gpu_cep.engine.phase_one.device.order_events import count_in_streams, stream_begins
from gpu_cep.engine.phase_one.run import PhaseOne
from gpu_cep.engine.windows.lifted_labels import (
    LiftedLabels,
    NeighbourEvents,
    counts_by_ends,
    first_singles,
    labels_leave_a_choice,
    lift_labels,
    sequence_over,
    variable_bits,
)
from gpu_cep.plan.event_plan import BankLayout, EventPlan, PlannedBranch
from gpu_cep_kernels.device.interface import Array
from gpu_cep_kernels.device.primitives import entering_events, events_in_ranges, first_without
from gpu_cep_kernels.labels_decide.runs import Sequence, count_bound, find_last_events
from gpu_cep_kernels.rules.tables import ColumnBank

# Bytes per event beside its labels and what conditions read: row, stream and time; flags and sums; the start and the end of a match.
_EVENT, _MATCH = 4 + 4 + 8 + 4 * 8, 8 + 4 + 2 * 8
# The same of several branches while each is lifted: where the first match ends, or whether an event is held.
_OF_BRANCHES = 4
# Columns that a condition computes at a time.
_COMPUTED = 4
_NO_EVENTS = np.empty(0, np.int64)


def reads_lifted(plan: EventPlan) -> bool:
    """Return whether a card may read the matches of a plan off its lifted labels.

    Its conditions call no function of the CPU. Each start has one match of a branch at most.
    """
    asked = plan.settings.limit_per_start is None and plan.settings.output != "compressed"
    return asked and "lift" in plan.pruning and all(map(_is_lifted, plan.branches))


def _is_lifted(branch: PlannedBranch) -> bool:
    """Return whether a card may lift the conditions of a branch."""
    return branch.lifted is not None and not any(condition.program.calls for condition in branch.conditions)


def lifted_events(run: DeviceRun, source: EventSource, memory: DeviceMemory) -> int:
    """Return the most events of a batch whose labels are lifted."""
    lifting = max(_bytes_per_event(run.plan.layout, tables) for tables in run.tables)
    return memory.lifted_events(source.resident, lifting + (_OF_BRANCHES if len(run.tables) > 1 else 0))


def read_on_device(run: DeviceRun, source: EventSource, batches: list[Batch]) -> PhaseOne | None:
    """Return the matches of a single branch with the events that they bind, or how many they are; None if labels leave a choice."""
    plan, (tables,) = run.plan, run.tables
    assert isinstance(plan, EventPlan), "situations are not lifted"
    reader = BranchReader(run, plan, tables, run.reported.own.on(run.device), source, Meter(run.budget))
    found, counting = [], _are_counted(plan, source, batches)
    # with `ends`, runs of slices are compared by their places afterwards
    compared = plan.settings.after_match == "skip_past_last" or plan.ends
    numbered = bool(compared) and not all(begins_stream(source, batch) for batch in batches)
    for batch in batches:
        part = reader.count(batch) if counting else reader.find(batch, numbered)
        if part is None:
            reader.meter.take_back()
            return None
        found.append(part)
    run.profile.add("matches", reader.meter.matches)
    return _unite(run, source, tables, found, counting)


def _are_counted(plan: EventPlan, source: EventSource, batches: list[Batch]) -> bool:
    """Return whether the device counts the matches that are kept; else the host takes them from those that come back."""
    if plan.settings.output != "count" or plan.ends:
        return False
    if plan.settings.after_match != "skip_past_last":
        return True
    return keeps_disjoint(plan) and all(decides_alone(plan, source, batch) for batch in batches)


def _bytes_per_event(layout: BankLayout, tables: MatcherTables) -> int:
    """Return the bytes that lifting takes per event of a batch, but for its labels."""
    variables, programs = len(tables.pattern.order), [condition.program for condition in tables.branch.conditions]
    # a program that is run by columns needs registers only where an integer overflows, which then is retried with less
    registers = 0 if all(map(is_column_program, programs)) else tables.programs.registers
    columns = len(layout.ints) + len(layout.floats) + len(layout.derived) + 2 + _COMPUTED + 64 * len(layout.vectors)
    return _EVENT + _MATCH + 8 * columns + 4 * variables + 17 * registers


@dataclass(frozen=True, slots=True)
class _Found:
    """The matches of a batch as ranges of `events`; if they are counted, how many stand at each of these (`totals`) instead.

    `numbers` are those of the events among all, if matches of several batches are to be compared (None: they are not).
    """

    events: CopiedEvents | None = None
    numbers: Indices | None = None
    runs: ContiguousMatches | None = None
    totals: Indices = field(default_factory=lambda: _NO_EVENTS)


_NOTHING = _Found()


@dataclass(frozen=True, slots=True)
class DeviceRanges:
    """The matches of a branch in a batch on the card: their first and last events, and the table and windows that they were read by."""

    first: Array
    last: Array
    sequence: Sequence
    clock: Array
    length: np.generic


@dataclass(frozen=True, slots=True)
class BranchReader:
    """Reads the matches of a branch off the labels of batches."""

    run: DeviceRun
    plan: EventPlan
    tables: MatcherTables
    own: Own
    source: EventSource
    meter: Meter

    def find(self, batch: Batch, numbered: bool) -> _Found | None:
        """Return the matches that start in a batch, with the events that they bind, `numbered`; None if labels leave a choice."""
        found, device = self.read(batch), self.run.device
        if found is None:
            return None
        if not found.first.size:
            return _NOTHING
        with self.run.profile.stage("candidates back"):
            held = events_in_ranges(device.xp, found.first, found.last, batch.high - batch.low)
            places = device.xp.cumsum(held, dtype=np.int64) - 1
            first, last = device.download(places[found.first]), device.download(places[found.last])
            runs = ContiguousMatches(first, last, self.counts(found, first, last))
            events = device.xp.flatnonzero(held) + batch.low
            return _Found(self.source.copy(events), device.download(events) if numbered else None, runs)

    def count(self, batch: Batch) -> _Found | None:
        """Return how many matches start in each stream of a batch, at the first start there; None if labels leave a choice."""
        found, device = self.read(batch), self.run.device
        if found is None:
            return None
        number = int(found.first.size)
        self.account(batch, found.first, 0)
        if not number:
            return _NOTHING
        with self.run.profile.stage("candidates back"):
            begins, totals = count_in_streams(device, self.source.streams(batch.low, batch.high), found.first)
            return _Found(self.source.copy(found.first[begins] + batch.low), totals=totals)

    @property
    def _variables(self) -> int:
        return len(self.tables.pattern.order)

    def _with_first(self, events: Array) -> Array:
        """Return events behind event 0."""
        xp = self.run.device.xp
        return xp.append(xp.zeros(1, events.dtype), events)

    def bank(self, batch: Batch) -> ColumnBank:
        """Return what conditions read of the events of a batch."""
        rows = self.source.rows(batch.low, batch.high)
        return bank_on_device(self.run.columns, self.plan.layout, rows, self.run.device, self.run.threads)

    def read(self, batch: Batch, shared: ColumnBank | None = None) -> DeviceRanges | None:
        """Return the matches that start in a batch; None if labels leave a choice. `shared` is the bank that other branches read, too."""
        times, words = self.source.part(batch.low, batch.high)
        rows = self.source.rows(batch.low, batch.high)
        with self.run.profile.stage("lift"):
            labels = self._lift(batch, times, words, self.bank(batch) if shared is None else shared)
        if labels is None:
            return None
        with self.run.profile.stage("matching"):
            return self._ranges(batch, times, rows, labels)

    def _lift(self, batch: Batch, times: Array, words: Array, bank: ColumnBank) -> LiftedLabels | None:
        """Return the lifted labels of a batch; None if they leave a choice."""
        device, plan = self.run.device, self.plan
        tied = plan.query.ties == "strict" and self.source.has_ties()
        # nothing before a batch's first event matters to matches that start in it
        begins = self._with_first(stream_begins(device, self.source.streams(batch.low, batch.high)))
        labels = lift_labels(self.tables, NeighbourEvents(device, words[0], begins, times if tied else times[:0], bank))
        return None if labels is None or labels_leave_a_choice(self.tables, labels) else labels

    def _ranges(self, batch: Batch, times: Array, rows: Array, labels: LiftedLabels) -> DeviceRanges:
        """Return the matches that start at own events of a batch."""
        device, xp = self.run.device, self.run.device.xp
        sequence = sequence_over(device, self.tables, labels, partial(first_without, xp))
        bits = variable_bits(self.tables, labels.enters)[: first_singles(self.tables)]
        starts = entering_events(xp, labels.enters, bits, batch.own - batch.low)
        if starts.size and self.own != WHOLE:
            starts = starts[self.own.holds(times[starts], rows[starts])]
        counted = isinstance(self.plan.query.window, CountWindow)
        clock = xp.arange(times.size, dtype=np.uint64) if counted else times
        length = window_length(self.plan, clock.dtype)
        last = xp.empty(starts.size, np.int32)
        device.launch(find_last_events, starts.size, starts, clock, length, sequence, last)
        matched = xp.flatnonzero(last >= 0)
        starts, last = starts[matched], last[matched]
        # what conditions computed was let go, and what was matched now is: that is more than taking matches apart takes
        del matched
        if keeps_disjoint(self.plan):
            kept = disjoint_matches(device, starts, last, alone=decides_alone(self.plan, self.source, batch))
            starts, last = starts[kept], last[kept]
        return DeviceRanges(starts, last, sequence, clock, length)

    def counts(self, found: DeviceRanges, first: Indices, last: Indices) -> Counts:
        """Return how many events each match binds to each variable; `first` and `last` are its ends on the host."""
        counts = counts_by_ends(self.tables, first, last)
        return self._count_bound(found) if counts is None else counts

    def _count_bound(self, found: DeviceRanges) -> Counts:
        """Return how many events each match binds to each variable, which the card counts."""
        device, number = self.run.device, int(found.first.size)
        counts = device.xp.empty((number, self._variables), np.int32)
        device.launch(count_bound, number, found.first, found.clock, found.length, found.sequence, counts)
        bound: Counts = device.download(counts)
        return bound

    def account(self, batch: Batch, first: Array, bound: int) -> None:
        """Report matches to the budget; they hold so many `bound` events, none if they are only counted."""
        run, source, number = self.run, self.source, int(first.size)
        if number:
            with name_windows(run.plan, run.columns, source.row):
                self.meter.spend(number, bound, 0, lambda match: int(first[min(match, number - 1)]) + batch.low)


def _unite(run: DeviceRun, source: EventSource, tables: MatcherTables, found: list[_Found], counted: bool) -> PhaseOne:
    """Return what was found in all batches."""
    run.profile.add("steps", 0)
    with run.profile.stage("candidates back"):
        if counted:
            totals = np.concatenate([_NO_EVENTS, *(part.totals for part in found)])
            ordered = source.ordered([part.events for part in found if part.events is not None], None)
            return PhaseOne(ordered, counted=StartCounts(np.arange(len(totals)), totals))
        events, runs = _place(found)
        variables = len(tables.pattern.order)
        nothing = ContiguousMatches(_NO_EVENTS, _NO_EVENTS, ones(0, variables))
        return PhaseOne(source.ordered(events, None), runs=concatenate_runs([nothing, *runs], variables, run.threads))


def _place(found: list[_Found]) -> tuple[list[CopiedEvents], list[ContiguousMatches]]:
    """Return the events of all batches, and the matches of each as ranges of all these."""
    parts = [(part.events, part.runs, part.numbers) for part in found if part.events is not None and part.runs is not None]
    events, numbers = [own for own, _, _ in parts], [own for _, _, own in parts if own is not None]
    if numbers:
        united, places = unite_copies(events, numbers)
        return [united], [
            ContiguousMatches(own[runs.first], own[runs.last], runs.counts) for own, (_, runs, _) in zip(places, parts, strict=True)
        ]
    begins = accumulate((len(own.placed.rows) for own in events), initial=0)
    return events, [
        ContiguousMatches(runs.first + begin, runs.last + begin, runs.counts) for begin, (_, runs, _) in zip(begins, parts, strict=False)
    ]

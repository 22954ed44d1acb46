"""Read the matches of alternatives (OR) that are contiguous sequences off their lifted labels on a card, batch by batch.

Each branch has labels of its own. The events of all come back together, each once, and the host unites the matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np

from gpu_cep.engine.accounting.match_budget import Meter
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Counts, Indices, Matches, concatenate_matches
from gpu_cep.engine.events.runs import ContiguousMatches
from gpu_cep.engine.events.start_counts import StartCounts, concatenate_counts, sort_counts
from gpu_cep.engine.phase_one.device.branch_matches import counted_phase_one, may_count, unite_branches
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.disjoint_matches import (
    add_matches,
    disjoint_matches,
    keeps_disjoint,
    no_matches,
    shortest_matches,
)
from gpu_cep.engine.phase_one.device.event_sources import CopiedEvents, EventSource, unite_copies
from gpu_cep.engine.phase_one.device.lifted_matches import BranchReader, DeviceRanges
from gpu_cep.engine.phase_one.device.order_events import count_in_streams
from gpu_cep.engine.phase_one.run import PhaseOne
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.device.interface import Array
from gpu_cep_kernels.device.primitives import events_in_ranges

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _OfBranch:
    """The matches of a branch in a batch: their ends as numbers among all events, and how many events they bind to each variable."""

    first: Indices
    last: Indices
    counts: Counts


@dataclass(frozen=True, slots=True)
class _OfBatch:
    """The matches of all branches in a batch, and their events (None: there are none), which have these `numbers` among all."""

    events: CopiedEvents | None
    numbers: Indices
    branches: list[_OfBranch]


Part = TypeVar("Part")


def read_branches(run: DeviceRun, source: EventSource, batches: list[Batch]) -> PhaseOne | None:
    """Return the matches of several branches, or how many they are, as a card finds them; None if labels leave a choice."""
    plan = run.plan
    assert isinstance(plan, EventPlan), "situations are not lifted"
    meter, own = Meter(run.budget), run.reported.own.on(run.device)
    readers = [BranchReader(run, plan, tables, own, source, meter) for tables in run.tables]
    if may_count(run, source, batches):
        counted = _read_batches(readers, batches, _count_all if plan.settings.keeps_all else _count_kept)
        return None if counted is None else counted_phase_one(run, source, sort_counts(concatenate_counts(chain(*counted))))
    found = _read_batches(readers, batches, _find_in_batch)
    return None if found is None else _united(run, source, found)


def _read_batches(
    readers: list[BranchReader], batches: list[Batch], read: Callable[[list[BranchReader], Batch], Part | None]
) -> list[Part] | None:  # fmt: skip
    """Return what is read in each batch; None if labels leave a choice in one."""
    (reader, *_), found = readers, list[Part]()
    for batch in batches:
        part = read(readers, batch)
        if part is None:
            reader.meter.take_back()
            return None
        found.append(part)
    reader.run.profile.add("matches", reader.meter.matches)
    reader.run.profile.add("steps", 0)
    return found


def _each_branch(readers: list[BranchReader], batch: Batch) -> Iterator[tuple[BranchReader, DeviceRanges | None]]:
    """Yield the matches of each branch that start in a batch; None if labels leave a choice.

    Nothing else holds them: the caller lets what was lifted go before the next branch.
    """
    (reader, *_) = readers
    with reader.run.profile.stage("lift"):
        bank = reader.bank(batch)
    return ((each, each.read(batch, bank)) for each in readers)


def _count_all(readers: list[BranchReader], batch: Batch) -> list[StartCounts] | None:
    """Return how many matches start in a batch, for each branch and stream; None if labels leave a choice."""
    counted = list[StartCounts]()
    for each, ranges in _each_branch(readers, batch):
        if ranges is None:
            return None
        each.account(batch, ranges.first, 0)
        counted.append(_count_by_stream(each, batch, ranges.first))
        del ranges
    return counted


def _count_kept(readers: list[BranchReader], batch: Batch) -> list[StartCounts] | None:
    """Return how many of the matches that start in a batch `after_match` keeps, for each stream; None if labels leave a choice.

    Of those of all branches that start at one event, one is kept at most.
    """
    (reader, *_) = readers
    device, earliest = reader.run.device, no_matches(reader.run.device, batch.high - batch.low)
    for each, ranges in _each_branch(readers, batch):
        if ranges is None:
            return None
        each.account(batch, ranges.first, 0)
        with each.run.profile.stage("matching"):
            add_matches(device, ranges.first, ranges.last, earliest)
        del ranges
    with reader.run.profile.stage("matching"):
        first, last = shortest_matches(device, earliest)
        first = first[disjoint_matches(device, first, last, alone=True)] if keeps_disjoint(reader.plan) else first
    return [_count_by_stream(reader, batch, first)]


def _count_by_stream(reader: BranchReader, batch: Batch, first: Array) -> StartCounts:
    """Return the number of matches of each stream, at the first of their starts; `first` are the first events of all."""
    device = reader.run.device
    if not first.size:
        return StartCounts(_NONE, _NONE)
    with reader.run.profile.stage("candidates back"):
        begins, totals = count_in_streams(device, reader.source.streams(batch.low, batch.high), first)
        return StartCounts(device.download(first[begins]) + batch.low, totals)


def _find_in_batch(readers: list[BranchReader], batch: Batch) -> _OfBatch | None:
    """Return the matches that start in a batch, with the events that they bind; None if labels leave a choice."""
    (reader, *_), branches = readers, list[_OfBranch]()
    device, held = reader.run.device, reader.run.device.xp.zeros(batch.high - batch.low, np.bool_)
    for each, ranges in _each_branch(readers, batch):
        if ranges is None:
            return None
        with each.run.profile.stage("candidates back"):
            branches.append(_bring_back(each, batch, ranges, held))
        del ranges
    with reader.run.profile.stage("candidates back"):
        events = device.xp.flatnonzero(held) + batch.low
        return _OfBatch(reader.source.copy(events) if events.size else None, device.download(events), branches)


def _bring_back(reader: BranchReader, batch: Batch, ranges: DeviceRanges, held: Array) -> _OfBranch:
    """Return the matches that start in a batch; their events are `held`."""
    device = reader.run.device
    first, last = device.download(ranges.first), device.download(ranges.last).astype(np.int64)
    reader.account(batch, ranges.first, int((last - first).sum()) + len(first))
    if len(first):
        held |= events_in_ranges(device.xp, ranges.first, ranges.last, int(held.size))
    return _OfBranch(first + batch.low, last + batch.low, reader.counts(ranges, first, last))


def _united(run: DeviceRun, source: EventSource, found: list[_OfBatch]) -> PhaseOne:
    """Return the matches of all branches, each once."""
    with run.profile.stage("candidates back"):
        events, numbers = _joined(found)
        parts = ([_placed(part.branches[branch], numbers) for part in found] for branch in range(len(run.tables)))
        matches = [concatenate_matches(own, len(tables.pattern.order)) for own, tables in zip(parts, run.tables, strict=True)]
        return PhaseOne(source.ordered(events, None), found=unite_branches(run, matches))


def _joined(found: list[_OfBatch]) -> tuple[list[CopiedEvents], Indices]:
    """Return the events of all batches, each once, and their numbers among all."""
    copies, numbers = [part.events for part in found if part.events is not None], [part.numbers for part in found if len(part.numbers)]
    if len(copies) > 1:
        return [unite_copies(copies, numbers)[0]], np.unique(np.concatenate(numbers))
    return copies, np.concatenate([_NONE, *numbers])


def _placed(own: _OfBranch, numbers: Indices) -> Matches:
    """Return matches whose events are given by their places in `numbers`, which holds all of them."""
    return ContiguousMatches(np.searchsorted(numbers, own.first), np.searchsorted(numbers, own.last), own.counts).matches()

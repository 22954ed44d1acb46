"""Read the matches of alternatives (OR) that are contiguous sequences off their lifted labels on a card, batch by batch.

Each branch has labels of its own. The events of all come back together, each once, and the host unites the matches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpu_cep.engine.accounting.match_budget import Meter
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Counts, Indices, Matches, concatenate_matches
from gpu_cep.engine.events.merged_matches import MatchesOfSome, are_disjoint, unite_matches
from gpu_cep.engine.events.runs import Runs
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.event_sources import CopiedEvents, EventSource, unite_copies
from gpu_cep.engine.phase_one.device.lifted_matches import Ranges, Reading
from gpu_cep.engine.phase_one.device.order_events import count_in_streams
from gpu_cep.engine.phase_one.run import PhaseOne
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.device.interface import Array
from gpu_cep_kernels.device.primitives import events_in_ranges

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _OfBranch:
    """The matches of a branch in a batch: their ends as numbers among all events, and how many events they bind to each variable.

    Of matches that are counted there is the first one of each stream, and their numbers are `totals`.
    """

    first: Indices
    last: Indices
    counts: Counts
    totals: Indices


@dataclass(frozen=True, slots=True)
class _OfBatch:
    """The matches of all branches in a batch, and their events (None: there are none), which have these `numbers` among all."""

    events: CopiedEvents | None
    numbers: Indices
    branches: list[_OfBranch]


def read_branches(run: DeviceRun, source: EventSource, batches: list[Batch]) -> PhaseOne | None:
    """Return the matches of several branches, or how many they are, as a card finds them; None if labels leave a choice."""
    plan = run.plan
    assert isinstance(plan, EventPlan), "situations are not lifted"
    meter, own, settings = Meter(run.budget), run.own.on(run.device), plan.settings
    readings = [Reading(run, plan, tables, own, source, meter) for tables in run.tables]
    counting = settings.output == "count" and settings.keeps_all and are_disjoint([branch.positives for branch in plan.branches])
    found = list[_OfBatch]()
    for batch in batches:
        part = _read_batch(readings, batch, counting)
        if part is None:
            meter.take_back()
            return None
        found.append(part)
    run.profile.add("matches", meter.matches)
    run.profile.add("steps", 0)
    with run.profile.stage("candidates back"):
        return _counted(source, found) if counting else _united(run, plan, source, found)


def _read_batch(readings: list[Reading], batch: Batch, counting: bool) -> _OfBatch | None:
    """Return what is found in a batch, with the events that matches bind, or at which they are counted; None if labels leave a choice."""
    (reading, *_), branches = readings, list[_OfBranch]()
    device, source = reading.run.device, reading.source
    held = device.xp.zeros(batch.high - batch.low, np.bool_)
    with reading.run.profile.stage("lift"):
        bank = reading.bank(batch)
    for each in readings:
        ranges = each.read(batch, bank)
        if ranges is None:
            return None
        with each.run.profile.stage("candidates back"):
            branches.append((_count if counting else _bring_back)(each, batch, ranges, held))
        # what was lifted is let go before the next branch
        del ranges
    del bank
    with reading.run.profile.stage("candidates back"):
        events = device.xp.flatnonzero(held) + batch.low
        return _OfBatch(source.copy(events) if events.size else None, device.download(events), branches)


def _count(reading: Reading, batch: Batch, ranges: Ranges, held: Array) -> _OfBranch:
    """Return how many matches start in each stream of a batch; the first event of each stream's first match is `held`."""
    device, streams = reading.run.device, reading.source.streams(batch.low, batch.high)
    reading.account(batch, ranges.first, 0)
    if not ranges.first.size:
        return _OfBranch(_NONE, _NONE, np.empty((0, 0), np.int32), _NONE)
    begins, totals = count_in_streams(device, streams, ranges.first)
    first = ranges.first[begins]
    held[first] = True
    return _OfBranch(device.download(first) + batch.low, _NONE, np.empty((0, 0), np.int32), totals)


def _bring_back(reading: Reading, batch: Batch, ranges: Ranges, held: Array) -> _OfBranch:
    """Return the matches that start in a batch; their events are `held`."""
    device = reading.run.device
    first, last = device.download(ranges.first), device.download(ranges.last).astype(np.int64)
    reading.account(batch, ranges.first, int((last - first).sum()) + len(first))
    if len(first):
        held |= events_in_ranges(device.xp, ranges.first, ranges.last, int(held.size))
    return _OfBranch(first + batch.low, last + batch.low, reading.counts(ranges, first, last), _NONE)


def _counted(source: EventSource, found: list[_OfBatch]) -> PhaseOne:
    """Return the numbers of matches at the first events of streams, ascending."""
    events, numbers = _joined(found)
    starts = np.concatenate([_NONE, *(branch.first for part in found for branch in part.branches)])
    totals = np.concatenate([_NONE, *(branch.totals for part in found for branch in part.branches)])
    order = np.argsort(starts, kind="stable")
    return PhaseOne(source.ordered(events, None), counted=(np.searchsorted(numbers, starts[order]), totals[order]))


def _united(run: DeviceRun, plan: EventPlan, source: EventSource, found: list[_OfBatch]) -> PhaseOne:
    """Return the matches of all branches, each once."""
    events, numbers = _joined(found)
    parts = []
    for branch, tables in enumerate(run.tables):
        matches = [_placed(part.branches[branch], numbers) for part in found]
        parts.append(MatchesOfSome(concatenate_matches(matches, len(tables.pattern.order)), tables.branch.positives))
    return PhaseOne(source.ordered(events, None), found=unite_matches(parts, len(plan.query.positives)))


def _joined(found: list[_OfBatch]) -> tuple[list[CopiedEvents], Indices]:
    """Return the events of all batches, each once, and their numbers among all."""
    copies, numbers = [part.events for part in found if part.events is not None], [part.numbers for part in found if len(part.numbers)]
    if len(copies) > 1:
        return [unite_copies(copies, numbers)[0]], np.unique(np.concatenate(numbers))
    return copies, np.concatenate([_NONE, *numbers])


def _placed(own: _OfBranch, numbers: Indices) -> Matches:
    """Return matches with the events that they bind by their places in `numbers`, which has all of them."""
    return Runs(np.searchsorted(numbers, own.first), np.searchsorted(numbers, own.last), own.counts).matches()

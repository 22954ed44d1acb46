"""Find matches in candidate windows on a card, batch by batch, and bring them back with the events that they bind.

Where a chain is walked, windows in which an event leaves a choice are left to the CPU, with their events. So are those in which a
walk or a search takes very many steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from gpu_cep.engine.accounting.match_budget import Meter
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches, concatenate_matches
from gpu_cep.engine.events.ordered_events import Starts
from gpu_cep.engine.events.start_counts import StartCounts, sort_counts
from gpu_cep.engine.events.window_names import name_windows
from gpu_cep.engine.phase_one.device.batch_walks import (
    BatchWalk,
    Branches,
    Counted,
    Tables,
    account,
    bound_at_once,
    hold,
    open_windows,
    windows_at_once,
)
from gpu_cep.engine.phase_one.device.branch_matches import may_count, unite_branches
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory
from gpu_cep.engine.phase_one.device.chain_walks import (
    CountedRuns,
    walk_tables,
    walks_patterns,
)
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.disjoint_matches import decides_alone, disjoint_matches, keeps_disjoint
from gpu_cep.engine.phase_one.device.event_sources import CopiedEvents, EventSource, unite_copies
from gpu_cep.engine.phase_one.device.held_windows import HeldWindows, OpenedWindows
from gpu_cep.engine.phase_one.device.kept_counts import kept_starts
from gpu_cep.engine.phase_one.device.order_events import count_in_streams
from gpu_cep.engine.phase_one.device.window_searches import search_tables
from gpu_cep.engine.phase_one.device.windows import DevicePattern
from gpu_cep.engine.phase_one.run import PhaseOne
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.device.primitives import covered_events

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Walked:
    """The matches of each branch in a batch, which give events by their places in `events` (None: there are none).

    `left` are the places of the starts left to the CPU, for each branch. `numbers` are those of the
    events among all. Of matches that are only counted there is the first one of each stream, which binds
    no events; `totals` are their numbers for each branch (None: they are not counted). `meter` and
    `profile` have what the batch took.
    """

    events: CopiedEvents | None
    numbers: Indices
    matches: tuple[Matches, ...]
    left: tuple[Indices, ...]
    totals: tuple[Indices, ...] | None
    meter: Meter
    profile: Profile


@dataclass(frozen=True, slots=True)
class _WalkedBranch:
    """The matches of a branch in a batch, by the numbers of held events, and the starts of windows left to the CPU.

    ``events[e]`` is the number of held event e in the batch; `used`: whether matches bind it, or it comes back with windows.
    `left` are numbers in the batch. So are those of the matches in `found` for which `totals` stand (None: they are not counted):
    then each one is the first of its stream.
    """

    events: Array
    used: Array
    found: list[Matches]
    totals: Indices | None
    left: Indices


def match_on_device(
    run: DeviceRun, queries: tuple[DevicePattern, ...], source: EventSource, batches: list[Batch], memory: DeviceMemory
) -> PhaseOne:  # fmt: skip
    """Return the matches that are found on the device, and the windows left to the CPU, with the events of both.

    There is a query for each branch.
    """
    tables_of = walk_tables if walks_patterns(queries[0].plan) else search_tables
    branches: Branches = [(query, tables_of(query.plan, query.tables, run.device)) for query in queries]
    walked, counted = _walk_batches(run, branches, source, batches, memory)
    with run.profile.stage("candidates back"):
        events, matches, left = _join_batches([found for found in walked if found.events is not None], queries)
        number = sum(map(len, left))
        if number:
            run.profile.add("left", number)
        ordered = source.ordered(events, Starts(left, are_all=False) if number else None)
    if counted:
        totals = [found.totals[branch] for branch in range(len(matches)) for found in walked if found.totals is not None]
        counts = StartCounts(np.concatenate([own.first for own in matches]), np.concatenate([_NONE, *totals]))
        return PhaseOne(ordered, counted=sort_counts(counts))
    return PhaseOne(ordered, found=unite_branches(run, matches))


def _walk_batches(
    run: DeviceRun, branches: Branches, source: EventSource, batches: list[Batch], memory: DeviceMemory
) -> tuple[list[_Walked], bool]:  # fmt: skip
    """Return what is found in each batch, and whether matches are counted: in all of them, or in none."""

    def walk(batch: Batch, counts: bool) -> _Walked:
        begun = partial(BatchWalk, run, source, memory, batch)
        if counts and _counts_by_starts(branches):
            counted = _count_kept(begun(True, Meter(run.budget), run.profile.apart()), branches)
            if counted is not None:
                return counted
            counts = False
        return _walk_batch(begun(counts, Meter(run.budget), run.profile.apart()), branches)

    counts, walked = may_count(run, source, batches), list[_Walked]()
    for batch in batches:
        walked.append(walk(batch, counts))
        # behind a batch whose matches come back, those of all others do
        counts = counts and walked[-1].totals is not None
    if not counts:
        # matches that were counted lack the events by which the host compares them with others
        walked = [_again(found, partial(walk, batch, False)) for found, batch in zip(walked, batches, strict=True)]
    for found in walked:
        run.profile.merge(found.profile)
    return walked, counts


def _counts_by_starts(branches: Branches) -> bool:
    """Return whether kept matches are counted by their starts, of which several matches may begin at one."""
    plan = branches[0][0].plan
    return not plan.settings.keeps_all and (len(branches) > 1 or not walks_patterns(plan))


def _count_kept(walk: BatchWalk, branches: Branches) -> _Walked | None:
    """Return how many matches of a batch are kept, as those of its first branch; None if a window is left to the CPU."""
    first, device = kept_starts(walk, branches), walk.run.device
    if first is None:
        walk.meter.take_back()
        return None
    with walk.profile.stage("candidates back"):
        totals = _NONE
        if first.size:
            begins, totals = count_in_streams(device, walk.source.streams(walk.batch.low, walk.batch.high), first)
            first = first[begins]
        numbers = device.download(first) + walk.batch.low
        events = walk.source.copy(first + walk.batch.low) if first.size else None
    (query, _), *others = branches
    counted = Matches(np.arange(len(numbers)), np.zeros((len(numbers), query.variables), np.int32), _NONE)
    matches = counted, *(concatenate_matches([], other.variables) for other, _ in others)
    nothing = tuple(_NONE for _ in others)
    return _Walked(events, numbers, matches, (_NONE, *nothing), (totals, *nothing), walk.meter, walk.profile)


def _again(found: _Walked, walk: Callable[[], _Walked]) -> _Walked:
    """Return what is found in a batch with the events that matches bind, after another `walk` if they are missing."""
    if found.totals is None:
        return found
    found.meter.take_back()
    return walk()


def _join_batches(
    walked: list[_Walked], queries: tuple[DevicePattern, ...]
) -> tuple[list[CopiedEvents], tuple[Matches, ...], tuple[Indices, ...]]:  # fmt: skip
    """Return what was found in batches, with each event once: the matches of each branch, and its starts left to the CPU."""
    copies = [each.events for each in walked if each.events is not None]
    if len(copies) == 1:
        return copies, walked[0].matches, walked[0].left
    if not copies:
        return [], tuple(concatenate_matches([], query.variables) for query in queries), tuple(_NONE for _ in queries)
    events, places = unite_copies(copies, [each.numbers for each in walked])
    parts = list(zip(walked, places, strict=True))
    matches = [[_renumber(each.matches[branch], own) for each, own in parts] for branch in range(len(queries))]
    left = [np.concatenate([own[each.left[branch]] for each, own in parts]) for branch in range(len(queries))]
    joined = (concatenate_matches(own, query.variables) for own, query in zip(matches, queries, strict=True))
    return [events], tuple(joined), tuple(left)


def _renumber(matches: Matches, places: Indices) -> Matches:
    """Return the matches with event e as ``places[e]``."""
    return Matches(places[matches.first], matches.counts, places[matches.events])


def _walk_batch(walk: BatchWalk, branches: Branches) -> _Walked:
    """Return what is found of each branch in a batch."""
    walked, device = [_walk_branch(walk, *branch) for branch in branches], walk.run.device
    with walk.profile.stage("candidates back"):
        kept, used = _used_events(device, walk.batch, walked)
        numbers: Indices = device.download(kept)
        kept += walk.batch.low
        matches = tuple(
            concatenate_matches(_among_used(device, part, used, numbers), query.variables)
            for part, (query, _) in zip(walked, branches, strict=True)
        )
        left = tuple(np.searchsorted(numbers, part.left) for part in walked)
        events = walk.source.copy(kept) if kept.size else None
    numbers = numbers + walk.batch.low
    totals = [part.totals for part in walked if part.totals is not None]
    return _Walked(events, numbers, matches, left, tuple(totals) if len(totals) == len(walked) else None, walk.meter, walk.profile)


def _used_events(device: Device, batch: Batch, walked: list[_WalkedBranch]) -> tuple[Array, Array | None]:
    """Return the events of a batch that are used, and whether each event is used by some branch (None: there is one branch)."""
    xp = device.xp
    if len(walked) == 1:
        return walked[0].events[xp.flatnonzero(walked[0].used)], None
    used = xp.zeros(batch.high - batch.low, np.bool_)
    for own in walked:
        used[own.events[xp.flatnonzero(own.used)]] = True
    return xp.flatnonzero(used), used


def _among_used(device: Device, part: _WalkedBranch, used: Array | None, numbers: Indices) -> list[Matches]:
    """Return the matches of a branch by the places of events among those that are `used`, which have these `numbers` in the batch."""
    if part.totals is not None:
        return [replace(each, first=np.searchsorted(numbers, each.first)) for each in part.found]
    counted = device.xp.cumsum(part.used if used is None else used, dtype=np.int32)
    places = device.download(counted if used is None else counted[part.events]).astype(np.int64) - 1
    return [_renumber(each, places) for each in part.found]


def _walk_branch(walk: BatchWalk, query: DevicePattern, tables: Tables) -> _WalkedBranch:
    """Return what is found of a branch in a batch."""
    held, xp = hold(walk, query), walk.run.device.xp
    if held is None:
        return _WalkedBranch(xp.empty(0, np.int64), xp.empty(0, np.bool_), [], _NONE if walk.counts else None, _NONE)
    return _walk_windows(walk, query, tables, held)


def _walk_windows(walk: BatchWalk, query: DevicePattern, tables: Tables, held: HeldWindows) -> _WalkedBranch:
    """Return what is found in the candidate windows of a batch."""
    run, batch, source, memory = walk.run, walk.batch, walk.source, walk.memory
    device, size, keeps_all = run.device, int(held.starts.size), query.plan.settings.keeps_all
    at_once = windows_at_once(walk, query, tables, held)
    used = device.xp.zeros(held.events.size, np.bool_)
    if not at_once:
        used[:] = True
        return _WalkedBranch(held.events, used, [], _NONE if walk.counts and keeps_all else None, device.download(held.events[held.starts]))
    found: list[Matches] = []
    totals, left, counting = [_NONE], [_NONE], walk.counts
    with walk.profile.stage("matching"), name_windows(run.plan, run.columns, source.row):
        walks = open_windows(walk, query, tables, held)
        for low, high in blocks(0, size, at_once):
            runs = walks.count(low, high)
            whole = high - low == size and not runs.left.size
            if keeps_disjoint(query.plan) and isinstance(runs, CountedRuns):
                whole &= decides_alone(query.plan, source, batch)
                runs = replace(runs, found=runs.found[disjoint_matches(device, *runs.ends(), alone=whole)])
            counting &= keeps_all or whole
            account(walk, runs, counting=counting)
            if counting:
                first, numbers = _count_by_stream(walk, walks, runs, used)
                found.append(first)
                totals.append(numbers)
            else:
                found += _bring_back(device, runs, bound_at_once(memory), used)
            left.append(device.download(held.events[runs.windows.starts[runs.left]]))
            _mark_windows(walks, runs, used)
    return _WalkedBranch(held.events, used, found, np.concatenate(totals) if counting else None, np.concatenate(left))


def _count_by_stream(walk: BatchWalk, walks: OpenedWindows, runs: Counted, used: Array) -> tuple[Matches, Indices]:
    """Return the first match of each stream, which binds no events, and how many there are; its first event is marked as `used`.

    Events have their numbers in the batch.
    """
    if not runs.found.size:
        return concatenate_matches([], walks.variables), _NONE
    device, starts = walk.run.device, runs.windows.starts[runs.found]
    streams = walk.source.streams(walk.batch.low, walk.batch.high)
    begins, totals = count_in_streams(device, streams, walks.held.events[starts], runs.each)
    starts = starts[begins]
    used[starts] = True
    first = device.download(walks.held.events[starts])
    return Matches(first, np.zeros((len(first), walks.variables), np.int32), _NONE), totals


def _bring_back(device: Device, counted: Counted, most: int, used: Array) -> list[Matches]:
    """Return the matches that were counted on the host, by first event, last event and bindings; mark their events as `used`."""
    found = []
    for matches in counted.write(most):
        used[matches.events] = True
        there = Matches(device.download(matches.first), device.download(matches.counts), device.download(matches.events))
        found.append(there.sort_within_starts())
    return found


def _mark_windows(walks: OpenedWindows, counted: Counted, used: Array) -> None:
    """Mark all events of the windows that are left to the CPU, and those that negations may rule out."""
    if counted.left.size:
        starts, ends = counted.windows.starts[counted.left], counted.windows.ends[counted.left]
        used |= covered_events(walks.device.xp, starts, ends, int(used.size))
        if walks.held.negations is not None:
            used[walks.held.negations.places] = True

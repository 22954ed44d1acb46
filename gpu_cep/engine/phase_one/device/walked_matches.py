"""Find the matches of a chain on a card, batch by batch, and bring them back with the events that they bind.

Windows in which an event leaves a choice, or whose runs go on for very long, are left to the CPU, with their events.
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
from gpu_cep.engine.events.merged_matches import MatchesOfSome, are_disjoint, unite_matches
from gpu_cep.engine.events.ordered_events import Starts
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep.engine.events.window_names import name_windows
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory
from gpu_cep.engine.phase_one.device.chain_walks import (
    ChainWalks,
    CountedRuns,
    HeldWindows,
    WalkTables,
    bytes_of_walk,
    hold_windows,
    walk_tables,
)
from gpu_cep.engine.phase_one.device.condition_columns import bank_on_device
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.disjoint_matches import decides_alone, disjoint_matches, keeps_disjoint
from gpu_cep.engine.phase_one.device.event_sources import CopiedEvents, EventSource, unite_copies
from gpu_cep.engine.phase_one.device.negated_events import events_before_matches, negations_on_device
from gpu_cep.engine.phase_one.device.windows import DevicePattern, prune_on_device, windows_on_device
from gpu_cep.engine.phase_one.run import PhaseOne
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.automaton.chain_windows import RunNumber
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.device.primitives import covered_events, sum_as

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Walked:
    """The matches of each branch in a batch, which give events by their places in `events` (None: there are none).

    `left` are the places of the starts left to the CPU, for each branch. `numbers` are those of the
    events among all. `counted`: matches bind no events, since they are only counted. `meter` and
    `profile` have what the batch took.
    """

    events: CopiedEvents | None
    numbers: Indices
    matches: tuple[Matches, ...]
    left: Starts
    counted: bool
    meter: Meter
    profile: Profile


@dataclass(frozen=True, slots=True)
class _WalkedBranch:
    """The matches of a branch in a batch, and the starts of windows left to the CPU, by the numbers of held events.

    ``events[e]`` is the number of held event e in the batch; `used`: whether matches bind it, or it comes back with windows.
    `counted`: as :class:`_Walked`.
    """

    events: Array
    used: Array
    found: list[Matches]
    left: Indices
    counted: bool


@dataclass(frozen=True, slots=True)
class _Walk:
    """A walk through the windows of a batch, which reports to `meter` and `profile`; `counts`: it counts matches if it can."""

    run: DeviceRun
    source: EventSource
    memory: DeviceMemory
    batch: Batch
    counts: bool
    meter: Meter
    profile: Profile


Branches = list[tuple[DevicePattern, WalkTables]]


def walk_on_device(
    run: DeviceRun, queries: tuple[DevicePattern, ...], source: EventSource, batches: list[Batch], memory: DeviceMemory
) -> PhaseOne:  # fmt: skip
    """Return the matches that are found on the device, and the windows left to the CPU, with the events of both.

    There is a query for each branch.
    """
    branches = [(query, walk_tables(query.plan, query.tables, run.device)) for query in queries]
    walked, counted = _walk_batches(run, branches, source, batches, memory)
    with run.profile.stage("candidates back"):
        events, matches, left = _join_batches([found for found in walked if found.events is not None], queries)
        number = sum(map(len, left))
        if number:
            run.profile.add("left", number)
        ordered = source.ordered(events, left if number else None)
    if counted:
        starts = matches[0].first if len(matches) == 1 else np.sort(np.concatenate([own.first for own in matches]))
        return PhaseOne(ordered, counted=(starts, np.ones(len(starts), np.int64)))
    parts = [MatchesOfSome(own, query.tables.branch.positives) for own, query in zip(matches, queries, strict=True)]
    return PhaseOne(ordered, found=unite_matches(parts, len(run.plan.query.positives)))


def _may_count(run: DeviceRun, source: EventSource, batches: list[Batch]) -> bool:
    """Return whether the device may count the matches that are kept; else the host takes them from those that come back, each once."""
    plan, settings = run.plan, run.plan.settings
    assert isinstance(plan, EventPlan), "situations are not walked to"
    if settings.output != "count":
        return False
    if settings.keeps_all:
        return are_disjoint([branch.positives for branch in plan.branches])
    if len(plan.branches) > 1 or plan.ends or run.own != WHOLE or run.ends != WHOLE:
        return False
    # each start has one match at most
    return settings.after_match == "skip_to_next" or (keeps_disjoint(plan) and all(decides_alone(plan, source, each) for each in batches))


def _walk_batches(
    run: DeviceRun, branches: Branches, source: EventSource, batches: list[Batch], memory: DeviceMemory
) -> tuple[list[_Walked], bool]:  # fmt: skip
    """Return what is found in each batch, and whether matches are counted: in all of them, or in none."""

    def walk(batch: Batch, counts: bool) -> _Walked:
        return _walk_batch(_Walk(run, source, memory, batch, counts, Meter(run.budget), run.profile.apart()), branches)

    counts = _may_count(run, source, batches)
    walked = [walk(batch, counts) for batch in batches]
    counted = counts and all(found.counted for found in walked)
    if not counted:
        # matches that were counted lack the events by which the host compares them with others
        walked = [_again(found, partial(walk, batch, False)) for found, batch in zip(walked, batches, strict=True)]
    for found in walked:
        run.profile.merge(found.profile)
    return walked, counted


def _again(found: _Walked, walk: Callable[[], _Walked]) -> _Walked:
    """Return what is found in a batch with the events that matches bind, after another `walk` if they are missing."""
    if not found.counted:
        return found
    found.meter.take_back()
    return walk()


def _join_batches(
    walked: list[_Walked], queries: tuple[DevicePattern, ...]
) -> tuple[list[CopiedEvents], tuple[Matches, ...], Starts]:  # fmt: skip
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


def _hold(walk: _Walk, query: DevicePattern) -> HeldWindows | None:
    """Return the candidate windows of a batch with their events; None if there are none. All else of the batch is let go."""
    device, batch, source = walk.run.device, walk.batch, walk.source
    windows = windows_on_device(query, batch, source, device, walk.profile)
    candidates = prune_on_device(query, windows, walk.profile)
    if not candidates.starts.size:
        return None
    branch = query.tables.branch
    with walk.profile.stage("candidates"):
        held = hold_windows(windows, candidates, events_before_matches(windows, branch))
        if not branch.negations:
            return held
        return replace(held, negations=negations_on_device(query, device, source, batch, windows, held.events))


def _walk_batch(walk: _Walk, branches: Branches) -> _Walked:
    """Return what is found of each branch in a batch."""
    walked, device = [_walk_branch(walk, *branch) for branch in branches], walk.run.device
    with walk.profile.stage("candidates back"):
        kept, places = _used_events(device, walk.batch, walked)
        kept += walk.batch.low
        matches = tuple(
            concatenate_matches([_renumber(each, own) for each in part.found], query.variables)
            for part, own, (query, _) in zip(walked, places, branches, strict=True)
        )
        left = tuple(own[part.left] for part, own in zip(walked, places, strict=True))
        events, numbers = (walk.source.copy(kept), device.download(kept)) if kept.size else (None, _NONE)
    return _Walked(events, numbers, matches, left, all(part.counted for part in walked), walk.meter, walk.profile)


def _used_events(device: Device, batch: Batch, walked: list[_WalkedBranch]) -> tuple[Array, list[Indices]]:
    """Return the events of a batch that are used, and for each branch the place among these of each event that it uses."""
    xp = device.xp
    if len(walked) == 1:
        (own,) = walked
        return own.events[xp.flatnonzero(own.used)], [_places(device, xp.cumsum(own.used, dtype=np.int32))]
    used = xp.zeros(batch.high - batch.low, np.bool_)
    for own in walked:
        used[own.events[xp.flatnonzero(own.used)]] = True
    counted = xp.cumsum(used, dtype=np.int32)
    return xp.flatnonzero(used), [_places(device, counted[own.events]) for own in walked]


def _places(device: Device, counted: Array) -> Indices:
    """Return the places of events of which each is counted together with those before it."""
    places: Indices = device.download(counted).astype(np.int64) - 1
    return places


def _walk_branch(walk: _Walk, query: DevicePattern, tables: WalkTables) -> _WalkedBranch:
    """Return what is found of a branch in a batch."""
    held, xp = _hold(walk, query), walk.run.device.xp
    if held is None:
        return _WalkedBranch(xp.empty(0, np.int64), xp.empty(0, np.bool_), [], _NONE, walk.counts)
    used = xp.zeros(held.events.size, np.bool_)
    return _WalkedBranch(held.events, used, *_walk_windows(walk, query, tables, held, used))


def _walk_windows(
    walk: _Walk, query: DevicePattern, tables: WalkTables, held: HeldWindows, used: Array
) -> tuple[list[Matches], Indices, bool]:  # fmt: skip
    """Return the matches of a batch, the starts of windows left to the CPU, by the numbers of held events, and whether matches are counted.

    The events of both are marked as `used`.
    """
    run, batch, source, memory = walk.run, walk.batch, walk.source, walk.memory
    device, size = run.device, int(held.starts.size)
    fixed, window, event = bytes_of_walk(query.tables, query.plan, device)
    at_once = memory.walked_windows(fixed, window, event * int(held.events.size), batch.high - batch.low)
    if not at_once:
        used[:] = True
        return [], device.download(held.starts), walk.counts and query.plan.settings.keeps_all
    found: list[Matches] = []
    left, counting = [_NONE], walk.counts
    with walk.profile.stage("matching"), name_windows(run.plan, run.columns, source.row):
        rows = source.rows(batch.low, batch.high)[held.events]
        walks = ChainWalks(device, tables, held, bank_on_device(run.columns, query.plan.layout, rows, device, run.threads), batch.low)
        for low, high in blocks(0, size, at_once):
            counted = walks.count(low, high)
            alone = high - low == size and not counted.left.size and decides_alone(query.plan, source, batch)
            if keeps_disjoint(query.plan):
                counted = replace(counted, found=counted.found[disjoint_matches(device, *counted.ends(), alone=alone)])
            counting &= query.plan.settings.keeps_all or alone
            _account(walk, walks, counted, counting)
            found += _bring_back(device, walks, counted, max(1, memory.bound_events // 2), used, counting)
            left.append(device.download(counted.windows.starts[counted.left]))
            _mark_windows(walks, counted, used)
    return found, np.concatenate(left), counting


def _account(walk: _Walk, walks: ChainWalks, counted: CountedRuns, counting: bool) -> None:
    """Report what runs found, and the steps that they made; matches that are only counted hold no events."""
    matches = int(counted.found.size)
    walk.profile.add("matches", matches)
    walk.profile.add("steps", counted.steps)
    bound = 0 if counting or not matches else int(sum_as(np.int64, counted.runs.numbers[RunNumber.DEPTH][counted.found]))

    def start_of(match: int) -> int:
        return walks.start_of(counted, match)

    walk.meter.spend(matches, bound, counted.steps, start_of)


def _bring_back(
    device: Device, walks: ChainWalks, counted: CountedRuns, most: int, used: Array, counting: bool
) -> list[Matches]:  # fmt: skip
    """Return the matches of counted runs on the host, and mark their events as `used`.

    Of matches that are only counted, these are the first ones.
    """
    if counting:
        starts = counted.windows.starts[counted.found]
        used[starts] = True
        first = device.download(starts)
        return [Matches(first, np.zeros((len(first), walks.variables), np.int32), np.empty(0, np.int64))]
    found = []
    for matches in walks.write(counted, most):
        used[matches.events] = True
        found.append(Matches(device.download(matches.first), device.download(matches.counts), device.download(matches.events)))
    return found


def _mark_windows(walks: ChainWalks, counted: CountedRuns, used: Array) -> None:
    """Mark all events of the windows that are left to the CPU, and those that negations may rule out."""
    if counted.left.size:
        starts, ends = counted.windows.starts[counted.left], counted.windows.ends[counted.left]
        used |= covered_events(walks.device.xp, starts, ends, int(used.size))
        if walks.held.negations is not None:
            used[walks.held.negations.places] = True

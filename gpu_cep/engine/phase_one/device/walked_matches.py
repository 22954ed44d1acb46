"""Find the matches of a chain on a card, batch by batch, and bring them back with the events that they bind.

Windows in which an event leaves a choice, or whose runs go on for very long, are left to the CPU, with their events.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices, Matches, concatenate_matches
from gpu_cep.engine.events.merged_matches import MatchesOfSome, are_disjoint, unite_matches
from gpu_cep.engine.events.ordered_events import Starts
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
    """The matches of each branch in a batch, which give events by their places in `events`.

    `left` are the places of the starts left to the CPU, for each branch. `numbers` are those of the
    events among all. Matches that are only counted bind no events.
    """

    events: CopiedEvents
    numbers: Indices
    matches: tuple[Matches, ...]
    left: Starts


@dataclass(frozen=True, slots=True)
class _WalkedBranch:
    """The matches of a branch in a batch, and the starts of windows left to the CPU, by the numbers of held events.

    ``events[e]`` is the number of held event e in the batch; `used`: whether matches bind it, or it comes back with windows.
    """

    events: Array
    used: Array
    found: list[Matches]
    left: Indices


def walk_on_device(
    run: DeviceRun, queries: tuple[DevicePattern, ...], source: EventSource, batches: list[Batch], memory: DeviceMemory
) -> PhaseOne:  # fmt: skip
    """Return the matches that are found on the device, and the windows left to the CPU, with the events of both.

    There is a query for each branch.
    """
    branches = [(query, walk_tables(query.plan, query.tables, run.device)) for query in queries]
    walked = [found for batch in batches if (found := _walk_batch(run, branches, source, batch, memory)) is not None]
    with run.profile.stage("candidates back"):
        events, matches, left = _join_batches(walked, queries)
        number = sum(map(len, left))
        if number:
            run.profile.add("left", number)
        ordered = source.ordered(events, left if number else None)
    if _are_counted(run):
        starts = matches[0].first if len(matches) == 1 else np.sort(np.concatenate([own.first for own in matches]))
        return PhaseOne(ordered, counted=(starts, np.ones(len(starts), np.int64)))
    parts = [MatchesOfSome(own, query.tables.branch.positives) for own, query in zip(matches, queries, strict=True)]
    return PhaseOne(ordered, found=unite_matches(parts, len(run.plan.query.positives)))


def _are_counted(run: DeviceRun) -> bool:
    """Return whether matches are only counted; else the host counts those that `after_match` keeps, each once."""
    disjoint = are_disjoint([tables.branch.positives for tables in run.tables])
    return run.plan.settings.output == "count" and run.plan.settings.keeps_all and disjoint


def _join_batches(
    walked: list[_Walked], queries: tuple[DevicePattern, ...]
) -> tuple[list[CopiedEvents], tuple[Matches, ...], Starts]:  # fmt: skip
    """Return what was found in all batches, with each event once: the matches of each branch, and its starts left to the CPU."""
    if len(walked) == 1:
        return [walked[0].events], walked[0].matches, walked[0].left
    if not walked:
        return [], tuple(concatenate_matches([], query.variables) for query in queries), tuple(_NONE for _ in queries)
    events, places = unite_copies([each.events for each in walked], [each.numbers for each in walked])
    parts = list(zip(walked, places, strict=True))
    matches = [[_renumber(each.matches[branch], own) for each, own in parts] for branch in range(len(queries))]
    left = [np.concatenate([own[each.left[branch]] for each, own in parts]) for branch in range(len(queries))]
    joined = (concatenate_matches(own, query.variables) for own, query in zip(matches, queries, strict=True))
    return [events], tuple(joined), tuple(left)


def _renumber(matches: Matches, places: Indices) -> Matches:
    """Return the matches with event e as ``places[e]``."""
    return Matches(places[matches.first], matches.counts, places[matches.events])


def _hold(run: DeviceRun, query: DevicePattern, source: EventSource, batch: Batch) -> HeldWindows | None:
    """Return the candidate windows of a batch with their events; None if there are none. All else of the batch is let go."""
    windows = windows_on_device(query, batch, source, run.device, run.profile)
    candidates = prune_on_device(query, windows, run.profile)
    if not candidates.starts.size:
        return None
    branch = query.tables.branch
    with run.profile.stage("candidates"):
        held = hold_windows(windows, candidates, events_before_matches(windows, branch))
        if not branch.negations:
            return held
        return replace(held, negations=negations_on_device(query, run.device, source, batch, windows, held.events))


def _walk_batch(
    run: DeviceRun, branches: list[tuple[DevicePattern, WalkTables]], source: EventSource, batch: Batch, memory: DeviceMemory
) -> _Walked | None:  # fmt: skip
    """Return what is found of each branch in a batch; None if that is nothing, and nothing is left to the CPU."""
    walked = [_walk_branch(run, query, source, batch, memory, tables) for query, tables in branches]
    with run.profile.stage("candidates back"):
        kept, places = _used_events(run.device, batch, walked)
        if not kept.size:
            return None
        kept += batch.low
        matches = [
            concatenate_matches([_renumber(each, own) for each in part.found], query.variables)
            for part, own, (query, _) in zip(walked, places, branches, strict=True)
        ]
        left = tuple(own[part.left] for part, own in zip(walked, places, strict=True))
        return _Walked(source.copy(kept), run.device.download(kept), tuple(matches), left)


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


def _walk_branch(
    run: DeviceRun, query: DevicePattern, source: EventSource, batch: Batch, memory: DeviceMemory, tables: WalkTables
) -> _WalkedBranch:  # fmt: skip
    """Return what is found of a branch in a batch."""
    held, xp = _hold(run, query, source, batch), run.device.xp
    if held is None:
        return _WalkedBranch(xp.empty(0, np.int64), xp.empty(0, np.bool_), [], _NONE)
    used = xp.zeros(held.events.size, np.bool_)
    return _WalkedBranch(held.events, used, *_walk_windows(run, query, source, batch, memory, tables, held, used))


def _walk_windows(
    run: DeviceRun, query: DevicePattern, source: EventSource, batch: Batch, memory: DeviceMemory, tables: WalkTables, held: HeldWindows,
    used: Array,
) -> tuple[list[Matches], Indices]:  # fmt: skip
    """Return the matches of a batch, and the starts of windows left to the CPU, by the numbers of held events.

    The events of both are marked as `used`.
    """
    device, size = run.device, int(held.starts.size)
    fixed, window, event = bytes_of_walk(query.tables, query.plan, device)
    at_once = memory.walked_windows(fixed, window, event * int(held.events.size), batch.high - batch.low)
    if not at_once:
        used[:] = True
        return [], device.download(held.starts)
    found: list[Matches] = []
    left = [_NONE]
    with run.profile.stage("matching"), name_windows(run.plan, run.columns, source.row):
        rows = source.rows(batch.low, batch.high)[held.events]
        walks = ChainWalks(device, tables, held, bank_on_device(run.columns, query.plan.layout, rows, device, run.threads), batch.low)
        for low, high in blocks(0, size, at_once):
            counted = walks.count(low, high)
            if keeps_disjoint(query.plan):
                counted = _take_apart(query.plan, source, batch, walks, counted)
            _account(run, walks, counted)
            found += _bring_back(run, walks, counted, max(1, memory.bound_events // 2), used)
            left.append(device.download(counted.windows.starts[counted.left]))
            _mark_windows(walks, counted, used)
    return found, np.concatenate(left)


def _take_apart(plan: EventPlan, source: EventSource, batch: Batch, walks: ChainWalks, counted: CountedRuns) -> CountedRuns:
    """Return what became of runs without the matches that are never taken where none may overlap another."""
    whole = counted.windows.starts.size == walks.held.starts.size and not counted.left.size
    kept = disjoint_matches(walks.device, *counted.ends(), alone=whole and decides_alone(plan, source, batch))
    return replace(counted, found=counted.found[kept])


def _account(run: DeviceRun, walks: ChainWalks, counted: CountedRuns) -> None:
    """Report what runs found, and the steps that they made, to the budget; matches that are only counted hold no events."""
    matches, counting = int(counted.found.size), _are_counted(run)
    run.profile.add("matches", matches)
    run.profile.add("steps", counted.steps)
    bound = 0 if counting or not matches else int(sum_as(np.int64, counted.runs.numbers[RunNumber.DEPTH][counted.found]))

    def start_of(match: int) -> int:
        return walks.start_of(counted, match)

    run.budget.spend(matches, bound, counted.steps, start_of)


def _bring_back(run: DeviceRun, walks: ChainWalks, counted: CountedRuns, most: int, used: Array) -> list[Matches]:
    """Return the matches of counted runs on the host, and mark their events as `used`.

    Of matches that are only counted, these are the first ones.
    """
    device = run.device
    if _are_counted(run):
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

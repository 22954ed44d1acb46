"""Prepare a walk or a search through the candidate windows of a batch on a card: hold their events, and open those of a branch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpu_cep.engine.accounting.match_budget import Meter
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory
from gpu_cep.engine.phase_one.device.chain_walks import (
    ChainWalks,
    CountedRuns,
    WalkTables,
    bytes_of_walk,
)
from gpu_cep.engine.phase_one.device.condition_columns import bank_on_device
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.event_sources import EventSource
from gpu_cep.engine.phase_one.device.held_windows import FIXED, HeldWindows, hold_windows
from gpu_cep.engine.phase_one.device.negated_events import events_before_matches, negations_on_device
from gpu_cep.engine.phase_one.device.window_searches import CountedSearches, SearchTables, WindowSearches, bytes_of_search
from gpu_cep.engine.phase_one.device.windows import DevicePattern, prune_on_device, windows_on_device

# A launch over so many windows has all slots that any launch has.
_LARGE = 1 << 20

Tables = WalkTables | SearchTables
Branches = list[tuple[DevicePattern, Tables]]
Counted = CountedRuns | CountedSearches


@dataclass(frozen=True, slots=True)
class BatchWalk:
    """A walk through the windows of a batch, which reports to `meter` and `profile`; `counts`: it counts matches if it can."""

    run: DeviceRun
    source: EventSource
    memory: DeviceMemory
    batch: Batch
    counts: bool
    meter: Meter
    profile: Profile


def hold(walk: BatchWalk, query: DevicePattern) -> HeldWindows | None:
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


def windows_at_once(walk: BatchWalk, query: DevicePattern, tables: Tables, held: HeldWindows) -> int:
    """Return how many of the held windows are walked or searched through at a time; 0 if there is no room."""
    events, batch = int(held.events.size), walk.batch.high - walk.batch.low
    bytes_of = bytes_of_walk if isinstance(tables, WalkTables) else bytes_of_search
    window, slot, event = bytes_of(query.tables, query.plan)
    # few windows have a slot each, many share all that there are
    few = walk.memory.walked_windows(FIXED, window + slot, event * events, batch)
    many = walk.memory.walked_windows(FIXED + walk.run.device.slots(_LARGE) * slot, window, event * events, batch)
    return max(few, many)


def open_windows(walk: BatchWalk, query: DevicePattern, tables: Tables, held: HeldWindows) -> ChainWalks | WindowSearches:
    """Return what walks or searches through the held windows of a batch, with what conditions read of their events."""
    run, low = walk.run, walk.batch.low
    rows = walk.source.rows(low, walk.batch.high)[held.events]
    bank = bank_on_device(run.columns, query.plan.layout, rows, run.device, run.threads)
    if isinstance(tables, WalkTables):
        return ChainWalks(run.device, query.tables, held, bank, low, tables)
    return WindowSearches(run.device, query.tables, held, bank, low, tables, bound_at_once(walk.memory))


def bound_at_once(memory: DeviceMemory) -> int:
    """Return how many events the matches that are written at a time may bind."""
    return max(1, memory.bound_events // 2)


def account(walk: BatchWalk, counted: Counted, *, counting: bool) -> None:
    """Report what was found, and the steps that were made; matches that are only counted hold no events."""
    matches = counted.matches
    walk.profile.add("matches", matches)
    walk.profile.add("steps", counted.steps)
    bound = 0 if counting or not matches else counted.bound
    walk.meter.spend(matches, bound, counted.steps, counted.start_of)

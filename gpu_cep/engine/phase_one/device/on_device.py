"""Run phase 1 on a device: label, order by stream and time, and find candidate windows.

If labels decide the matches, it finds these instead. Only the columns that phase 1 reads are
uploaded. Only the events of candidate windows, or of matches, are downloaded. Matchers then run on
the CPU, over the windows that are left: the device walks or searches through those that it can.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from gpu_cep.engine.events.batches import MOST_CARRIED, Batch, cut_streams
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.ordered_events import Starts
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory, TooLittleMemory
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.direct_matches import count_directly, find_directly
from gpu_cep.engine.phase_one.device.event_sources import CopiedEvents, EventSource
from gpu_cep.engine.phase_one.device.in_pieces import run_in_pieces
from gpu_cep.engine.phase_one.device.label_and_order import label_and_order
from gpu_cep.engine.phase_one.device.lifted_branches import read_branches
from gpu_cep.engine.phase_one.device.lifted_matches import lifted_events, read_on_device, reads_lifted
from gpu_cep.engine.phase_one.device.searched_plans import JOINED, join_inputs, matches_in_windows, search_on_device
from gpu_cep.engine.phase_one.device.windows import (
    DevicePattern,
    mark_covered,
    patterns_on_device,
    prune_on_device,
    windows_on_device,
)
from gpu_cep.engine.phase_one.run import EventRun, PhaseOne
from gpu_cep.engine.windows.direct import labels_decide
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.device.interface import Array, Device


def phase_one_on_device(run: EventRun, device: Device, *, searches: bool = True) -> PhaseOne:
    """Run phase 1 on a device, and return its result on the host; it also `searches` the windows that it can search.

    Raises
    ------
    EventError
        The events are at fault.
    MatchLimitExceeded
        More matches than the settings, or the host's memory, allow.
    TooLittleMemory
        The device's memory does not hold chunks or batches of the smallest size, or the windows of one stream.
    DeviceLost
        CUDA failed; from now on this process can use no device.
    """
    found = run_in_pieces(run, device, partial(_phase_one, searches=searches))
    return replace(found, device=device, joins_on=device if searches and run.plan.contenders == JOINED else None)


def _phase_one(run: DeviceRun, memory: DeviceMemory, *, searches: bool) -> PhaseOne:
    """Run phase 1 in pieces that `memory` holds; it also `searches` the windows that it can search."""
    source = label_and_order(run, memory)
    run.profile.add("filtered", source.total)
    plan = run.plan
    assert isinstance(plan, EventPlan), "situations have no candidate windows"
    if reads_lifted(plan):
        found = _read_lifted(run, source, memory) if searches else PhaseOne(source.whole())
        if found is not None:
            return found
    if not {"summary", "chain"} & set(plan.pruning) or not (plan.windows_suffice or (searches and matches_in_windows(plan))):
        return PhaseOne(source.whole(), inputs=join_inputs(run, source, memory) if searches else None)
    queries = patterns_on_device(plan, run.tables, run.reported.own, source, run.device)
    try:
        batches = _batches(source, memory, memory.batch_events(source.resident))
    except TooLittleMemory:
        if plan.windows_suffice:
            raise
        return PhaseOne(source.whole())
    query = queries[0]
    if not _is_direct(query, source):
        searched = search_on_device(run, queries, source, batches, memory) if searches else None
        if searched is not None:
            return searched
        return _find_candidates(run, query, source, batches) if plan.windows_suffice else PhaseOne(source.whole())
    if run.plan.settings.output == "count":
        return count_directly(run, query, source, batches)
    return find_directly(run, query, source, batches, memory)


def _read_lifted(run: DeviceRun, source: EventSource, memory: DeviceMemory) -> PhaseOne | None:
    """Return the matches that lifted labels decide, or all events if there is no room for these; None if labels leave a choice."""
    try:
        batches = _batches(source, memory, lifted_events(run, source, memory))
    except TooLittleMemory:
        return PhaseOne(source.whole())
    return read_on_device(run, source, batches) if len(run.tables) == 1 else read_branches(run, source, batches)


def _batches(source: EventSource, memory: DeviceMemory, most: int) -> list[Batch]:
    """Cut the events into batches of at most `most` events, which fit the device's memory.

    They are whole streams, or slices of a long stream with the events that their last windows
    reach.
    """
    total = source.total
    if total <= most:
        return [Batch(0, total, total)] if total else []
    batches = cut_streams(source.offsets, source.window_end, max(1, most // (MOST_CARRIED + 1)))
    longest = max(batch.high - batch.low for batch in batches)
    if longest > most:
        needed = memory.for_batch(longest, total)
        raise TooLittleMemory(
            f"windows reach over {longest:,} events of one stream, which take about {needed:,} bytes, and {memory.bytes:,} may be taken"
        )
    return batches


def _is_direct(query: DevicePattern, source: EventSource) -> bool:
    """Return whether every candidate window has one match, which its labels decide."""
    plan, tables = query.plan, query.tables
    # the events of matches that are read off are numbered batch by batch, not by their positions in streams
    if len(plan.branches) > 1 or not tables.reads_directly or tables.branch.negations or not plan.settings.keeps_all:
        return False
    return labels_decide(tables.pattern, query.tied, source.has_overlap)


def _find_candidates(run: DeviceRun, query: DevicePattern, source: EventSource, batches: list[Batch]) -> PhaseOne:
    """Return the events of all candidate windows, and which of them begin one."""
    parts: list[CopiedEvents] = []
    starts, copied = [np.empty(0, np.int64)], 0
    reached = run.device.xp.empty(0, np.bool_)
    for batch in batches:
        found, places, reached = _find_candidates_in_batch(run, query, source, batch, reached)
        if found is not None:
            starts.append(places + copied)
            copied += len(found.placed.rows)
            parts.append(found)
    with run.profile.stage("candidates back"):
        return PhaseOne(source.ordered(parts, Starts((np.concatenate(starts),), are_all=True)))


def _find_candidates_in_batch(
    run: DeviceRun, query: DevicePattern, source: EventSource, batch: Batch, reached: Array
) -> tuple[CopiedEvents | None, Indices, Array]:  # fmt: skip
    """Return the batch's own events of candidate windows (None: there are none), and the places of those that begin one.

    `reached` says of its first events whether windows of the batch before hold them; the same is
    returned for the events behind its own.
    """
    device, xp, own = run.device, run.device.xp, batch.own - batch.low
    windows = windows_on_device(query, batch, source, run.device, run.profile)
    candidates = prune_on_device(query, windows, run.profile)
    with run.profile.stage("candidates back"):
        held = mark_covered(windows, candidates)
        if reached.size:
            held[: reached.size] |= reached
        # a copy, so that what is held of the batch can be let go
        behind = held[own:].copy() if own < held.size else xp.empty(0, np.bool_)
        events = xp.flatnonzero(held[:own])
        if not events.size:
            return None, np.empty(0, np.int64), behind
        places = device.download(xp.searchsorted(events, candidates.starts))
        return source.copy(events + batch.low if batch.low else events), places, behind

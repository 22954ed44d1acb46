"""Run phase 1 on a device: label, order by stream and time, and find candidate windows.

If labels decide the matches, it finds these instead. Only the columns that phase 1 reads are
uploaded. Only the events of candidate windows, or of matches, are downloaded. Matchers then run on
the CPU, over the windows that are left: the runs of chains are followed on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

import numpy as np

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import MOST_CARRIED, Batch, cut_streams
from gpu_cep.engine.events.label_words import Words
from gpu_cep.engine.events.matches import Indices, Matches, concatenate_matches
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.events.window_names import name_windows
from gpu_cep.engine.input.read_tables import is_resident
from gpu_cep.engine.input.times import load_pieces_of_times, refuse_missing
from gpu_cep.engine.phase_one.device.card_memory import UPLOADED_CHUNK, DeviceMemory, TooLittleMemory, memory_of
from gpu_cep.engine.phase_one.device.columns import DeviceColumns
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.direct import DeviceMatches, bind_on_device, cut_matches
from gpu_cep.engine.phase_one.device.event_sources import CopiedEvents, EventSource, ResidentEvents, SpilledEvents
from gpu_cep.engine.phase_one.device.kept_events import KeptEvents, concatenate_kept, count_kept
from gpu_cep.engine.phase_one.device.label_events import label_chunks, plan_labelling
from gpu_cep.engine.phase_one.device.lifted_matches import lifted_events, read_on_device, reads_lifted
from gpu_cep.engine.phase_one.device.order_events import DeviceEvents, order_on_device
from gpu_cep.engine.phase_one.device.searched_plans import join_inputs, search_on_device
from gpu_cep.engine.phase_one.device.stream_codes import encode_streams
from gpu_cep.engine.phase_one.device.windows import (
    DevicePattern,
    DeviceWindows,
    mark_covered,
    pattern_on_device,
    prune_on_device,
    windows_on_device,
)
from gpu_cep.engine.phase_one.label_events import LabelledEvents
from gpu_cep.engine.phase_one.order_events import order_events
from gpu_cep.engine.phase_one.run import PhaseOne, Run
from gpu_cep.engine.windows.direct import count_bound, labels_decide, reads_directly
from gpu_cep.engine.windows.placed_windows import judge_chained, keep_chained
from gpu_cep.plan.event_plan import EventPlan, Plan
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device.failures import DeviceLost, told_apart
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.device.packing import Layout, download_packed, pack
from gpu_cep_kernels.device.selection import give_up_device
from gpu_cep_kernels.labels_decide.direct import total_streams
from gpu_cep_kernels.rules.tables import Places

Result = TypeVar("Result")

# Below this, less memory will not help.
_LEAST_MEMORY = 1 << 20


def phase_one_on_device(run: Run, device: Device, *, searches: bool = True) -> PhaseOne:
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
    return replace(run_in_pieces(run, device, _phase_one, searches=searches), device=device, searches=searches)


def run_in_pieces(run: Run, device: Device, work: Callable[[DeviceRun, DeviceMemory], Result], *, searches: bool = True) -> Result:
    """Return the result of `work`, done in pieces that fit the device's memory.

    If an allocation fails, it is done again in smaller pieces.

    Raises
    ------
    TooLittleMemory
        With the smallest pieces they still fail.
    DeviceLost
        CUDA failed; from now on this process can use no device.
    """
    if is_resident(run.columns.table):
        # the columns may still be computed in the caller's lane
        device.synchronize()

    def attempt(memory: DeviceMemory) -> tuple[DeviceRun, Result]:
        # what a failed attempt counted must not count
        budget, profile = replace(run.budget), Profile()
        attempted = DeviceRun(run.plan, run.columns, run.tables, run.own, budget, run.threads, profile, device, searches=searches)
        return attempted, work(attempted, memory)

    done, result = in_smaller_pieces(device, memory_of(device, run.plan), attempt)
    done.profile.count_run("gpu")
    run.profile.merge(done.profile)
    run.budget.take_over(done.budget)
    return result


def in_smaller_pieces(device: Device, memory: DeviceMemory, work: Callable[[DeviceMemory], Result]) -> Result:
    """Return the result of `work` on a device, done in pieces that fit `memory`, or half as much each time that an allocation fails.

    Raises
    ------
    TooLittleMemory
        With the smallest pieces they still fail.
    DeviceLost
        CUDA failed; from now on this process can use no device.
    """
    while True:
        try:
            with told_apart(), device.lane(None):
                return work(memory)
        except DeviceLost as fault:
            give_up_device(str(fault))
            raise
        except MemoryError as fault:
            memory = memory.halve()
            if memory.bytes < _LEAST_MEMORY:
                raise TooLittleMemory(str(fault)) from fault


def _phase_one(run: DeviceRun, memory: DeviceMemory) -> PhaseOne:
    """Run phase 1 in pieces that `memory` holds."""
    source = label_and_order(run, memory)
    run.profile.add("filtered", source.total)
    plan = run.plan
    assert isinstance(plan, EventPlan), "situations have no candidate windows"
    if reads_lifted(plan):
        found = _read_lifted(run, source, memory) if run.searches else PhaseOne(source.whole())
        if found is not None:
            return found
    if not {"summary", "chain"} & set(plan.pruning) or not plan.windows_suffice:
        return PhaseOne(source.whole(), inputs=join_inputs(run, source, memory))
    (tables,) = run.tables
    query = pattern_on_device(plan, tables, run.own, source, run.device)
    batches = _batches(source, memory, memory.batch_events(source.resident))
    if not _is_direct(query, source):
        searched = search_on_device(run, query, source, batches, memory)
        return _find_candidates(run, query, source, batches) if searched is None else searched
    if run.plan.settings.output == "count":
        return _count_matches(run, query, source, batches)
    return _find_matches(run, query, source, batches, memory)


def _read_lifted(run: DeviceRun, source: EventSource, memory: DeviceMemory) -> PhaseOne | None:
    """Return the matches that lifted labels decide, or all events if there is no room for these; None if labels leave a choice."""
    try:
        batches = _batches(source, memory, lifted_events(run, source, memory))
    except TooLittleMemory:
        return PhaseOne(source.whole())
    return read_on_device(run, source, batches)


def label_and_order(run: DeviceRun, memory: DeviceMemory) -> EventSource:
    """Return the labelled events in order.

    They are on the device if all that are kept fit there, else on the host. If none are kept, the
    result is on the host, too.
    """
    plan, columns, device, profile = run.plan, run.columns, run.device, run.profile
    device_columns = DeviceColumns(columns, device)
    with profile.stage("labels"):
        labelling = plan_labelling(plan, device_columns)
        chunk_rows = memory.chunk_rows(labelling.takes)
        if not is_resident(columns.table):
            chunk_rows = min(chunk_rows, UPLOADED_CHUNK)
    with profile.stage("timestamps"):
        _refuse_null_times(plan, device_columns, chunk_rows)
    kept: list[KeptEvents] = []
    spilled: list[tuple[Places, Words]] = []
    with profile.stage("labels"):
        for part in label_chunks(plan, device_columns, labelling.steps, chunk_rows):
            kept.append(part)
            if spilled or count_kept(kept) > memory.kept_events:
                spilled += _download_kept(device, kept)
                kept.clear()
        if not count_kept(kept):
            spilled += _download_kept(device, kept)
    if spilled:
        return SpilledEvents(plan, columns, _order_on_host(run, spilled), device)
    return ResidentEvents(plan, columns, _order_on_device(run, kept, memory), device, memory.bound_events)


def _order_on_device(run: DeviceRun, kept: list[KeptEvents], memory: DeviceMemory) -> DeviceEvents:
    """Return the events of all parts in order, on the device; `kept` is emptied."""
    plan, columns, device, profile = run.plan, run.columns, run.device, run.profile
    with profile.stage("keys"):
        all_kept = concatenate_kept(device.xp, kept)
        kept.clear()
        streams = encode_streams(plan, columns, all_kept, device, memory.ranked_values)
    with profile.stage("order"):
        return order_on_device(plan, columns, all_kept, streams, device)


def _download_kept(device: Device, parts: Sequence[KeptEvents]) -> list[tuple[Places, Words]]:
    """Return rows and labels of the parts on the host."""
    return [(device.download(part.rows), device.download(part.labels)) for part in parts]


def _refuse_null_times(plan: Plan, columns: DeviceColumns, chunk_rows: int) -> None:
    """Raise EventError if a timestamp is NULL."""
    column = plan.query.timestamp
    present = columns.present(column)
    if present is not None:
        chunks = blocks(0, len(columns.columns), chunk_rows)
        refuse_missing(columns.columns, column, "NULL", sum(int((present.load(*chunk) == 0).sum()) for chunk in chunks))


def _order_on_host(run: DeviceRun, spilled: list[tuple[Places, Words]]) -> OrderedEvents:
    """Return the labelled events in order, by the same steps as on the CPU."""
    plan, columns, profile = run.plan, run.columns, run.profile
    with profile.stage("keys"):
        keys = encode_keys(columns, plan.stream_keys)
    with profile.stage("order"):
        times = load_pieces_of_times(columns, plan.query.timestamp)
        labelled = LabelledEvents([rows for rows, _ in spilled], [labels for _, labels in spilled])
        return order_events(plan, columns, times, labelled, keys, run.threads)


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
    if not reads_directly(plan, tables) or tables.branch.negations or not plan.settings.keeps_all:
        return False
    return labels_decide(tables.pattern, query.tied, source.has_overlap)


def _windows(run: DeviceRun, query: DevicePattern, source: EventSource, batch: Batch) -> DeviceWindows:
    """Return the windows of a batch."""
    return windows_on_device(query, batch, source, run.device, run.profile)


# Each of the following works off a batch in a function of its own: what it holds on the device is let go before the next.


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
        return PhaseOne(source.ordered(parts, np.concatenate(starts)))


def _find_candidates_in_batch(
    run: DeviceRun, query: DevicePattern, source: EventSource, batch: Batch, reached: Array
) -> tuple[CopiedEvents | None, Indices, Array]:  # fmt: skip
    """Return the batch's own events of candidate windows (None: there are none), and the places of those that begin one.

    `reached` says of its first events whether windows of the batch before hold them; the same is
    returned for the events behind its own.
    """
    device, xp, own = run.device, run.device.xp, batch.own - batch.low
    windows = _windows(run, query, source, batch)
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


def _count_matches(run: DeviceRun, query: DevicePattern, source: EventSource, batches: list[Batch]) -> PhaseOne:
    """Return the number of matches for each stream of each batch, counted at the first of their starts."""
    firsts, totals = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for batch in batches:
        own_firsts, own_totals = _count_in_batch(run, query, source, batch)
        firsts.append(own_firsts)
        totals.append(own_totals)
    with run.profile.stage("candidates back"):
        events = np.concatenate(firsts)
        copied = [source.copy(run.device.upload(events))] if len(events) else []
        return PhaseOne(source.ordered(copied, None), counted=(np.arange(len(events)), np.concatenate(totals)))


def _count_in_batch(run: DeviceRun, query: DevicePattern, source: EventSource, batch: Batch) -> tuple[Indices, Indices]:
    """Return the first start in each stream of a batch with matches, and the number of its matches."""
    device, xp = run.device, run.device.xp
    windows = _windows(run, query, source, batch)
    with run.profile.stage("chain"):
        holds, _ = judge_chained(windows, windows.starts, query.pattern, exact=True)
    layouts = 2 * [Layout((windows.first_starts.size,), np.int32)]
    with run.profile.stage("candidates back"):
        buffer, (first, total) = pack(xp, layouts)
        if windows.starts.size:
            held = xp.cumsum(holds, dtype=np.int32)
            device.launch(total_streams, first.size, windows.first_starts, windows.starts, held, first, total)
        firsts, totals = download_packed(device, buffer, layouts) if windows.starts.size else (np.empty(0, np.int32),) * 2
    matched = np.flatnonzero(totals)
    _account(run, source, batch, int(totals.sum()), 0, lambda match: int(windows.starts[xp.flatnonzero(holds)[match]]))
    return firsts[matched] + np.int64(batch.low), totals[matched].astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Slice:
    """Some matches, and the events that they bind, ascending; the matches give events by their places in `events`."""

    events: CopiedEvents
    matches: Matches


def _find_matches(run: DeviceRun, query: DevicePattern, source: EventSource, batches: list[Batch], memory: DeviceMemory) -> PhaseOne:
    """Return all matches, and the events that they bind.

    An event is there twice if matches of two batches bind it, or of two slices of one batch.
    """
    events: list[CopiedEvents] = []
    parts: list[Matches] = []
    bound = 0
    for found in chain.from_iterable(_find_in_batch(run, query, source, batch, memory) for batch in batches):
        parts.append(_shift_events(found.matches, bound))
        events.append(found.events)
        bound += len(found.events.placed.rows)
    with run.profile.stage("candidates back"):
        return PhaseOne(source.ordered(events, None), found=concatenate_matches(parts, query.variables))


def _shift_events(matches: Matches, bound: int) -> Matches:
    """Return the matches with all event numbers raised by `bound`."""
    return Matches(matches.first + bound, matches.counts, matches.events + bound)


def _find_in_batch(run: DeviceRun, query: DevicePattern, source: EventSource, batch: Batch, memory: DeviceMemory) -> Iterator[_Slice]:
    """Yield the matches that start in a batch, slice by slice."""
    windows = _windows(run, query, source, batch)
    with run.profile.stage("chain"):
        candidates = keep_chained(windows, windows.starts, query.pattern, exact=True)
    with run.profile.stage("matching"):
        counts = count_bound(windows, candidates, query.pattern)
        starts = candidates.starts
        _account(run, source, batch, len(starts), int(counts.sum()), lambda match: int(starts[match]))
    if candidates.starts.size:
        for low, high in cut_matches(windows, counts, memory.bound_events):
            with run.profile.stage("matching"):
                matches = bind_on_device(windows, candidates, counts, low, high)
            with run.profile.stage("candidates back"):
                found, events = _number_anew(run.device, batch, matches)
                # nothing but the numbers of events is left on the device while these are copied
                del matches
                copied = source.copy(events)
            yield _Slice(copied, found)


def _number_anew(device: Device, batch: Batch, matches: DeviceMatches) -> tuple[Matches, Array]:
    """Return matches of a batch on the host, their events numbered among those that they bind, and these among all events."""
    xp = device.xp
    held = xp.zeros(batch.high - batch.low, xp.bool_)
    held[matches.events] = True
    places = xp.cumsum(held, dtype=xp.int64) - 1
    first, bound = device.download(places[matches.first]), device.download(places[matches.events])
    return Matches(first, device.download(matches.counts), bound), xp.flatnonzero(held) + batch.low


def _account(run: DeviceRun, source: EventSource, batch: Batch, matches: int, events: int, start_of: Callable[[int], int]) -> None:
    """Report the matches of a batch to the budget; together they bind `events` events.

    ``start_of(match)`` is the event of the batch at which a match starts. No steps were made.
    """
    run.profile.add("candidates", matches)
    run.profile.add("matches", matches)
    run.profile.add("steps", 0)
    if not matches:
        return
    with name_windows(run.plan, run.columns, source.row):
        run.budget.spend(matches, events, 0, lambda match: start_of(min(match, matches - 1)) + batch.low)

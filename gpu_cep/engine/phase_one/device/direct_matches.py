"""Count, or list, the matches of windows that have one each, which their labels decide, batch by batch.

Each function that works off a batch lets go what it holds on the device before the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import add

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Matches, concatenate_matches
from gpu_cep.engine.events.start_counts import StartCounts, concatenate_counts
from gpu_cep.engine.events.window_names import name_windows
from gpu_cep.engine.phase_one.device.branch_matches import counted_phase_one
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory
from gpu_cep.engine.phase_one.device.device_matches import DeviceMatches, cut_sizes
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.event_sources import CopiedEvents, EventSource
from gpu_cep.engine.phase_one.device.windows import DevicePattern, DeviceWindows, windows_on_device
from gpu_cep.engine.phase_one.run import PhaseOne
from gpu_cep.engine.windows.direct import bind_counted, count_bound
from gpu_cep.engine.windows.placed_windows import Candidates, judge_chained, keep_chained
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.device.packing import Layout, download_packed, pack
from gpu_cep_kernels.device.primitives import sum_as
from gpu_cep_kernels.labels_decide.direct import total_streams


def count_directly(run: DeviceRun, query: DevicePattern, source: EventSource, batches: list[Batch]) -> PhaseOne:
    """Return the number of matches for each stream of each batch, counted at the first of their starts."""
    counted = [_count_in_batch(run, query, source, batch) for batch in batches]
    return counted_phase_one(run, source, concatenate_counts(counted))


def _count_in_batch(run: DeviceRun, query: DevicePattern, source: EventSource, batch: Batch) -> StartCounts:
    """Return the first start in each stream of a batch with matches, and the number of its matches."""
    device, xp = run.device, run.device.xp
    windows = windows_on_device(query, batch, source, run.device, run.profile)
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
    return StartCounts(firsts[matched] + np.int64(batch.low), totals[matched].astype(np.int64))


@dataclass(frozen=True, slots=True)
class _Slice:
    """Some matches, and the events that they bind, ascending; the matches give events by their places in `events`."""

    events: CopiedEvents
    matches: Matches


def find_directly(run: DeviceRun, query: DevicePattern, source: EventSource, batches: list[Batch], memory: DeviceMemory) -> PhaseOne:
    """Return all matches, and the events that they bind.

    An event is there twice if matches of two batches bind it, or of two slices of one batch.
    """
    events: list[CopiedEvents] = []
    parts: list[Matches] = []
    bound = 0
    for found in chain.from_iterable(_find_in_batch(run, query, source, batch, memory) for batch in batches):
        parts.append(Matches(found.matches.first + bound, found.matches.counts, found.matches.events + bound))
        events.append(found.events)
        bound += len(found.events.placed.rows)
    with run.profile.stage("candidates back"):
        return PhaseOne(source.ordered(events, None), found=concatenate_matches(parts, query.variables))


def _find_in_batch(run: DeviceRun, query: DevicePattern, source: EventSource, batch: Batch, memory: DeviceMemory) -> Iterator[_Slice]:
    """Yield the matches that start in a batch, slice by slice."""
    windows = windows_on_device(query, batch, source, run.device, run.profile)
    with run.profile.stage("chain"):
        candidates = keep_chained(windows, windows.starts, query.pattern, exact=True)
    with run.profile.stage("matching"):
        counts = count_bound(windows, candidates, query.pattern)
        starts = candidates.starts
        _account(run, source, batch, len(starts), int(sum_as(np.int64, counts)), lambda match: int(starts[match]))
    if candidates.starts.size:
        for low, high in cut_sizes(windows.place, _sizes(counts), memory.bound_events):
            with run.profile.stage("matching"):
                matches = bind_on_device(windows, candidates, counts, low, high)
            with run.profile.stage("candidates back"):
                found, events = _number_anew(run.device, batch, matches)
                # nothing but the numbers of events is left on the device while these are copied
                del matches
                copied = source.copy(events)
            yield _Slice(copied, found)


def _sizes(counts: Array) -> Array:
    """Return how many events each match binds; CuPy would compile a sum along an axis on the machine, for seconds."""
    return reduce(add, counts.T).astype(np.int64)


def bind_on_device(windows: DeviceWindows, candidates: Candidates, counts: Array, low: int, high: int) -> DeviceMatches:
    """Return the matches [low, high)."""
    assert candidates.earliest is not None
    earliest = windows.place.xp.ascontiguousarray(candidates.earliest[:, low:high])
    own, own_counts = Candidates(candidates.starts[low:high], earliest), counts[low:high]
    offsets = windows.place.xp.zeros(high - low + 1, np.int64)
    offsets[1:] = windows.place.xp.cumsum(_sizes(own_counts))
    return DeviceMatches(own.starts, own_counts, bind_counted(windows, own, own_counts, offsets, 0))


def _number_anew(device: Device, batch: Batch, matches: DeviceMatches) -> tuple[Matches, Array]:
    """Return matches of a batch on the host, and the events that they bind; the matches give events by their places among these."""
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

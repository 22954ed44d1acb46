"""Count the matches that labels decide under skip-till-any-match on a card, batch by batch; none of them is enumerated."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.start_counts import StartCounts, concatenate_counts
from gpu_cep.engine.events.window_names import name_windows
from gpu_cep.engine.phase_one.device.branch_matches import counted_phase_one
from gpu_cep.engine.phase_one.device.card_memory import PIECE, DeviceMemory
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.event_sources import EventSource
from gpu_cep.engine.phase_one.device.order_events import stream_begins
from gpu_cep.engine.phase_one.device.windows import DevicePattern, DeviceWindows, prune_on_device, windows_on_device
from gpu_cep.engine.phase_one.run import PhaseOne
from gpu_cep.engine.windows.placed_windows import Candidates
from gpu_cep.engine.windows.state_counts import bytes_of_candidate, count_by_states, sum_counts
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.states import StateSpace, branch_states
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device.interface import Array
from gpu_cep_kernels.device.primitives import sum_as

# Arrays of a count: tables, scratch, and what becomes of totals.
_ARRAYS = 32
# Bytes per candidate beside those of its count: its start, whether it has matches, its place among those, start and total once more.
_CANDIDATE = 8 + 1 + 4 * 8
# Sums below are exact in int64, even if the float sum that is compared was rounded down.
_EXACT = 2.0**62


def counts_by_states(plan: EventPlan) -> bool:
    """Return whether a card may count the matches of a plan by the states of its one branch; all matches are asked for."""
    judged = plan.windows_suffice and not {"summary", "chain"}.isdisjoint(plan.pruning)
    counted = plan.settings.output == "count" and plan.settings.keeps_all and "ses_automaton" in plan.contenders
    return judged and counted and _states(plan, tied=plan.query.ties == "strict") is not None


def _states(plan: EventPlan, *, tied: bool) -> StateSpace | None:
    """Return the states of the plan's branch, whose events may be `tied`; None if labels do not decide its matches."""
    (branch,) = plan.branches
    return branch_states(plan, branch, tied)


def count_on_device(
    run: DeviceRun, query: DevicePattern, source: EventSource, batches: list[Batch], memory: DeviceMemory
) -> PhaseOne | None:  # fmt: skip
    """Return the number of matches for each stream of each batch, counted at the first of their starts there; None without room."""
    space = _states(query.plan, tied=query.tied)
    assert space is not None, "labels decide the matches"
    at_once = memory.walked_windows(PIECE * _ARRAYS, bytes_of_candidate(space) + _CANDIDATE, 0, 0)
    if not at_once:
        return None
    counted = [_count_batch(run, query, source, batch, space, at_once) for batch in batches]
    # the profile names these counts even if there was no batch
    run.profile.add("matches", 0)
    run.profile.add("steps", 0)
    return counted_phase_one(run, source, concatenate_counts(counted))


def _count_batch(
    run: DeviceRun, query: DevicePattern, source: EventSource, batch: Batch, space: StateSpace, at_once: int
) -> StartCounts:  # fmt: skip
    """Return the first start in each stream of a batch with matches, and the number of its matches; `at_once` candidates are counted."""
    xp = run.device.xp
    windows = windows_on_device(query, batch, source, run.device, run.profile)
    candidates = prune_on_device(query, windows, run.profile)
    with run.profile.stage("matching"):
        totals = _totals(query, windows, candidates, space, at_once)
        matched = xp.flatnonzero(totals)
        starts, totals = candidates.starts[matched], totals[matched]
    with run.profile.stage("candidates back"):
        found = _by_stream(run, source.streams(batch.low, batch.high), starts, totals)
    matches = sum_counts(found.totals)
    run.profile.add("matches", matches)
    if matches:
        with name_windows(run.plan, run.columns, source.row):
            run.budget.spend(matches, 0, 0, lambda match: batch.low + _start_of(run, starts, totals, match))
    return StartCounts(found.starts + batch.low, found.totals)


def _totals(query: DevicePattern, windows: DeviceWindows, candidates: Candidates, space: StateSpace, at_once: int) -> Array:
    """Return the number of matches that start at each candidate."""
    (branch,), xp = query.plan.branches, windows.place.xp
    parts = [xp.empty(0, np.int64)]
    for low, high in blocks(0, int(candidates.starts.size), at_once):
        earliest = None if candidates.earliest is None else candidates.earliest[:, low:high]
        parts.append(count_by_states(branch, space, windows, Candidates(candidates.starts[low:high], earliest)))
    return xp.concatenate(parts)


def _by_stream(run: DeviceRun, streams: Array, starts: Array, totals: Array) -> StartCounts:
    """Return the first of the starts of each stream, and the sum of their totals; on the host.

    Where sums may not fit, each start comes with its own total.
    """
    device, xp = run.device, run.device.xp
    if not starts.size or float(sum_as(np.float64, totals)) >= _EXACT:
        return StartCounts(device.download(starts), device.download(totals))
    begins = xp.zeros(1, np.int64)
    if streams.size:
        begins = xp.append(begins, stream_begins(device, streams[starts]))
    before = xp.cumsum(totals) - totals
    sums = np.diff(device.download(before[begins]), append=int(totals.sum()))
    return StartCounts(device.download(starts[begins]), sums)


def _start_of(run: DeviceRun, starts: Array, totals: Array, match: int) -> int:
    """Return the event of the batch at which match number `match` starts; behind the last one, the last start."""
    device, xp = run.device, run.device.xp
    entry = int(xp.searchsorted(xp.cumsum(totals, dtype=np.float64), device.upload(np.array([float(match)])), side="right")[0])
    return int(starts[min(entry, int(starts.size) - 1)])

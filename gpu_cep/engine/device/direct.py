"""Matches of deterministic patterns read off the chained condition on the device, as :mod:`gpu_cep.engine.direct` does on the CPU."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_cep.engine.device.candidates import DeviceCandidates, DevicePattern, DeviceWindows, chained_on_device
from gpu_cep_kernels.device import Array
from gpu_cep_kernels.direct import bind_events, count_bindings


@dataclass(frozen=True, slots=True)
class DeviceMatches:
    """One match per window, as :class:`gpu_cep.engine.matches.Matches`; events are numbered from the batch's first."""

    first: Array
    counts: Array
    events: Array


def direct_candidates(query: DevicePattern, windows: DeviceWindows) -> DeviceCandidates:
    """The starts of the matches."""
    return chained_on_device(query, windows, windows.starts, exact=True)


def count_on_device(query: DevicePattern, windows: DeviceWindows, candidates: DeviceCandidates) -> Array:
    """How many events each match binds to each variable, [match, variable]."""
    xp = windows.device.xp
    counts = xp.empty((candidates.starts.size, query.variables), xp.int32)
    windows.device.launch(
        count_bindings, candidates.starts.size, candidates.starts, windows.clock, windows.stream_end, windows.length,
        query.pattern, windows.occurrence, candidates.earliest, counts,
    )  # fmt: skip
    return counts


def bind_on_device(windows: DeviceWindows, candidates: DeviceCandidates, counts: Array) -> DeviceMatches:
    """The matches themselves."""
    xp, starts = windows.device.xp, candidates.starts
    offsets = xp.zeros(starts.size + 1, xp.int64)
    offsets[1:] = xp.cumsum(counts.sum(axis=1, dtype=xp.int64))
    events = xp.empty(int(offsets[-1]), xp.int64)
    windows.device.launch(bind_events, starts.size, 0, offsets, counts, windows.occurrence, candidates.earliest, events)
    return DeviceMatches(starts, counts, events)

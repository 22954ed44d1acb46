"""Read the matches of deterministic patterns off the chained condition on a card.

On the CPU :mod:`gpu_cep.engine.windows.direct` does the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpu_cep.engine.phase_one.device.windows import DeviceCandidates, DevicePattern, DeviceWindows, keep_chained_on_device
from gpu_cep_kernels.device.interface import Array
from gpu_cep_kernels.labels_decide.direct import bind_events, count_bindings


@dataclass(frozen=True, slots=True)
class DeviceMatches:
    """One match per window, as :class:`gpu_cep.engine.events.matches.Matches`, on the device.

    Events are numbered from the batch's first.
    """

    first: Array
    counts: Array
    events: Array


def direct_candidates(query: DevicePattern, windows: DeviceWindows) -> DeviceCandidates:
    """Return the starts of the matches."""
    return keep_chained_on_device(query, windows, windows.starts, exact=True)


def count_on_device(query: DevicePattern, windows: DeviceWindows, candidates: DeviceCandidates) -> Array:
    """Return how many events each match binds to each variable, [match, variable]."""
    xp = windows.device.xp
    counts = xp.empty((candidates.starts.size, query.variables), xp.int32)
    windows.device.launch(
        count_bindings, candidates.starts.size, candidates.starts, windows.limits,
        query.pattern, windows.next_events.occurrence, candidates.earliest, counts,
    )  # fmt: skip
    return counts


def cut_matches(windows: DeviceWindows, counts: Array, most: int) -> list[tuple[int, int]]:
    """Return ranges of matches that bind about `most` events each."""
    device, xp = windows.device, windows.device.xp
    bound = xp.cumsum(counts.sum(axis=1, dtype=xp.int64))
    targets = np.arange(most, int(bound[-1]), most)
    inner = device.download(xp.searchsorted(bound, device.upload(targets))) if targets.size else targets
    borders = np.unique([0, *inner, counts.shape[0]]).tolist()
    return list(pairwise(borders))


def bind_on_device(windows: DeviceWindows, candidates: DeviceCandidates, counts: Array, low: int, high: int) -> DeviceMatches:
    """Return the matches [low, high)."""
    xp, starts, counts = windows.device.xp, candidates.starts[low:high], counts[low:high]
    assert candidates.earliest is not None
    earliest = xp.ascontiguousarray(candidates.earliest[:, low:high])
    offsets = xp.zeros(starts.size + 1, xp.int64)
    offsets[1:] = xp.cumsum(counts.sum(axis=1, dtype=xp.int64))
    events = xp.empty(int(offsets[-1]), xp.int64)
    windows.device.launch(bind_events, starts.size, 0, offsets, counts, windows.next_events.occurrence, earliest, events)
    return DeviceMatches(starts, counts, events)

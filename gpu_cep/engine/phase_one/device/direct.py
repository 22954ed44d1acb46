"""Read the matches of deterministic patterns off the chained condition on a card, in ranges that fit its memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np

from gpu_cep.engine.phase_one.device.windows import DeviceWindows
from gpu_cep.engine.windows.direct import bind_counted
from gpu_cep.engine.windows.placed_windows import Candidates
from gpu_cep_kernels.device.interface import Array, Place


@dataclass(frozen=True, slots=True)
class DeviceMatches:
    """Matches, window by window, as :class:`gpu_cep.engine.events.matches.Matches`, on the device.

    Events are numbered from the batch's first.
    """

    first: Array
    counts: Array
    events: Array


def cut_matches(windows: DeviceWindows, counts: Array, most: int) -> list[tuple[int, int]]:
    """Return ranges of matches that bind about `most` events each."""
    return cut_sizes(windows.place, _sizes(counts), most)


def _sizes(counts: Array) -> Array:
    """Return how many events each match binds; CuPy would compile a sum along an axis on the machine, for seconds."""
    return reduce(add, counts.T).astype(np.int64)


def cut_sizes(place: Place, sizes: Array, most: int) -> list[tuple[int, int]]:
    """Return ranges of matches, at least one, that bind about `most` events each; match m binds ``sizes[m]``."""
    bound = place.xp.cumsum(sizes)
    targets = np.arange(most, int(bound[-1]), most)
    inner = place.download(place.xp.searchsorted(bound, place.upload(targets))) if targets.size else targets
    borders = np.unique([0, *inner, sizes.size]).tolist()
    return list(pairwise(borders))


def bind_on_device(windows: DeviceWindows, candidates: Candidates, counts: Array, low: int, high: int) -> DeviceMatches:
    """Return the matches [low, high)."""
    assert candidates.earliest is not None
    earliest = windows.place.xp.ascontiguousarray(candidates.earliest[:, low:high])
    own, own_counts = Candidates(candidates.starts[low:high], earliest), counts[low:high]
    offsets = windows.place.xp.zeros(high - low + 1, np.int64)
    offsets[1:] = windows.place.xp.cumsum(_sizes(own_counts))
    return DeviceMatches(own.starts, own_counts, bind_counted(windows, own, own_counts, offsets, 0))

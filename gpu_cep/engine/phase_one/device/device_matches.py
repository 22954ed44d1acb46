"""Hold matches on a card, and cut those that bind too many events for its memory into ranges."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpu_cep_kernels.device.interface import Array, Backend


@dataclass(frozen=True, slots=True)
class DeviceMatches:
    """Matches, window by window, as :class:`gpu_cep.engine.events.matches.Matches`, on the device.

    Events are numbered from the batch's first.
    """

    first: Array
    counts: Array
    events: Array


def cut_sizes(place: Backend, sizes: Array, most: int) -> list[tuple[int, int]]:
    """Return ranges of matches, at least one, that bind about `most` events each; match m binds ``sizes[m]``."""
    bound = place.xp.cumsum(sizes)
    targets = np.arange(most, int(bound[-1]), most)
    inner = place.download(place.xp.searchsorted(bound, place.upload(targets))) if targets.size else targets
    borders = np.unique([0, *inner, sizes.size]).tolist()
    return list(pairwise(borders))

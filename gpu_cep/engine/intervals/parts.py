"""The situations in parts that are joined one by one: some streams, or where windows bound matches, a slice of one stream's time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.engine.events.event_sequence import elapsed_time
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.event_columns import Array
from gpu_cep.engine.intervals.situations import Derived

# A slice of time is at least so many windows long.
WINDOWS = 4


@dataclass(frozen=True, slots=True)
class Part:
    """Some situations, of streams from number `stream` on: those of name v in the k-th are ``offsets[v, k]`` to ``offsets[v, k + 1]``.

    Its matches are those that start before the endpoint `limit` (None: all).
    A situation may be in a match with a share `reach` of those of its stream.
    """

    stream: int
    offsets: Indices
    limit: Any
    reach: float

    @property
    def buffers(self) -> tuple[float, ...]:
        """How many situations of each name one may be in a match with (the buffers of section 5.2)."""
        streams = self.offsets.shape[1] - 1
        return tuple(self.reach * float(count) / streams for count in self.offsets[:, -1] - self.offsets[:, 0])


def parts_of(derived: Derived, window: TimeWindow | None, size: int) -> list[Part]:
    """All parts in which every name has a situation, of about `size` situations, in order of streams and time."""
    offsets = derived.situations.offsets
    before = (offsets - offsets[:, :1]).sum(axis=0)
    share = reach(derived.runs.start, window)
    parts: list[Part] = []
    low, streams = 0, len(before) - 1
    while low < streams:
        high = max(low + 1, int(np.searchsorted(before, before[low] + size, side="right")) - 1)
        part = Part(low, offsets[:, low : high + 1], None, share)
        parts += [part] if window is None or before[high] - before[low] <= size else _slices(derived, part, window, size)
        low = high
    return [part for part in parts if (part.offsets[:, -1] > part.offsets[:, 0]).all()]


def reach(starts: Array, window: TimeWindow | None) -> float:
    """The share of a stream that is in a window on either side of a situation, if situations start evenly from the first to the last."""
    if window is None or not len(starts):
        return 1.0
    span = float(elapsed_time(starts.min(keepdims=True), starts.max(keepdims=True))[0])
    return min(1.0, 2.0 * float(window.length) / span) if span else 1.0


def _slices(derived: Derived, part: Part, window: TimeWindow, most: int) -> Iterator[Part]:
    """The one stream of a part in slices that begin with situations of the name that has most; each holds what its windows reach."""
    firsts, lasts = part.offsets.T
    longest = int(np.argmax(lasts - firsts))
    size = int(lasts[longest] - firsts[longest])
    step = max(most // len(firsts), ceil(WINDOWS * size * part.reach / 2))
    borders = [int(firsts[longest]), *range(int(firsts[longest]) + step, int(lasts[longest]), step)]
    begins = [firsts, *(_begins(derived, part, border) for border in borders[1:])]
    reached = [*(_reached(derived, part, border, window) for border in borders[1:]), lasts]
    limits = [*(derived.situations.start[border] for border in borders[1:]), None]
    share = min(1.0, part.reach * size / (step * (1 + 1 / WINDOWS)))
    for begin, end, limit in zip(begins, reached, limits, strict=True):
        yield Part(part.stream, np.stack([begin, end], axis=1), limit, share)


def _begins(derived: Derived, part: Part, border: int) -> Indices:
    """Of each name the first situation that does not start before that at `border` does."""
    starts = derived.situations.start
    found = [first + np.searchsorted(starts[first:last], starts[border]) for first, last in part.offsets]
    return np.array(found, np.int64)


def _reached(derived: Derived, part: Part, border: int, window: TimeWindow) -> Indices:
    """Of each name the first situation that starts more than a window after that at `border` does."""
    starts = derived.runs.start
    begin = starts[border].item()

    def is_beyond(place: int) -> bool:
        start = starts[place].item()
        return bool(start > begin and start - begin > window.length)

    found = [first + bisect_left(range(first, last), True, key=is_beyond) for first, last in part.offsets.tolist()]
    return np.array(found, np.int64)

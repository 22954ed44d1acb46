"""Cut the situations into chunks that are joined one by one.

A chunk holds the situations of some streams. Where matches have a window, a long stream is cut into
slices of time, which overlap by a window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from math import ceil
from typing import Any

import numpy as np

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.engine.events.event_sequence import elapsed_time
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.intervals.situations import DerivedSituations
from gpu_cep.records import record

# The least length of a slice of time, in windows.
WINDOWS = 4


@record()
class SituationChunk:
    """Some situations that are joined together.

    `stream`: the number of its first stream; the others follow.
    `offsets`: the situations of name v in its k-th stream are ``offsets[v, k]`` to ``offsets[v, k + 1]``.
    `limit`: only matches that start before this endpoint are found (None: all).
    `share`: the share of a stream's situations that one situation can be in a match with.
    """

    stream: int
    offsets: Indices
    limit: Any
    share: float

    @property
    def buffers(self) -> tuple[float, ...]:
        """Return the number of situations of each name that one situation can be in a match with (section 5.2)."""
        streams = self.offsets.shape[1] - 1
        return tuple(self.share * float(count) / streams for count in self.offsets[:, -1] - self.offsets[:, 0])


def cut_chunks(derived: DerivedSituations, window: TimeWindow | None, size: int) -> list[SituationChunk]:
    """Return chunks of about `size` situations each, in the order of streams and time.

    Chunks in which some name has no situation are left out.
    """
    offsets = derived.situations.offsets
    before = (offsets - offsets[:, :1]).sum(axis=0)
    share = window_share(derived.runs.start, window)
    chunks: list[SituationChunk] = []
    low, streams = 0, len(before) - 1
    while low < streams:
        high = max(low + 1, int(np.searchsorted(before, before[low] + size, side="right")) - 1)
        chunk = SituationChunk(low, offsets[:, low : high + 1], None, share)
        chunks += [chunk] if window is None or before[high] - before[low] <= size else _cut_stream(derived, chunk, window, size)
        low = high
    return [chunk for chunk in chunks if (chunk.offsets[:, -1] > chunk.offsets[:, 0]).all()]


def window_share(starts: Array, window: TimeWindow | None) -> float:
    """Return the share of a stream that lies within a window before or behind a situation.

    It assumes that situations start evenly over time.
    """
    if window is None or not len(starts):
        return 1.0
    span = float(elapsed_time(starts.min(keepdims=True), starts.max(keepdims=True))[0])
    return min(1.0, 2.0 * float(window.length) / span) if span else 1.0


def _cut_stream(derived: DerivedSituations, chunk: SituationChunk, window: TimeWindow, most: int) -> Iterator[SituationChunk]:
    """Yield a chunk of one stream in slices of time.

    A slice begins with a situation of the most frequent name. It also holds the situations that start
    up to a window after it, since its matches may reach there.
    """
    firsts, lasts = chunk.offsets.T
    longest = int(np.argmax(lasts - firsts))
    size = int(lasts[longest] - firsts[longest])
    step = max(most // len(firsts), ceil(WINDOWS * size * chunk.share / 2))
    borders = [int(firsts[longest]), *range(int(firsts[longest]) + step, int(lasts[longest]), step)]
    begins = [firsts, *(_first_at(derived, chunk, border) for border in borders[1:])]
    reached = [*(_first_beyond(derived, chunk, border, window) for border in borders[1:]), lasts]
    limits = [*(derived.situations.start[border] for border in borders[1:]), None]
    share = min(1.0, chunk.share * size / (step * (1 + 1 / WINDOWS)))
    for begin, end, limit in zip(begins, reached, limits, strict=True):
        yield SituationChunk(chunk.stream, np.stack([begin, end], axis=1), limit, share)


def _first_at(derived: DerivedSituations, chunk: SituationChunk, border: int) -> Indices:
    """Return, for each name, the first situation that starts when the situation `border` does or later."""
    starts = derived.situations.start
    found = [first + np.searchsorted(starts[first:last], starts[border]) for first, last in chunk.offsets]
    return np.array(found, np.int64)


def _first_beyond(derived: DerivedSituations, chunk: SituationChunk, border: int, window: TimeWindow) -> Indices:
    """Return, for each name, the first situation that starts more than a window after the situation `border`."""
    starts = derived.runs.start
    begin = starts[border].item()

    def is_beyond(place: int) -> bool:
        start = starts[place].item()
        return bool(start > begin and start - begin > window.length)

    found = [first + bisect_left(range(first, last), True, key=is_beyond) for first, last in chunk.offsets.tolist()]
    return np.array(found, np.int64)

"""Random inputs of kernels, valid and of any size: values, streams of labelled events, columns, matches.

Small ones are nasty: empty streams, ties, empty labels, -0.0, NaN and the ends of int64 are drawn again and again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.matches.flat_matches import FlatMatches
from gpu_cep_kernels.phase_one.window_conditions import NextEvents, prefix_counts
from gpu_cep_kernels.phase_one.windows import WindowLimits, mark_streams, next_occurrences, window_ends
from gpu_cep_kernels.rules.tables import ColumnBank

Array = npt.NDArray[Any]
Random = np.random.Generator

LEAST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
INT_EDGES = np.array([LEAST, LEAST + 1, -(2**62), -1, 0, 2**62, GREATEST - 1, GREATEST])
FLOAT_EDGES = np.array([np.nan, -np.inf, np.inf, -0.0, 0.0, 5e-324, 2.0**52 - 0.5, 1.7e308, 0.1])
NO_WORDS = np.empty(0, np.uint64)


def integers(size: int, random: Random) -> Array:
    """Small int64 values, and some at the ends of the range."""
    values = random.integers(-4, 5, size)
    edges = random.random(size) < 0.1
    values[edges] = random.choice(INT_EDGES, np.count_nonzero(edges))
    return values


def floats(size: int, random: Random) -> Array:
    """Small float64 values in quarters, and some that are none, infinite, tiny or zero with a sign."""
    values = random.integers(-10, 11, size) / 4
    edges = random.random(size) < 0.1
    values[edges] = random.choice(FLOAT_EDGES, np.count_nonzero(edges))
    return values


def flags(size: int, random: Random, share: float = 0.5) -> Array:
    """True with a probability of `share`."""
    return random.random(size) < share


def label_words(size: int, random: Random, variables: int, word: Any, exclusive: bool = False) -> Array:
    """Labels of which many are empty; with `exclusive` none has two bits."""
    if exclusive:
        choices = np.array([0, *(1 << v for v in range(variables))], word)
        return random.choice(choices, size)
    bits = flags(variables * size, random, 0.3).reshape(variables, size)
    words = np.zeros(size, word)
    for v in range(variables):
        words |= bits[v].astype(word) << word(v)
    return words


def stream_offsets(size: int, random: Random) -> Array:
    """Where streams of so many events together begin, and the end; some streams are empty."""
    borders = np.sort(random.integers(0, size + 1, size // 32 + 2))
    return np.concatenate([[0, 0], borders, [size]]).astype(np.int64)


def event_times(offsets: Array, random: Random, kind: Any, tied: bool = True) -> Array:
    """Times that ascend in each stream, from one end of the type's range to the other in some of them."""
    size = int(offsets[-1])
    sizes = np.diff(offsets)
    steps = random.integers(0 if tied else 1, 4, size)
    times = np.cumsum(steps)
    begins, ends = offsets[:-1][sizes > 0], offsets[1:][sizes > 0]
    values = (times - np.repeat(times[begins] + 3, sizes[sizes > 0])).astype(kind)
    least, greatest = (LEAST, GREATEST) if kind is np.int64 else (-np.inf, np.inf)
    values[begins[flags(len(begins), random, 0.25)]] = least
    values[ends[flags(len(ends), random, 0.25)] - 1] = greatest
    if kind is np.float64:
        values[(values == 0) & flags(size, random)] = -0.0
    return values


@dataclass(frozen=True, slots=True)
class Streams:
    """Labelled events of several streams in order of time, and what phase 1 makes of them."""

    offsets: Array
    times: Array
    length: Any
    labels: Array
    stream_end: Array
    after: Array
    occurrence: Array
    counts: Array

    @property
    def limits(self) -> WindowLimits:
        """Where windows over the times end."""
        return WindowLimits(self.times, self.stream_end, self.length)

    @property
    def next_events(self) -> NextEvents:
        """The events that follow each one."""
        return NextEvents(self.after, self.occurrence)


def streams(
    size: int,
    random: Random,
    *,
    variables: int = 3,
    word: Any = np.uint64,
    time: Any = np.int64,
    tied: bool = True,
    exclusive: bool = False,
) -> Streams:
    """Random streams; `time` is int64, which kernels see as uint64, or float64. `after` is empty without ties."""
    offsets = stream_offsets(size, random)
    times = event_times(offsets, random, time, tied)
    clock = times.view(np.uint64) if time is np.int64 else times
    labels = label_words(size, random, variables, word, exclusive)
    stream_end, after = np.empty(size, np.int32), np.empty(size + 1, np.int32)
    mark_streams(0, offsets, 0, len(offsets) - 1, clock, stream_end, after)
    occurrence, counts = np.empty((variables, size + 2), np.int32), np.empty((variables, size + 1), np.int32)
    next_occurrences(labels, variables, occurrence)
    prefix_counts(labels, variables, counts)
    return Streams(offsets, clock, clock.dtype.type(9), labels, stream_end, after if tied else after[:0], occurrence, counts)


def start_events(labels: Array, minimal: int) -> Array:
    """The events that satisfy a variable of the mask `minimal`."""
    return np.flatnonzero(labels & labels.dtype.type(minimal))


def ends_of(events: Streams, starts: Array) -> Array:
    """Where the windows of `starts` end."""
    ends = np.empty(len(starts), np.int32)
    window_ends(0, len(starts), starts, starts, events.limits, ends)
    return ends


def column_bank(size: int, random: Random, nulls: bool = True) -> ColumnBank:
    """Two int64 and two float64 columns, and two of lists."""
    words = [random.integers(0, 4, size, np.uint64) & random.integers(0, 4, size, np.uint64) if nulls else NO_WORDS for _ in range(2)]
    vectors = floats(2 * size * 3, random).reshape(2, size, 3)
    return ColumnBank(integers(2 * size, random).reshape(2, size), floats(2 * size, random).reshape(2, size), words[0], words[1], vectors)


def flat_matches(size: int, random: Random, variables: int = 3) -> FlatMatches:
    """Random matches, of few distinct events, so that many begin alike."""
    counts = random.integers(1, 4, (size, variables)).astype(np.int32)
    offsets = places_of(counts.sum(axis=1))
    bindings = np.repeat(np.arange(counts.size), counts.ravel())
    events = random.integers(0, 6, int(offsets[-1]))
    return FlatMatches(offsets, counts, events[np.lexsort([events, bindings])])


def places_of(sizes: Array) -> Array:
    """Where segments of these sizes begin, and the end."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)

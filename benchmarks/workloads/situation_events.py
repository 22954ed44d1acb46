"""Events whose boolean columns hold during situations drawn at random, as TPStream's generator makes them (section 6.1).

The paper states an event each second, any number of boolean columns, situations of 10 to 100 seconds and gaps of 10 to 50 between
them, both uniform, and that a situation of n seconds is n events. It states ratios of average durations with the first fixed at 55
seconds (section 6.3.1) and ratios of occurrence that change after thirds of the events (section 6.4.2), not how they are reached.

Chosen: lengths are whole seconds, bounds included; columns are independent of one another and begin in a gap. A ratio of durations
scales both bounds. A situation that occurs more rarely has longer gaps, scaled so that a gap and a situation together take that many
times as long; situations keep their lengths. A situation that has begun when a third ends is not cut, and a gap begins anew. The last
situation may be cut by the end of the events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

SEED = 2026
DURATIONS, GAPS = (10, 100), (10, 50)

WINDOWS = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)  # seconds: figures 5 (c) and 7 (b)
DURATION_RATIOS = ((2, 1), (4, 3), (1, 1), (2, 3), (1, 2))  # figure 7 (a)
OCCURRENCE_RATIOS = ((1, 1, 1), (1, 50, 50), (50, 1, 50))  # figure 8 (b), one for each third
STREAM_COUNTS = range(4, 11)  # figure 6


@dataclass(frozen=True, slots=True)
class SituationStream:
    """A boolean column: bounds of its situations and of its gaps in seconds, and how many times more rarely it occurs in each part."""

    name: str
    durations: tuple[int, int] = DURATIONS
    gaps: tuple[int, int] = GAPS
    rarities: tuple[float, ...] = (1,)


def plain_streams(count: int) -> tuple[SituationStream, ...]:
    """Return S1, S2, …, as section 6.1 has them."""
    return tuple(SituationStream(f"S{number}") for number in range(1, count + 1))


def streams_of_durations(a: float, b: float) -> tuple[SituationStream, SituationStream]:
    """Return A and B, whose durations are as `a` to `b` on average; A's are always the same (section 6.3.1)."""
    low, high = (round(bound * b / a) for bound in DURATIONS)
    return SituationStream("A"), SituationStream("B", durations=(low, high))


def streams_of_occurrences(ratios: Sequence[Sequence[float]] = OCCURRENCE_RATIOS) -> tuple[SituationStream, ...]:
    """Return A, B, …, which occur in these ratios, each holding for an equal part of the events (section 6.4.2)."""
    rarities = [tuple(max(ratio) / share for share in ratio) for ratio in ratios]
    return tuple(SituationStream(name, rarities=own) for name, own in zip("ABCDEFGHIJ", zip(*rarities, strict=True), strict=False))


def situation_events(events: int, streams: Sequence[SituationStream], seed: int = SEED) -> pa.Table:
    """Return an event each second: the column ts, and one for each stream."""
    columns = {stream.name: _holding(draw_situations(events, stream, place, seed), events) for place, stream in enumerate(streams)}
    return pa.table({"ts": np.arange(events), **columns})


def draw_situations(events: int, stream: SituationStream, place: int, seed: int = SEED) -> tuple[np.ndarray, np.ndarray]:
    """Return when the situations of the stream at `place` begin and end, half-open; those of later streams do not depend on it."""
    rng = np.random.default_rng([seed, place])
    parts = len(stream.rarities)
    begin, starts, ends = 0, [], []
    for part, rarity in enumerate(stream.rarities, 1):
        limit = events * part // parts
        drawn_starts, drawn_ends = _cycles(rng, stream, rarity, begin, limit)
        starts.append(drawn_starts)
        ends.append(drawn_ends)
        begin = max(limit, int(drawn_ends[-1]) if len(drawn_ends) else begin)
    return np.concatenate(starts), np.minimum(np.concatenate(ends), events)


def _cycles(rng: np.random.Generator, stream: SituationStream, rarity: float, begin: int, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return gaps, each with the situation behind it, from `begin` on: those of which the situation begins before `limit`."""
    low, high = _gap_bounds(stream, rarity)
    cycles = max(limit - begin, 0) // (low + stream.durations[0]) + 1
    gaps = rng.integers(low, high + 1, cycles)
    durations = rng.integers(stream.durations[0], stream.durations[1] + 1, cycles)
    ends = begin + np.cumsum(gaps + durations)
    starts = ends - durations
    kept = int(np.searchsorted(starts, limit))
    return starts[:kept], ends[:kept]


def _gap_bounds(stream: SituationStream, rarity: float) -> tuple[int, int]:
    """Return the stream's bounds, scaled so that a gap and a situation take `rarity` times as long."""
    duration, gap = np.mean(stream.durations), np.mean(stream.gaps)
    factor = (rarity * (duration + gap) - duration) / gap
    return round(stream.gaps[0] * factor), round(stream.gaps[1] * factor)


def _holding(situations: tuple[np.ndarray, np.ndarray], events: int) -> np.ndarray:
    edges = np.stack(situations, axis=1).reshape(-1)
    lengths = np.diff(edges, prepend=0, append=events)
    return np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)

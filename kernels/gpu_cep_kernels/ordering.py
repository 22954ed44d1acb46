"""Streams: a stable counting sort of events by stream, and their order in time inside each."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.jit import kernel


@kernel
def histogram(rows: Any, keys: Any, counts: Any) -> None:
    """``counts[k]`` += the number of `rows` whose stream is k."""
    for j in range(rows.size):
        counts[keys[rows[j]]] += 1


@kernel
def exclusive_offsets(counts: Any, offsets: Any) -> None:
    """First places of each (slice, stream) in stream-major order, in place; `offsets` receives each stream's start and the end of the last.

    `counts` is [slice, stream].
    """
    total = 0
    for k in range(counts.shape[1]):
        offsets[k] = total
        for part in range(counts.shape[0]):
            size = counts[part, k]
            counts[part, k] = total
            total += size
    offsets[counts.shape[1]] = total


@kernel
def place(rows: Any, keys: Any, places: Any, destination: Any) -> None:
    """``destination[j]``: where row ``rows[j]`` goes; `places` holds the next free place of each stream and is advanced."""
    for j in range(rows.size):
        k = keys[rows[j]]
        destination[j] = places[k]
        places[k] += 1


@kernel
def scatter(rows: Any, destination: Any, column: Any, out: Any) -> None:
    """``out[destination[j]] = column[rows[j]]``."""
    for j in range(rows.size):
        out[destination[j]] = column[rows[j]]


@kernel
def scatter_values(values: Any, destination: Any, out: Any) -> None:
    """``out[destination[j]] = values[j]``."""
    for j in range(values.size):
        out[destination[j]] = values[j]


@kernel
def count_disorder(low: int, high: int, offsets: Any, times: Any, ranks: Any) -> int:
    """In how many of the streams [low, high) some event is earlier than the one before it, by time and then by rank (`ranks` may be empty)."""
    count = 0
    for s in range(low, high):
        disordered = False
        for e in range(offsets[s] + 1, offsets[s + 1]):
            disordered |= times[e] < times[e - 1] or (ranks.size > 0 and times[e] == times[e - 1] and ranks[e] < ranks[e - 1])
        count += disordered
    return count


@kernel
def sort_streams(low: int, high: int, offsets: Any, times: Any, ranks: Any, permutation: Any) -> None:
    """A stable order by time, then by rank, inside each of the streams [low, high): ``permutation[place] = event``."""
    for s in range(low, high):
        begin, end = offsets[s], offsets[s + 1]
        order = np.arange(begin, end)
        if ranks.size > 0:
            order = order[np.argsort(ranks[begin:end], kind="mergesort")]
        permutation[begin:end] = order[np.argsort(times[order], kind="mergesort")]

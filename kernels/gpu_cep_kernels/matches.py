"""Flat matches: their order, and their bindings variable by variable."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.jit import kernel, rule


@rule
def _precedes(left: int, right: int, offsets: Any, counts: Any, events: Any, lasts: Any) -> bool:
    """Whether match `left` comes before `right` of the same first event: by last event, then variable by variable as lists of positions."""
    if lasts[left] != lasts[right]:
        return lasts[left] < lasts[right]  # type: ignore[no-any-return]
    a, b = offsets[left], offsets[right]
    for v in range(counts.shape[1]):
        shared = min(counts[left, v], counts[right, v])
        for k in range(shared):
            if events[a + k] != events[b + k]:
                return events[a + k] < events[b + k]  # type: ignore[no-any-return]
        if counts[left, v] != counts[right, v]:
            return counts[left, v] < counts[right, v]  # type: ignore[no-any-return]
        a += counts[left, v]
        b += counts[right, v]
    return False


@kernel
def order_matches(low: int, high: int, groups: Any, offsets: Any, counts: Any, events: Any, lasts: Any, order: Any) -> None:
    """``order``: the matches of the groups [low, high) (those of one first event), each group by last event and bindings.

    Group g holds the matches ``groups[g]`` to ``groups[g + 1]``; a bottom-up merge sort.
    """
    for g in range(low, high):
        begin, end = groups[g], groups[g + 1]
        source = np.arange(begin, end)
        target = np.empty_like(source)
        width = 1
        while width < source.size:
            for start in range(0, source.size, 2 * width):
                middle, stop = min(start + width, source.size), min(start + 2 * width, source.size)
                i, j = start, middle
                for place in range(start, stop):
                    from_right = j < stop and (i >= middle or _precedes(source[j], source[i], offsets, counts, events, lasts))
                    target[place] = source[j] if from_right else source[i]
                    i += not from_right
                    j += from_right
            source, target = target, source
            width *= 2
        order[begin:end] = source


@kernel
def last_events(low: int, high: int, offsets: Any, events: Any, lasts: Any) -> None:
    """``lasts[m]``: the latest event of match m."""
    for m in range(low, high):
        latest = events[offsets[m]]
        for k in range(offsets[m] + 1, offsets[m + 1]):
            latest = max(latest, events[k])
        lasts[m] = latest


@kernel
def split_binding(low: int, high: int, v: int, offsets: Any, counts: Any, events: Any, places: Any, out: Any) -> None:
    """The events bound to variable v, match after match: match m's go to ``out[places[m]:]``."""
    for m in range(low, high):
        begin = offsets[m]
        for u in range(v):
            begin += counts[m, u]
        for k in range(counts[m, v]):
            out[places[m] + k] = events[begin + k]


@kernel
def gather_matches(low: int, high: int, order: Any, offsets: Any, counts: Any, events: Any, new_offsets: Any, new_counts: Any, new_events: Any) -> None:
    """Matches in a new order: match m of the result is match ``order[m]``."""
    for m in range(low, high):
        old = order[m]
        new_counts[m] = counts[old]
        for k in range(offsets[old + 1] - offsets[old]):
            new_events[new_offsets[m] + k] = events[offsets[old] + k]

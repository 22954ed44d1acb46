"""Match windows, ties and next occurrences, for all events of a range of streams at once."""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.jit import kernel
from gpu_cep_kernels.rules import bit, within


@kernel
def stream_ends(low: int, offsets: Any, first_stream: int, ends: Any) -> None:
    """``ends[e]``: the end of the stream of event ``low + e``; `first_stream` is the stream of event `low`."""
    stream = first_stream
    for e in range(ends.size):
        while offsets[stream + 1] <= low + e:
            stream += 1
        ends[e] = offsets[stream + 1] - low


@kernel
def mark_ties(times: Any, stream_end: Any, after: Any) -> int:
    """``after[e]``: the first event of the stream that is later than e (strict order); returns how many events tie with the next."""
    ties = 0
    size = times.size
    for back in range(size):
        e = size - 1 - back
        tied = e + 1 < stream_end[e] and e + 1 < size and times[e + 1] == times[e]
        after[e] = after[e + 1] if tied else e + 1
        ties += tied
    return ties


@kernel
def time_windows(times: Any, stream_end: Any, length: Any, ends: Any) -> None:
    """The match window of each event (thesis Def. 4.3): the events [e, ends[e]), by two pointers."""
    end = 0
    for e in range(ends.size):
        end = max(end, e + 1)
        limit = min(stream_end[e], times.size)
        while end < limit and within(times[e], times[end], length):
            end += 1
        ends[e] = end


@kernel
def count_windows(stream_end: Any, events: int, ends: Any) -> None:
    """The match window of each event where it is a number of events."""
    for e in range(ends.size):
        ends[e] = min(stream_end[e], e + events)


@kernel
def next_occurrences(labels: Any, variables: int, occurrence: Any) -> None:
    """``occurrence[v, e]``: the first event at or after e whose label has bit v, or ``labels.size``.

    `occurrence` is [variable, event], with one slot more than there are events.
    """
    size = labels.size
    for v in range(variables):
        found = size
        row = occurrence[v]
        row[size] = size
        mask = bit(v)
        for back in range(size):
            e = size - 1 - back
            found = e if labels[e] & mask else found
            row[e] = found


@kernel
def window_end(times: Any, first: int, limit: int, length: Any) -> int:
    """The end of one match window by binary search: the first event before `limit` out of reach of event `first`."""
    low, high = first + 1, limit
    while low < high:
        middle = (low + high) // 2
        if within(times[first], times[middle], length):
            low = middle + 1
        else:
            high = middle
    return low

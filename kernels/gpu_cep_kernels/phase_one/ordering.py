"""Sort events by stream (a stable counting sort), and by time within each stream."""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.rules.tables import Places

# Faults in the order of events: some event is earlier than the one before it, or at the same time.
DISORDERED, TIED = 1, 2


@sequential(writes=("counts", "streams"))
def histogram(rows: Any, base: int, keys: Any, counts: Any, streams: Any) -> None:
    """``counts[k]``: raised by the number of `rows` whose stream is k; ``streams[j]``: the stream of row ``rows[j]``.

    The first row of `keys` is number `base`.
    """
    for j in range(rows.size):
        k = keys[rows[j] - base]
        counts[k] += 1
        streams[j] = k


@sequential(writes=("counts", "offsets"))
def exclusive_offsets(counts: Any, order: Any, offsets: Any) -> None:
    """Replace ``counts[slice, stream]`` by the first place of each slice's events of each stream.

    Streams follow one another in `order`, which has their codes (empty: as they
    are). Within a stream slices do. ``offsets[s]`` is where the s-th stream of that
    order begins; the last entry is the end.
    """
    total = 0
    for s in range(counts.shape[1]):
        k = order[s] if order.size > 0 else s
        offsets[s] = total
        for part in range(counts.shape[0]):
            size = counts[part, k]
            counts[part, k] = total
            total += size
    offsets[counts.shape[1]] = total


@sequential(writes=("places", "destinations"))
def find_destinations(places: Any, destinations: Any) -> None:
    """Replace each stream in `destinations` by the next free place of that stream; ``places[k]`` is stream k's, and advances."""
    for j in range(destinations.size):
        k = destinations[j]
        destination = places[k]
        places[k] = destination + 1
        destinations[j] = destination


@sequential(writes=("out",))
def scatter_times(rows: Any, base: int, destinations: Any, times: Any, out: Any) -> bool:
    """Do as :func:`scatter`; return whether no row has an earlier time than the row before it, whatever their streams."""
    falls = 0
    if rows.size > 0:
        before = times[rows[0] - base]
        for j in range(rows.size):
            time = times[rows[j] - base]
            falls += time < before
            before = time
            out[destinations[j]] = time
    return falls == 0


@kernel(writes=("out",))
def put(low: int, high: int, destinations: Any, values: Any, out: Any) -> None:
    """``out[destinations[j]] = values[j]``."""
    for j in range(low, high):
        out[destinations[j]] = values[j]


@sequential(writes=())
def order_faults(begin: int, end: int, times: Any) -> int:
    """Return what is wrong with the order of the events [begin, end) as one stream: the bits DISORDERED and TIED."""
    backward, tied = 0, 0
    earlier, later = times[begin : end - 1], times[begin + 1 : end]
    for e in range(later.size):
        backward += later[e] < earlier[e]
        tied += later[e] == earlier[e]
    return (DISORDERED if backward > 0 else 0) | (TIED if tied > 0 else 0)


@sequential(writes=("last",))
def order_faults_of_streams(streams: Any, times: Any, last: Places) -> int:
    """Do as :func:`order_faults`, for events of several streams.

    ``last[s]`` is given as −1, and becomes the last event of stream s.
    """
    faults = 0
    for e in range(times.size):
        before = last[streams[e]]
        if before >= 0:
            faults |= DISORDERED * (times[e] < times[before]) | TIED * (times[e] == times[before])
        last[streams[e]] = e
    return faults


@kernel(writes=("out",))
def gather(low: int, high: int, rows: Any, base: int, column: Any, out: Any) -> None:
    """``out[j] = column[rows[j] - base]``; the column's first row is number `base`."""
    for j in range(low, high):
        out[j] = column[rows[j] - base]


@kernel(writes=("out",))
def gather_there(low: int, high: int, rows: Any, base: int, column: Any, out: Any) -> None:
    """Do as :func:`gather`, for those of the `rows` that the column has."""
    for j in range(low, high):
        row = rows[j] - base
        if 0 <= row < column.size:
            out[j] = column[row]


@kernel(writes=("out",))
def scatter(low: int, high: int, rows: Any, base: int, destinations: Any, column: Any, out: Any) -> None:
    """``out[destinations[j]] = column[rows[j] - base]``; the column's first row is number `base`."""
    for j in range(low, high):
        out[destinations[j]] = column[rows[j] - base]


@rule
def earlier(left: int, right: int, times: Any, ranks: Any) -> bool:
    """Return whether event `left` comes before `right` by time and then by rank (`ranks` may be empty)."""
    return times[left] < times[right] or (ranks.size > 0 and times[left] == times[right] and ranks[left] < ranks[right])


@kernel(writes=("disordered",))
def mark_disordered_streams(low: int, high: int, offsets: Any, times: Any, ranks: Any, disordered: Any) -> None:
    """``disordered[s]``: whether some event of stream s comes, by time and then by rank, before the one in front of it.

    `ranks` may be empty.
    """
    for s in range(low, high):
        found = False
        for e in range(offsets[s] + 1, offsets[s + 1]):
            found |= earlier(e, e - 1, times, ranks)
        disordered[s] = found


@kernel(writes=("permutation",), scratch=("scratch",))
def sort_streams(low: int, high: int, offsets: Any, times: Any, ranks: Any, permutation: Any, scratch: Any) -> None:
    """``permutation[place]``: the event that belongs there, in order of time, then of rank, within each stream.

    It is a stable bottom-up merge sort over runs of 1, 2, 4 … events. `scratch` is
    as long as `permutation`. Runs that are already in order are left as they are.
    """
    for s in range(low, high):
        begin, end = offsets[s], offsets[s + 1]
        for e in range(begin, end):
            permutation[e] = e
        width = 1
        while width < end - begin:
            for start in range(begin, end - width, 2 * width):
                middle, stop = start + width, min(start + 2 * width, end)
                if earlier(permutation[middle], permutation[middle - 1], times, ranks):
                    for e in range(start, stop):
                        scratch[e] = permutation[e]
                    i, j = start, middle
                    for place in range(start, stop):
                        from_right = j < stop and (i >= middle or earlier(scratch[j], scratch[i], times, ranks))
                        permutation[place] = scratch[j] if from_right else scratch[i]
                        i += not from_right
                        j += from_right
            width *= 2


@sequential(writes=("streams",))
def streams_of(events: Any, offsets: Any, streams: Any) -> None:
    """``streams[i]``: the stream of ``events[i]``; events ascend."""
    stream = 0
    for i in range(events.size):
        while offsets[stream + 1] <= events[i]:
            stream += 1
        streams[i] = stream

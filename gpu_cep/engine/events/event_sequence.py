"""Hold the events of a run over situations by position, on the host or on a device.

A stream's events are in order of time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpu_cep.engine.events.batches import MOST_EVENTS
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device.interface import HOST, Array, Backend
from gpu_cep_kernels.phase_one.rare_events import Nearness, find_spans

# The position of what is no event.
NO_POSITION = -1


@record()
class EventSequence:
    """The events by position; those of a stream are in order of time.

    ``streams[p]`` is the number, below `count`, of the stream of the event at position p. It is
    None if there is one stream, or if `offsets` tells. ``rows[p]`` is the event's input row; if
    `rows` is None, that is p. `offsets` says where each stream begins, and where the last one ends.
    It is None if streams are not contiguous. The arrays lie at `place`. Values of at most `at_once`
    events are downloaded at a time.
    """

    times: Array
    streams: Array | None
    count: int
    rows: Array | None
    offsets: Indices | None
    place: Backend = HOST
    at_once: int = MOST_EVENTS

    def __len__(self) -> int:
        return len(self.times)

    def input_rows(self, positions: Array) -> Array:
        """Return the input rows of the events at some positions, on the host, in the order given."""
        return positions if self.rows is None else self.gather(self.rows, positions)

    def gather(self, column: Array, positions: Array) -> Array:
        """Return the values of a column at some positions, on the host; the column lies at `place`."""
        return self.compute_at(lambda places: column[places], positions)

    def compute_at(self, function: Callable[[Array], Array], positions: Array) -> Array:
        """Apply `function` to some positions at `place`, and return the result on the host."""
        place = self.place
        spans = list(blocks(0, len(positions), self.at_once)) or [(0, 0)]
        parts = [place.download(function(place.upload(positions[low:high]))) for low, high in spans]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def of_streams(self, values: Array) -> Array:
        """Return ``values[s]`` for the stream s of each event, on the host; a single one if there is one stream."""
        if self.streams is not None:
            return values[self.streams]
        return values if self.offsets is None else np.repeat(values, np.diff(self.offsets))

    def moments(self, positions: Indices, streams: Array, times: Array) -> Indices:
        """Return, for events at some positions of these streams, the first event of their stream with the same time.

        `times` are those of these events, on the host.
        """
        assert self.offsets is not None, "streams lie one after the other"
        earlier = self.gather(self.times, np.maximum(positions - 1, 0))
        # few have one before them that ties
        tied = np.flatnonzero((positions > self.offsets[streams]) & (earlier == times))
        found = positions.copy()
        found[tied] = self.tied_events(positions[tied], streams[tied])[0]
        return found

    def tied_events(self, positions: Indices, streams: Array) -> tuple[Indices, Indices]:
        """Return the first and the last event with the same time, as :meth:`moments` does."""
        assert self.offsets is not None, "streams lie one after the other"
        place, clock = self.place, as_clock(self.times)
        nothing = clock.dtype.type(0)
        spans = np.empty((2, len(positions)), np.int64)
        for low, high in blocks(0, len(positions), self.at_once):
            own = streams[low:high]
            events = positions[low:high], self.offsets[own], self.offsets[own + 1]
            found = [place.xp.empty(high - low, np.int64) for _ in range(2)]
            place.launch(find_spans, high - low, *map(place.upload, events), Nearness(clock, nothing, nothing), *found)
            spans[:, low:high] = [place.download(each) for each in found]
        return spans[0], spans[1] - 1


def host_sequence(ordered: OrderedEvents) -> EventSequence:
    """Return ordered events as a sequence on the host."""
    rows = ordered.rows.astype(np.int32, copy=False)
    return EventSequence(as_signed(ordered.times), None, len(ordered.offsets) - 1, rows, ordered.offsets)


def as_signed(times: Array) -> Array:
    """Return times with those stored as uint64 as int64 again; float64 stays."""
    return times if times.dtype.kind == "f" else times.view(np.int64)


def as_clock(points: Array) -> Array:
    """Return times as float64 or uint64, so that their differences cannot overflow."""
    return points if points.dtype.kind == "f" else points.view(np.uint64)


def elapsed_time(start: Array, end: Array) -> Array:
    """Return the time from `start` to `end` (uint64 or float64); 0 from infinity to infinity."""
    if start.dtype.kind != "f":
        return end.view(np.uint64) - start.view(np.uint64)
    with np.errstate(invalid="ignore"):
        length = end - start
    # infinity less infinity is NaN
    length[start == end] = 0.0
    return length

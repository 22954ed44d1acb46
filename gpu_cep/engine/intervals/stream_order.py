"""Bring the events that situations need into the order of streams, where streams are interleaved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpu_cep.engine.events.event_sequence import EventSequence
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.pieces import Pieces
from gpu_cep.engine.phase_one.order_events import find_stream_places
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.intervals.situations import NEVER, select_between
from gpu_cep_kernels.phase_one.ordering import put


@record()
class StreamOrder:
    """Some events of a sequence, stream after stream, each in order of time.

    `rows`: their input rows, in that order.
    `places`: the place in `rows` of the event at each position; meaningless for other events.
    """

    rows: Array
    places: Array


@record()
class Extent:
    """The streams of some situations, and the positions of their first and last events."""

    stream: Array
    first: Array
    last: Array


def order_by_stream(events: EventSequence, extents: Sequence[Extent], threads: int) -> StreamOrder | None:
    """Return the events between the first and the last one that situations have of each stream, in the order of streams.

    The result is None if the events of a situation follow one another as they are.
    """
    streams = events.streams
    if streams is None or events.offsets is not None:
        return None
    first, last = np.full(events.count, NEVER, np.int32), np.full(events.count, -1, np.int32)
    for extent in extents:
        np.minimum.at(first, extent.stream, extent.first)
        np.maximum.at(last, extent.stream, extent.last)
    spans = slices(len(events), threads) or [(0, 0)]

    def select(span: tuple[int, int]) -> Array:
        positions = new_values(span[1] - span[0] + 1, np.int32)
        return positions[: select_between(*span, streams, first, last, positions)]

    return _sort_by_stream(events, streams, spread(select, spans, threads), threads)


def _sort_by_stream(events: EventSequence, streams: Array, parts: Sequence[Array], threads: int) -> StreamOrder:
    """Return the events at the ascending positions of all `parts` in the order of streams, by a counting sort."""
    sort_places = find_stream_places(parts, Pieces.of([streams]), events.count, _AS_NUMBERED, threads)
    sorted_positions, places = new_values(int(sort_places.offsets[-1]), np.int32), new_values(len(events), np.int32)

    def sort(part: int) -> None:
        positions = parts[part]
        destinations = sort_places.destinations(part)
        put(0, len(positions), destinations, positions, sorted_positions)
        put(0, len(positions), positions, destinations, places)

    spread(sort, range(len(parts)), threads)
    return StreamOrder(events.input_rows(sorted_positions), places)


_AS_NUMBERED = np.empty(0, np.int64)

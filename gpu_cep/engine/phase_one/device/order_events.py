"""Group the kept events by stream, and sort them by time, on the device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.stream_keys import RANKED, combine_codes, shift_codes, text_ranks
from gpu_cep.engine.events.tie_ranks import find_ties, rank_rows
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.times import refuse_missing
from gpu_cep.engine.phase_one.device.label_events import Chunk, LabelledChunk
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.device.interface import Array, Device
from gpu_cep_kernels.device.primitives import any_set, dense_codes, stable_order, stream_numbers
from gpu_cep_kernels.phase_one.ordering import mark_disorder

# Codes of several key columns are combined by multiplication up to here, and made dense from there on.
_LARGEST_CODE = 2**31
# The key NaN: greater than every other float seen as an ordered integer.
_NAN = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class KeptKey:
    """A stream key of the kept events: int64 in the order of the key's values, or codes of text.

    `present` is 0 where the key is NULL; None if it never is.
    """

    values: Array
    present: Array | None


@dataclass(frozen=True, slots=True)
class KeptEvents:
    """The kept events of one chunk, or of several.

    `rows` are int32, `labels` [word, event], and `times` int64 or float64.
    """

    rows: Array
    labels: Array
    times: Array
    keys: tuple[KeptKey, ...]


@dataclass(frozen=True, slots=True)
class DeviceEvents:
    """The kept events on the device: stream after stream, each in stream order.

    ``offsets[s]``, on the host, is where stream s begins. No stream is empty unless all are.
    `times` are float64 or uint64, as in
    :class:`gpu_cep.engine.events.ordered_events.OrderedEvents`.
    """

    offsets: Indices
    times: Array
    labels: Array
    rows: Array
    keys_ordered: bool


def keep_events(plan: Plan, labelled: LabelledChunk) -> KeptEvents:
    """Return the columns of a chunk's kept events that ordering needs.

    Raises
    ------
    EventError
        A timestamp of the chunk is NaN.
    """
    chunk = labelled.chunk
    return KeptEvents(
        rows=labelled.rows,
        labels=labelled.labels,
        times=labelled.pick(_times(plan, chunk)),
        keys=tuple(_kept_key(labelled, column) for column in plan.stream_keys),
    )


def _times(plan: Plan, chunk: Chunk) -> Array:
    """Return the timestamps of a chunk as int64 or float64, -0.0 as 0.0."""
    xp, column = chunk.device.xp, plan.query.timestamp
    times = chunk.values(column)
    if times.dtype.kind == "i":
        return times.astype(xp.int64, copy=False)
    missing = xp.isnan(times)
    refuse_missing(chunk.columns.columns, column, "NaN", int(missing.sum()) if any_set(missing) else 0)
    # -0.0 is 0.0, also to a sort by bits
    return times.astype(xp.float64) + 0.0


def _kept_key(labelled: LabelledChunk, column: int) -> KeptKey:
    """Return a stream key of the events that are kept."""
    chunk = labelled.chunk
    present = chunk.present(column)
    values = labelled.pick(chunk.values(column))
    ordered = _ordered_bits(chunk.device.xp, values) if values.dtype.kind == "f" else values.astype(chunk.device.xp.int64)
    return KeptKey(ordered, None if present is None else labelled.pick(present))


def _ordered_bits(xp: Any, values: Array) -> Array:
    """Return floats as int64 in the same order: -0.0 as 0.0, NaN last."""
    bits = (values.astype(xp.float64) + 0.0).view(xp.int64)
    ordered = xp.where(bits < 0, bits ^ xp.int64(_NAN), bits)
    return xp.where(xp.isnan(values), xp.int64(_NAN), ordered)


def concatenate_kept(xp: Any, parts: Sequence[KeptEvents]) -> KeptEvents:
    """Return the events of several parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    columns = [[part.keys[number] for part in parts] for number in range(len(parts[0].keys))]
    return KeptEvents(
        rows=xp.concatenate([part.rows for part in parts]),
        labels=xp.concatenate([part.labels for part in parts], axis=1),
        times=xp.concatenate([part.times for part in parts]),
        keys=tuple(KeptKey(xp.concatenate([key.values for key in keys]), _concatenate_masks(xp, keys)) for keys in columns),
    )


def _concatenate_masks(xp: Any, keys: Iterable[KeptKey]) -> Array | None:
    """Return the masks as one; None if there are none."""
    masks = [key.present for key in keys]
    return None if masks[0] is None else xp.concatenate(masks)


@dataclass(frozen=True, slots=True)
class StreamCodes:
    """The stream of each event, as a code in [0, count); None if all events are one stream.

    `ordered`: codes ascend with the keys.
    """

    codes: Array | None
    count: int
    ordered: bool


def encode_streams(plan: Plan, columns: EventColumns, kept: KeptEvents, device: Device, most_ranked: int) -> StreamCodes:
    """Return a code for each combination of the kept events' keys.

    NULLs are one key value, and so are NaNs. Text of up to `most_ranked` distinct values gets codes
    in its order.
    """
    encoded = StreamCodes(None, 1, ordered=True)
    for column, key in zip(plan.stream_keys, kept.keys, strict=True):
        encoded = _combine_codes(device.xp, encoded, _encode_key(columns, column, key, device, min(RANKED, most_ranked)))
    return encoded


def _encode_key(columns: EventColumns, column: int, key: KeptKey, device: Device, most_ranked: int) -> StreamCodes:
    """Return codes for one key."""
    if columns.type(column).kind is not Kind.STRING:
        return _integer_codes(device.xp, key)
    values = columns.text_values(column)
    if len(values) >= most_ranked:
        return StreamCodes(key.values, len(values) + 1, ordered=False)
    return StreamCodes(device.upload(text_ranks(values))[key.values], len(values) + 1, ordered=True)


def _integer_codes(xp: Any, key: KeptKey) -> StreamCodes:
    """Return codes in the order of the values, NULL first.

    They are distances from the least value if these are small, else ranks.
    """
    values, nulls = key.values, None if key.present is None else key.present == 0
    if not values.size:
        return StreamCodes(values, 1, ordered=True)
    if nulls is not None:
        # whatever stands at a NULL must not widen the range
        values = xp.where(nulls, _some_present(xp, key), values)
    low, high = int(values.min()), int(values.max())
    if high - low + 1 >= _LARGEST_CODE:
        values, count = dense_codes(xp, values)
        low, high = 0, count - 1
    return StreamCodes(*shift_codes(xp, values, low, high, nulls), ordered=True)


def _some_present(xp: Any, key: KeptKey) -> Array:
    """Return the first value that is not NULL; if all are NULL, the first value."""
    return key.values[xp.argmax(key.present)]


def _combine_codes(xp: Any, left: StreamCodes, right: StreamCodes) -> StreamCodes:
    """Return a code for each pair of two keys' codes."""
    if left.codes is None or right.codes is None:
        return right if left.codes is None else left
    codes, count, _ = combine_codes(xp, left.codes, right.codes, left.count, right.count, _LARGEST_CODE)
    return StreamCodes(codes, count, left.ordered and right.ordered)


class _Placement(NamedTuple):
    """The arrays of the events in the order found so far.

    `streams` are codes, empty if all events are one stream. `labels` are [word, event].
    """

    streams: Array
    times: Array
    rows: Array
    labels: Array

    def sort_by(self, xp: Any, *keys: Array) -> _Placement:
        """Return the events sorted by stream, then by `keys`; the sort is stable."""
        order = stable_order(xp, [key for key in (self.streams, *keys) if key.size])
        return _Placement(*(xp.take(values, order, axis=-1) if values.size else values for values in self))


def order_on_device(plan: Plan, columns: EventColumns, kept: KeptEvents, streams: StreamCodes, device: Device) -> DeviceEvents:
    """Return the kept events by stream, then time, then `order_by`, then input position.

    Nothing is sorted that is in order.
    """
    xp = device.xp
    nothing = xp.empty(0, xp.int64)
    placed = _Placement(nothing if streams.codes is None else streams.codes.astype(xp.int32), kept.times, kept.rows, kept.labels)
    if streams.codes is not None and _is_disordered(device, nothing, placed.streams, nothing):
        placed = placed.sort_by(xp)
    borders = nothing if streams.codes is None else xp.flatnonzero(placed.streams[1:] != placed.streams[:-1]) + 1
    if _is_disordered(device, placed.streams, placed.times, nothing):
        placed = placed.sort_by(xp, placed.times)
    if plan.query.order_by:
        ranks = _tie_ranks(plan, columns, placed, borders, device)
        if _is_disordered(device, placed.streams, placed.times, ranks):
            placed = placed.sort_by(xp, placed.times, ranks)
    return DeviceEvents(
        offsets=np.concatenate([[0], device.download(borders), [placed.rows.size]]).astype(np.int64),
        times=placed.times if placed.times.dtype.kind == "f" else placed.times.view(xp.uint64),
        labels=placed.labels,
        rows=placed.rows,
        keys_ordered=streams.ordered,
    )


def _is_disordered(device: Device, streams: Array, values: Array, ranks: Array) -> bool:
    """Return whether some event of a stream has a lesser value, or rank, than the one before it."""
    disordered = device.xp.empty(values.size, device.xp.bool_)
    device.launch(mark_disorder, values.size, streams, values, ranks, disordered)
    return any_set(disordered)


def _tie_ranks(plan: Plan, columns: EventColumns, placed: _Placement, borders: Array, device: Device) -> Array:
    """Return the rank by `order_by` of each event that ties with a neighbour; 0 for all others.

    The ranks are found on the host.
    """
    tied = find_ties(device.xp, borders, placed.times)
    ranks = device.xp.zeros(placed.times.size, device.xp.int64)
    ranks[tied] = device.upload(rank_rows(columns, plan.query.order_by, device.download(placed.rows[tied])))
    return ranks


def streams_of_range(device: Device, offsets: Indices, low: int, high: int) -> tuple[Array, Array]:
    """Return the stream of each of the events [low, high), and where that ends in the range (int32).

    Streams are numbered from the first one in the range.
    """
    xp = device.xp
    first, last = (int(place) for place in np.searchsorted(offsets, [low, high - 1], side="right"))
    begins = offsets[first:last] - low
    # a stream without events begins where the next one does
    borders = device.upload(begins[np.diff(begins, prepend=0) > 0])
    streams = stream_numbers(xp, borders, high - low)
    ends = xp.append(borders, high - low).astype(xp.int32)
    return streams, ends[streams]

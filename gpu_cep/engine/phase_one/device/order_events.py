"""Group the kept events by stream, and sort them by time, on the device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.tie_ranks import find_ties, rank_rows
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.phase_one.device.kept_events import KeptEvents
from gpu_cep.engine.phase_one.device.stream_codes import StreamCodes
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.device.interface import Array, Device, HostArray
from gpu_cep_kernels.device.primitives import stable_order
from gpu_cep_kernels.phase_one.placed_events import (
    FITTING,
    OVERLAP,
    QUAD,
    STREAMS_FALL,
    TIED,
    TIMES_FALL,
    PlacedEvents,
    find_faults,
    gather_events,
    gather_packed,
    pack_events,
)

_KINDS_OF_FAULTS = 4
# Of so many events the columns do not lie in a card's cache: each that is gathered from anywhere takes a sector of memory for itself.
_MANY = 1 << 20
# Words of labels up to which a packed copy takes no more memory than the sort before.
_MOST_WORDS = 4


@dataclass(frozen=True, slots=True)
class DeviceEvents:
    """The kept events on the device: stream after stream, each in stream order.

    Times are float64 or uint64, as in
    :class:`gpu_cep.engine.events.ordered_events.OrderedEvents`. Streams are codes; there are none if
    all events are one stream. `tied`: whether neighbours of a stream have one time. `overlap`: whether
    some event satisfies the properties of two variables.
    """

    placed: PlacedEvents
    keys_ordered: bool
    tied: bool
    overlap: bool


def order_on_device(plan: Plan, columns: EventColumns, kept: KeptEvents, streams: StreamCodes, device: Device) -> DeviceEvents:
    """Return the kept events by stream, then time, then `order_by`, then input position.

    Nothing is sorted that is in order.
    """
    xp = device.xp
    placed = PlacedEvents(streams.narrow(xp), kept.times, kept.rows, kept.labels)
    placed, faults = _sort_by_time(device, _sort_by(device, placed) if streams.falls else placed)
    if plan.query.order_by and faults[TIED]:
        ranks = _tie_ranks(plan, columns, placed, device)
        if _find_faults(device, placed, ranks)[TIMES_FALL]:
            placed = _sort_by(device, placed, placed.times, ranks)
    times = placed.times if placed.times.dtype.kind == "f" else placed.times.view(xp.uint64)
    return DeviceEvents(placed._replace(times=times), streams.ordered, bool(faults[TIED]), bool(faults[OVERLAP]))


def _sort_by_time(device: Device, placed: PlacedEvents) -> tuple[PlacedEvents, HostArray]:
    """Return the events by stream and time, and the faults that are left in their order."""
    faults = _find_faults(device, placed)
    if faults[STREAMS_FALL]:
        placed = _sort_by(device, placed)
        faults = _find_faults(device, placed)
    if faults[TIMES_FALL]:
        placed = _sort_by(device, placed, placed.times)
        faults = _find_faults(device, placed)
    return placed, faults


def _sort_by(device: Device, placed: PlacedEvents, *keys: Array) -> PlacedEvents:
    """Return the events sorted by stream, then by `keys`; the sort is stable."""
    xp, many = device.xp, placed.rows.size >= _MANY
    order = stable_order(xp, [_narrow(device, key) if many else key for key in (placed.streams, *keys) if key.size])
    found = PlacedEvents(*(xp.empty(column.shape, column.dtype) for column in placed))
    if many and len(placed.labels) <= _MOST_WORDS:
        _gather_by_packs(device, order, placed, found)
    else:
        device.launch(gather_events, order.size, order, placed, found)
    return found


def _gather_by_packs(device: Device, order: Array, placed: PlacedEvents, found: PlacedEvents) -> None:
    """Write the events in an order to `found`, by way of a copy that has all of an event in one place."""
    xp, size = device.xp, placed.rows.size
    labels_fit = len(placed.labels) == 1 and placed.streams.dtype.itemsize * placed.streams.size <= 2 * size and placed.labels.itemsize <= 2
    packed = xp.empty((size, FITTING if labels_fit else FITTING + len(placed.labels)), np.uint64)
    device.launch(pack_events, size, placed._replace(times=placed.times.view(np.uint64)), packed)
    device.launch(gather_packed, size, order, packed, found._replace(times=found.times.view(np.uint64)))


def _narrow(device: Device, key: Array) -> Array:
    """Return numbers in the same order as those of a key, of the narrowest type that has as many: fewer bits take fewer passes to sort."""
    if key.dtype != np.int64:
        return key
    xp = device.xp
    least, greatest = (int(value) for value in device.download(xp.stack([key.min(), key.max()])))
    kind = next((kind for kind in (np.uint16, np.uint32) if greatest - least <= np.iinfo(kind).max), None)
    return key if kind is None else (key - least).astype(kind)


def _find_faults(device: Device, placed: PlacedEvents, ranks: Array | None = None) -> HostArray:
    """Return which kinds of faults there are in the order of the events."""
    faults = device.upload(np.zeros(_KINDS_OF_FAULTS, np.uint8))
    none = device.xp.empty(0, np.int64)
    device.launch(find_faults, -(-placed.times.size // QUAD), placed, none if ranks is None else ranks, faults)
    return device.download(faults)


def _tie_ranks(plan: Plan, columns: EventColumns, placed: PlacedEvents, device: Device) -> Array:
    """Return the rank by `order_by` of each event that ties with a neighbour; 0 for all others.

    The ranks are found on the host.
    """
    tied = find_ties(device.xp, stream_begins(device, placed.streams), placed.times)
    ranks = device.xp.zeros(placed.times.size, device.xp.int64)
    ranks[tied] = device.upload(rank_rows(columns, plan.query.order_by, device.download(placed.rows[tied])))
    return ranks


def count_in_streams(device: Device, streams: Array, events: Array, each: Array | None = None) -> tuple[Array, Indices]:
    """Return which of some ascending events, at least one, come first in their streams (on the device), and how many each stream has.

    ``streams[e]`` is the code of the stream of event e; empty if there is one stream. Event ``events[i]`` counts ``each[i]``
    times (int64; None: once).
    """
    begins = device.xp.zeros(1, np.int64)
    if streams.size:
        begins = device.xp.append(begins, stream_begins(device, streams[events]))
    if each is not None:
        before = device.xp.cumsum(each) - each
        return begins, np.diff(device.download(before[begins]), append=int(each.sum()))
    return begins, np.diff(device.download(begins), append=int(events.size))


def stream_begins(device: Device, streams: Array) -> Array:
    """Return the events with which streams but the first begin; `streams` are codes, stream after stream."""
    return device.xp.flatnonzero(streams[1:] != streams[:-1]) + 1 if streams.size else device.xp.empty(0, np.int64)

"""Hold the ordered events whose windows are judged: on the device, or on the host.

Events on the host are uploaded batch by batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from gpu_cep.analysis.bound import CountWindow
from gpu_cep.engine.events.batches import window_end, window_length
from gpu_cep.engine.events.event_sequence import EventSequence, as_signed, host_sequence
from gpu_cep.engine.events.label_words import any_overlap
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.programs import load_bank
from gpu_cep.engine.phase_one.device.order_events import DeviceEvents, stream_begins
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device import primitives
from gpu_cep_kernels.device.interface import Array, Device, HostArray
from gpu_cep_kernels.device.packing import Layout, download_packed, pack
from gpu_cep_kernels.phase_one.window_tiles import PlacedEvents, gather_events
from gpu_cep_kernels.phase_one.windows import WindowLimits, window_ends


class EventSource(Protocol):
    """Ordered events on the device or on the host."""

    @property
    def total(self) -> int:
        """Return how many events there are."""

    @property
    def offsets(self) -> Indices:
        """Return where each stream begins, and where the last one ends."""

    @property
    def resident(self) -> int:
        """Return how many events lie on the device."""

    def part(self, low: int, high: int) -> tuple[Array, Array]:
        """Return times and labels of the events [low, high), on the device."""

    def streams(self, low: int, high: int) -> Array:
        """Return codes of the streams of the events [low, high), on the device; empty if there is one stream."""

    def rows(self, low: int, high: int) -> Array:
        """Return the input rows of the events [low, high), on the device."""

    def window_end(self, last: int, stream_end: int) -> int:
        """Return the first event behind the window of event `last`, or an event after that one."""

    def has_overlap(self) -> bool:
        """Return whether some event satisfies the properties of two variables."""

    def has_ties(self) -> bool:
        """Return whether two neighbouring events have the same time."""

    def sequence(self) -> EventSequence:
        """Return all events without their labels, on the device or on the host as they are."""

    def fetch(self) -> EventSequence:
        """Return all events without their labels, on the host."""

    def pick(self, events: Indices | None, starts: Indices | None) -> OrderedEvents:
        """Return some events on the host, in the order given, stream after stream; None: all events.

        `starts` are the places, among the given events, of those that begin a candidate window.
        None: no windows were judged.
        """


@dataclass(frozen=True)
class ResidentEvents:
    """Events that are all on the device; `most_picked` of them are copied to the host at a time."""

    plan: Plan
    columns: EventColumns
    events: DeviceEvents
    device: Device
    most_picked: int

    @property
    def total(self) -> int:
        return int(self.events.placed.rows.size)

    @cached_property
    def offsets(self) -> Indices:
        """Return the offsets, which are found when they are first asked for."""
        return _offsets(self.device.download(stream_begins(self.device, self.events.placed.streams)), self.total)

    @property
    def resident(self) -> int:
        """Return the number of all events."""
        return self.total

    def part(self, low: int, high: int) -> tuple[Array, Array]:
        """Return views of times and labels; labels of a part in several words are copied."""
        placed = self.events.placed
        return placed.times[low:high], self.device.xp.ascontiguousarray(placed.labels[:, low:high])

    def streams(self, low: int, high: int) -> Array:
        """Return a view of the codes."""
        return self.events.placed.streams[low:high]

    def rows(self, low: int, high: int) -> Array:
        """Return a view of the input rows."""
        return self.events.placed.rows[low:high]

    def window_end(self, last: int, stream_end: int) -> int:
        """Return the end that the kernel finds, for one window."""
        if isinstance(self.plan.query.window, CountWindow):
            return min(last + self.plan.query.window.events, stream_end)
        xp, clock = self.device.xp, self.events.placed.times[last:stream_end]
        found, start = xp.empty(1, xp.int32), xp.zeros(1, xp.int64)
        limits = WindowLimits(clock, xp.full(1, stream_end - last, xp.int32), window_length(self.plan, clock.dtype))
        self.device.launch(window_ends, 1, start, start, limits, found)
        return last + int(found[0])

    def has_overlap(self) -> bool:
        """Return what was found while events were ordered."""
        return self.events.overlap

    def has_ties(self) -> bool:
        """Return what was found while events were ordered; neighbours are of one stream."""
        return self.events.tied

    def sequence(self) -> EventSequence:
        """Return the events on the device."""
        placed = self.events.placed
        return EventSequence(
            as_signed(placed.times), None, len(self.offsets) - 1, placed.rows, self.offsets, self.device, self.most_picked
        )  # fmt: skip

    def fetch(self) -> EventSequence:
        """Return copies of all events, on the host."""
        return host_sequence(self.pick(None, None))

    def pick(self, events: Indices | None, starts: Indices | None) -> OrderedEvents:
        """Copy only the given events to the host."""
        if events is None:
            held, download = self.events.placed, self.device.download
            return self._as_ordered(PlacedEvents(*(download(column) for column in held)), None, starts)
        spans = list(blocks(0, len(events), self.most_picked)) or [(0, 0)]
        streams, times, rows, labels = zip(*(self._copy_events(events[low:high]) for low, high in spans), strict=True)
        picked = PlacedEvents(np.concatenate(streams), np.concatenate(times), np.concatenate(rows), np.concatenate(labels, axis=1))
        return self._as_ordered(picked, events, starts)

    def _copy_events(self, events: Indices) -> list[HostArray]:
        """Return all columns of some events, on the host, after one transfer."""
        held, size = self.events.placed, len(events)
        # an axis as long as there are events is as long as some are picked
        layouts = [Layout((*column.shape[:-1], size if column.size else 0), column.dtype) for column in held]
        buffer, columns = pack(self.device.xp, layouts)
        self.device.launch(gather_events, size, self.device.upload(events), held, PlacedEvents(*columns))
        return download_packed(self.device, buffer, layouts)

    def _as_ordered(self, picked: PlacedEvents, events: Indices | None, starts: Indices | None) -> OrderedEvents:
        """Return picked events (None: all) as ordered events; only their streams are numbered."""
        begins = np.flatnonzero(picked.streams[1:] != picked.streams[:-1]) + 1
        offsets = _offsets(begins, len(picked.rows))
        return _as_ordered_events(self, offsets, events, starts, picked)


def _offsets(begins: Indices, total: int) -> Indices:
    """Return where streams begin, and the end of the last; `begins` are those of all but the first."""
    return np.concatenate([[0], begins, [total]]).astype(np.int64)


@dataclass(frozen=True, slots=True)
class SpilledEvents:
    """Events on the host, as the device could not hold all of them."""

    plan: Plan
    columns: EventColumns
    events: OrderedEvents
    device: Device

    @property
    def total(self) -> int:
        return len(self.events.rows)

    @property
    def offsets(self) -> Indices:
        return self.events.offsets

    @property
    def resident(self) -> int:
        """Return 0: no event lies on the device."""
        return 0

    def part(self, low: int, high: int) -> tuple[Array, Array]:
        """Return copies."""
        times, *words = self.device.upload_slices([self.events.times, *self.events.labels], low, high)
        return times, self.device.xp.stack(words)

    def streams(self, low: int, high: int) -> Array:
        """Return the numbers of the streams, from the first one in the range on."""
        return streams_of_range(self.device, self.offsets, low, high)

    def rows(self, low: int, high: int) -> Array:
        """Return a copy."""
        return self.device.upload_slices([self.events.rows], low, high)[0]

    def window_end(self, last: int, stream_end: int) -> int:
        """Return the end that is found on the host."""
        return window_end(self.plan, self.events, last, stream_end)

    def has_overlap(self) -> bool:
        """Look at all labels in one pass on the host."""
        return any_overlap(self.events.labels)

    def has_ties(self) -> bool:
        """Look at all times in one pass on the host."""
        return bool((self.events.times[1:] == self.events.times[:-1]).any())

    def sequence(self) -> EventSequence:
        """Return the events on the host."""
        return host_sequence(self.events)

    def fetch(self) -> EventSequence:
        """Return the events, which are on the host."""
        return self.sequence()

    def pick(self, events: Indices | None, starts: Indices | None) -> OrderedEvents:
        """Return copies of what is picked, or all arrays as they are."""
        held, picked = self.events, slice(None) if events is None else events
        # streams ascend, so the events of earlier streams are those before the first one that is not among them
        offsets = self.offsets if events is None else np.searchsorted(events, self.offsets)
        columns = PlacedEvents(np.empty(0, np.int32), held.times[picked], held.rows[picked], held.labels[:, picked])
        return _as_ordered_events(self, offsets, events, starts, columns)


def streams_of_range(device: Device, offsets: Indices, low: int, high: int) -> Array:
    """Return the stream of each of the events [low, high) (int32), numbered from the first one in the range."""
    first, last = (int(place) for place in np.searchsorted(offsets, [low, high - 1], side="right"))
    # a stream without events begins where the next one does
    return primitives.stream_numbers(device.xp, device.upload(offsets[first:last] - low), high - low)


def _as_ordered_events(
    source: ResidentEvents | SpilledEvents, offsets: Indices, events: Indices | None, starts: Indices | None, picked: PlacedEvents
) -> OrderedEvents:
    """Return the given `events` of `source` (None: all) as ordered events, numbered from 0."""
    positions, rows = None, picked.rows
    if isinstance(source.plan.query.window, CountWindow):
        positions = np.arange(len(rows), dtype=np.uint64) if events is None else events.astype(np.uint64)
    return OrderedEvents(
        offsets=offsets,
        times=picked.times,
        labels=picked.labels,
        rows=rows,
        bank=load_bank(source.columns, source.plan.layout, rows),
        keys_ordered=source.events.keys_ordered,
        starts=starts,
        positions=positions,
    )

"""Hold the ordered events whose windows are judged: on the device, or on the host.

Events on the host are uploaded batch by batch.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from gpu_cep.engine.phase_one.device.order_events import DeviceEvents
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device import primitives
from gpu_cep_kernels.device.interface import Array, Device, HostArray
from gpu_cep_kernels.phase_one.windows import WindowLimits, window_ends


class EventSource(Protocol):
    """Ordered events on the device or on the host."""

    @property
    def offsets(self) -> Indices:
        """Return where each stream begins, and where the last one ends."""

    @property
    def resident(self) -> int:
        """Return how many events lie on the device."""

    def part(self, low: int, high: int) -> tuple[Array, Array]:
        """Return times and labels of the events [low, high), on the device."""

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


@dataclass(frozen=True, slots=True)
class ResidentEvents:
    """Events that are all on the device; `most_picked` of them are copied to the host at a time."""

    plan: Plan
    columns: EventColumns
    events: DeviceEvents
    device: Device
    most_picked: int

    @property
    def offsets(self) -> Indices:
        return self.events.offsets

    @property
    def resident(self) -> int:
        """Return the number of all events."""
        return int(self.events.rows.size)

    def part(self, low: int, high: int) -> tuple[Array, Array]:
        """Return views of times and labels."""
        return self.events.times[low:high], self.events.labels[:, low:high]

    def rows(self, low: int, high: int) -> Array:
        """Return a view of the input rows."""
        return self.events.rows[low:high]

    def window_end(self, last: int, stream_end: int) -> int:
        """Return the end that the kernel finds, for one window."""
        if isinstance(self.plan.query.window, CountWindow):
            return min(last + self.plan.query.window.events, stream_end)
        xp, clock = self.device.xp, self.events.times[last:stream_end]
        found, start = xp.empty(1, xp.int32), xp.zeros(1, xp.int64)
        limits = WindowLimits(clock, xp.full(1, stream_end - last, xp.int32), window_length(self.plan, clock.dtype))
        self.device.launch(window_ends, 1, start, start, limits, found)
        return last + int(found[0])

    def has_overlap(self) -> bool:
        """Look at all labels in one pass on the device."""
        return primitives.labels_overlap(self.events.labels)

    def has_ties(self) -> bool:
        """Look at all times in one pass on the device."""
        return primitives.any_set(self.events.times[1:] == self.events.times[:-1])

    def sequence(self) -> EventSequence:
        """Return the events on the device."""
        events = self.events
        return EventSequence(
            as_signed(events.times), None, len(events.offsets) - 1, events.rows, events.offsets, self.device, self.most_picked
        )  # fmt: skip

    def fetch(self) -> EventSequence:
        """Return copies of all events, on the host."""
        return host_sequence(self.pick(None, None))

    def pick(self, events: Indices | None, starts: Indices | None) -> OrderedEvents:
        """Copy only the given events to the host."""
        if events is None:
            held, download = self.events, self.device.download
            return _as_ordered_events(self, None, starts, download(held.times), download(held.labels), download(held.rows))
        spans = list(blocks(0, len(events), self.most_picked)) or [(0, 0)]
        times, labels, rows = zip(*(self._copy_events(events[low:high]) for low, high in spans), strict=True)
        return _as_ordered_events(self, events, starts, np.concatenate(times), np.concatenate(labels, axis=1), np.concatenate(rows))

    def _copy_events(self, events: Indices) -> tuple[HostArray, HostArray, HostArray]:
        """Return times, labels and rows of some events, on the host."""
        device, held, places = self.device, self.events, self.device.upload(events)
        labels = device.download(device.xp.take(held.labels, places, axis=1))
        return device.download(held.times[places]), labels, device.download(held.rows[places])


@dataclass(frozen=True, slots=True)
class SpilledEvents:
    """Events on the host, as the device could not hold all of them."""

    plan: Plan
    columns: EventColumns
    events: OrderedEvents
    device: Device

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
        return _as_ordered_events(self, events, starts, held.times[picked], held.labels[:, picked], held.rows[picked])


def _as_ordered_events(
    source: ResidentEvents | SpilledEvents,
    events: Indices | None,
    starts: Indices | None,
    times: HostArray,
    labels: HostArray,
    rows: HostArray,
) -> OrderedEvents:
    """Return the given `events` of `source` (None: all) as ordered events, numbered from 0."""
    positions = None
    if isinstance(source.plan.query.window, CountWindow):
        positions = np.arange(len(rows), dtype=np.uint64) if events is None else events.astype(np.uint64)
    return OrderedEvents(
        # streams ascend, so the events of earlier streams are those before the first one that is not among them
        offsets=source.offsets if events is None else np.searchsorted(events, source.offsets),
        times=times,
        labels=labels,
        rows=rows,
        bank=load_bank(source.columns, source.plan.layout, rows),
        keys_ordered=source.events.keys_ordered,
        starts=starts,
        positions=positions,
    )

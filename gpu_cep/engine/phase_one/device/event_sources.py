"""Hold the ordered events whose windows are judged: on the device, or on the host.

Events on the host are uploaded batch by batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from gpu_cep.analysis.bound import CountWindow
from gpu_cep.engine.events.batches import first_behind_window, window_length
from gpu_cep.engine.events.event_sequence import EventSequence, as_signed, host_sequence
from gpu_cep.engine.events.label_words import any_overlap
from gpu_cep.engine.events.matches import Indices, Rows
from gpu_cep.engine.events.ordered_events import OrderedEvents, Starts
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.programs import load_bank
from gpu_cep.engine.phase_one.device.order_events import DeviceEvents, stream_begins
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device import primitives
from gpu_cep_kernels.device.interface import Array, Device, HostArray
from gpu_cep_kernels.device.packing import Layout, download_packed, pack
from gpu_cep_kernels.phase_one.placed_events import PlacedEvents, gather_events
from gpu_cep_kernels.phase_one.windows import WindowLimits, window_ends

_NO_NUMBERS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class CopiedEvents:
    """Copies on the host of some ordered events, and their numbers among all; empty if nothing reads the numbers."""

    placed: PlacedEvents
    numbers: Indices

    def pick(self, places: Indices) -> CopiedEvents:
        """Return the events at some places."""
        # columns that nothing reads are empty
        placed = PlacedEvents(*(column[..., places] if column.size else column for column in self.placed))
        return CopiedEvents(placed, self.numbers[places] if len(self.numbers) else self.numbers)


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

    @property
    def times(self) -> Array | None:
        """Return the times of all events on the device; None if they are on the host."""

    def part(self, low: int, high: int) -> tuple[Array, Array]:
        """Return times and labels of the events [low, high), on the device."""

    def streams(self, low: int, high: int) -> Array:
        """Return codes of the streams of the events [low, high), on the device; empty if there is one stream."""

    def rows(self, low: int, high: int) -> Array:
        """Return the input rows of the events [low, high), on the device."""

    def row(self, event: int) -> int:
        """Return the input row of one event."""

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

    def whole(self) -> OrderedEvents:
        """Return all events on the host; no windows were judged."""

    def copy(self, events: Array) -> CopiedEvents:
        """Return some events on the host. Their numbers among all, at least one, lie on the device."""

    def ordered(self, parts: Sequence[CopiedEvents], starts: Starts | None) -> OrderedEvents:
        """Return copied events, part after part and stream after stream, as ordered events.

        `starts` are the places among them of those that begin candidate windows. None: none is to be
        searched, so that nobody asks for what conditions read.
        """


@dataclass(frozen=True)
class ResidentEvents:
    """Events that are all on the device; `most_picked` of them are copied to the host at a time, where `threads` gather beside them."""

    plan: Plan
    columns: EventColumns
    events: DeviceEvents
    device: Device
    most_picked: int
    threads: int = 1

    @property
    def total(self) -> int:
        """Return the number of all events."""
        return int(self.events.placed.rows.size)

    @cached_property
    def offsets(self) -> Indices:
        """Return the offsets, which are found when they are first asked for."""
        return _offsets(self.device.download(stream_begins(self.device, self.events.placed.streams)), self.total)

    @property
    def resident(self) -> int:
        """Return the number of all events."""
        return self.total

    @property
    def times(self) -> Array:
        """Return the column as it is."""
        return self.events.placed.times

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

    def row(self, event: int) -> int:
        """Return the row, which is copied from the device."""
        return int(self.events.placed.rows[event])

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
        return host_sequence(self.whole())

    def whole(self) -> OrderedEvents:
        """Copy all columns as they are."""
        copied = self._copy_all()
        return _as_ordered_events(self, _stream_offsets(copied.placed), copied, None, copied.placed.rows)

    def _copy_all(self) -> CopiedEvents:
        """Return copies of all events."""
        numbers = np.arange(self.total) if self._counts_events else _NO_NUMBERS
        return CopiedEvents(PlacedEvents(*(self.device.download(column) for column in self.events.placed)), numbers)

    @property
    def _counts_events(self) -> bool:
        """Return whether windows are of a number of events, so that the numbers of events are asked for."""
        return isinstance(self.plan.query.window, CountWindow)

    def copy(self, events: Array) -> CopiedEvents:
        """Gather the events on the device, as many at a time as there is room for; of all events nothing is gathered."""
        if events.size == self.total:
            return self._copy_all()
        parts = [self._copy_block(events[low:high]) for low, high in blocks(0, events.size, self.most_picked)]
        return parts[0] if len(parts) == 1 else concatenate_copies(parts)

    def _copy_block(self, events: Array) -> CopiedEvents:
        """Return copies of some events, for all of which there is room, after one transfer."""
        held, size = self.events.placed, int(events.size)
        # an axis as long as there are events is as long as some are picked
        layouts = [Layout((*column.shape[:-1], size if column.size else 0), column.dtype) for column in held]
        buffer, columns = pack(self.device.xp, layouts)
        self.device.launch(gather_events, size, events, held, PlacedEvents(*columns))
        numbers = self.device.download(events) if self._counts_events else _NO_NUMBERS
        return CopiedEvents(PlacedEvents(*download_packed(self.device, buffer, layouts)), numbers)

    def ordered(self, parts: Sequence[CopiedEvents], starts: Starts | None) -> OrderedEvents:
        """Number the streams of the copied events alone."""
        copied = concatenate_copies([*parts, self._copy_none()]) if len(parts) != 1 else parts[0]
        return _as_ordered_events(self, _stream_offsets(copied.placed), copied, starts, _read_rows(copied, starts))

    def _copy_none(self) -> CopiedEvents:
        """Return copies of no events."""
        return CopiedEvents(PlacedEvents(*(self.device.download(column[..., :0]) for column in self.events.placed)), _NO_NUMBERS)


def _offsets(begins: Indices, total: int) -> Indices:
    """Return where streams begin, and the end of the last; `begins` are those of all but the first."""
    return np.concatenate([[0], begins, [total]]).astype(np.int64)


@dataclass(frozen=True, slots=True)
class SpilledEvents:
    """Events on the host, as the device could not hold all of them; `threads` gather what conditions read."""

    plan: Plan
    columns: EventColumns
    events: OrderedEvents
    device: Device
    threads: int = 1

    @property
    def total(self) -> int:
        """Return the number of all events."""
        return len(self.events.rows)

    @property
    def offsets(self) -> Indices:
        """Return the offsets as they are."""
        return self.events.offsets

    @property
    def resident(self) -> int:
        """Return 0: no event lies on the device."""
        return 0

    @property
    def times(self) -> None:
        """Return None: they are on the host."""

    def part(self, low: int, high: int) -> tuple[Array, Array]:
        """Return copies."""
        words = [self._copied(word, low, high) for word in self.events.labels]
        return self._copied(self.events.times, low, high), self.device.xp.stack(words)

    def streams(self, low: int, high: int) -> Array:
        """Return the numbers of the streams, from the first one in the range on."""
        return streams_of_range(self.device, self.offsets, low, high)

    def rows(self, low: int, high: int) -> Array:
        """Return a copy."""
        return self._copied(self.events.rows, low, high)

    def _copied(self, column: HostArray, low: int, high: int) -> Array:
        """Return a copy of the events [low, high) of a column, on the device."""
        return self.device.upload(column[low:high])

    def row(self, event: int) -> int:
        """Return the row, which is on the host."""
        return int(self.events.rows[event])

    def window_end(self, last: int, stream_end: int) -> int:
        """Return the end that is found on the host."""
        return first_behind_window(self.plan, self.events, last, stream_end)

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

    def whole(self) -> OrderedEvents:
        """Return all arrays as they are."""
        numbers = np.arange(self.total)
        return _as_ordered_events(self, self.offsets, CopiedEvents(self._columns(slice(None)), numbers), None, self.events.rows)

    def _columns(self, events: Indices | slice) -> PlacedEvents:
        """Return the columns of some events, without the codes of streams."""
        held = self.events
        return PlacedEvents(np.empty(0, np.int32), held.times[events], held.rows[events], held.labels[:, events])

    def copy(self, events: Array) -> CopiedEvents:
        """Download the numbers of the events; all else is on the host."""
        numbers = self.device.download(events)
        return CopiedEvents(self._columns(numbers), numbers)

    def ordered(self, parts: Sequence[CopiedEvents], starts: Starts | None) -> OrderedEvents:
        """Find the streams by the numbers of the events."""
        copied = concatenate_copies([*parts, CopiedEvents(self._columns(slice(0, 0)), _NO_NUMBERS)])
        # streams ascend, so the events of earlier streams are those before the first one that is not among them
        return _as_ordered_events(self, np.searchsorted(copied.numbers, self.offsets), copied, starts, _read_rows(copied, starts))


def streams_of_range(device: Device, offsets: Indices, low: int, high: int) -> Array:
    """Return the stream of each of the events [low, high) (int32), numbered from the first one in the range."""
    first, last = (int(place) for place in np.searchsorted(offsets, [low, high - 1], side="right"))
    # a stream without events begins where the next one does
    return primitives.stream_numbers(device.xp, device.upload(offsets[first:last] - low), high - low)


def concatenate_copies(parts: Sequence[CopiedEvents]) -> CopiedEvents:
    """Return the events of all parts, one part after the other."""
    streams, times, rows, labels = zip(*(part.placed for part in parts), strict=True)
    placed = PlacedEvents(np.concatenate(streams), np.concatenate(times), np.concatenate(rows), np.concatenate(labels, axis=1))
    return CopiedEvents(placed, np.concatenate([part.numbers for part in parts]))


def unite_copies(parts: Sequence[CopiedEvents], numbers: Sequence[Indices]) -> tuple[CopiedEvents, list[Indices]]:
    """Return the events of all parts, each once and in their order, and the places there of those of each part.

    ``numbers[p]`` are those of part p's events among all: the last windows of a batch reach into the next.
    """
    united, first_places = np.unique(np.concatenate(numbers), return_index=True)
    return concatenate_copies(parts).pick(first_places), [np.searchsorted(united, own) for own in numbers]


def _stream_offsets(placed: PlacedEvents) -> Indices:
    """Return where the streams of copied events begin, and the end of the last; only these streams are numbered."""
    begins = np.flatnonzero(placed.streams[1:] != placed.streams[:-1]) + 1
    return _offsets(begins, len(placed.rows))


def _read_rows(copied: CopiedEvents, starts: Starts | None) -> Rows:
    """Return the rows of which conditions may read columns: none if no windows are to be searched."""
    rows: Rows = copied.placed.rows
    return rows[:0] if starts is None else rows


def _as_ordered_events(
    source: ResidentEvents | SpilledEvents, offsets: Indices, copied: CopiedEvents, starts: Starts | None, read: Rows
) -> OrderedEvents:  # fmt: skip
    """Return copied events of `source` as ordered events, numbered from 0; the bank has the rows `read`."""
    placed, counts = copied.placed, isinstance(source.plan.query.window, CountWindow)
    return OrderedEvents(
        offsets=offsets,
        times=placed.times,
        labels=placed.labels,
        rows=placed.rows,
        bank=load_bank(source.columns, source.plan.layout, read, source.threads),
        keys_ordered=source.events.keys_ordered,
        starts=starts,
        positions=copied.numbers.astype(np.uint64) if counts else None,
    )

"""Cases of the kernels that derive situations: borders of runs, the runs between them, and their events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_cep_kernels.intervals import situations
from gpu_cep_kernels.intervals.situations import (
    NEVER,
    Gaps,
    LastSeen,
    SituationBorders,
    find_borders,
    make_borders,
    new_crossings,
    new_last_seen,
)
from gpu_cep_kernels.phase_one import ordering
from tests.kernel_cases.calls import Call, KernelCase, Variants, cases
from tests.kernel_cases.inputs import Array, Random, event_times, flags, label_words, places_of, stream_offsets

_NAMES = 3
_NO_STREAMS = np.empty(0, np.int32)
_TIMES: Variants = {"int64": {"time": np.int64}, "float64": {"time": np.float64}}


@dataclass(frozen=True, slots=True)
class _Events:
    """Labelled events of so many streams that lie among each other, or of one."""

    labels: Array
    streams: Array
    count: int
    times: Array


def _events(size: int, random: Random, time: Any = np.int64, label: Any = np.uint8, single: bool = False) -> _Events:
    """Events whose labels often are those of the event before."""
    offsets = np.array([0, size]) if single else stream_offsets(size, random)
    count = len(offsets) - 1
    streams = random.permutation(np.repeat(np.arange(count), np.diff(offsets))).astype(np.int32)
    times = np.empty(size, time)
    times[np.argsort(streams, kind="stable")] = event_times(offsets, random, time)
    labels = label_words(size, random, _NAMES, label)
    lasting = flags(size, random)
    kept = np.maximum.accumulate(np.where(lasting, 0, np.arange(size)))
    return _Events(labels[kept], _NO_STREAMS if single else streams, count, times)


def _order(size: int, random: Random, slots: int, disordered: bool = False, time: Any = np.int64) -> Call:
    times = _events(size, random, time, single=True).times
    if disordered and size:
        times = random.permutation(times)
    return Call(1, (size // 4, size, times))


def _order_of_streams(size: int, random: Random, slots: int, disordered: bool = False, time: Any = np.int64) -> Call:
    events = _events(size, random, time)
    times = random.permutation(events.times) if disordered else events.times
    return Call(1, (events.streams, times, np.full(events.count, -1, np.int32)))


def _finding(size: int, random: Random, slots: int, time: Any = np.int64, **given: Any) -> Call:
    """Borders of a slice, of which the first half has been looked at."""
    events = _events(size, random, time, **given)
    seen, crossings = _seen(events, random), new_crossings(size)
    for column in crossings:
        column[:] = 0
    half = size // 2
    found = find_borders(0, half, events.labels[:half], events.streams, seen, crossings, 0)
    return Call(1, (half, size, events.labels[half:], events.streams, seen, crossings, found))


def _finding_gaps(size: int, random: Random, slots: int, time: Any = np.int64, **given: Any) -> Call:
    """The same where gaps break runs."""
    call = _finding(size, random, slots, time, **given)
    *before, seen, crossings, found = call.arguments
    return Call(1, (*before, _gap(_events(size, random, time, **given).times), seen, crossings, found))


def _gap(times: Array) -> Gaps:
    """What gaps are measured on, and a length that some of them exceed."""
    clock = times if times.dtype.kind == "f" else times.view(np.uint64)
    return Gaps(clock, clock.dtype.type(1))


def _gaps(times: Array, broken: bool) -> Gaps:
    """The same, or none."""
    clock, length = _gap(times)
    return Gaps(clock if broken else clock[:0], length)


def _seen(events: _Events, random: Random) -> LastSeen:
    """Nothing of some streams, and of the others that there were events."""
    seen = new_last_seen(events.count)
    known = flags(events.count, random)
    seen.label[known] = random.integers(0, 1 << _NAMES, np.count_nonzero(known))
    seen.position[known & (seen.label != 0)] = 0
    return seen


def _found(size: int, random: Random, **given: Any) -> tuple[_Events, SituationBorders]:
    """The borders of a slice that knows nothing of those before."""
    events = _events(size, random, **given)
    crossings = new_crossings(size)
    found = find_borders(0, size, events.labels, events.streams, new_last_seen(events.count), crossings, 0)
    return events, make_borders(crossings, found, events.streams, events.times)


@dataclass(frozen=True, slots=True)
class _Apart:
    """Labelled events of streams that lie one after the other, some of which are empty."""

    labels: Array
    begins: Array
    gaps: Gaps

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.labels, self.begins, self.gaps


def _apart(size: int, random: Random, time: Any = np.int64, label: Any = np.uint8, gaps: bool = False) -> _Apart:
    offsets = stream_offsets(size, random)
    begins = np.zeros(size, np.bool_)
    begins[offsets[:-1][np.diff(offsets) > 0]] = True
    measured = _gaps(event_times(offsets, random, time), gaps)
    return _Apart(label_words(size, random, _NAMES, label), begins, measured)


def _marking(size: int, random: Random, slots: int, **given: Any) -> Call:
    return Call(size, (*_apart(size, random, **given).arguments, np.zeros(size, np.bool_)))


def _crossing(size: int, random: Random, slots: int, **given: Any) -> Call:
    events = _apart(size, random, **given)
    chosen = np.flatnonzero(flags(size, random))
    return Call(len(chosen), (chosen, *events.arguments, *(np.zeros(len(chosen), np.uint16) for _ in range(2))))


def _settling(size: int, random: Random, slots: int, gaps: bool = False, **given: Any) -> Call:
    events, borders = _found(size, random, **given)
    return Call(1, (borders, _gaps(events.times, gaps), _seen(events, random)))


def _opened(size: int, random: Random) -> tuple[Array, SituationBorders, Array]:
    """Settled borders by stream, which close what is left open, and how many open each name."""
    events, borders = _found(size, random)
    nothing = LastSeen(np.zeros(events.count, np.uint16), np.full(events.count, -1, np.int32))
    situations.settle_borders(borders, _gap(events.times[:0]), nothing)
    order = np.argsort(borders.stream, kind="stable")
    counts = np.array([np.count_nonzero(borders.opened >> v & 1) for v in range(_NAMES)], np.int64)
    return order, borders, counts


def _counting(size: int, random: Random, slots: int) -> Call:
    order, borders, _ = _opened(size, random)
    return Call(1, (order, borders.opened, borders.closed, np.zeros(_NAMES, np.int64), np.zeros(_NAMES, np.int64)))


def _pairing(size: int, random: Random, slots: int) -> Call:
    order, borders, counts = _opened(size, random)
    places = places_of(counts)
    targets = np.zeros(int(places[-1]), np.int64), np.zeros(int(places[-1]), np.int64)
    return Call(1, (order, borders.opened, borders.closed, places[:-1].copy(), places[:-1].copy(), *targets))


def _reaching(size: int, random: Random, slots: int, time: Any) -> Call:
    offsets = stream_offsets(size, random)
    times = event_times(offsets, random, time)
    clock = times if time is np.float64 else times.view(np.uint64)
    first = np.flatnonzero(flags(size, random)).astype(np.int32)
    ends = offsets[np.searchsorted(offsets, first, side="right")]
    return Call(len(first), (first, ends, clock, clock.dtype.type(5), np.zeros(len(first), np.int64)))


def _between(size: int, random: Random, slots: int) -> Call:
    """From the event at a third on; the first stream has no events between."""
    events = _events(size, random)
    first, last = np.sort(random.integers(0, size + 1, (2, events.count)), axis=0).astype(np.int32)
    first[:1], last[:1] = NEVER, -1
    return Call(1, (size // 3, size, events.streams, first, last, np.zeros(size + 1, np.int32)))


_DISORDERED: Variants = {"disordered": {"disordered": True}}
_LABELLED: Variants = {
    "int64": {},
    "float64": {"time": np.float64},
    "uint16": {"label": np.uint16},
    "one-stream": {"single": True},
    "one-stream-float64": {"single": True, "time": np.float64},
}

_NEIGHBOURS: Variants = {
    "": {},
    "uint16": {"label": np.uint16},
    "gaps": {"gaps": True},
    "gaps-float64": {"gaps": True, "time": np.float64},
}

SITUATION_CASES: tuple[KernelCase, ...] = (
    *cases(ordering.order_faults, _order, {**_TIMES, **_DISORDERED}),
    *cases(ordering.order_faults_of_streams, _order_of_streams, {**_TIMES, **_DISORDERED}),
    *cases(situations.find_borders, _finding, _LABELLED),
    *cases(situations.find_borders_and_gaps, _finding_gaps, _LABELLED),
    *cases(situations.mark_borders, _marking, _NEIGHBOURS, ("labels", "begins", "gaps.clock")),
    *cases(situations.cross_borders, _crossing, _NEIGHBOURS),
    *cases(
        situations.settle_borders,
        _settling,
        {"int64": {}, "float64": {"time": np.float64}, "one-stream": {"single": True}, "gaps": {"gaps": True}},
    ),
    *cases(situations.count_crossings, _counting, {"": {}}),
    *cases(situations.pair_borders, _pairing, {"": {}}),
    *cases(situations.first_reaching, _reaching, _TIMES),
    *cases(situations.select_between, _between, {"": {}}),
)

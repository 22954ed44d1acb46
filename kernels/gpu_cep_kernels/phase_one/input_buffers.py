"""Build the input buffers of the lazy automata (lazy automata paper, section 3).

An input buffer holds one variable's events. Rules here judge which events come
in time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.rules.scalars import within
from gpu_cep_kernels.rules.tables import Ints
from gpu_cep_kernels.rules.ties import are_tied


class InputBuffers(NamedTuple):
    """Hold each variable's events, in stream order.

    - first[v]: where those of variable v begin; the last entry is the end.
    - events: the events, variable after variable.
    """

    first: Ints
    events: npt.NDArray[np.int32]


class Streams(NamedTuple):
    """Hold the streams that a batch is a part of, and the times of the batch's own events.

    - offsets[s]: where stream s begins; the last entry is the end.
    - times[e], clock[e]: the time of event e, and its time on the clock of windows.
    - length: the length of a window on the clock.
    - strict: whether events at one time are in no order.
    """

    offsets: Ints
    times: npt.NDArray[np.generic]
    clock: npt.NDArray[np.generic]
    length: np.generic
    strict: bool


class Buffered(NamedTuple):
    """Hold a batch's events by variable, and the streams that they are from."""

    buffers: InputBuffers
    streams: Streams


@sequential(writes=("counts",))
def count_labels(labels: Any, counts: Any) -> None:
    """``counts[v]``: how many events carry bit v."""
    for v in range(counts.size):
        mask = labels.dtype.type(1) << labels.dtype.type(v)
        count = 0
        for e in range(labels.size):
            count += (labels[e] & mask) != 0
        counts[v] = count


@sequential(writes=("events",))
def fill_buffers(labels: Any, first: Any, events: Any) -> None:
    """Write the input buffers: v's events begin at ``events[first[v]]``.

    `events` needs one slot more than there are events to write.
    """
    for v in range(first.size - 1):
        mask = labels.dtype.type(1) << labels.dtype.type(v)
        own = events[first[v] :]
        count = 0
        for e in range(labels.size):
            own[count] = e
            count += (labels[e] & mask) != 0


@rule
def _is_at_once(one: int, other: int, begin: int, end: int, streams: Streams) -> bool:
    """Return whether `other` is one of the events [begin, end) and has the time of `one`."""
    return bool(begin <= other and other < end and are_tied(one, other, streams.times))


@rule
def _last_at_once(event: int, direction: int, begin: int, end: int, streams: Streams) -> int:
    """Return the last event with the time of `event`, in a direction (1 or -1) from it.

    It is one of [begin, end). Steps are doubled first, and halved then.
    """
    place, step = event, direction
    while _is_at_once(event, place + step, begin, end, streams):
        place += step
        step *= 2
    while step != 0:
        if _is_at_once(event, place + step, begin, end, streams):
            place += step
        # halved towards 0 in both directions
        step = direction * (abs(step) // 2)
    return place


@rule
def between(prec: int, succ: int, begin: int, end: int, streams: Streams) -> tuple[int, int]:
    """Return the range of the events [begin, end) of a stream that are behind `prec` and before `succ`.

    `prec` is -1, and `succ` the number of events, where there is no such event.
    """
    low, high = begin, end
    if prec >= 0:
        last = _last_at_once(prec, 1, prec, end, streams) if streams.strict else prec
        low = max(begin, last + 1)
    if succ < streams.times.size:
        # events tied with `succ` may lie before `end` even if `succ` does not
        first = _last_at_once(succ, -1, begin, succ, streams) if streams.strict else succ
        high = min(end, first)
    return low, high


@rule
def is_early(event: int, begin: int, latest: int, streams: Streams) -> bool:
    """Return whether `event` comes too early: before `begin`, or more than a window before `latest`."""
    return bool(event < begin or (event < latest and not within(streams.clock[event], streams.clock[latest], streams.length)))


@rule
def is_late(event: int, end: int, earliest: int, streams: Streams) -> bool:
    """Return whether `event` comes too late: not before `end`, or more than a window behind `earliest`."""
    return bool(event >= end or (event > earliest and not within(streams.clock[earliest], streams.clock[event], streams.length)))


@rule
def stream_of(event: int, offsets: Any) -> int:
    """Return the stream s with ``offsets[s] <= event < offsets[s + 1]``."""
    low, high = 0, offsets.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if offsets[middle] <= event:
            low = middle
        else:
            high = middle
    return low

"""Cut ordered events into batches, the ranges that are matched apart.

A batch fits the cache. A stream longer than a batch is cut into slices. Each slice also has the
events that its last windows reach. The matches of a batch start in its own events (compare
:mod:`gpu_cep.engine.events.own_events`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.bound import CountWindow, TimeWindow
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.errors import UnsupportedError
from gpu_cep.plan.event_plan import Plan
from gpu_cep.records import record
from gpu_cep_kernels.phase_one.windows import WindowLimits, window_ends

# Events per batch: labels, times, next occurrences and window ends of one batch stay near the cache, and its fixed work is a small share.
BATCH = 1 << 18
# Events per batch that is joined on a device: enough to keep a card busy.
DEVICE_BATCH = 1 << 24
# If a pattern has more variables than this, its batches have fewer events.
_FEW_VARIABLES = 64
# A slice may carry this many times its own events for its last windows.
MOST_CARRIED = 4
# Events of a batch have numbers of 32 bits; kernels use two more numbers behind them.
MOST_EVENTS = 2**31 - 3


@record()
class Batch:
    """The range of events [low, high).

    Matches start in [low, own), the batch's own events. Their windows end at `high` or before.
    """

    low: int
    own: int
    high: int


# (event, end of its stream) → the first event behind the window of the event.
WindowEnd = Callable[[int, int], int]


def cut_batches(plan: Plan, ordered: OrderedEvents, size: int = BATCH, threads: int = 1) -> list[Batch]:
    """Cut the ordered events into batches of about `size` own events.

    They have fewer events if there are many variables. Unless one batch of half that size would do,
    each of the `threads` gets equally many batches.
    """
    size = max(1, size * _FEW_VARIABLES // max(_FEW_VARIABLES, len(plan.query.variables)))
    total = int(ordered.offsets[-1])
    if total > size // 2:
        size = -(-total // (threads * -(-total // (threads * size))))
    return cut_streams(ordered.offsets, lambda last, stream_end: first_behind_window(plan, ordered, last, stream_end), size)


def cut_streams(offsets: Indices, window_end_of: WindowEnd, size: int) -> list[Batch]:
    """Cut streams that begin at `offsets` into batches of about `size` own events.

    Raises
    ------
    UnsupportedError
        A batch has more events than int32 can number, because windows hold so many.
    """
    total = int(offsets[-1])
    batches: list[Batch] = []
    low = 0
    while low < total:
        whole = total if total - low <= size else int(offsets[np.searchsorted(offsets, low + size, side="right") - 1])
        if whole > low:
            batches.append(Batch(low, whole, whole))
        else:
            stream_end = int(offsets[np.searchsorted(offsets, low, side="right")])
            batches.append(_cut_stream(window_end_of, low, stream_end, size))
        if batches[-1].high - low > MOST_EVENTS:
            reached = f"windows that reach over {batches[-1].high - low:,} events of one stream are not supported"
            raise UnsupportedError(f"{reached}, only over {MOST_EVENTS:,}; use a shorter window, or partition_by")
        low = batches[-1].own
    return batches


def _cut_stream(window_end_of: WindowEnd, low: int, stream_end: int, size: int) -> Batch:
    """Return the next slice of a long stream as a batch.

    If long windows make slices repeat too many events, the slice is the rest of the stream. If that
    has more events than a batch may have, the slice takes half as many as a batch may have.
    """
    own = min(low + size, stream_end)
    high = window_end_of(own - 1, stream_end)
    if high - own > MOST_CARRIED * size:
        own = stream_end if stream_end - low <= MOST_EVENTS else min(low + MOST_EVENTS // 2, stream_end)
        high = window_end_of(own - 1, stream_end)
    return Batch(low, own, high)


def first_behind_window(plan: Plan, ordered: OrderedEvents, last: int, stream_end: int) -> int:
    """Return the first event behind the window of event `last`."""
    if isinstance(plan.query.window, CountWindow):
        return min(last + plan.query.window.events, stream_end)
    clock, length = window_clock(plan, ordered, last, stream_end)
    found = np.empty(1, np.int32)
    start = np.zeros(1, np.int64)
    ends = np.full(1, min(stream_end - last, MOST_EVENTS + 1), np.int32)
    window_ends(0, 1, start, start, WindowLimits(clock, ends, length), found)
    return last + int(found[0])


def window_clock(plan: Plan, ordered: OrderedEvents, low: int, high: int) -> tuple[npt.NDArray[np.generic], np.uint64 | np.float64]:
    """Return the clock by which windows over the events [low, high) are measured, and their length.

    The clock is the events' times or, for windows of a number of events, their positions. Positions
    have the type of times: kernels are then compiled for two types of clock only.
    """
    kind, length = ordered.times.dtype.type, window_length(plan, ordered.times.dtype)
    if not isinstance(plan.query.window, CountWindow):
        return ordered.times[low:high], length
    if ordered.positions is None:
        return np.arange(high - low, dtype=kind), kind(length)
    return ordered.positions[low:high].astype(kind, copy=False), kind(length)


def window_length(plan: Plan, times: np.dtype[np.generic]) -> np.uint64 | np.float64:
    """Return the length of windows on their clock; `times` is the type of the timestamps."""
    match plan.query.window:
        case CountWindow(events=events):
            return np.uint64(min(events - 1, 2**64 - 1))
        case TimeWindow(length=length):
            return np.float64(length) if times.kind == "f" else np.uint64(length)
    return np.float64(np.inf) if times.kind == "f" else np.uint64(2**64 - 1)

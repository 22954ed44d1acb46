"""The engine's seam: a run that reports the matches which start in its own events, and the events that the next slice of time needs.

Own events are those of one slice of time, or, where each stream is such a
slice and holds copies of its neighbours' events, marked rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.times import load_times
from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.plan.event_plan import EventPlan, Plan
from gpu_cep_kernels.device.interface import Device


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """The times from `begin` until before `end`, in ticks of the timestamp column; None: no bound.

    A run over a slice reports the matches whose first event falls into it.
    They are complete if the run's events hold all from `begin` (from a window
    before it where a negation looks back) until the windows that start before
    `end` are over; earlier events do no harm.
    """

    begin: int | float | None = None
    end: int | float | None = None

    def on(self, device: Device) -> TimeSlice:
        """The slice as it is asked for on a device."""
        return self

    def holds(self, times: Any, rows: Any = None) -> Any:
        """Which events of these `times` (float64, or int64 seen as uint64; an array of any array module) are in the slice."""
        ticks = times.view(np.int64) if times.dtype.kind == "u" else times
        inside = ticks == ticks
        if self.begin is not None:
            inside &= ticks >= self.begin
        if self.end is not None:
            inside &= ticks < self.end
        return inside


WHOLE = TimeSlice()


@dataclass(frozen=True, slots=True, eq=False)
class OwnRows:
    """The input rows that ``marks[row]`` says streams hold as their own; the others are copies from the slices beside them."""

    marks: Any

    def on(self, device: Device) -> OwnRows:
        """The marks on a device."""
        return OwnRows(device.upload(self.marks))

    def holds(self, times: Any, rows: Any) -> Any:
        """Which events of these `rows` are own (arrays of the marks' array module)."""
        return self.marks[rows]


# The events at which a match that is reported may start.
Own = TimeSlice | OwnRows

# Own events that lie together are a batch of their own where there are so many in each such place on average.
TOGETHER = 1 << 12


def are_all_own(ordered: OrderedEvents, batch: Batch, own: Own) -> bool:
    """Whether a match may start at each of the batch's own events."""
    return own == WHOLE or bool(_own_events(ordered, batch, own).all())


def cut_at_own(ordered: OrderedEvents, batch: Batch, own: Own) -> list[Batch]:
    """The batch, cut where matches may start at one event and not at the next if that leaves batches that are worth their while."""
    if own == WHOLE:
        return [batch]
    inside = np.concatenate([[False], _own_events(ordered, batch, own), [False]])
    borders = np.flatnonzero(inside[1:] != inside[:-1])
    begins, ends = batch.low + borders[::2], batch.low + borders[1::2]
    if int((ends - begins).sum()) < TOGETHER * len(begins):
        return [batch]
    # no window reaches into the next stream
    stream_ends = ordered.offsets[np.searchsorted(ordered.offsets, ends - 1, side="right")]
    highs = np.minimum(stream_ends, batch.high)
    return [Batch(*border) for border in zip(begins.tolist(), ends.tolist(), highs.tolist(), strict=True)]


def _own_events(ordered: OrderedEvents, batch: Batch, own: Own) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = own.holds(ordered.times[batch.low : batch.own], ordered.rows[batch.low : batch.own])
    return found


def events_to_keep(plan: EventPlan, table: pa.Table, own: TimeSlice) -> pa.Table:
    """The events of `table` that a match which starts after the slice `own` can bind, or that can rule it out.

    That is what its successor needs beside its own events.

    Raises
    ------
    UnsupportedError
        A negation looks back over a number of events, which no time bounds.
    """
    if own.end is None:
        return table.slice(0, 0)
    times = load_times(EventColumns(table, plan.query, plan.dictionaries), plan.query.timestamp)
    return table.filter(pa.array(TimeSlice(begin=_earliest(plan, own.end)).holds(times)))


def _earliest(plan: EventPlan, start: int | float) -> int | float:
    """The earliest time that bears on a match which starts at `start` or later."""
    if all(negation.after for branch in plan.branches for negation in branch.negations):
        return start
    match plan.query.window:
        case TimeWindow(length=float() as length):
            # lower than what any rounding of a difference of times lets into the window
            return math.nextafter(start - math.nextafter(length, math.inf), -math.inf)
        case TimeWindow(length=length):
            return start - length
    message = "a slice of time of a query whose negation looks back over a number of events is not supported"
    raise UnsupportedError([Diagnostic(message, hint="give the window a length of time")])


def refuse_slices(plan: Plan) -> None:
    """Raise UnsupportedError if what a slice of time reports depends on what was reported of earlier ones."""
    if plan.settings.after_match == "skip_past_last":
        message = "after_match='skip_past_last' over a slice of time is not supported"
        raise UnsupportedError([Diagnostic(message, hint="matches of earlier slices decide which ones are taken")])

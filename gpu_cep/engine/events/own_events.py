"""Say which events are a run's own: matches are reported if they start there.

Own events are those of one slice of time. If each stream is such a slice and
holds copies of events of the slices beside it, own events are marked rows.
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
    """The times from `begin` to before `end`, in ticks of the timestamp column; None: no bound.

    A run over a slice reports the matches whose first event falls into it.
    They are complete if the run has all events from `begin` until the windows
    that start before `end` are over. If a negation looks back, it also needs
    those of a window before `begin`. Earlier events do no harm.
    """

    begin: int | float | None = None
    end: int | float | None = None

    def on(self, device: Device) -> TimeSlice:
        """Return the slice for use on a device: itself."""
        return self

    def holds(self, times: Any, rows: Any = None) -> Any:
        """Return which events are in the slice, by their `times`: float64, or int64 held as uint64, of any array module."""
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
    """The input rows that are a stream's own, by ``marks[row]``; the others are copies from the slices beside it."""

    marks: Any

    def on(self, device: Device) -> OwnRows:
        """Return the same with its marks on a device."""
        return OwnRows(device.upload(self.marks))

    def holds(self, times: Any, rows: Any) -> Any:
        """Return which events are own, by their `rows`; arrays of the marks' array module."""
        return self.marks[rows]


# The events at which a match that is reported may start.
Own = TimeSlice | OwnRows

# Runs of own events become batches if they have so many events on average.
TOGETHER = 1 << 12


def are_all_own(ordered: OrderedEvents, batch: Batch, own: Own) -> bool:
    """Return whether a match may start at each of the batch's own events."""
    return own == WHOLE or bool(_own_events(ordered, batch, own).all())


def cut_at_own(ordered: OrderedEvents, batch: Batch, own: Own) -> list[Batch]:
    """Cut the batch into its runs of own events, if these are long enough to be batches; else return it whole."""
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
    """Return which of the batch's own events are the run's own."""
    found: npt.NDArray[np.bool_] = own.holds(ordered.times[batch.low : batch.own], ordered.rows[batch.low : batch.own])
    return found


def events_to_keep(plan: EventPlan, table: pa.Table, own: TimeSlice) -> pa.Table:
    """Return the events of `table` that matches starting after the slice `own` can bind, or that can rule them out.

    The run over the next slice needs these beside its own events.

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
    """Return the earliest time of an event that matters to a match which starts at `start` or later."""
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
    """Raise UnsupportedError if the matches of a slice of time depend on those of earlier slices."""
    if plan.settings.after_match == "skip_past_last":
        message = "after_match='skip_past_last' over a slice of time is not supported"
        raise UnsupportedError([Diagnostic(message, hint="matches of earlier slices decide which ones are taken")])

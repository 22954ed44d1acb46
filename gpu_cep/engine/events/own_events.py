"""Mark the own events of a run: only matches that start at one of them are reported.

They are the events of a slice of time, or marked rows. Rows are marked if each stream is such a
slice, with copies of events of the slices beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.device.interface import Device


class TimeSlice(NamedTuple):
    """The times from `begin` to before `end`, in ticks of the timestamp column; None: no bound.

    A run over a slice reports the matches whose first event is in it. The run needs all events from
    `begin` to the end of the last window that starts before `end`. If a negation looks back, it
    also needs the events of a window before `begin`. Earlier events change nothing.
    """

    begin: int | float | None = None
    end: int | float | None = None

    def on(self, device: Device) -> TimeSlice:
        """Return the slice for use on a device: itself, since it has no arrays."""
        return self

    def holds(self, times: Any, rows: Any = None) -> Any:
        """Return which events are in the slice, by their `times`.

        They are float64, or int64 stored as uint64, of any array module.
        """
        ticks = times.view(np.int64) if times.dtype.kind == "u" else times
        inside = ticks == ticks
        if self.begin is not None:
            inside &= ticks >= self.begin
        if self.end is not None:
            inside &= ticks < self.end
        return inside

    def among(self, ordered: OrderedEvents, events: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which of some ordered events, given by number, are in the slice."""
        found: npt.NDArray[np.bool_] = self.holds(ordered.times[events])
        return found


WHOLE = TimeSlice()


@dataclass(frozen=True, slots=True, eq=False)
class OwnRows:
    """The own rows of streams, where ``marks[row]`` is set; other rows are copies from other slices."""

    marks: Any

    def on(self, device: Device) -> OwnRows:
        """Return the same with the marks on a device."""
        return OwnRows(device.upload(self.marks))

    def holds(self, times: Any, rows: Any) -> Any:
        """Return which events are own, by their `rows`, which lie where the marks do."""
        return self.marks[rows]

    def among(self, ordered: OrderedEvents, events: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which of some ordered events, given by number, are own."""
        found: npt.NDArray[np.bool_] = self.marks[ordered.rows[events]]
        return found


# The events at which a match that is reported may start.
Own = TimeSlice | OwnRows

# Runs of own events become batches if they have so many events on average, and each further batch leaves out so many others.
TOGETHER = 1 << 12


def are_all_own(ordered: OrderedEvents, batch: Batch, own: Own) -> bool:
    """Return whether a match may start at each of the batch's own events."""
    return own == WHOLE or bool(_own_events(ordered, batch, own).all())


def cut_at_own(ordered: OrderedEvents, batch: Batch, own: Own) -> list[Batch]:
    """Cut the batch into one batch for each sequence of own events without gaps.

    If they are short on average, or few events lie between them, return the batch whole.
    """
    if own == WHOLE:
        return [batch]
    inside = np.concatenate([[False], _own_events(ordered, batch, own), [False]])
    borders = np.flatnonzero(inside[1:] != inside[:-1])
    begins, ends = batch.low + borders[::2], batch.low + borders[1::2]
    held = int((ends - begins).sum())
    others = batch.own - batch.low - held
    if held < TOGETHER * len(begins) or others < TOGETHER * (len(begins) - 1):
        return [batch]
    # no window reaches into the next stream
    stream_ends = ordered.offsets[np.searchsorted(ordered.offsets, ends - 1, side="right")]
    highs = np.minimum(stream_ends, batch.high)
    return [Batch(*border) for border in zip(begins.tolist(), ends.tolist(), highs.tolist(), strict=True)]


def _own_events(ordered: OrderedEvents, batch: Batch, own: Own) -> npt.NDArray[np.bool_]:
    """Return which of the batch's own events are own events of the run, too."""
    found: npt.NDArray[np.bool_] = own.holds(ordered.times[batch.low : batch.own], ordered.rows[batch.low : batch.own])
    return found


def refuse_slices(plan: Plan) -> None:
    """Raise UnsupportedError if the matches of a slice of time depend on those of earlier slices."""
    if plan.settings.after_match == "skip_past_last":
        message = "after_match='skip_past_last' over a slice of time is not supported"
        raise UnsupportedError([Diagnostic(message, hint="matches of earlier slices decide which ones are taken")])

"""The engine's seam: a run that reports the matches which start in a slice of time, and the events that the next slice needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_cep.engine.columns import EventColumns
from gpu_cep.engine.streams import load_times
from gpu_cep.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """The times from `begin` until before `end`, in ticks of the timestamp column; None: no bound.

    A run over a slice reports the matches whose first event falls into it.
    They are complete if the run's events hold all from `begin` until the
    windows that start before `end` are over; earlier events do no harm.
    """

    begin: int | float | None = None
    end: int | float | None = None

    def holds(self, times: Any) -> Any:
        """Which of `times` (float64, or int64 seen as uint64; an array of any array module) are in the slice."""
        ticks = times.view(np.int64) if times.dtype.kind == "u" else times
        inside = ticks == ticks
        if self.begin is not None:
            inside &= ticks >= self.begin
        if self.end is not None:
            inside &= ticks < self.end
        return inside


WHOLE = TimeSlice()


def events_to_keep(plan: Plan, table: pa.Table, own: TimeSlice) -> pa.Table:
    """The events of `table` that a match which starts after the slice `own` can bind: what its successor needs beside its own events."""
    times = load_times(EventColumns(table, plan.query, plan.dictionaries), plan.query.timestamp)
    return table.filter(pa.array(TimeSlice(begin=own.end).holds(times))) if own.end is not None else table.slice(0, 0)

"""Choose the matches that a run reports by where they end: by their last events, or by the events that follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import TimeSlice

Marks = npt.NDArray[np.bool_]


class Known(NamedTuple):
    """The times up to which all events are known, and those of first events whose windows are surely over then."""

    times: TimeSlice
    over: TimeSlice


@dataclass(frozen=True, slots=True)
class Followed:
    """The matches that an event behind them, or the end of their window, has closed by what is known `now`, but not `before`.

    None: nothing was known before; everything is known now.
    """

    before: Known | None
    now: Known | None


# Which matches are reported; a slice of time is that of last events.
Ends = TimeSlice | Followed


def are_reported(ends: Ends, ordered: OrderedEvents, first: Indices, last: Indices) -> Marks:
    """Return which of the matches with these first and last events are reported."""
    if isinstance(ends, TimeSlice):
        held: Marks = ends.holds(ordered.times[last])
        return held
    reported = np.ones(len(last), np.bool_) if ends.now is None else _are_closed(ends.now, ordered, first, last)
    return reported if ends.before is None else reported & ~_are_closed(ends.before, ordered, first, last)


def _are_closed(known: Known, ordered: OrderedEvents, first: Indices, last: Indices) -> Marks:
    """Return which matches are closed by what is known."""
    stream_ends = ordered.offsets[np.searchsorted(ordered.offsets, last, side="right")]
    behind = last + 1
    followed = behind < stream_ends
    followed[followed] = known.times.holds(ordered.times[behind[followed]])
    over: Marks = known.over.holds(ordered.times[first])
    return followed | over

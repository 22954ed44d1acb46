"""Choose the matches that a run reports by where they end: by their last events, or by the events that follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.matches import AnyMatches, Counts, Indices
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


@dataclass(frozen=True, slots=True)
class ByBranch:
    """The matches that bind the variables of a `waiting` branch and begin in one slice, and others that end in another.

    A branch is the bits of the variables that it binds.
    """

    waiting: frozenset[int]
    first: TimeSlice
    last: TimeSlice


# Which matches are reported; a slice of time is that of last events.
Ends = TimeSlice | Followed | ByBranch


def are_reported(ends: Ends, ordered: OrderedEvents, matches: AnyMatches) -> Marks:
    """Return which of the matches are reported."""
    first, last = matches.first, matches.last
    if isinstance(ends, TimeSlice):
        return _hold(ends, ordered, last)
    if isinstance(ends, ByBranch):
        waits = np.zeros(len(last), np.bool_)
        for branch in ends.waiting:
            waits |= _binds(matches.counts, branch)
        return np.where(waits, _hold(ends.first, ordered, first), _hold(ends.last, ordered, last))
    reported = np.ones(len(last), np.bool_) if ends.now is None else _are_closed(ends.now, ordered, first, last)
    return reported if ends.before is None else reported & ~_are_closed(ends.before, ordered, first, last)


def _hold(held: TimeSlice, ordered: OrderedEvents, events: Indices) -> Marks:
    """Return which of the events are in a slice."""
    inside: Marks = held.holds(ordered.times[events])
    return inside


def _binds(counts: Counts, branch: int) -> Marks:
    """Return which matches bind the variables of a branch, and no others."""
    wanted = np.array([branch >> v & 1 for v in range(counts.shape[1])], np.bool_)
    bound: Marks = ((counts > 0) == wanted).all(axis=1)
    return bound


def _are_closed(known: Known, ordered: OrderedEvents, first: Indices, last: Indices) -> Marks:
    """Return which matches are closed by what is known."""
    stream_ends = ordered.offsets[np.searchsorted(ordered.offsets, last, side="right")]
    behind = last + 1
    followed = behind < stream_ends
    followed[followed] = _hold(known.times, ordered, behind[followed])
    return followed | _hold(known.over, ordered, first)

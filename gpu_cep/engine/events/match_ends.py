"""Choose the matches that a run reports by where they end: by their last events, or by the events that follow.

When a match is certain is told in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.engine.events.matches import AnyMatches, Counts, Flags, FoundMatches, Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import TimeSlice
from gpu_cep.engine.input.ticks import Tick
from gpu_cep.plan.certainty import Certain, certainty_of, waiting_branches
from gpu_cep.plan.event_plan import EventPlan

Times = npt.NDArray[Any]


class KnownTimes(NamedTuple):
    """The times up to which all events are known, and those of first events whose windows are surely over then."""

    times: TimeSlice
    over: TimeSlice


@dataclass(frozen=True, slots=True)
class NewlyClosed:
    """The matches that an event behind them, or the end of their window, has closed by what is known `now`, but not `before`.

    None: nothing was known before; everything is known now.
    """

    before: KnownTimes | None
    now: KnownTimes | None


@dataclass(frozen=True, slots=True)
class EndsByBranch:
    """The matches of `waiting` branches that begin in the slice `first`, and the other ones that end in the slice `last`.

    A branch is given by the bits of the variables that it binds.
    """

    waiting: frozenset[int]
    first: TimeSlice
    last: TimeSlice


# Which matches are reported; a slice of time is that of last events.
ReportedEnds = TimeSlice | NewlyClosed | EndsByBranch


def certain_times(plan: EventPlan, ordered: OrderedEvents, matches: FoundMatches, latest: Tick) -> Times:
    """Return when each match of a query with a window of time is certain, a time of `latest` at the latest."""
    times = ordered.times if ordered.times.dtype.kind == "f" else ordered.times.view(np.int64)
    first, last = matches.first, matches.last
    over = window_end_times(plan, times[first], latest)
    match certainty_of(plan):
        case Certain.WITH_LAST_EVENT:
            return times[last]
        case Certain.WITH_NEXT_EVENT:
            followed, behind = _followers(ordered, last)
            over[followed] = np.minimum(over[followed], times[behind[followed]])
        case Certain.BY_BRANCH:
            return np.where(_wait(waiting_branches(plan), matches.counts), over, times[last])
    return over


def window_end_times(plan: EventPlan, times: Times, latest: Tick) -> Times:
    """Return when the windows that begin at `times` are over, a time of `latest` at the latest."""
    window = plan.query.window
    assert isinstance(window, TimeWindow), "other windows are over with an event"
    length = times.dtype.type(min(window.length, latest))
    return np.where(times > latest - length, latest, times + length) if times.dtype.kind == "i" else times + length


def are_reported(ends: ReportedEnds, ordered: OrderedEvents, matches: AnyMatches) -> Flags:
    """Return which of the matches are reported."""
    first, last = matches.first, matches.last
    if isinstance(ends, TimeSlice):
        return _hold(ends, ordered, last)
    if isinstance(ends, EndsByBranch):
        return np.where(_wait(ends.waiting, matches.counts), _hold(ends.first, ordered, first), _hold(ends.last, ordered, last))
    reported = np.ones(len(last), np.bool_) if ends.now is None else _are_closed(ends.now, ordered, first, last)
    return reported if ends.before is None else reported & ~_are_closed(ends.before, ordered, first, last)


def _hold(held: TimeSlice, ordered: OrderedEvents, events: Indices) -> Flags:
    """Return which of the events are in a slice."""
    inside: Flags = held.holds(ordered.times[events])
    return inside


def _wait(waiting: frozenset[int], counts: Counts) -> Flags:
    """Return which matches are of a branch that waits for its window."""
    waits = np.zeros(len(counts), np.bool_)
    for branch in waiting:
        waits |= _binds(counts, branch)
    return waits


def _binds(counts: Counts, branch: int) -> Flags:
    """Return which matches bind the variables of a branch, and no others."""
    wanted = np.array([branch >> v & 1 for v in range(counts.shape[1])], np.bool_)
    bound: Flags = ((counts > 0) == wanted).all(axis=1)
    return bound


def _are_closed(known: KnownTimes, ordered: OrderedEvents, first: Indices, last: Indices) -> Flags:
    """Return which matches are closed by what is known."""
    followed, behind = _followers(ordered, last)
    followed[followed] = _hold(known.times, ordered, behind[followed])
    return followed | _hold(known.over, ordered, first)


def _followers(ordered: OrderedEvents, events: Indices) -> tuple[Flags, Indices]:
    """Return which events are followed by another one of their stream, and the number of the event behind each."""
    stream_ends = ordered.offsets[np.searchsorted(ordered.offsets, events, side="right")]
    behind = events + 1
    return behind < stream_ends, behind

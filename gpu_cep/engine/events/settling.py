"""Settle within a slice of time which matches ``skip_past_last`` keeps, as far as no other slice can change that."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu_cep.engine.events.matches import Flags, Indices
from gpu_cep.engine.events.own_events import WHOLE, Own, TimeSlice
from gpu_cep.engine.input.ticks import Tick, following
from gpu_cep_kernels.matches.flat_matches import select_disjoint, settle_disjoint


class Borders(NamedTuple):
    """What a slice knows of the matches of others.

    `apart`: the events behind all those of earlier slices' matches.
    `own`: the events before all those of later slices' matches, since they are in the slice.
    """

    apart: Own
    own: Own

    @classmethod
    def of_times(cls, own: TimeSlice, reached: Tick | None) -> Borders:
        """Return those of a slice of time, before which no match has an event later than `reached` (None: there is none)."""
        return cls(WHOLE if reached is None else TimeSlice(following(reached)), own)


class Settled(NamedTuple):
    """The matches that a slice does not drop, ascending, and which of them are kept whatever other slices find."""

    kept: Indices
    final: Flags


def settle(streams: Indices, first: Indices, last: Indices, begins_late: Flags, ends_early: Flags) -> Settled:
    """Return which matches of a slice are kept, and which of these for certain.

    Which match a slice takes first depends on the last one that earlier slices take, of which it
    knows the latest end. It follows what it would take behind each. From the first match on that it
    takes in any case, the slice decides itself about the matches that end before a later slice begins.
    It drops every match that it takes in no case.

    Parameters
    ----------
    streams
        The number of each match's stream, ascending.
    first, last
        The positions of its first and last event in its stream; `first` ascends in each stream.
    begins_late
        Whether it begins after all matches of earlier slices have ended.
    ends_early
        Whether it ends before any match of a later slice begins.
    """
    kept, final = np.empty(len(streams), np.int64), np.empty(len(streams), np.bool_)
    count = settle_disjoint(streams, first, last, begins_late, ends_early, kept, final)
    return Settled(kept[:count], final[:count])


def mark_disjoint(streams: Indices, first: Indices, last: Indices) -> Flags:
    """Return which matches are taken in the order in which they complete, each behind the end of the one taken before it.

    They come by stream and first event; `first` and `last` are positions in the stream.
    """
    taken = np.empty(len(streams), np.bool_)
    select_disjoint(_in_order_of_completion(streams, first, last), streams, first, last, taken)
    return taken


def _in_order_of_completion(streams: Indices, first: Indices, last: Indices) -> Indices:
    """Return the numbers of matches by stream, last event, first event; equal ones keep their order, which is that of bindings.

    Most often the last events of matches that come by first event are in order, too.
    """
    if ((last[1:] >= last[:-1]) | (streams[1:] != streams[:-1])).all():
        return np.arange(len(streams))
    return np.lexsort((first, last, streams))

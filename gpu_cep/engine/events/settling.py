"""Settle within a slice of time which matches ``skip_past_last`` keeps, as far as no other slice can change that."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu_cep.engine.events.matches import Flags, Indices
from gpu_cep_kernels.matches.flat_matches import select_disjoint


class Borders(NamedTuple):
    """What a slice knows of the matches of others, by rows of its events.

    `apart`: whether all events of earlier slices' matches come before the row.
    `own`: whether all events of later slices' matches come behind it, since it is in the slice.
    """

    apart: Flags
    own: Flags


class Settled(NamedTuple):
    """The matches that a slice does not drop, ascending, and which of them are kept whatever other slices find."""

    kept: Indices
    final: Flags


def settle(streams: Indices, first: Indices, last: Indices, begins_late: Flags, ends_early: Flags) -> Settled:
    """Return which matches of a slice are kept, and which of these for certain.

    Behind a match that begins after all before it have ended, no earlier match matters. There the
    slice decides itself about the matches that end before a later slice begins. It drops every
    match that overlaps one of those that it keeps.

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
    decided = _behind_a_gap(streams, first, last, begins_late)
    among = np.flatnonzero(decided & ends_early)
    final = np.zeros(len(streams), np.bool_)
    final[among[are_disjoint(streams[among], first[among], last[among])]] = True
    pending = np.flatnonzero(decided & ~ends_early)
    kept = ~decided | final
    kept[pending] = ~_overlap(streams, first, last, np.flatnonzero(final), pending)
    places = np.flatnonzero(kept)
    return Settled(places, final[places])


def are_disjoint(streams: Indices, first: Indices, last: Indices) -> Flags:
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


def _behind_a_gap(streams: Indices, first: Indices, last: Indices, begins_late: Flags) -> Flags:
    """Return which matches are, or come behind, one that begins after all others before it in its stream have ended."""
    if not len(streams):
        return np.zeros(0, np.bool_)
    begins = np.diff(streams, prepend=streams[0] - 1) != 0
    # positions of one stream after the other, so that what an earlier stream reached is below all of a later one
    size = int(last.max()) + 1
    number = np.cumsum(begins) * size
    reached = np.maximum.accumulate(last + number)
    alone = begins_late.copy()
    alone[1:] &= begins[1:] | ((first + number)[1:] > reached[:-1])
    before = np.cumsum(alone)
    since: Flags = before > np.maximum.accumulate(np.where(begins, before - alone, 0))
    return since


def _overlap(streams: Indices, first: Indices, last: Indices, final: Indices, pending: Indices) -> Flags:
    """Return which of the `pending` matches begin before the last of the `final` ones of their stream has ended."""
    if not len(final):
        return np.zeros(len(pending), np.bool_)
    # those that are final do not overlap, so that the last one to begin is the last one to end
    latest = final[np.searchsorted(streams[final], streams[pending], side="right") - 1]
    overlap: Flags = (streams[latest] == streams[pending]) & (first[pending] <= last[latest])
    return overlap

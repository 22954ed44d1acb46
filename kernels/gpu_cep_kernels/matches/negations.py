"""Drop the matches that negations rule out, where labels decide what a negated variable stands for."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.matches.flat_matches import FlatMatches
from gpu_cep_kernels.phase_one.window_conditions import NextEvents
from gpu_cep_kernels.rules.negation import first_in_scope, is_too_late, stream_of
from gpu_cep_kernels.rules.tables import NegationTable
from gpu_cep_kernels.rules.ties import first_behind


class NegatedEvents(NamedTuple):
    """Look up what follows in a batch of events, which are numbered from its first, event `base` of all.

    ``next_events.occurrence[n, e]`` has the properties of negation n. It is read only where the scope of n begins behind events
    of the match.
    """

    base: int
    next_events: NextEvents


@rule
def _binds(m: int, event: int, matches: FlatMatches) -> bool:
    """Return whether match m binds `event`."""
    found = False
    for k in range(matches.offsets[m], matches.offsets[m + 1]):
        found = found or matches.events[k] == event
    return found


@rule
def _is_ruled_out_behind(
    m: int, n: int, latest: int, earliest: int, first: int, stream: int, batch: NegatedEvents, matches: FlatMatches,
    negations: NegationTable,
) -> bool:  # fmt: skip
    """Return whether an event lies in the scope of negation n, which begins behind event `latest`, that match m does not bind."""
    base, (after, occurrence) = batch.base, batch.next_events
    place = base + occurrence[n, first_behind(after, latest - base)]
    inside = not is_too_late(place, earliest, first, stream, negations)
    while inside and _binds(m, place, matches):
        place = base + occurrence[n, place - base + 1]
        inside = not is_too_late(place, earliest, first, stream, negations)
    return inside


@rule
def _is_ruled_out_before(
    m: int, n: int, earliest: int, ends: Any, stream: int, near: Any, matches: FlatMatches, negations: NegationTable
) -> bool:  # fmt: skip
    """Return the same for a scope that begins one window before the last event of the match; ``ends`` are its first and last."""
    first, last = ends
    low, high = negations.place_first[n], negations.place_first[n + 1]
    near[n + 1] = k = first_in_scope(negations.places, low, high, -1, last, stream, near[n + 1], negations)
    ruled_out, inside = False, True
    while k < high and inside and not ruled_out:
        place = negations.places[k]
        inside = not is_too_late(place, earliest, first, stream, negations)
        ruled_out = inside and not _binds(m, place, matches)
        k += 1
    return ruled_out


@rule
def _is_ruled_out(m: int, n: int, ends: Any, batch: NegatedEvents, near: Any, matches: FlatMatches, negations: NegationTable) -> bool:
    """Return whether an event that match m does not bind lies in the scope of its negation n; ``ends`` are its first and last."""
    begin = matches.offsets[m]
    latest, earliest = -1, -1
    for k in range(negations.after_first[n], negations.after_first[n + 1]):
        latest = max(latest, matches.events[begin + negations.after[k]])
    for k in range(negations.before_first[n], negations.before_first[n + 1]):
        event = matches.events[begin + negations.before[k]]
        earliest = event if earliest < 0 else min(earliest, event)
    near[0] = stream = stream_of(ends[0], near[0], negations.streams)
    if latest >= 0:
        ruled_out = _is_ruled_out_behind(m, n, latest, earliest, ends[0], stream, batch, matches, negations)
    else:
        ruled_out = _is_ruled_out_before(m, n, earliest, ends, stream, near, matches, negations)
    return ruled_out


@sequential(writes=("kept",), scratch=("near",))
def keep_by_negations(matches: FlatMatches, negations: NegationTable, batch: NegatedEvents, near: Any, kept: Any) -> int:
    """Write the numbers of the matches that no negation rules out; return how many.

    Every variable binds one event, and negations have no conditions. All matches start in the batch. `near` is given
    as zeros: one for the stream, and one for each negation. `kept` has room for one more.
    """
    count = 0
    for m in range(matches.offsets.size - 1):
        first = last = matches.events[matches.offsets[m]]
        for k in range(matches.offsets[m] + 1, matches.offsets[m + 1]):
            first, last = min(first, matches.events[k]), max(last, matches.events[k])
        ruled_out = False
        for n in range(negations.variable.size):
            ruled_out = ruled_out or _is_ruled_out(m, n, (first, last), batch, near, matches, negations)
        kept[count] = m
        count += not ruled_out
    return count

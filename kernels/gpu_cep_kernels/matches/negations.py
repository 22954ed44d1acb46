"""Drop the matches that negations rule out, where labels decide what a negated variable stands for."""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.matches.flat_matches import FlatMatches
from gpu_cep_kernels.rules.negation import first_in_scope, is_too_late, stream_of
from gpu_cep_kernels.rules.tables import NegationTable


@rule
def _binds(m: int, event: int, matches: FlatMatches) -> bool:
    """Return whether match m binds `event`."""
    found = False
    for k in range(matches.offsets[m], matches.offsets[m + 1]):
        found = found or matches.events[k] == event
    return found


@rule
def _is_ruled_out(m: int, n: int, ends: Any, near: Any, matches: FlatMatches, negations: NegationTable) -> bool:
    """Return whether an event lies in the scope of negation n of match m that the match does not bind; ``ends`` are the match's."""
    begin = matches.offsets[m]
    latest, earliest = -1, -1
    for k in range(negations.after_first[n], negations.after_first[n + 1]):
        latest = max(latest, matches.events[begin + negations.after[k]])
    for k in range(negations.before_first[n], negations.before_first[n + 1]):
        event = matches.events[begin + negations.before[k]]
        earliest = event if earliest < 0 else min(earliest, event)
    first, last = ends
    near[0] = stream = stream_of(first, near[0], negations.streams)
    near[n + 1] = k = first_in_scope(n, latest, last, stream, near[n + 1], negations)
    ruled_out, inside = False, True
    while k < negations.place_first[n + 1] and inside and not ruled_out:
        place = negations.places[k]
        inside = not is_too_late(place, earliest, first, stream, negations)
        ruled_out = inside and not _binds(m, place, matches)
        k += 1
    return ruled_out


@sequential(writes=("kept",), scratch=("near",))
def keep_by_negations(matches: FlatMatches, negations: NegationTable, near: Any, kept: Any) -> int:
    """Write the numbers of the matches that no negation rules out; return how many.

    Every variable binds one event, and negations have no conditions. `near` is given
    as zeros: one for the stream, and one for each negation. `kept` has room for one
    more.
    """
    count = 0
    for m in range(matches.offsets.size - 1):
        first = last = matches.events[matches.offsets[m]]
        for k in range(matches.offsets[m] + 1, matches.offsets[m + 1]):
            first, last = min(first, matches.events[k]), max(last, matches.events[k])
        ruled_out = False
        for n in range(negations.variable.size):
            ruled_out = ruled_out or _is_ruled_out(m, n, (first, last), near, matches, negations)
        kept[count] = m
        count += not ruled_out
    return count

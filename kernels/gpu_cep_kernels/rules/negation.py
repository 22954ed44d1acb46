"""Judge negations: whether an event outside a match satisfies what must not happen beside it (docs/language.md, NOT).

The events with a negated variable's properties are listed once, numbered among
all ordered events. The *scope* of a negation is the range of this list in which
none may satisfy its conditions. It is sought from where the last one began, in
steps of 1, 2, 4 …, since one match's scope is near the next one's.

Where a condition demands that a negated event has a key of the match, the events
are listed in buckets, one for each hash of a key. The scope is then sought in one
of them.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.conditions import conditions_hold
from gpu_cep_kernels.rules.scalars import mix_hash, within
from gpu_cep_kernels.rules.tables import Conditions, Criteria, EventPath, Ints, NegationKeys, NegationTable
from gpu_cep_kernels.rules.ties import is_before


class NegationLists(Protocol):
    """List the events that negations may rule out, as the fields of the same names of NegationTable."""

    @property
    def streams(self) -> Ints: ...
    @property
    def times(self) -> npt.NDArray[np.generic]: ...
    @property
    def clock(self) -> npt.NDArray[np.generic]: ...
    @property
    def length(self) -> np.generic: ...


@rule
def _is_before(one: int, other: int, negations: NegationLists) -> bool:
    """Return whether the first of two events of a stream is before the other; the table has times only if ties are strict."""
    return is_before(one, other, negations.times.size > 0, negations.times)


@rule
def stream_of(event: int, near: int, streams: Any) -> int:
    """Return the stream that holds an event; stream s begins at ``streams[s]``. The search begins at stream `near`."""
    low, high, step = 0, streams.size - 2, 1
    if streams[near] <= event:
        low = near
        while low + step <= high and streams[low + step] <= event:
            low += step
            step *= 2
        high = min(high, low + step - 1)
    while low < high:
        middle = (low + high + 1) // 2
        if streams[middle] <= event:
            low = middle
        else:
            high = middle - 1
    return low


@rule
def _latest_before(n: int, base: int, negations: NegationTable, path: EventPath) -> int:
    """Return the last of the events behind which negation n's scope begins; -1 if the window alone bounds it."""
    latest = -1
    for k in range(negations.after_first[n], negations.after_first[n + 1]):
        latest = max(latest, base + path.event[path.last[negations.after[k]]])
    return latest


@rule
def _earliest_behind(n: int, base: int, negations: NegationTable, path: EventPath) -> int:
    """Return the first of the events before which negation n's scope ends; -1 if the window alone bounds it."""
    earliest = -1
    for k in range(negations.before_first[n], negations.before_first[n + 1]):
        event = base + path.event[path.first[negations.before[k]]]
        earliest = event if earliest < 0 else min(earliest, event)
    return earliest


@rule
def _is_too_early(place: int, latest: int, last: int, stream: int, negations: NegationLists) -> bool:
    """Return whether an event lies before the scope, which begins behind event `latest`.

    If `latest` is -1, the scope begins one window before the match's `last` event. Events of earlier streams lie before it.
    """
    if place < negations.streams[stream] or place >= negations.streams[stream + 1]:
        early = place < last
    elif latest >= 0:
        early = not _is_before(latest, place, negations)
    else:
        early = place < last and not within(negations.clock[place], negations.clock[last], negations.length)
    return early


@rule
def is_too_late(place: int, earliest: int, first: int, stream: int, negations: NegationLists) -> bool:
    """Return whether an event lies behind the scope, which ends before event `earliest`.

    If `earliest` is -1, the scope ends one window behind the match's `first` event. Events of later streams lie behind it.
    """
    if place >= negations.streams[stream + 1]:
        late = True
    elif earliest >= 0:
        late = not _is_before(place, earliest, negations)
    else:
        late = place > first and not within(negations.clock[first], negations.clock[place], negations.length)
    return late


@rule
def first_in_scope(
    places: Ints, low: int, high: int, latest: int, last: int, stream: int, near: int, negations: NegationLists
) -> int:  # fmt: skip
    """Return the index from `low` to `high` at which a scope begins among `places`, which ascend there; begin at index `near`."""
    near, step = min(max(near, low), high), 1
    if near < high and _is_too_early(places[near], latest, last, stream, negations):
        low = near + 1
        while low + step <= high and _is_too_early(places[low + step - 1], latest, last, stream, negations):
            low += step
            step *= 2
        high = min(high, low + step - 1)
    else:
        high = near
        while high - step >= low and not _is_too_early(places[high - step], latest, last, stream, negations):
            high -= step
            step *= 2
        low = max(low, high - step + 1)
    while low < high:
        middle = (low + high) // 2
        if _is_too_early(places[middle], latest, last, stream, negations):
            low = middle + 1
        else:
            high = middle
    return int(low)


@rule
def _is_bound(event: int, depth: int, ordered: bool, path: EventPath) -> bool:
    """Return whether the path of `depth` events binds `event`; an `ordered` path has its events in stream order."""
    low, high = 0, depth
    while not ordered and low < depth and path.event[low] != event:
        low += 1
    high = high if ordered else low
    while low < high:
        middle = (low + high) // 2
        if path.event[middle] < event:
            low = middle + 1
        else:
            high = middle
    return low < depth and path.event[low] == event


@rule
def _bucket_beside(n: int, conditions: Conditions, keys: NegationKeys, path: EventPath) -> int:
    """Return the bucket of the events of negation n that may have the key of the match on the path."""
    bucket, v = int(keys.first[n]), keys.variable[n]
    if v >= 0:
        bits = conditions.bank.ints[keys.column[n], conditions.base + path.event[path.last[v]]]
        bucket += int(mix_hash(np.uint64(0), bits) & np.uint64(keys.first[n + 1] - bucket - 1))
    return bucket


@rule
def is_ruled_out(n: int, start: int, end: int, depth: int, ordered: bool, criteria: Criteria, path: EventPath) -> bool:
    """Return whether an event in the scope of negation n, but not on the path, satisfies its conditions.

    The path has `depth` events, in stream order if it is `ordered`. It binds all
    that the conditions read, and all events that bound the scope. A window bounds
    the scope where no event does; for this the match starts at event `start` and
    ends at event `end`.
    """
    pattern, conditions, negations = criteria
    base, keys = conditions.base, negations.keys
    first, last = base + start, base + end
    near = path.near
    stream = stream_of(first, near[0], negations.streams)
    near[0] = stream
    latest, earliest = _latest_before(n, base, negations, path), _earliest_behind(n, base, negations, path)
    bucket = _bucket_beside(n, conditions, keys, path)
    high = keys.border[bucket + 1]
    k = first_in_scope(keys.places, keys.border[bucket], high, latest, last, stream, near[n + 1], negations)
    near[n + 1] = k
    ruled_out, inside = False, True
    while k < high and inside and not ruled_out:
        place = keys.places[k]
        inside = not is_too_late(place, earliest, first, stream, negations)
        if inside and not _is_bound(place - base, depth, ordered, path):
            ruled_out = conditions_hold(negations.variable[n], place - base, pattern, conditions, path)
        k += 1
    return ruled_out

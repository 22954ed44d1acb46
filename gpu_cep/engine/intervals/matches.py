"""Matches of situations, and their order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.event_sequence import NO_POSITION, EventSequence
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.event_columns import Array, EventColumns
from gpu_cep.engine.intervals.events import MatchedSituations, SituationEvents
from gpu_cep.engine.intervals.situations import Derived, Runs
from gpu_cep.engine.output.result_order import key_ranks
from gpu_cep.plan.interval_plan import IntervalPlan


@dataclass(frozen=True, slots=True)
class AsSeen:
    """The situations of matches as they are at detection, [name, match]: their last event so far, and whether they are open."""

    last: Array
    is_open: npt.NDArray[np.bool_]

    def take(self, order: Indices) -> AsSeen:
        """Return the same for the matches `order`."""
        return AsSeen(self.last[:, order], self.is_open[:, order])


@dataclass(frozen=True, slots=True)
class IntervalMatches:
    """Match m takes situation ``members[v, m]`` of name v, as it is at the time ``detected[m]``.

    ``first[m]`` is its first event; ``end[m]`` is its last end, if all its
    situations have ended. `seen` is None if all situations have ended when
    their matches are detected.
    """

    members: Array
    first: Array
    end: Array
    detected: Array
    seen: AsSeen | None

    def __len__(self) -> int:
        return len(self.first)

    @property
    def is_open(self) -> npt.NDArray[np.bool_] | None:
        """Which matches have a situation that is open at detection; None if none can have."""
        return None if self.seen is None else np.logical_or.reduce(self.seen.is_open, axis=0)

    def reorder(self, order: Indices) -> IntervalMatches:
        """Return the matches in another order."""
        seen = None if self.seen is None else self.seen.take(order)
        return IntervalMatches(self.members[:, order], self.first[order], self.end[order], self.detected[order], seen)


def matches_at_detection(derived: Derived, members: Array, decided: Array) -> IntervalMatches:
    """Return the matches of the situations `members`, as these are at the endpoints `decided` that decide them."""
    events, runs, moments = derived.events, derived.runs, derived.moments
    first = _extreme(np.minimum, runs.first, members)
    if moments is None:
        # nothing is decided before the last situation has ended
        return IntervalMatches(members, first, decided, decided, None)
    # what a gap decides is seen at the event behind it
    moment = (decided + 1) // 2
    is_open = derived.situations.end[members] > 2 * moment
    # an open situation holds all events of the time of detection
    now = events.compute_at(lambda places: events.place.xp.searchsorted(moments, places, side="right") - 1, moment)
    seen = AsSeen(np.where(is_open, now, runs.last[members]).astype(np.int32), is_open)
    return IntervalMatches(members, first, _extreme(np.maximum, runs.end, members), events.gather(events.times, moment), seen)


def _extreme(better: np.ufunc, values: Array, members: Array) -> Array:
    """Return the least or the greatest value over the situations of each match."""
    found: Array = values[members[0]]
    for own in members[1:]:
        better(found, values[own], out=found)
    return found


def sort_matches(
    plan: IntervalPlan, columns: EventColumns, events: EventSequence, runs: Runs, matches: IntervalMatches
) -> IntervalMatches:  # fmt: skip
    """Sort matches by stream key, first event, last event, then the events of each name (SPEC section 3)."""
    if matches.seen is None:
        # in a stream, a name's situations are numbered in the order of their events
        last, bindings = _extreme(np.maximum, runs.last, matches.members), list(matches.members)
    else:
        last = matches.seen.last.max(axis=0)
        bindings = [key for own, ends in zip(matches.members, matches.seen.last, strict=True) for key in (runs.first[own], ends)]
    keys = [*bindings[::-1], last, matches.first]
    if events.count > 1:
        keys.append(_stream_ranks(plan, columns, events, runs, matches))
    return matches.reorder(np.lexsort(keys))


def _stream_ranks(plan: IntervalPlan, columns: EventColumns, events: EventSequence, runs: Runs, matches: IntervalMatches) -> Array:
    """Return the rank of each match's stream by its key."""
    streams = runs.stream[matches.members[0]]
    representatives = np.full(events.count, NO_POSITION, np.int64)
    representatives[streams] = matches.first
    present = np.flatnonzero(representatives != NO_POSITION)
    ranks = np.zeros(events.count, np.int64)
    ranks[present] = key_ranks(plan, columns, events.input_rows(representatives[present]))
    found: Array = ranks[streams]
    return found


def matched_situations(
    columns: EventColumns, events: EventSequence, runs: Runs, matches: IntervalMatches, threads: int
) -> MatchedSituations:  # fmt: skip
    """Return the situations of the matches, each once for each state in which it is detected."""
    parts = [_of_name(v, columns, events, runs, matches, threads) for v in range(len(matches.members))]
    return MatchedSituations(columns, tuple(own for own, _ in parts), tuple(places for _, places in parts))


def _of_name(
    v: int, columns: EventColumns, events: EventSequence, runs: Runs, matches: IntervalMatches, threads: int
) -> tuple[SituationEvents, Indices]:  # fmt: skip
    """Return the situations of name v, once for each state in which they are detected, and which of them each match takes."""
    members, seen = matches.members[v], matches.seen
    if seen is None:
        own, places = _distinct(members, len(runs.first))
        last, is_open = runs.last[own], None
    else:
        views = (members.astype(np.int64) * len(events) + seen.last[v]) * 2 + seen.is_open[v]
        _, representatives, places = np.unique(views, return_index=True, return_inverse=True)
        own, last, is_open = members[representatives], seen.last[v, representatives], seen.is_open[v, representatives]
    situations = SituationEvents(
        columns, events, runs.stream[own], runs.first[own], last, runs.start[own], runs.end[own], is_open, threads
    )  # fmt: skip
    return situations, places


def _distinct(numbers: Array, size: int) -> tuple[Indices, Indices]:
    """Return the distinct numbers (all below `size`), ascending, and the place of each number among them."""
    taken = np.zeros(size, np.bool_)
    taken[numbers] = True
    distinct = np.flatnonzero(taken)
    places = np.empty(size, np.int64)
    places[distinct] = np.arange(len(distinct))
    return distinct, places[numbers]

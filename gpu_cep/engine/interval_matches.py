"""Matches of situations, and their order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpu_cep.engine.columns import Array, EventColumns
from gpu_cep.engine.interval_events import MatchedSituations, SituationEvents
from gpu_cep.engine.matches import Indices
from gpu_cep.engine.order import key_ranks
from gpu_cep.engine.situations import NO_POSITION, Derived, EventSequence, Runs
from gpu_cep.plan.interval_plan import IntervalPlan


@dataclass(frozen=True, slots=True)
class IntervalMatches:
    """Match m takes situation ``members[v, m]`` of name v as it is seen when the event at position ``detected[m]`` is.

    ``last[v, m]`` is the situation's last event then, and ``ended[v, m]`` the
    one that ended it (−1 while it is open); ``first[m]`` is the match's first
    event, ``stream[m]`` its stream.
    """

    members: Array
    last: Array
    ended: Array
    first: Array
    stream: Array
    detected: Array

    def __len__(self) -> int:
        return len(self.first)

    def reordered(self, order: Indices) -> IntervalMatches:
        """The same in another order."""
        return IntervalMatches(
            self.members[:, order], self.last[:, order], self.ended[:, order], self.first[order], self.stream[order], self.detected[order]
        )  # fmt: skip


def seen_at_detection(plan: IntervalPlan, derived: Derived, members: Array, decided: Array) -> IntervalMatches:
    """The matches with these situations, each as it is seen at the endpoint that decides it."""
    runs = derived.runs
    last, ended = runs.last[members], runs.ended[members]
    first = runs.first[members].min(axis=0)
    stream = runs.stream[members[0]]
    if not plan.query.early:
        ends = derived.situations.end[members]
        detected = np.take_along_axis(ended, ends.argmax(axis=0)[np.newaxis], axis=0)[0]
        return IntervalMatches(members, last, ended, first, stream, detected)
    is_open = derived.situations.end[members] > decided
    # an open situation holds all events of the time of detection
    assert derived.moments is not None, "early detection is by moments"
    seen = np.searchsorted(derived.moments, decided, side="right") - 1
    return IntervalMatches(
        members,
        np.where(is_open, seen, last).astype(np.int32),
        np.where(is_open, NO_POSITION, ended).astype(np.int32),
        first, stream, decided.astype(np.int32),
    )  # fmt: skip


def in_result_order(
    plan: IntervalPlan, columns: EventColumns, events: EventSequence, runs: Runs, matches: IntervalMatches
) -> IntervalMatches:
    """By stream key, first event, last event, then the events of each name (SPEC section 3)."""
    _, representatives, streams = np.unique(matches.stream, return_index=True, return_inverse=True)
    rows = events.input_rows(matches.first[representatives])
    ranks = key_ranks(plan.events, columns, rows)[streams]
    bindings = [key for first, last in zip(runs.first[matches.members], matches.last, strict=True) for key in (first, last)]
    order = np.lexsort([*bindings[::-1], matches.last.max(axis=0), matches.first, ranks])
    return matches.reordered(order)


def matched_situations(
    columns: EventColumns, events: EventSequence, runs: Runs, matches: IntervalMatches, threads: int
) -> MatchedSituations:
    """The situations of the matches, each once as it is seen when they are detected."""
    parts = [_of_name(columns, events, runs, *own, threads) for own in zip(matches.members, matches.last, matches.ended, strict=True)]
    return MatchedSituations(columns, tuple(own for own, _ in parts), tuple(places for _, places in parts))


def _of_name(
    columns: EventColumns, events: EventSequence, runs: Runs, members: Array, last: Array, ended: Array, threads: int
) -> tuple[SituationEvents, Indices]:
    """Each situation of one name as it is seen, with more events each time, and which of these each match takes."""
    seen = (members.astype(np.int64) * len(events) + last) * 2 + (ended == NO_POSITION)
    _, representatives, places = np.unique(seen, return_index=True, return_inverse=True)
    own = members[representatives]
    situations = SituationEvents(
        columns, events, runs.stream[own], runs.first[own], last[representatives], ended[representatives], threads
    )  # fmt: skip
    return situations, places

"""Hold the matches of situations, and sort them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.event_sequence import NO_POSITION, EventSequence
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.buffers import new_values
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.intervals.events import MatchedSituations, SituationEvents
from gpu_cep.engine.intervals.situations import DerivedSituations, SituationRuns
from gpu_cep.engine.intervals.stream_order import Extent, order_by_stream
from gpu_cep.engine.output.result_order import key_ranks
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import spread, threads_for


@record()
class SeenSituations:
    """The situations of matches as they are known at detection, [name, match].

    `last`: the last event so far. `is_open`: whether the end is unknown.
    """

    last: Array
    is_open: npt.NDArray[np.bool_]

    def take(self, order: Indices) -> SeenSituations:
        """Return the columns of the matches `order`."""
        return SeenSituations(self.last[:, order], self.is_open[:, order])


@record()
class IntervalMatches:
    """Matches of situations.

    `members`: the situation of each name, [name, match].
    `first`: the position of each match's first event.
    `end`: its last end; meaningless while a situation is open.
    `detected`: the time at which it is detected.
    `seen`: its situations as known then; None if all have ended at detection.
    """

    members: Array
    first: Array
    end: Array
    detected: Array
    seen: SeenSituations | None

    def __len__(self) -> int:
        return len(self.first)

    @property
    def is_open(self) -> npt.NDArray[np.bool_] | None:
        """Return whether each match has a situation that is open at detection; None if no match can have one."""
        return None if self.seen is None else np.logical_or.reduce(self.seen.is_open, axis=0)

    def reorder(self, order: Indices, threads: int = 1) -> IntervalMatches:
        """Return the matches in another order; threads share the columns."""
        seen = None if self.seen is None else self.seen.take(order)
        members = new_values((len(self.members), len(order)), self.members.dtype)
        ends = [self.first, self.end, *([] if self.detected is self.end else [self.detected])]
        columns = [*zip(self.members, members, strict=True), *((column, new_values(len(order), column.dtype)) for column in ends)]
        # numpy copies what it writes once more if places could be wrong
        spread(lambda column: np.take(column[0], order, out=column[1], mode="clip"), columns, threads_for(len(order), threads))
        first, end, *detected = (column for _, column in columns[len(members) :])
        return IntervalMatches(members, first, end, detected[0] if detected else end, seen)


def matches_at_detection(derived: DerivedSituations, members: Array, decided: Array) -> IntervalMatches:
    """Return the matches of the situations `members`, with these as they are known at detection.

    ``decided[m]`` is the endpoint that decides match m.
    """
    events, runs = derived.events, derived.runs
    first = _extreme(np.minimum, runs.first, members)
    if not derived.early:
        # detection waits for the last end
        return IntervalMatches(members, first, decided, decided, None)
    # an end that a gap makes has an odd endpoint: it is seen at the moment behind it
    moment = (decided + 1) // 2
    is_open = derived.situations.end[members] > 2 * moment
    # the last event so far of an open situation is the last one of the time of detection
    _, now = events.tied_events(moment, runs.stream[members[0]])
    seen = SeenSituations(np.where(is_open, now, runs.last[members]).astype(np.int32), is_open)
    return IntervalMatches(members, first, _extreme(np.maximum, runs.end, members), events.gather(events.times, moment), seen)


def _extreme(better: np.ufunc, values: Array, members: Array) -> Array:
    """Return the least or the greatest of `values` over the situations of each match; `better` is the ufunc."""
    found: Array = values[members[0]]
    for own in members[1:]:
        better(found, values[own], out=found)
    return found


def sort_matches(
    plan: IntervalPlan, columns: EventColumns, events: EventSequence, runs: SituationRuns, matches: IntervalMatches, threads: int = 1
) -> IntervalMatches:  # fmt: skip
    """Sort matches by stream key, first event, last event, then the events of each name (docs/semantics.md, Results)."""
    if matches.seen is None:
        # situation numbers can stand for events: those of a name ascend with them in each stream
        last, bindings = _extreme(np.maximum, runs.last, matches.members), list(matches.members)
    else:
        last = matches.seen.last.max(axis=0)
        bindings = [key for own, ends in zip(matches.members, matches.seen.last, strict=True) for key in (runs.first[own], ends)]
    keys = [matches.first, last, *bindings]
    if events.count > 1:
        keys.insert(0, _stream_ranks(plan, columns, events, runs, matches))
    return matches.reorder(np.lexsort(_packed(keys)[::-1]), threads)


def _packed(keys: Sequence[Array]) -> list[Indices]:
    """Return fewer keys with the same order: as many as fit share an int64. Keys are not negative; the first one decides first."""
    packed: list[Indices] = []
    free = 0
    for key in keys:
        bits = int(key.max(initial=0)).bit_length()
        if packed and bits <= free:
            packed[-1] = packed[-1] << bits | key
        else:
            packed.append(key.astype(np.int64))
            free = 63
        free -= bits
    return packed


def _stream_ranks(plan: IntervalPlan, columns: EventColumns, events: EventSequence, runs: SituationRuns, matches: IntervalMatches) -> Array:
    """Return the rank of each match's stream, in the order of stream keys."""
    streams = runs.stream[matches.members[0]]
    representatives = np.full(events.count, NO_POSITION, np.int64)
    representatives[streams] = matches.first
    present = np.flatnonzero(representatives != NO_POSITION)
    ranks = np.zeros(events.count, np.int64)
    ranks[present] = key_ranks(plan, columns, events.input_rows(representatives[present]))
    found: Array = ranks[streams]
    return found


def matched_situations(
    columns: EventColumns, events: EventSequence, runs: SituationRuns, matches: IntervalMatches, threads: int
) -> MatchedSituations:  # fmt: skip
    """Return the situations of the matches.

    A situation appears once for each state (last event, open or not) in which a match detects it.
    """
    shared = threads_for(len(matches), threads)
    seen = spread(lambda v: _situations_of_name(v, events, runs, matches), range(len(matches.members)), shared)
    extents = [Extent(runs.stream[each.situations], runs.first[each.situations], each.last) for each in seen]
    by_stream = order_by_stream(events, extents, threads)

    def of_name(v: int) -> SituationEvents:
        own, last, is_open, _ = seen[v]
        ends = runs.first[own], last, runs.start[own], runs.end[own]
        return SituationEvents(columns, events, runs.stream[own], *ends, is_open, by_stream, threads)

    names = spread(of_name, range(len(seen)), shared)
    return MatchedSituations(columns, tuple(names), tuple(each.places for each in seen))


class _SituationsOfName(NamedTuple):
    """The matched situations of a name, their last events, whether they are open (None: none is), and the place of each match's one."""

    situations: Array
    last: Array
    is_open: npt.NDArray[np.bool_] | None
    places: Indices


def _situations_of_name(v: int, events: EventSequence, runs: SituationRuns, matches: IntervalMatches) -> _SituationsOfName:
    """Return the situations of name v; one that is seen in several states comes once for each."""
    members, seen = matches.members[v], matches.seen
    if seen is None:
        own, places = _distinct(members, len(runs.first))
        return _SituationsOfName(own, runs.last[own], None, places)
    views = (members.astype(np.int64) * len(events) + seen.last[v]) * 2 + seen.is_open[v]
    _, representatives, places = np.unique(views, return_index=True, return_inverse=True)
    return _SituationsOfName(members[representatives], seen.last[v, representatives], seen.is_open[v, representatives], places)


def _distinct(numbers: Array, size: int) -> tuple[Indices, Indices]:
    """Return the distinct numbers, ascending, and the place of each number among them.

    All numbers are below `size`.
    """
    taken = np.zeros(size, np.bool_)
    taken[numbers] = True
    distinct = np.flatnonzero(taken)
    places = np.empty(size, np.int64)
    places[distinct] = np.arange(len(distinct))
    return distinct, places[numbers]

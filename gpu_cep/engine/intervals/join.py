"""Join situations to matches, one name after the other (phase 2 of interval patterns).

A chunk of situations is joined at a time. A join extends partial configurations by the situations
of one more name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from gpu_cep.engine.accounting.match_budget import Account
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import window_length
from gpu_cep.engine.events.matches import Flags, Indices
from gpu_cep.engine.events.own_events import WHOLE, Own
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.intervals.chunks import SituationChunk, cut_chunks
from gpu_cep.engine.intervals.levels import counts_by_zones, levels
from gpu_cep.engine.intervals.situations import DerivedSituations, SituationRuns
from gpu_cep.plan.interval_order import OrderChoice, led_by
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import spread
from gpu_cep_kernels.device.interface import HOST, Backend
from gpu_cep_kernels.device.packing import to_device
from gpu_cep_kernels.intervals.joins import (
    CandidateRanges,
    Configurations,
    Fitting,
    Level,
    Limits,
    Situations,
    count_candidates,
    find_candidates,
    join_situations,
    keep_fitting,
)

# On the CPU: the situations of a chunk, of all names together, and the most candidates that one call tests.
_CHUNK, _CANDIDATES = 1 << 15, 1 << 18

Found = TypeVar("Found")


def leaf_rows(derived: DerivedSituations, own: Indices, stream: int = 0) -> Configurations:
    """Return the situations `own` of one name as partial configurations of one member.

    Stream numbers are counted from `stream` on.
    """
    situations = derived.situations
    return Configurations(
        own.astype(np.int32)[np.newaxis], derived.numbers[own] - np.int32(stream),
        situations.start[own], situations.known[own], situations.start_clock[own], situations.known_clock[own],
    )  # fmt: skip


@record()
class SituationWorkplace:
    """Where situations are joined, and how many at a time.

    `place`: the CPU or a device.
    `chunk`: about so many situations are joined together.
    `candidates`: at most so many candidates are tested by one call.
    `threads`: so many chunks are joined side by side.
    """

    place: Backend
    chunk: int
    candidates: int
    threads: int


def cpu_workplace(threads: int) -> SituationWorkplace:
    """Return the workplace on the CPU; its chunks fit the caches."""
    return SituationWorkplace(HOST, _CHUNK, _CANDIDATES, threads)


@record()
class Extensions:
    """The result of a join before it is written: which situations extend which rows.

    `where`: where the arrays lie.
    `begin`: the first of the extended `rows`.
    `rows`: the partial configurations before the join.
    `level`: what the join adds.
    `place`, `number`: ``kept[place[i] : place[i] + number[i]]`` extend row ``begin + i``.
    `kept`: situation numbers.
    `size`: the number of rows after the join.
    """

    where: Backend
    begin: int
    rows: Configurations
    level: Level
    place: Array
    kept: Array
    number: Array
    size: int

    def __len__(self) -> int:
        """Return the number of rows after the join."""
        return self.size

    def start_of(self, runs: SituationRuns, match: int) -> int:
        """Return the position of the first event of the first-joined situation in row `match` after the join."""
        number = self.where.download(self.number)
        row = min(int(np.searchsorted(np.cumsum(number), match, side="right")), len(number) - 1)
        return int(runs.first[int(self.rows.members[0, self.begin + row])])

    def streams(self) -> tuple[Array, Array]:
        """Return, on the host, the stream of each row and the number of situations that extend it."""
        rows = self.rows.stream[self.begin : self.begin + len(self.number)]
        return self.where.download(rows), self.where.download(self.number)

    def chosen(self, choose: Callable[[Array, Array], Flags]) -> Extensions:
        """Return the extensions of which ``choose(members, added)`` says so, given the situations of rows and the one that is added."""
        members = self.rows.members[:, self.begin : self.begin + len(self.number)]
        members, place, number, kept = map(self.where.download, (members, self.place, self.number, self.kept))
        row = np.repeat(np.arange(len(number)), number)
        kept = kept[np.arange(len(row)) + (place - np.cumsum(number) + number)[row]]
        held = np.flatnonzero(choose(members[:, row], kept))
        number = np.bincount(row[held], minlength=len(number)).astype(np.int64)
        upload = self.where.upload
        return replace(self, size=len(held), place=upload(np.cumsum(number) - number), kept=upload(kept[held]), number=upload(number))

    def join(self, situations: Situations) -> Configurations:
        """Return the extended rows, each with one situation more."""
        xp, places = self.where.xp, len(self.rows.members)
        points, clocks = self.rows.low.dtype, self.rows.low_clock.dtype
        table = Configurations(
            xp.empty((places + 1, self.size), np.int32), xp.empty(self.size, np.int32),
            xp.empty(self.size, points), xp.empty(self.size, points), xp.empty(self.size, clocks), xp.empty(self.size, clocks),
        )  # fmt: skip
        target = xp.cumsum(self.number) - self.number
        fitting = Fitting(self.place, self.kept, self.number)
        self.where.launch(join_situations, len(self.number), self.begin, self.rows, self.level, situations, fitting, target, table)
        return table


@record()
class _Task:
    """A chunk to join, or a part of one that starts from a part of the first name's situations.

    `order`: the order of names, the same for all parts; None: chosen when the task's turn comes.
    `piece`, `pieces`: this is part `piece` of `pieces` equal ones.
    """

    chunk: SituationChunk
    order: tuple[int, ...] | None = None
    piece: int = 0
    pieces: int = 1

    def leaf(self, name: int) -> Indices:
        """Return the numbers of the first name's situations in this task; `name` is that name."""
        low, high = (int(border) for border in self.chunk.offsets[name, [0, -1]])
        borders = [low + (high - low) * piece // self.pieces for piece in (self.piece, self.piece + 1)]
        return np.arange(*borders)


@record()
class _Joins:
    """The joins of one chunk, at the place where it is joined.

    `levels`: what each join adds.
    `situations`: all situations, with the offsets of the chunk.
    `limit`: matches start before this endpoint.
    `rows`: the number of configurations after each join, counted on the way.
    `by_zones`: whether the last join is counted from zones alone, without testing candidates.
    """

    levels: tuple[Level, ...]
    situations: Situations
    limit: Any
    rows: list[int]
    by_zones: bool


@record()
class SituationJoin:
    """The join of all situations, chunk by chunk.

    Only matches whose first event is `own` are found, and with at least one of the situations that are `recent` (None: all).
    Between chunks, `choice` may change the order of names by what was measured.
    """

    plan: IntervalPlan
    derived: DerivedSituations
    choice: OrderChoice
    account: Account
    profile: Profile
    workplace: SituationWorkplace
    own: Own = WHOLE
    recent: Flags | None = None

    def configurations(self) -> tuple[Array, Array]:
        """Return all matches as situation numbers [name, match], and the endpoint that decides each match."""
        found = self._spread(self._find_matches)
        members = [np.empty((len(self.plan.query.variables), 0), np.int32), *(own for task in found for own, _ in task)]
        decided = [self.derived.situations.start[:0], *(at for task in found for _, at in task)]
        return np.concatenate(members, axis=1), np.concatenate(decided)

    def counts(self) -> Indices:
        """Return the number of matches of each stream; streams without situations are not numbered."""
        totals = np.zeros(self.derived.streams, np.int64)
        for found in self._spread(self._count_matches):
            for streams, numbers in found:
                np.add.at(totals, streams, numbers)
        return totals

    def _spread(self, found_in: Callable[[_Task, Situations], list[Found]]) -> list[list[Found]]:
        """Return ``found_in(task, situations)`` for each task, in the order of tasks."""
        situations = to_device(self.workplace.place, self.derived.situations)
        return spread(lambda task: found_in(task, situations), self._tasks(), self.workplace.threads)

    def _tasks(self) -> list[_Task]:
        """Return a task for each chunk, or, if there are fewer chunks than threads, one for each part of a chunk."""
        threads, window = self.workplace.threads, self.plan.query.window
        if self.recent is not None:
            # few situations lead, and each finds its partners by a search among all
            whole = cut_chunks(self.derived, window, max(1, len(self.recent)))
            return [_Task(chunk, order) for chunk in whole for order in self._orders_of_all(chunk)]
        chunks = cut_chunks(self.derived, window, self.workplace.chunk)
        if len(chunks) >= threads:
            return [_Task(chunk) for chunk in chunks]
        orders = [(chunk, self.choice.order(chunk.buffers)) for chunk in chunks]
        return [_Task(chunk, order, piece, threads) for chunk, order in orders for piece in range(threads)]

    def _orders_of_all(self, chunk: SituationChunk) -> Iterator[tuple[int, ...]]:
        """Yield an order for each name that begins with it: its recent situations find their matches."""
        order = self.choice.order(chunk.buffers)
        return (led_by(order, name, self.plan.query.constraints) for name in range(len(order)))

    def _find_matches(self, task: _Task, situations: Situations) -> list[tuple[Array, Array]]:
        """Return the matches of a task as situation numbers [name, match], and the endpoints that decide them."""
        found = []
        for order, extensions in self._join_chunk(task, situations, counting=False):
            table = extensions.join(situations)
            members = np.empty((len(order), len(extensions)), np.int32)
            members[list(order)] = self.workplace.place.download(table.members)
            found.append((members, self.workplace.place.download(table.high)))
        return found

    def _count_matches(self, task: _Task, situations: Situations) -> list[tuple[Array, Array]]:
        """Return pairs of arrays: streams, and numbers of matches of the task to be added to these."""
        counted = (extensions.streams() for _, extensions in self._join_chunk(task, situations, counting=True))
        return [(streams + task.chunk.stream, numbers) for streams, numbers in counted]

    def _join_chunk(self, task: _Task, situations: Situations, *, counting: bool) -> Iterator[tuple[tuple[int, ...], Extensions]]:
        """Yield the order of names with the extensions of the last join, part by part; account for the work.

        If `counting`, extensions may have numbers only, and no situations.
        """
        query, chunk, place = self.plan.query, task.chunk, self.workplace.place
        order = task.order or self.choice.order(chunk.buffers)
        joins_of_order = to_device(place, tuple(levels(order, query.constraints, self.plan.algorithm, windowed=query.window is not None)))
        own = task.leaf(order[0])
        leaf = leaf_rows(self.derived, own if self.recent is None else own[self.recent[own]], chunk.stream)
        rows = [len(leaf.stream), *(0 for _ in joins_of_order)]
        limit = self.derived.never if chunk.limit is None else chunk.limit
        by_zones = counting and self.own == WHOLE and counts_by_zones(order, self.plan)
        joins = _Joins(joins_of_order, situations._replace(offsets=place.upload(chunk.offsets)), limit, rows, by_zones)
        takes_all, left_out = self.own == WHOLE and self.recent is None, 0
        for found in self._join_rows(to_device(place, leaf), joins, 0):
            extensions = found if takes_all else found.chosen(partial(self._are_found, order))
            left_out += len(found) - len(extensions)
            if len(extensions):
                self.account.spend(len(extensions), 0, 0, partial(extensions.start_of, self.derived.runs))
                yield order, extensions
        self.profile.add("matches", rows[-1] - left_out)
        self.profile.add_join(order, rows)
        self.choice.observe(order, chunk.buffers, rows)

    def _are_found(self, order: tuple[int, ...], members: Array, added: Array) -> Flags:
        """Return which matches start at own events, and have no recent situation of a name before that which leads the order.

        Such a match is found from the situation of that name.
        """
        events, runs, situations = self.derived.events, self.derived.runs, dict(zip(order, (*members, added), strict=True))
        found: Flags = np.ones(len(added), np.bool_)
        if self.recent is not None:
            for name in range(order[0]):
                found &= ~self.recent[situations[name]]
        if self.own != WHOLE:
            first = np.minimum(runs.first[members].min(axis=0), runs.first[added])
            found &= self.own.holds(events.gather(events.times, first), events.input_rows(first))
        return found

    def _join_rows(self, rows: Configurations, joins: _Joins, step: int) -> Iterator[Extensions]:
        """Yield the extensions of the last join, starting with join `step`, depth first.

        It adds to ``joins.rows`` the number of rows after each join.
        """
        is_last = step == len(joins.levels) - 1
        found = self._count_by_zones(rows, joins) if is_last and joins.by_zones else self._try_candidates(rows, joins, step, is_last)
        for extensions in found:
            joins.rows[step + 1] += len(extensions)
            if is_last:
                yield extensions
            elif len(extensions):
                yield from self._join_rows(extensions.join(joins.situations), joins, step + 1)

    def _count_by_zones(self, rows: Configurations, joins: _Joins) -> Iterator[Extensions]:
        """Yield how many situations extend each row in the last join, counted from zones alone.

        The extensions hold numbers, but no situations.
        """
        if not len(rows.stream):
            return
        place, level, limits = self.workplace.place, joins.levels[-1], Limits(self.derived.latest, joins.limit, self._length)
        found, number = self._candidates(rows, joins, level), place.xp.empty(len(rows.stream), np.int64)
        self.account.spend(0, 0, len(number), partial(self._start_of, rows, 0))
        place.launch(count_candidates, len(number), rows, joins.situations, limits, found, number)
        nothing = place.xp.empty(0, np.int32)
        yield Extensions(place, 0, rows, level, place.xp.cumsum(number) - number, nothing, number, int(number.sum()))

    def _try_candidates(self, rows: Configurations, joins: _Joins, step: int, is_last: bool) -> Iterator[Extensions]:
        """Yield the candidates that satisfy the constraints, after testing them in portions.

        In the last join they also start before the limit.
        """
        place, xp, size = self.workplace.place, self.workplace.place.xp, len(rows.stream)
        if not size:
            return
        level, situations = joins.levels[step], joins.situations
        limits = Limits(self.derived.latest, joins.limit if is_last else self.derived.never, self._length)
        found = self._candidates(rows, joins, level)
        number = found.size.sum(axis=0)
        ends = xp.cumsum(number)
        begin, done, total = 0, 0, int(ends[-1])
        while begin < size and done < total:
            end = max(begin + 1, int(xp.searchsorted(ends, done + self.workplace.candidates, side="right")))
            candidates = int(ends[end - 1]) - done
            self.profile.add("pairs", candidates)
            self.account.spend(0, 0, candidates, partial(self._start_of, rows, begin))
            places = ends[begin:end] - number[begin:end] - done
            fitting = Fitting(places, xp.empty(candidates, np.int32), xp.empty(end - begin, np.int64))
            place.launch(keep_fitting, end - begin, begin, rows, level, situations, limits, found, fitting)
            yield Extensions(place, begin, rows, level, *fitting, int(fitting.number.sum()))
            begin, done = end, done + candidates

    def _candidates(self, rows: Configurations, joins: _Joins, level: Level) -> CandidateRanges:
        """Return the ranges of situations that may extend each row, [run of zones, row]."""
        place = self.workplace.place
        found = CandidateRanges(*(place.xp.empty((len(level.runs), len(rows.stream)), np.int64) for _ in range(2)))
        place.launch(find_candidates, len(rows.stream), rows, level, joins.situations, self._length, found)
        return found

    @property
    def _length(self) -> Any:
        return window_length(self.plan, self.derived.events.times.dtype)

    def _start_of(self, rows: Configurations, row: int, _: int) -> int:
        """Return the position of the first event of the first-joined situation of a row; the match is ignored."""
        return int(self.derived.runs.first[int(rows.members[0, row])])

"""Phase 2 of interval patterns: the multi-way join of situations, name by name, over all partial configurations of a chunk at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from gpu_cep.engine.accounting.budget import Account
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import window_length
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.own_events import WHOLE, Own
from gpu_cep.engine.input.event_columns import Array
from gpu_cep.engine.intervals.levels import counts_by_zones, levels
from gpu_cep.engine.intervals.parts import Part, parts_of
from gpu_cep.engine.intervals.situations import Derived, Runs
from gpu_cep.plan.interval_order import OrderChoice
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep_kernels.compile.launch import spread
from gpu_cep_kernels.device.interface import HOST, Place, to_device
from gpu_cep_kernels.intervals.joins import (
    Candidates,
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

# On the CPU: situations of a part, all names together, and candidates that one call looks at.
_PART, _CANDIDATES = 1 << 15, 1 << 18

Found = TypeVar("Found")


def leaf_rows(derived: Derived, own: Indices, stream: int = 0) -> Configurations:
    """Some situations of one name as partial configurations; streams are numbered from `stream` on."""
    situations = derived.situations
    return Configurations(
        own.astype(np.int32)[np.newaxis], derived.numbers[own] - np.int32(stream),
        situations.start[own], situations.known[own], situations.start_clock[own], situations.known_clock[own],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where situations are joined: how many make a part, at how many candidates one call looks, and how many parts are joined at a time."""

    place: Place
    part: int
    candidates: int
    threads: int


def cpu_workplace(threads: int) -> Workplace:
    """The CPU, with parts that its caches hold."""
    return Workplace(HOST, _PART, _CANDIDATES, threads)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The situations that fit some rows, from row `begin` on: of row i of the chunk ``number[i]`` of them, ``kept[place[i]:]``.

    All lies at `where`; together there are `size`.
    """

    where: Place
    begin: int
    rows: Configurations
    level: Level
    place: Array
    kept: Array
    number: Array
    size: int

    def __len__(self) -> int:
        """How many rows it gives."""
        return self.size

    def start_of(self, runs: Runs, match: int) -> int:
        """The position of the first event of the first member of one of the rows that it gives."""
        number = self.where.download(self.number)
        row = min(int(np.searchsorted(np.cumsum(number), match, side="right")), len(number) - 1)
        return int(runs.first[int(self.rows.members[0, self.begin + row])])

    def streams(self) -> tuple[Array, Array]:
        """The stream of each row, and how many situations fit it, on the host."""
        rows = self.rows.stream[self.begin : self.begin + len(self.number)]
        return self.where.download(rows), self.where.download(self.number)

    def starting(self, derived: Derived, own: Own) -> Chunk:
        """The same of the rows that it gives whose first event is `own`."""
        members = self.rows.members[:, self.begin : self.begin + len(self.number)]
        members, place, number, kept = map(self.where.download, (members, self.place, self.number, self.kept))
        row = np.repeat(np.arange(len(number)), number)
        kept = kept[np.arange(len(row)) + (place - np.cumsum(number) + number)[row]]
        events, runs = derived.events, derived.runs
        first = np.minimum(runs.first[members[:, row]].min(axis=0), runs.first[kept])
        held = np.flatnonzero(own.holds(events.gather(events.times, first), events.input_rows(first)))
        number = np.bincount(row[held], minlength=len(number)).astype(np.int64)
        upload = self.where.upload
        return replace(self, size=len(held), place=upload(np.cumsum(number) - number), kept=upload(kept[held]), number=upload(number))

    def joined(self, situations: Situations) -> Configurations:
        """The rows with one situation more."""
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


@dataclass(frozen=True, slots=True)
class _Task:
    """A part, or one of so many pieces of it: its matches with some of the situations of the first name.

    Pieces share an order; that of a whole part is chosen when its turn comes.
    """

    part: Part
    order: tuple[int, ...] | None = None
    piece: int = 0
    pieces: int = 1

    def leaf(self, name: int) -> Indices:
        """The situations of the first name."""
        low, high = (int(border) for border in self.part.offsets[name, [0, -1]])
        borders = [low + (high - low) * piece // self.pieces for piece in (self.piece, self.piece + 1)]
        return np.arange(*borders)


@dataclass(frozen=True, slots=True)
class _Joins:
    """The joins of a part: what each adds, all situations, of which the part's are known by where they begin, and what comes too late.

    They lie where the join is at work. `rows` counts the configurations after each step. The last one
    is counted `by_zones`, or candidates are tried.
    """

    levels: tuple[Level, ...]
    situations: Situations
    limit: Any
    rows: list[int]
    by_zones: bool


@dataclass(frozen=True, slots=True)
class SituationJoin:
    """The join of all situations, part by part, in an order that measurements may change in between.

    Only matches whose first event is `own` are found.
    """

    plan: IntervalPlan
    derived: Derived
    choice: OrderChoice
    account: Account
    profile: Profile
    workplace: Workplace
    own: Own = WHOLE

    def configurations(self) -> tuple[Array, Array]:
        """All matches: the situation of each name, [name, match], and the endpoint at which each is decided."""
        parts = self._spread(self._matched)
        members = [np.empty((len(self.plan.query.variables), 0), np.int32), *(found for part in parts for found, _ in part)]
        decided = [self.derived.situations.start[:0], *(at for part in parts for _, at in part)]
        return np.concatenate(members, axis=1), np.concatenate(decided)

    def counts(self) -> Indices:
        """The number of matches of each stream that has situations."""
        totals = np.zeros(self.derived.streams, np.int64)
        for part in self._spread(self._counted):
            for streams, numbers in part:
                np.add.at(totals, streams, numbers)
        return totals

    def _spread(self, found_in: Callable[[_Task, Situations], list[Found]]) -> list[list[Found]]:
        """What is found in each task."""
        situations = to_device(self.workplace.place, self.derived.situations)
        return spread(lambda task: found_in(task, situations), self._tasks(), self.workplace.threads)

    def _tasks(self) -> list[_Task]:
        """The parts; where there are fewer than threads, pieces of them."""
        threads = self.workplace.threads
        parts = parts_of(self.derived, self.plan.query.window, self.workplace.part)
        if len(parts) >= threads:
            return [_Task(part) for part in parts]
        orders = [(part, self.choice.order(part.buffers)) for part in parts]
        return [_Task(part, order, piece, threads) for part, order in orders for piece in range(threads)]

    def _matched(self, task: _Task, situations: Situations) -> list[tuple[Array, Array]]:
        """The matches of a part."""
        found = []
        for order, chunk in self._last_chunks(task, situations, counting=False):
            table = chunk.joined(situations)
            members = np.empty((len(order), len(chunk)), np.int32)
            members[list(order)] = self.workplace.place.download(table.members)
            found.append((members, self.workplace.place.download(table.high)))
        return found

    def _counted(self, task: _Task, situations: Situations) -> list[tuple[Array, Array]]:
        """Streams, and how many matches of a part are counted in each."""
        counted = (chunk.streams() for _, chunk in self._last_chunks(task, situations, counting=True))
        return [(streams + task.part.stream, numbers) for streams, numbers in counted]

    def _last_chunks(self, task: _Task, situations: Situations, *, counting: bool) -> Iterator[tuple[tuple[int, ...], Chunk]]:
        """What the last step of the join of a part gives, and the order of names; what is found on the way is accounted for.

        Chunks that are only for counting may have nothing kept.
        """
        query, part, place = self.plan.query, task.part, self.workplace.place
        order = task.order or self.choice.order(part.buffers)
        steps = to_device(place, tuple(levels(order, query.constraints, self.plan.algorithm, windowed=query.window is not None)))
        leaf = leaf_rows(self.derived, task.leaf(order[0]), part.stream)
        rows = [len(leaf.stream), *(0 for _ in steps)]
        limit = self.derived.never if part.limit is None else part.limit
        by_zones = counting and self.own == WHOLE and counts_by_zones(order, self.plan)
        joins = _Joins(steps, situations._replace(offsets=place.upload(part.offsets)), limit, rows, by_zones)
        for found in self._joined(to_device(place, leaf), joins, 0):
            chunk = found if self.own == WHOLE else found.starting(self.derived, self.own)
            if len(chunk):
                self.account.spend(len(chunk), 0, 0, partial(chunk.start_of, self.derived.runs))
                yield order, chunk
        self.profile.add("matches", rows[-1])
        self.profile.add_join(order, rows)
        self.choice.observe(order, part.buffers, rows)

    def _joined(self, rows: Configurations, joins: _Joins, step: int) -> Iterator[Chunk]:
        """The chunks of the last join, depth first, from a step on; raises the count of rows after each."""
        is_last = step == len(joins.levels) - 1
        chunks = self._by_zones(rows, joins) if is_last and joins.by_zones else self._fitting(rows, joins, step, is_last)
        for chunk in chunks:
            joins.rows[step + 1] += len(chunk)
            if is_last:
                yield chunk
            elif len(chunk):
                yield from self._joined(chunk.joined(joins.situations), joins, step + 1)

    def _by_zones(self, rows: Configurations, joins: _Joins) -> Iterator[Chunk]:
        """How many situations fit the rows of the last join, whose zones say it; none of them is kept."""
        if not len(rows.stream):
            return
        place, level, limits = self.workplace.place, joins.levels[-1], Limits(self.derived.latest, joins.limit, self._length)
        found, number = self._candidates(rows, joins, level), place.xp.empty(len(rows.stream), np.int64)
        self.account.spend(0, 0, len(number), partial(self._start_of, rows, 0))
        place.launch(count_candidates, len(number), rows, joins.situations, limits, found, number)
        nothing = place.xp.empty(0, np.int32)
        yield Chunk(place, 0, rows, level, place.xp.cumsum(number) - number, nothing, number, int(number.sum()))

    def _fitting(self, rows: Configurations, joins: _Joins, step: int, is_last: bool) -> Iterator[Chunk]:
        """The situations that fit the rows, so many candidates at a time; those of the last join start before its limit."""
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
            yield Chunk(place, begin, rows, level, *fitting, int(fitting.number.sum()))
            begin, done = end, done + candidates

    def _candidates(self, rows: Configurations, joins: _Joins, level: Level) -> Candidates:
        """Where the candidates of each row lie."""
        place = self.workplace.place
        found = Candidates(*(place.xp.empty((len(level.runs), len(rows.stream)), np.int64) for _ in range(2)))
        place.launch(find_candidates, len(rows.stream), rows, level, joins.situations, self._length, found)
        return found

    @property
    def _length(self) -> Any:
        return window_length(self.plan, self.derived.events.times.dtype)

    def _start_of(self, rows: Configurations, row: int, _: int) -> int:
        """The position of the first event of the first member of a row, whichever match is asked for."""
        return int(self.derived.runs.first[int(rows.members[0, row])])

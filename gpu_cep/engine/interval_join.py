"""Phase 2 of interval patterns: the multi-way join of situations, name by name, over all partial configurations of a chunk at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from gpu_cep.analysis.bound_intervals import BoundConstraint
from gpu_cep.engine.batches import window_length
from gpu_cep.engine.budget import Account
from gpu_cep.engine.columns import Array
from gpu_cep.engine.interval_parts import Part, parts_of
from gpu_cep.engine.matches import Indices
from gpu_cep.engine.profile import Profile
from gpu_cep.engine.situations import Derived, Runs
from gpu_cep.engine.slices import WHOLE, Own
from gpu_cep.lang.ast import RELATIONS
from gpu_cep.plan.interval_algorithms import interval_algorithm
from gpu_cep.plan.interval_order import OrderChoice
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep_kernels import interval_join as kernels
from gpu_cep_kernels.interval_join import (
    ZONE_COUNT,
    ZONES,
    Candidates,
    Configurations,
    Level,
    Situations,
    find_candidates,
    join_situations,
    keep_fitting,
)
from gpu_cep_kernels.launch import spread

# Candidates that one call looks at.
_CANDIDATES = 1 << 18

# Relations that are decided when the later situation starts, whatever the alternatives, and groups that are if all are alternatives.
_APART = frozenset({"before", "meets", "met-by", "after"})
_PREFIX_GROUPS = (
    frozenset({"starts", "equals", "started-by"}),
    frozenset({"overlaps", "finishes", "contains"}),
    frozenset({"overlapped-by", "finished-by", "during"}),
)


def mask_of(relations: frozenset[str]) -> int:
    """A set of relations as the kernels have it."""
    return sum(1 << kernels.RELATIONS.index(name) for name in relations)


def decided_early(relations: frozenset[str]) -> frozenset[str]:
    """Those of some alternatives that are decided when the later situation starts (Table 2, prefix groups included)."""
    grouped = (group for group in _PREFIX_GROUPS if group <= relations)
    return (relations & _APART).union(*grouped)


def levels(order: Sequence[int], constraints: Sequence[BoundConstraint], algorithm: str, *, windowed: bool) -> list[Level]:
    """The joins that an order of the names means, behind the first one."""
    row = interval_algorithm(algorithm)
    return [
        _level(order[:place], order[place], constraints, zones=row.by_zones, windowed=windowed and row.by_window)
        for place in range(1, len(order))
    ]


def _level(bound: Sequence[int], name: int, constraints: Sequence[BoundConstraint], *, zones: bool, windowed: bool) -> Level:
    """The join that adds `name` to the names that are bound."""
    related = [_seen_from_bound(constraint, name) for constraint in constraints if name in (constraint.left, constraint.right)]
    applicable = [(bound.index(other), relations) for other, relations in related if other in bound]
    runs = [_runs(relations) for _, relations in applicable] if zones else []
    divided = max(range(len(runs)), key=lambda k: len(runs[k]), default=-1)
    if divided >= 0 and len(runs[divided]) == 1:
        divided = -1
    return Level(
        name=name,
        place=np.array([place for place, _ in applicable], np.int64),
        allowed=np.array([mask_of(relations) for _, relations in applicable], np.int64),
        early=np.array([mask_of(decided_early(relations)) for _, relations in applicable], np.int64),
        first_zone=np.array([own[0][0] for own in runs], np.int64),
        last_zone=np.array([own[-1][1] for own in runs], np.int64),
        divided=divided,
        runs=np.array(runs[divided] if divided >= 0 else [(0, ZONE_COUNT - 1)], np.int64),
        windowed=windowed,
    )


def _seen_from_bound(constraint: BoundConstraint, name: int) -> tuple[int, frozenset[str]]:
    """The other name of a constraint, and how that is related to `name`."""
    if constraint.right == name:
        return constraint.left, constraint.relations
    return constraint.right, frozenset(RELATIONS[relation] for relation in constraint.relations)


def _runs(relations: frozenset[str]) -> list[tuple[int, int]]:
    """The zones that alternatives allow, neighbours together: first and last of each run."""
    zones = sorted({ZONES[kernels.RELATIONS.index(relation)] for relation in relations})
    borders = [place for place, (zone, following) in enumerate(pairwise(zones), 1) if following > zone + 1]
    parts = [zones[begin:end] for begin, end in pairwise([0, *borders, len(zones)])]
    return [(part[0], part[-1]) for part in parts]


def leaf_rows(derived: Derived, own: Indices, stream: int = 0) -> Configurations:
    """Some situations of one name as partial configurations; streams are numbered from `stream` on."""
    situations = derived.situations
    return Configurations(
        own.astype(np.int32)[np.newaxis], derived.numbers[own] - np.int32(stream),
        situations.start[own], situations.known[own], situations.start_clock[own], situations.known_clock[own],
    )  # fmt: skip


def _at(start: int, _: int) -> int:
    """The event at which work begins, whichever match is asked for."""
    return start


@dataclass(frozen=True, slots=True)
class Chunk:
    """The situations that fit some rows, from row `begin` on: of row i of the chunk ``number[i]`` of them, ``kept[place[i]:]``."""

    begin: int
    rows: Configurations
    level: Level
    place: Indices
    kept: Array
    number: Indices

    def __len__(self) -> int:
        """How many rows it gives."""
        return int(self.number.sum())

    def start_of(self, runs: Runs, match: int) -> int:
        """The position of the first event of the first member of one of the rows that it gives."""
        row = min(int(np.searchsorted(np.cumsum(self.number), match, side="right")), len(self.number) - 1)
        return int(runs.first[self.rows.members[0, self.begin + row]])

    def starting(self, derived: Derived, own: Own) -> Chunk:
        """The same of the rows that it gives whose first event is `own`."""
        runs, ends = derived.runs, np.cumsum(self.number)
        row = np.repeat(np.arange(len(self.number)), self.number)
        kept = self.kept[np.arange(len(row)) + (self.place - ends + self.number)[row]]
        bound = runs.first[self.rows.members[:, self.begin + row]]
        first = np.minimum(bound.min(axis=0), runs.first[kept])
        held = np.flatnonzero(own.holds(derived.events.times[first], derived.events.input_rows(first)))
        number = np.bincount(row[held], minlength=len(self.number)).astype(np.int64)
        return replace(self, place=np.cumsum(number) - number, kept=kept[held], number=number)

    def joined(self, situations: Situations) -> Configurations:
        """The rows with one situation more."""
        size, places = len(self), len(self.rows.members)
        points, clocks = self.rows.low.dtype, self.rows.low_clock.dtype
        table = Configurations(
            np.empty((places + 1, size), np.int32), np.empty(size, np.int32),
            np.empty(size, points), np.empty(size, points), np.empty(size, clocks), np.empty(size, clocks),
        )  # fmt: skip
        target = np.cumsum(self.number) - self.number
        join_situations(
            0, len(self.number), self.begin, self.rows, self.level, situations, self.place, self.kept, self.number, target, table
        )  # fmt: skip
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

    def situations(self, derived: Derived) -> Situations:
        """All situations, of which the part's are known by where they begin."""
        return derived.situations._replace(offsets=self.part.offsets)


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
    own: Own = WHOLE

    def configurations(self, threads: int) -> tuple[Array, Array]:
        """All matches: the situation of each name, [name, match], and the endpoint at which each is decided."""
        parts = spread(self._matched, self._tasks(threads), threads)
        members = [np.empty((len(self.plan.query.situations), 0), np.int32), *(found for part in parts for found, _ in part)]
        decided = [self.derived.situations.start[:0], *(at for part in parts for _, at in part)]
        return np.concatenate(members, axis=1), np.concatenate(decided)

    def counts(self, threads: int) -> Indices:
        """The number of matches of each stream that has situations."""
        totals = np.zeros(self.derived.streams, np.int64)
        for part in spread(self._counted, self._tasks(threads), threads):
            for streams, numbers in part:
                np.add.at(totals, streams, numbers)
        return totals

    def _tasks(self, threads: int) -> list[_Task]:
        """The parts; where there are fewer than threads, pieces of them."""
        parts = parts_of(self.derived, self.plan.query.window)
        if len(parts) >= threads:
            return [_Task(part) for part in parts]
        orders = [(part, self.choice.order(part.buffers)) for part in parts]
        return [_Task(part, order, piece, threads) for part, order in orders for piece in range(threads)]

    def _matched(self, task: _Task) -> list[tuple[Array, Array]]:
        """The matches of a part."""
        found = []
        for order, chunk in self._last_chunks(task):
            table = chunk.joined(task.situations(self.derived))
            members = np.empty_like(table.members)
            members[list(order)] = table.members
            found.append((members, table.high))
        return found

    def _counted(self, task: _Task) -> list[tuple[Array, Indices]]:
        """Streams, and how many matches of a part are counted in each."""
        chunks = (chunk for _, chunk in self._last_chunks(task))
        return [
            (chunk.rows.stream[chunk.begin : chunk.begin + len(chunk.number)] + task.part.stream, chunk.number) for chunk in chunks
        ]  # fmt: skip

    def _last_chunks(self, task: _Task) -> Iterator[tuple[tuple[int, ...], Chunk]]:
        """What the last step of the join of a part gives, and the order of names; what is found on the way is accounted for."""
        query, part = self.plan.query, task.part
        order = task.order or self.choice.order(part.buffers)
        steps = levels(order, query.constraints, self.plan.algorithm, windowed=query.window is not None)
        leaf = leaf_rows(self.derived, task.leaf(order[0]), part.stream)
        rows = [len(leaf.stream), *(0 for _ in steps)]
        for found in self._joined(leaf, steps, rows, task):
            chunk = found if self.own == WHOLE else found.starting(self.derived, self.own)
            if len(chunk):
                self.account.spend(len(chunk), 0, 0, partial(chunk.start_of, self.derived.runs))
                yield order, chunk
        self.profile.add("matches", rows[-1])
        self.profile.joined(order, rows)
        self.choice.observe(order, part.buffers, rows)

    def _joined(self, rows: Configurations, steps: Sequence[Level], counts: list[int], task: _Task) -> Iterator[Chunk]:
        """The chunks of the last of some steps, depth first; raises the count of rows after each step."""
        step, *others = steps
        limit = self.derived.never if others or task.part.limit is None else task.part.limit
        for chunk in self._fitting(rows, step, task.situations(self.derived), limit):
            counts[-len(steps)] += len(chunk)
            if not others:
                yield chunk
            elif len(chunk):
                yield from self._joined(chunk.joined(task.situations(self.derived)), others, counts, task)

    def _fitting(self, rows: Configurations, level: Level, situations: Situations, limit: Any) -> Iterator[Chunk]:
        """The situations that fit the rows, so many candidates at a time; those that then start before `limit`."""
        size = len(rows.stream)
        length = window_length(self.plan.events, self.derived.events.times.dtype)
        found = Candidates(*(np.empty((len(level.runs), size), np.int64) for _ in range(2)))
        find_candidates(0, size, rows, level, situations, length, found)
        number = found.size.sum(axis=0)
        ends = np.cumsum(number)
        begin, done = 0, 0
        while begin < size and done < ends[-1]:
            end = max(begin + 1, int(np.searchsorted(ends, done + _CANDIDATES, side="right")))
            candidates = int(ends[end - 1]) - done
            place, fitting = ends[begin:end] - number[begin:end] - done, np.empty(end - begin, np.int64)
            kept = np.empty(candidates, np.int32)
            self.profile.add("pairs", candidates)
            start = int(self.derived.runs.first[rows.members[0, begin]])
            self.account.spend(0, 0, candidates, partial(_at, start))
            keep_fitting(
                0, end - begin, begin, rows, level, situations, self.derived.latest, limit, length, found, place, kept, fitting
            )  # fmt: skip
            yield Chunk(begin, rows, level, place, kept, fitting)
            begin, done = end, done + candidates

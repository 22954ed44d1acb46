"""Join the events of a batch by a tree, chunk by chunk, so that tables of partial matches stay small."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, Protocol

import numpy as np

from gpu_cep.engine.events.start_counts import StartCounts
from gpu_cep.engine.matchers.joins.negations import JoinNegations
from gpu_cep.engine.matchers.joins.partial_matches import join_tables, new_table, table_of_events, take_partial_matches
from gpu_cep.engine.matchers.joins.sides import join_keys, relate_sides
from gpu_cep.engine.matchers.joins.workplace import Workplace, places_in
from gpu_cep.plan.join_trees import Join, Single, Tree, joined_variables
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device.interface import Array
from gpu_cep_kernels.device.packing import to_device
from gpu_cep_kernels.joins.table_joins import Buckets, Partners, Sides, Tables, find_ranges, join_rows
from gpu_cep_kernels.matches.hashing import HashKeys, PartialMatches, hash_rows
from gpu_cep_kernels.phase_one.input_buffers import InputBuffers, Streams
from gpu_cep_kernels.rules.tables import Conditions, ConditionTable, PatternTable

# Tables of more variables than this have fewer rows.
_FEW_VARIABLES = 8
# Rows with equal keys are found by hashing, not by sorting. Measured with 65,536 rows: bringing them into buckets takes a fifth of
# the time of a sort by key. A row's bucket is found in 3 ns; a search among sorted keys takes 200.
_MOST_BUCKETS = 1 << 20


@dataclass(frozen=True, slots=True)
class JoinChunk:
    """Some rows of the left table, from row `begin` on, with their partners in the right table."""

    begin: int
    left: PartialMatches
    right: PartialMatches
    partners: Partners
    size: int
    where: Workplace

    def __len__(self) -> int:
        """Return the number of pairs."""
        return self.size

    def rows(self) -> PartialMatches:
        """Return the joined rows, one for each pair."""
        xp, counts = self.where.place.xp, self.partners.number
        output = new_table(xp, len(self.left.events) + len(self.right.events), len(self))
        target = xp.cumsum(counts) - counts
        self.where.run(join_rows, len(counts), self.begin, self.left, self.right, self.partners, target, output)
        return output

    def totals(self) -> StartCounts:
        """Return the number of pairs of each left row with partners, at the earliest event of these; on the host."""
        place, xp = self.where.place, self.where.place.xp
        paired = xp.flatnonzero(self.partners.number)
        earliest = self.partners.rows[self.partners.place[paired]]
        starts = xp.minimum(self.left.first[self.begin + paired], self.right.first[earliest])
        return StartCounts(place.download(starts), place.download(self.partners.number[paired]))


class JoinAccount(Protocol):
    """Receives the work and the failures of joins, each with an event at which a match may start."""

    def spend(self, candidates: int, start: Callable[[], int]) -> None:
        """Account for candidates that are about to be tested; `start` is asked if there are too many."""

    def fail(self, condition: int, start: int) -> NoReturn:
        """Raise the error that the condition of this number overflows."""


@dataclass(frozen=True, slots=True)
class BatchJoins:
    """The events of one batch by variable, and all that their joins depend on.

    Events are numbered from the batch's first; matches begin before event
    `own`. `exclusive`: no event satisfies the properties of two variables.
    Rows that `negations` rule out are left out. `where` is the workplace, at which
    `streams`, `placed`, the conditions, and `listed`, the events of the buffers, lie;
    all else is on the host.
    """

    pattern: PatternTable
    conditions: ConditionTable
    buffers: InputBuffers
    streams: Streams
    placed: Conditions
    listed: Array
    own: int
    exclusive: bool
    account: JoinAccount
    negations: JoinNegations
    where: Workplace

    def tables(self, tree: Tree) -> Iterator[PartialMatches]:
        """Yield the rows of a tree, table by table; variables stand in the order of the tree."""
        match tree:
            case Single(variable=v):
                yield self._leaf_rows(v)
            case Join():
                for chunk in self.chunks(tree):
                    if len(chunk):
                        yield self.negations.filter_rows(tree, chunk.rows())

    def chunks(self, tree: Join) -> Iterator[JoinChunk]:
        """Yield the pairs of rows of a join, chunk by chunk, before the join's own negations are judged.

        Each block of the right side meets all rows of the left.
        """
        sides = relate_sides(
            self.pattern, self.conditions, joined_variables(tree.left), joined_variables(tree.right), exclusive=self.exclusive
        )
        left_keys, right_keys = to_device(self.where.place, join_keys(self.conditions, sides))
        pairing = _Pairing(to_device(self.where.place, sides), self._may_fail(sides), self._end_of_starts(tree))
        for block in self._blocks(tree.right, self.where.bounds.indexed):
            right, borders = self._sort_into_buckets(block, right_keys)
            for left in self._left_blocks(tree.left):
                buckets = Buckets(borders, self._hash_rows(left, left_keys, len(borders) - 1))
                yield from self._pair_rows(left, right, buckets, pairing)

    def _may_fail(self, sides: Sides) -> bool:
        """Return whether a condition that a join decides may overflow: comparisons of two columns cannot."""
        return bool((self.conditions.left_variable[sides.conditions] < 0).any())

    def _leaf_rows(self, v: int) -> PartialMatches:
        """Return a row for each event of variable v."""
        first = int(self.buffers.first[v])
        events = self.buffers.events[first : self.buffers.first[v + 1]]
        size = int(np.searchsorted(events, self._end_of_starts(Single(v))))
        return self.negations.filter_rows(Single(v), table_of_events(self.listed[first : first + size]))

    def _end_of_starts(self, tree: Tree) -> int:
        """Return the event before which each row of a tree must begin.

        It is the end of the batch's own events if the rows bind the first event of a match.
        """
        begins = set(np.flatnonzero(~self.pattern.precedes.any(axis=0))) <= set(joined_variables(tree))
        return self.own if begins else len(self.streams.times)

    def _left_blocks(self, tree: Tree) -> Iterator[PartialMatches]:
        """Yield the rows of a tree in tables for the left side of a join.

        A join keeps numbers for each row of such a table, so the rows of a leaf are cut, too.
        """
        match tree:
            case Single(variable=v):
                events = self._leaf_rows(v).first
                yield from (table_of_events(events[low:high]) for low, high in blocks(0, len(events), self.where.bounds.rows))
            case Join():
                yield from self._blocks(tree, self.where.bounds.rows)

    def _blocks(self, tree: Tree, size: int) -> Iterator[PartialMatches]:
        """Yield the rows of a tree in tables of `size` rows, or a chunk more; the last one may be shorter. A leaf is one table."""
        limit = self._row_limit(size)
        gathered: list[PartialMatches] = []
        rows = 0
        for table in self.tables(tree):
            gathered.append(table)
            rows += len(table.first)
            if rows >= limit:
                yield join_tables(self.where.place.xp, gathered)
                gathered, rows = [], 0
        if rows:
            yield join_tables(self.where.place.xp, gathered)

    def _row_limit(self, rows: int) -> int:
        """Return `rows`, or fewer if the pattern has many variables."""
        return max(1, rows * _FEW_VARIABLES // max(_FEW_VARIABLES, len(self.buffers.first)))

    def _sort_into_buckets(self, table: PartialMatches, keys: HashKeys) -> tuple[PartialMatches, Array]:
        """Return the rows by bucket, then by first event, and where the buckets begin, with the end."""
        xp = self.where.place.xp
        if len(table.events) > 1:
            table = take_partial_matches(xp, table, self.where.order(table.first, len(self.streams.times)))
        if not len(keys.place):
            return table, self.where.place.upload(np.array([0, len(table.first)], np.int64))
        buckets = min(1 << len(table.first).bit_length(), _MOST_BUCKETS)
        order, borders = self.where.group(self._hash_rows(table, keys, buckets), buckets)
        return take_partial_matches(xp, table, order), borders

    def _hash_rows(self, table: PartialMatches, keys: HashKeys, buckets: int) -> Array:
        """Return the bucket of each row, or an empty array if there are no keys; `buckets` is a power of two."""
        found = self.where.place.xp.empty(len(table.first) if len(keys.place) else 0, np.int64)
        bank = self.placed.bank
        float_bits = bank.floats.view(np.int64)
        self.where.run(hash_rows, len(found), table, keys, bank.ints, float_bits, self.placed.base, buckets - 1, found)
        return found

    def _pair_rows(self, left: PartialMatches, right: PartialMatches, buckets: Buckets, pairing: _Pairing) -> Iterator[JoinChunk]:
        """Yield the pairs of rows of two tables; each chunk tests a bounded number of candidates."""
        rows, bounds, place = len(left.first), self.where.bounds, self.where.place
        if not rows:
            return
        tables = Tables(left, right, pairing.sides)
        first, size = place.xp.empty(rows, np.int64), place.xp.empty(rows, np.int64)
        self.where.run(find_ranges, rows, tables, buckets, self.streams, self.placed.base, pairing.own, first, size)
        ends = place.xp.cumsum(size)
        begin, done, total = 0, 0, int(ends[-1])
        while begin < rows and done < total:
            few, many = places_in(place, ends, [done + self._row_limit(bounds.candidates), done + self._row_limit(bounds.shared)])
            # one thread tests all candidates of a row
            end = max(begin + 1, few, min(begin + self.where.threads, many))
            candidates = int(ends[end - 1]) - done
            if candidates:
                partners = _new_partners(place.xp, first[begin:end], size[begin:end], candidates)
                self.account.spend(candidates, partial(_event, left.first, begin))
                self.where.filter_partners(begin, tables, self.streams, self.placed, partners)
                if pairing.may_fail:
                    self._report_failure(begin, tables, partners)
                yield JoinChunk(begin, left, right, partners, int(partners.number.sum()), self.where)
            begin, done = end, done + candidates

    def _report_failure(self, begin: int, tables: Tables, partners: Partners) -> None:
        """Report the first condition that overflowed in a chunk, which begins at row `begin` of the left table."""
        failed = self.where.place.xp.flatnonzero(partners.failed)
        if len(failed):
            row = int(failed[0])
            start = min(int(tables.left.first[begin + row]), int(tables.right.first[int(partners.rows[int(partners.place[row])])]))
            self.account.fail(int(partners.failed[row]) - 1, start)


@dataclass(frozen=True, slots=True)
class _Pairing:
    """How the two sides of a join are paired: their relation, at the workplace, and whether its conditions may overflow.

    One of two rows begins before event `own`.
    """

    sides: Sides
    may_fail: bool
    own: int


def _event(events: Array, row: int) -> int:
    """Return the event in a row."""
    return int(events[row])


def _new_partners(xp: Any, first: Array, size: Array, candidates: int) -> Partners:
    """Return room for the partners of some rows.

    Row i has ``size[i]`` candidates, from row ``first[i]`` of the right table on.
    """
    rows = len(first)
    number, failed = xp.empty(rows, np.int64), xp.empty(rows, np.int64)
    return Partners(first, size, xp.cumsum(size) - size, xp.empty(candidates, np.int32), number, failed)

"""Join the events of a batch by a tree, chunk by chunk, so that tables of partial matches stay small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn, Protocol

import numpy as np

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.matchers.joins.negations import JoinNegations
from gpu_cep.engine.matchers.joins.partial_matches import concatenate, new_table, table_of_events, take_rows
from gpu_cep.engine.matchers.joins.sides import hash_keys, relate_sides
from gpu_cep.plan.join_trees import Join, Leaf, Tree, leaves
from gpu_cep_kernels.compile.launch import blocks, slices, spread
from gpu_cep_kernels.joins.table_joins import Buckets, Partners, Sides, Tables, filter_partners, find_ranges, join_rows
from gpu_cep_kernels.matches.groups import order_by_group
from gpu_cep_kernels.matches.hashing import HashKeys, PartialMatches, hash_rows
from gpu_cep_kernels.phase_one.input_buffers import InputBuffers, Streams
from gpu_cep_kernels.rules.tables import Conditions, PatternTable, Registers

# Candidates that one call tests, and rows that are gathered for a join's left and right side.
_CANDIDATES, _ROWS, _INDEXED = 1 << 18, 1 << 15, 1 << 20
# Candidates that a call tests at most so that each thread has a row, if rows have many candidates.
_SHARED_CANDIDATES = 1 << 24
# Registers from one thread's slot to the next. Threads share no cache line, even if registers have one byte.
REGISTER_STRIDE = 64
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
    threads: int

    def __len__(self) -> int:
        """Return the number of pairs."""
        return int(self.partners.number.sum())

    def rows(self) -> PartialMatches:
        """Return the joined rows, one for each pair."""
        counts = self.partners.number
        output = new_table(len(self.left.events) + len(self.right.events), len(self))
        target = np.cumsum(counts) - counts

        spread(
            lambda part: join_rows(*part, self.begin, self.left, self.right, self.partners, target, output),
            slices(len(counts), self.threads), self.threads,
        )  # fmt: skip
        return output

    def totals(self) -> tuple[Indices, Indices]:
        """Return, for each left row with partners, the earliest event of its pairs and their number."""
        paired = np.flatnonzero(self.partners.number)
        earliest = self.partners.rows[self.partners.place[paired]]
        return np.minimum(self.left.first[self.begin + paired], self.right.first[earliest]), self.partners.number[paired]


class JoinAccount(Protocol):
    """Receives the work and the failures of joins, each with an event at which a match may start."""

    def spend(self, candidates: int, start: int) -> None:
        """Account for candidates that are about to be tested."""

    def fail(self, condition: int, start: int) -> NoReturn:
        """Raise the error that the condition of this number overflows."""


@dataclass(frozen=True, slots=True)
class BatchJoins:
    """The events of one batch by variable, and all that their joins depend on.

    Events are numbered from the batch's first; matches begin before event
    `own`. `exclusive`: no event satisfies the properties of two variables.
    `threads` share the rows of each call. Each has a slot in the `registers`,
    `REGISTER_STRIDE` from the next. Rows that `negations` rule out are left out.
    """

    pattern: PatternTable
    conditions: Conditions
    buffers: InputBuffers
    streams: Streams
    registers: Registers
    own: int
    exclusive: bool
    account: JoinAccount
    negations: JoinNegations
    threads: int = 1

    def tables(self, tree: Tree) -> Iterator[PartialMatches]:
        """Yield the rows of a tree, table by table; variables stand in the order of the tree's leaves."""
        match tree:
            case Leaf(variable=v):
                yield self._leaf_rows(v)
            case Join():
                for chunk in self.chunks(tree):
                    if len(chunk):
                        yield self.negations.filter_rows(tree, chunk.rows())

    def chunks(self, tree: Join) -> Iterator[JoinChunk]:
        """Yield the pairs of rows of a join, chunk by chunk, before the join's own negations are judged.

        Each block of the right side meets all rows of the left.
        """
        sides = relate_sides(self.pattern, self.conditions.table, leaves(tree.left), leaves(tree.right), exclusive=self.exclusive)
        left_keys, right_keys = hash_keys(self.conditions.table, sides)
        own = self._end_of_starts(tree)
        for block in self._blocks(tree.right, _INDEXED):
            right, borders = self._sort_into_buckets(block, right_keys)
            for left in self._left_blocks(tree.left):
                buckets = Buckets(borders, self._hash_rows(left, left_keys, len(borders) - 1))
                yield from self._pair_rows(left, right, buckets, sides, own)

    def _leaf_rows(self, v: int) -> PartialMatches:
        """Return a row for each event of variable v."""
        events = self.buffers.events[self.buffers.first[v] : self.buffers.first[v + 1]]
        events = events[: int(np.searchsorted(events, self._end_of_starts(Leaf(v))))]
        return self.negations.filter_rows(Leaf(v), table_of_events(events))

    def _end_of_starts(self, tree: Tree) -> int:
        """Return the event before which each row of a tree must begin.

        It is the end of the batch's own events if the rows bind the first event of a match.
        """
        begins = set(np.flatnonzero(~self.pattern.precedes.any(axis=0))) <= set(leaves(tree))
        return self.own if begins else len(self.streams.times)

    def _left_blocks(self, tree: Tree) -> Iterator[PartialMatches]:
        """Yield the rows of a tree in tables for the left side of a join.

        A join keeps numbers for each row of such a table, so the rows of a leaf are cut, too.
        """
        match tree:
            case Leaf(variable=v):
                events = self._leaf_rows(v).first
                yield from (table_of_events(events[low:high]) for low, high in blocks(0, len(events), _ROWS))
            case Join():
                yield from self._blocks(tree, _ROWS)

    def _blocks(self, tree: Tree, size: int) -> Iterator[PartialMatches]:
        """Yield the rows of a tree in tables of `size` rows, or a chunk more; the last one may be shorter. A leaf is one table."""
        limit = self._row_limit(size)
        gathered: list[PartialMatches] = []
        rows = 0
        for table in self.tables(tree):
            gathered.append(table)
            rows += len(table.first)
            if rows >= limit:
                yield concatenate(gathered)
                gathered, rows = [], 0
        if rows:
            yield concatenate(gathered)

    def _row_limit(self, rows: int) -> int:
        """Return `rows`, or fewer if the pattern has many variables."""
        return max(1, rows * _FEW_VARIABLES // max(_FEW_VARIABLES, len(self.buffers.first)))

    def _sort_into_buckets(self, table: PartialMatches, keys: HashKeys) -> tuple[PartialMatches, Indices]:
        """Return the rows by bucket, then by first event, and where the buckets begin, with the end."""
        if len(table.events) > 1:
            order, _ = order_by_group(table.first, len(self.streams.times))
            table = take_rows(table, order)
        if not len(keys.place):
            return table, np.array([0, len(table.first)], np.int64)
        buckets = min(1 << len(table.first).bit_length(), _MOST_BUCKETS)
        order, borders = order_by_group(self._hash_rows(table, keys, buckets), buckets)
        return take_rows(table, order), borders

    def _hash_rows(self, table: PartialMatches, keys: HashKeys, buckets: int) -> Indices:
        """Return the bucket of each row, or an empty array if there are no keys; `buckets` is a power of two."""
        found = np.empty(len(table.first) if len(keys.place) else 0, np.int64)
        bank = self.conditions.bank
        float_bits = bank.floats.view(np.int64)
        spread(
            lambda part: hash_rows(*part, table, keys, bank.ints, float_bits, self.conditions.base, buckets - 1, found),
            slices(len(found), self.threads), self.threads,
        )  # fmt: skip
        return found

    def _pair_rows(self, left: PartialMatches, right: PartialMatches, buckets: Buckets, sides: Sides, own: int) -> Iterator[JoinChunk]:
        """Yield the pairs of rows of two tables; each chunk tests a bounded number of candidates."""
        rows = len(left.first)
        tables, first, size = Tables(left, right, sides), np.empty(rows, np.int64), np.empty(rows, np.int64)
        spread(
            lambda part: find_ranges(*part, tables, buckets, self.streams, self.conditions.base, own, first, size),
            slices(rows, self.threads), self.threads,
        )  # fmt: skip
        ends = np.cumsum(size)
        begin, done = 0, 0
        while begin < rows and done < ends[-1]:
            limits = done + self._row_limit(_CANDIDATES), done + self._row_limit(_SHARED_CANDIDATES)
            few, many = np.searchsorted(ends, limits, side="right").tolist()
            # one thread tests all candidates of a row
            end = max(begin + 1, few, min(begin + self.threads, many))
            candidates = int(ends[end - 1]) - done
            if candidates:
                chunk = JoinChunk(begin, left, right, _new_partners(first[begin:end], size[begin:end], candidates), self.threads)
                self.account.spend(candidates, int(left.first[begin]))
                self._filter_partners(chunk, sides)
                yield chunk
            begin, done = end, done + candidates

    def _filter_partners(self, chunk: JoinChunk, sides: Sides) -> None:
        """Keep those of a chunk's candidates that are partners; report the first condition that overflowed."""
        begin, tables, partners = chunk.begin, Tables(chunk.left, chunk.right, sides), chunk.partners

        def keep(part: tuple[int, tuple[int, int]]) -> None:
            slot, (low, high) = REGISTER_STRIDE * part[0], part[1]
            filter_partners(low, high, slot, begin, tables, self.streams, self.conditions, self.registers, partners)

        spread(keep, [*enumerate(_split_evenly(partners, self.threads))], self.threads)
        for row in np.flatnonzero(partners.failed)[:1]:
            start = min(chunk.left.first[chunk.begin + row], chunk.right.first[partners.rows[partners.place[row]]])
            self.account.fail(int(partners.failed[row]) - 1, int(start))


def _split_evenly(partners: Partners, parts: int) -> list[tuple[int, int]]:
    """Return the rows of a chunk as at most `parts` ranges with about as many candidates each."""
    if parts == 1:
        return [(0, len(partners.size))]
    candidates = len(partners.rows)
    borders = np.searchsorted(partners.place, [candidates * part // parts for part in range(parts)])
    return [*pairwise(np.unique([0, *borders, len(partners.size)]).tolist())]


def _new_partners(first: Indices, size: Indices, candidates: int) -> Partners:
    """Return room for the partners of some rows.

    Row i has ``size[i]`` candidates, from row ``first[i]`` of the right table on.
    """
    rows = len(first)
    number, failed = np.empty(rows, np.int64), np.empty(rows, np.int64)
    return Partners(first, size, np.cumsum(size) - size, np.empty(candidates, np.int32), number, failed)

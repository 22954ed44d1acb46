"""A tree of joins over one batch: partial matches in columns, chunk by chunk, so that no table grows beyond bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn, Protocol

import numpy as np

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.matchers.joins.negations import JoinNegations
from gpu_cep.engine.matchers.joins.sides import hash_keys, sides_of
from gpu_cep.plan.join_trees import Join, Leaf, Tree, leaves
from gpu_cep_kernels.compile.launch import blocks, slices, spread
from gpu_cep_kernels.joins.table_joins import Buckets, Partners, Sides, filter_partners, find_ranges, join_rows
from gpu_cep_kernels.matches.groups import order_by_group
from gpu_cep_kernels.matches.hashing import HashKeys, PartialMatches, hash_rows
from gpu_cep_kernels.phase_one.input_buffers import InputBuffers, Streams
from gpu_cep_kernels.rules.tables import Conditions, PatternTable, Places, Registers

# Candidates that one call looks at, and rows that are gathered for the left and for the right side of a join.
_CANDIDATES, _ROWS, _INDEXED = 1 << 18, 1 << 15, 1 << 20
# Candidates of a call that has a row for each thread, where rows have many.
_SHARED_CANDIDATES = 1 << 24
# How far the slots of threads are apart: not even registers of a byte then share a cache line.
APART = 64
# Of more variables than this, tables have fewer rows.
_FEW_VARIABLES = 8
# Rows with equal keys are found by hashing, not by sorting. Measured: 65,536 rows are brought into buckets in a fifth of the time of
# a sort by key, and a row's bucket is known in 3 ns where a search among sorted keys takes 200.
_MOST_BUCKETS = 1 << 20


@dataclass(frozen=True, slots=True)
class Chunk:
    """The partners of some rows of the left table, from row `begin` on."""

    begin: int
    left: PartialMatches
    right: PartialMatches
    partners: Partners
    threads: int

    def __len__(self) -> int:
        """How many rows it gives."""
        return int(self.partners.number.sum())

    def rows(self) -> PartialMatches:
        """The rows of the join."""
        counts = self.partners.number
        joined = _table(len(self.left.events) + len(self.right.events), len(self))
        target = np.cumsum(counts) - counts

        spread(
            lambda part: join_rows(*part, self.begin, self.left, self.right, self.partners, target, joined),
            slices(len(counts), self.threads), self.threads,
        )  # fmt: skip
        return joined

    def totals(self) -> tuple[Indices, Indices]:
        """Of each row of the left table that has partners the first event of any row that it gives, and their number."""
        paired = np.flatnonzero(self.partners.number)
        earliest = self.partners.rows[self.partners.place[paired]]
        return np.minimum(self.left.first[self.begin + paired], self.right.first[earliest]), self.partners.number[paired]


class Account(Protocol):
    """Who is told of work and failure; each with an event at which a match may start."""

    def spend(self, candidates: int, start: int) -> None:
        """So many candidates are about to be looked at."""

    def fail(self, condition: int, start: int) -> NoReturn:
        """A condition could not be computed."""


@dataclass(frozen=True, slots=True)
class Joining:
    """One batch's events, by variable, and what its tables are joined by.

    Events are numbered from the batch's first; matches begin before event
    `own`. `exclusive`: no event satisfies the properties of two variables.
    `threads` share the rows of each call; of `registers` each has a slot, which
    are `APART` from each other. Rows that `negations` rule out are left out.
    """

    pattern: PatternTable
    conditions: Conditions
    buffers: InputBuffers
    streams: Streams
    registers: Registers
    own: int
    exclusive: bool
    account: Account
    negations: JoinNegations
    threads: int = 1

    def tables(self, tree: Tree) -> Iterator[PartialMatches]:
        """The rows of a tree, table by table; the variables' places are in the order of its leaves."""
        match tree:
            case Leaf(variable=v):
                yield self._leaf(v)
            case Join():
                for chunk in self.chunks(tree):
                    if len(chunk):
                        yield self.negations.allowed(tree, chunk.rows())

    def chunks(self, tree: Join) -> Iterator[Chunk]:
        """The rows of a join as pairs of rows, chunk by chunk, those that it rules out itself among them.

        Each block of the right side meets all of the left.
        """
        left_places, right_places = leaves(tree.left), leaves(tree.right)
        sides = sides_of(self.pattern, self.conditions.table, left_places, right_places, exclusive=self.exclusive)
        left_keys, right_keys = hash_keys(self.conditions.table, sides)
        own = self._end_of_starts(tree)
        for block in self._blocks(tree.right, _INDEXED):
            right, borders = self._arranged(block, right_keys)
            for left in self._left_blocks(tree.left):
                yield from self._paired(left, right, Buckets(borders, self._hashed(left, left_keys, len(borders) - 1)), sides, own)

    def _leaf(self, v: int) -> PartialMatches:
        events = self.buffers.events[self.buffers.first[v] : self.buffers.first[v + 1]]
        return self.negations.allowed(Leaf(v), _of_events(events[: int(np.searchsorted(events, self._end_of_starts(Leaf(v))))]))

    def _end_of_starts(self, tree: Tree) -> int:
        """The event before which each row begins: the end of the own ones where the first event of a match is in the row."""
        begins = set(np.flatnonzero(~self.pattern.precedes.any(axis=0))) <= set(leaves(tree))
        return self.own if begins else len(self.streams.times)

    def _left_blocks(self, tree: Tree) -> Iterator[PartialMatches]:
        """The rows of a tree as left tables, those of a leaf in pieces, too: of each row of such a table its candidates are kept."""
        match tree:
            case Leaf(variable=v):
                events = self._leaf(v).first
                yield from (_of_events(events[low:high]) for low, high in blocks(0, len(events), _ROWS))
            case Join():
                yield from self._blocks(tree, _ROWS)

    def _blocks(self, tree: Tree, size: int) -> Iterator[PartialMatches]:
        """The rows of a tree in tables of so many rows, or a chunk more; the last one may be shorter. A leaf is one table."""
        limit = self._bounded(size)
        gathered: list[PartialMatches] = []
        rows = 0
        for table in self.tables(tree):
            gathered.append(table)
            rows += len(table.first)
            if rows >= limit:
                yield _concatenated(gathered)
                gathered, rows = [], 0
        if rows:
            yield _concatenated(gathered)

    def _bounded(self, rows: int) -> int:
        """So many rows, or fewer where they are wide."""
        return max(1, rows * _FEW_VARIABLES // max(_FEW_VARIABLES, len(self.buffers.first)))

    def _arranged(self, table: PartialMatches, keys: HashKeys) -> tuple[PartialMatches, Indices]:
        """A table by bucket, then in order of first event; and where the buckets begin, with the end."""
        if len(table.events) > 1:
            order, _ = order_by_group(table.first, len(self.streams.times))
            table = _reordered(table, order)
        if not len(keys.place):
            return table, np.array([0, len(table.first)], np.int64)
        buckets = min(1 << len(table.first).bit_length(), _MOST_BUCKETS)
        order, borders = order_by_group(self._hashed(table, keys, buckets), buckets)
        return _reordered(table, order), borders

    def _hashed(self, table: PartialMatches, keys: HashKeys, buckets: int) -> Indices:
        """The bucket of each row; none where nothing is hashed. `buckets` is a power of two."""
        found = np.empty(len(table.first) if len(keys.place) else 0, np.int64)
        bank = self.conditions.bank
        float_bits = bank.floats.view(np.int64)
        spread(
            lambda part: hash_rows(*part, table, keys, bank.ints, float_bits, self.conditions.base, buckets - 1, found),
            slices(len(found), self.threads), self.threads,
        )  # fmt: skip
        return found

    def _paired(self, left: PartialMatches, right: PartialMatches, buckets: Buckets, sides: Sides, own: int) -> Iterator[Chunk]:
        """The pairs of rows of two tables, so many candidates at a time."""
        rows = len(left.first)
        first, size = np.empty(rows, np.int64), np.empty(rows, np.int64)
        spread(
            lambda part: find_ranges(*part, left, right, buckets, sides, self.streams, self.conditions.base, own, first, size),
            slices(rows, self.threads), self.threads,
        )  # fmt: skip
        ends = np.cumsum(size)
        begin, done = 0, 0
        while begin < rows and done < ends[-1]:
            few, many = (int(np.searchsorted(ends, done + self._bounded(most), side="right")) for most in (_CANDIDATES, _SHARED_CANDIDATES))
            # a row's candidates are one thread's
            end = max(begin + 1, few, min(begin + self.threads, many))
            candidates = int(ends[end - 1]) - done
            if candidates:
                chunk = Chunk(begin, left, right, _partners(first[begin:end], size[begin:end], candidates), self.threads)
                self.account.spend(candidates, int(left.first[begin]))
                self._filter(chunk, sides)
                yield chunk
            begin, done = end, done + candidates

    def _filter(self, chunk: Chunk, sides: Sides) -> None:
        """Keep the candidates that are partners; reports the first condition that failed."""
        begin, left, right, partners = chunk.begin, chunk.left, chunk.right, chunk.partners

        def keep(part: tuple[int, tuple[int, int]]) -> None:
            slot, (low, high) = APART * part[0], part[1]
            filter_partners(low, high, slot, begin, left, right, sides, self.streams, self.conditions, self.registers, partners)

        spread(keep, [*enumerate(_evenly(partners, self.threads))], self.threads)
        for row in np.flatnonzero(partners.failed)[:1]:
            start = min(chunk.left.first[chunk.begin + row], chunk.right.first[partners.rows[partners.place[row]]])
            self.account.fail(int(partners.failed[row]) - 1, int(start))


def _evenly(partners: Partners, parts: int) -> list[tuple[int, int]]:
    """The rows of a chunk in at most so many parts of about as many candidates."""
    if parts == 1:
        return [(0, len(partners.size))]
    candidates = len(partners.rows)
    borders = np.searchsorted(partners.place, [candidates * part // parts for part in range(parts)])
    return [*pairwise(np.unique([0, *borders, len(partners.size)]).tolist())]


def _of_events(events: Places) -> PartialMatches:
    return PartialMatches(events[np.newaxis], events, events)


def _table(places: int, rows: int) -> PartialMatches:
    return PartialMatches(np.empty((places, rows), np.int32), np.empty(rows, np.int32), np.empty(rows, np.int32))


def _partners(first: Indices, size: Indices, candidates: int) -> Partners:
    rows = len(first)
    number, failed = np.empty(rows, np.int64), np.empty(rows, np.int64)
    return Partners(first, size, np.cumsum(size) - size, np.empty(candidates, np.int32), number, failed)


def _concatenated(tables: list[PartialMatches]) -> PartialMatches:
    return tables[0] if len(tables) == 1 else PartialMatches(*(np.concatenate(parts, axis=-1) for parts in zip(*tables, strict=True)))


def _reordered(table: PartialMatches, order: Indices) -> PartialMatches:
    # `column[..., order]` would lay the members out by column, for which kernels would be compiled once more
    return PartialMatches(*(np.take(column, order, axis=-1) for column in table))

"""Merge the runs of NFA^b that go on alike: a signature says how a run goes on, and a hash table finds its run.

Two partial matches are equivalent (SASE+ paper, section 5.2) in two respects.
They bind as much of each variable, as far as that matters. And they agree in
the values that later conditions read. Those are the conditions that some
variable decides which may still bind.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.compile.operations import exact_product
from gpu_cep_kernels.rules.running import Aggregation, is_null
from gpu_cep_kernels.rules.scalars import UNBOUNDED
from gpu_cep_kernels.rules.tables import ONCE, PAIRWISE, SINGLY, Conditions, EventPath, Flags, Floats, Ints, PatternTable
from gpu_cep_kernels.rules.ties import first_behind

# The matrix of the bank that a condition reads.
INTS, FLOATS, VECTORS = range(3)


class MergedRuns(NamedTuple):
    """Hold the runs; r is the number of one, v a variable.

    - bound[r, v]: how many events it binds to v.
    - first[r, v], last[r, v]: the nodes of the first and the last of these; −1 if there are none.
    - blockers[r, v]: how many variables keep v from binding.
    - unsatisfied[r]: how many variables bind less than their minimum.
    - head[r]: its newest node.
    - ints[r], floats[r]: the words of its signature, each in one of the two arrays.
    - words[r]: how many words that are.
    - code[r]: the hash of the signature.
    - chain[r]: the next run in its bucket, or −1.
    - buckets: for each bucket of hashes its first run, or −1.
    - active: the runs in use.
    - free: the numbers not in use.
    """

    bound: Ints
    first: Ints
    last: Ints
    blockers: Ints
    unsatisfied: Ints
    head: Ints
    ints: Ints
    floats: Floats
    words: Ints
    code: npt.NDArray[np.uint64]
    chain: Ints
    buckets: Ints
    active: Ints
    free: Ints


class ReadTable(NamedTuple):
    """List what conditions read; c is a condition, v a variable, k a value that is read.

    - first[c]: the first value of condition c; the last entry is the end.
    - role[k], bank[k], column[k]: the role, the matrix (INTS, FLOATS, VECTORS) and the column of value k.
    - decides[c, v]: whether an event of v may decide c.
    - once[c, v]: whether only the first event of v does.
    - live[c]: scratch: how many variables that may still bind decide c.
    - open[v]: scratch: whether v may still bind.
    """

    first: Ints
    role: Ints
    bank: Ints
    column: Ints
    decides: Flags
    once: Flags
    live: Ints
    open: Flags


# How many buckets there are; a power of two.
BUCKETS = 1 << 12


def new_runs(number: int, variables: int, words: int) -> MergedRuns:
    """Return room for so many runs with signatures of at most so many words."""
    arrays: dict[str, Any] = {name: np.zeros(number, np.int64) for name in ("unsatisfied", "head", "words", "chain", "active")}
    arrays |= {name: np.zeros((number, variables), np.int64) for name in ("bound", "first", "last", "blockers")}
    arrays |= {"ints": np.zeros((number, words), np.int64), "floats": np.zeros((number, words)), "code": np.zeros(number, np.uint64)}
    return MergedRuns(**arrays, buckets=np.full(BUCKETS, -1), free=np.arange(number))


@rule
def _code_of(value: int, code: Any) -> Any:
    """Return `code` with a further value mixed in (FNV-1a)."""
    return (code ^ np.uint64(np.int64(value))) * np.uint64(1099511628211)


@rule
def _sign(r: int, value: int, place: int, runs: MergedRuns) -> int:
    """Write a word of run r's signature at `place`; return the next place."""
    runs.ints[r, place] = value
    runs.floats[r, place] = 0.0
    runs.code[r] = _code_of(value, runs.code[r])
    return place + 1


@rule
def _sign_float(r: int, value: float, place: int, runs: MergedRuns) -> int:
    """Write a float to run r's signature, after its sign: zeros of two signs differ, and NaN equals nothing; return the next place."""
    place = _sign(r, int(math.copysign(1.0, value)), place, runs)
    runs.floats[r, place] = value
    runs.ints[r, place] = 0
    # equal numbers must have equal codes; different ones may
    bounded = value if abs(value) < 1e12 else 0.0
    runs.code[r] = _code_of(int(exact_product(bounded, 1024.0)), runs.code[r])
    return place + 1


@rule
def _sign_value(r: int, k: int, row: int, place: int, conditions: Conditions, reads: ReadTable, runs: MergedRuns) -> int:
    """Write to run r's signature what value k, read by a condition, is in a row of the bank; return the next place."""
    bank, column = conditions.bank, reads.column[k]
    if reads.bank[k] == INTS:
        null = is_null(bank.int_nulls, column, row)
        place = _sign(r, 1 if null else 0, place, runs)
        place = _sign(r, 0 if null else bank.ints[column, row], place, runs)
    elif reads.bank[k] == FLOATS:
        null = is_null(bank.float_nulls, column, row)
        place = _sign(r, 1 if null else 0, place, runs)
        place = _sign_float(r, 0.0 if null else bank.floats[column, row], place, runs)
    else:
        place = _sign(r, row, place, runs)
    return place


@rule
def _sign_role(r: int, c: int, role: int, event: int, place: int, conditions: Conditions, reads: ReadTable, runs: MergedRuns) -> int:
    """Write to run r's signature the values that condition c reads of `event` as `role` (−1: none); return the next place."""
    for k in range(reads.first[c], reads.first[c + 1]):
        if role >= 0 and reads.role[k] == role:
            place = _sign_value(r, k, conditions.base + event, place, conditions, reads, runs)
    return place


@rule
def _sign_aggregates(r: int, u: int, place: int, conditions: Conditions, path: EventPath, runs: MergedRuns) -> int:
    """Write to run r's signature the aggregates of u's events; return the next place.

    Of a count it is the number, of others the value, and whether there is one or it overflowed.
    """
    values, node, step = path.aggregates, runs.last[r, u], conditions.aggregates.step
    for k in range(conditions.aggregates.first[u], conditions.aggregates.first[u + 1]):
        counts = step[k] == Aggregation.COUNT_EVENTS or step[k] == Aggregation.COUNT_INTS or step[k] == Aggregation.COUNT_FLOATS
        number = values.counts[k, node]
        place = _sign(r, number if counts else min(number, 1), place, runs)
        if not counts:
            place = _sign(r, values.ints[k, node], place, runs)
            place = _sign_float(r, values.floats[k, node], place, runs)
    return place


@rule
def _may_decide(r: int, c: int, v: int, reads: ReadTable, runs: MergedRuns) -> bool:
    """Return whether a further event of v may decide condition c in run r."""
    return bool(reads.open[v] and reads.decides[c, v] and not (reads.once[c, v] and runs.bound[r, v] > 0))


@rule
def _sign_part(r: int, c: int, g: int, place: int, pattern: PatternTable, conditions: Conditions, work: Any) -> int:
    """Write to run r's signature what part g of condition c will read of its variable's events; return the next place."""
    path, runs, reads = work.path, work.runs, work.reads
    table, u = conditions.table, conditions.table.variable[g]
    own = 1 if _may_decide(r, c, u, reads, runs) else 0
    others = reads.live[c] > own
    last = path.event[runs.last[r, u]]
    spread = table.spread[g]
    if pattern.maximum[u] > 1 and (spread == PAIRWISE or (others and spread != ONCE)):
        # every event of the binding counts, so only the same binding is alike: its last node tells which it is
        place = _sign(r, runs.last[r, u], place, runs)
    elif spread != SINGLY or others:
        # if u itself decides, c reads the event to come and not the one bound
        place = _sign_role(r, c, table.each[g] if others else -1, last, place, conditions, reads, runs)
        place = _sign_role(r, c, table.previous[g], last, place, conditions, reads, runs)
        place = _sign_role(r, c, table.end[g], last, place, conditions, reads, runs)
        if table.previous[g] >= 0 or table.end[g] >= 0:
            place = _sign_aggregates(r, u, place, conditions, path, runs)
    return _sign_role(r, c, table.start[g], path.event[runs.first[r, u]], place, conditions, reads, runs)


@rule
def _look_ahead(r: int, pattern: PatternTable, conditions: Conditions, reads: ReadTable, runs: MergedRuns) -> None:
    """Set ``reads.open[v]``: whether v may bind further events in run r or in runs that follow from it.

    Set ``reads.live[c]``: how many of these variables decide condition c.
    """
    reads.live[:] = 0
    for v in range(pattern.order.size):
        closed = runs.bound[r, v] >= pattern.maximum[v]
        for k in range(pattern.following_first[v], pattern.following_first[v + 1]):
            closed = closed or runs.bound[r, pattern.following[k]] > 0
        reads.open[v] = not closed
        if not closed:
            for k in range(conditions.table.first[v], conditions.table.first[v + 1]):
                c = conditions.table.listed[k]
                reads.live[c] += 1 if _may_decide(r, c, v, reads, runs) else 0


@rule
def write_signature(r: int, event: int, after: Any, pattern: PatternTable, conditions: Conditions, work: Any) -> None:
    """Write run r's signature: how much it binds, and the values that later conditions read.

    Where ties matter, it also says which variables have a last event that is tied with `event`.
    """
    path, runs, reads = work.path, work.runs, work.reads
    place = 0
    runs.code[r] = np.uint64(14695981039346656037)
    for v in range(pattern.order.size):
        bound, most = runs.bound[r, v], pattern.maximum[v]
        enough = pattern.minimum[v] if most == UNBOUNDED else most
        place = _sign(r, min(bound, enough), place, runs)
        if after.size > 0 and bound > 0:
            moment = first_behind(after, path.event[runs.last[r, v]])
            place = _sign(r, moment if moment > event else 0, place, runs)
    _look_ahead(r, pattern, conditions, reads, runs)
    for c in range(reads.live.size):
        if reads.live[c] > 0:
            for g in range(conditions.table.part_first[c], conditions.table.part_first[c + 1]):
                u = conditions.table.variable[g]
                if u < pattern.order.size and runs.bound[r, u] > 0:
                    place = _sign_part(r, c, g, place, pattern, conditions, work)
    runs.words[r] = place


@rule
def _alike(r: int, q: int, runs: MergedRuns) -> bool:
    """Return whether two runs have one signature."""
    alike = runs.code[r] == runs.code[q] and runs.words[r] == runs.words[q]
    k = 0
    while alike and k < runs.words[r]:
        alike = runs.ints[r, k] == runs.ints[q, k] and runs.floats[r, k] == runs.floats[q, k]
        k += 1
    return bool(alike)


@rule
def _bucket(r: int, runs: MergedRuns) -> int:
    """Return the bucket of run r's signature."""
    return int(runs.code[r] % np.uint64(runs.buckets.size))


@rule
def find_alike(r: int, runs: MergedRuns) -> int:
    """Return the run in a bucket with the signature of run r; −1 if there is none."""
    q = runs.buckets[_bucket(r, runs)]
    while q >= 0 and not _alike(r, q, runs):
        q = runs.chain[q]
    return int(q)


@rule
def enter(r: int, runs: MergedRuns) -> None:
    """Enter run r in the bucket of its signature, where :func:`find_alike` finds it."""
    bucket = _bucket(r, runs)
    runs.chain[r] = runs.buckets[bucket]
    runs.buckets[bucket] = r


@rule
def leave(r: int, runs: MergedRuns) -> None:
    """Remove run r from its bucket."""
    bucket = _bucket(r, runs)
    if runs.buckets[bucket] == r:
        runs.buckets[bucket] = runs.chain[r]
    else:
        q = runs.buckets[bucket]
        while runs.chain[q] != r:
            q = runs.chain[q]
        runs.chain[q] = runs.chain[r]

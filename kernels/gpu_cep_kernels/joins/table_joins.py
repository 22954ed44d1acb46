"""Join tables of partial matches (ZStream's tree plans): find for each row of the left table its partners in the right one.

A table holds combinations of events of some variables, one per row. Order and
window allow a row only partners that begin in a certain range of events. The
right table is in order of first event, so binary search finds them. Where
conditions demand equal values, both tables are divided into buckets by a hash
of these values. Then only the row's bucket is searched.

A candidate is tested for what the range does not imply, then by the conditions
that the join decides. Equality is among them, so hashes may collide.
Negations rule out rows of a table that binds all they need.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.matches.hashing import PartialMatches
from gpu_cep_kernels.phase_one.input_buffers import Streams, between, is_early, is_late, stream_of
from gpu_cep_kernels.rules.interpreter import holds, run_program
from gpu_cep_kernels.rules.negation import is_ruled_out
from gpu_cep_kernels.rules.running import is_null
from gpu_cep_kernels.rules.scalars import compare, mirror_comparison, within
from gpu_cep_kernels.rules.tables import (
    BY_INTS,
    AggregateValues,
    Conditions,
    Criteria,
    EventPath,
    Flags,
    Ints,
    PathState,
    Places,
    Registers,
)
from gpu_cep_kernels.rules.ties import is_before

# How a further test relates two variables: they bind different events, or the first is before, or behind, the second.
APART, BEFORE, BEHIND = range(3)


class Sides(NamedTuple):
    """Say how the left and the right table of a join are related; v is a variable, k a test.

    - left_place[v], right_place[v]: where v stands in the rows of that side; −1 if it does not.
    - preceding: the places of the left that are before all of the right.
    - succeeding: the places of the left that some place of the right is before.
    - one[k], other[k]: further test k relates these places of the left and the right,
    - relation[k]: in this way (APART, BEFORE, BEHIND).
    - conditions: those that the join decides.
    """

    left_place: Ints
    right_place: Ints
    preceding: Ints
    succeeding: Ints
    one: Ints
    other: Ints
    relation: Ints
    conditions: Ints


class Tables(NamedTuple):
    """Hold the two tables of a join, and how they are related."""

    left: PartialMatches
    right: PartialMatches
    sides: Sides


class Buckets(NamedTuple):
    """Say how the two tables are divided into buckets.

    - first[b]: the first row of bucket b in the right table; the last entry is the end.
    - of_left[i]: the bucket of row i of the left table; empty if there is one only.
    """

    first: Ints
    of_left: Ints


class Partners(NamedTuple):
    """Hold the candidates and the partners of a chunk of the left table; i is a row of the chunk.

    - first[i], size[i]: its candidates are so many rows of the right table, from the first on.
    - rows[place[i]:]: its partners, rows of the right table.
    - number[i]: how many partners there are.
    - failed[i]: 0, or 1 plus the condition that failed; the candidate is then ``rows[place[i]]``.
    """

    first: Ints
    size: Ints
    place: Ints
    rows: Places
    number: Ints
    failed: Ints


@rule
def _first_in_reach(low: int, high: int, begin: int, latest: int, firsts: Any, streams: Streams) -> int:
    """Return the first of the rows [low, high) whose first event does not come too early."""
    while low < high:
        middle = (low + high) // 2
        if is_early(firsts[middle], begin, latest, streams):
            low = middle + 1
        else:
            high = middle
    return low


@rule
def _first_out_of_reach(low: int, high: int, end: int, earliest: int, firsts: Any, streams: Streams) -> int:
    """Return the first of the rows [low, high) whose first event comes too late."""
    while low < high:
        middle = (low + high) // 2
        if is_late(firsts[middle], end, earliest, streams):
            high = middle
        else:
            low = middle + 1
    return low


@kernel(writes=("first", "size"))
def find_ranges(
    low: int, high: int, tables: Tables, buckets: Buckets, streams: Streams, base: int, own: int, first: Ints, size: Ints
) -> None:  # fmt: skip
    """Find the candidates of each row of the left table: ``size[i]`` rows of the right one, from row ``first[i]`` on.

    Event e of the batch stands at ``base + e`` in the streams. At least one of the
    two rows begins before event `own`.
    """
    left, right, sides = tables
    for i in range(low, high):
        earliest, latest = left.first[i], left.last[i]
        prec, succ = -1, streams.times.size
        for k in range(sides.preceding.size):
            prec = max(prec, left.events[sides.preceding[k], i])
        for k in range(sides.succeeding.size):
            succ = min(succ, left.events[sides.succeeding[k], i])
        s = stream_of(base + earliest, streams.offsets)
        begin, end = max(streams.offsets[s] - base, 0), min(streams.offsets[s + 1] - base, streams.times.size)
        begin, end = between(prec, succ, begin, end, streams)
        end = min(end, own) if earliest >= own else end
        bucket = buckets.of_left[i] if buckets.of_left.size > 0 else 0
        start, stop = buckets.first[bucket], buckets.first[bucket + 1]
        start = _first_in_reach(start, stop, begin, latest, right.first, streams)
        first[i] = start
        size[i] = _first_out_of_reach(start, stop, end, earliest, right.first, streams) - start


@rule
def _are_related(i: int, r: int, tables: Tables, streams: Streams) -> bool:
    """Return whether two rows of one stream bind different events in the right order within one window."""
    left, right, sides = tables
    true = True
    if right.events.shape[0] > 1:
        # for a single event the range is exact
        first, last = min(left.first[i], right.first[r]), max(left.last[i], right.last[r])
        true = within(streams.clock[first], streams.clock[last], streams.length)
    for k in range(sides.one.size):
        one, other = left.events[sides.one[k], i], right.events[sides.other[k], r]
        if sides.relation[k] == APART:
            true &= one != other
        else:
            before, behind = (one, other) if sides.relation[k] == BEFORE else (other, one)
            true &= is_before(before, behind, streams.strict, streams.times)
    return true


@rule
def _keep_comparing(comparison: int, value: Any, values: Any, nulls: Any, column: int, base: int, events: Any, rows: Any) -> int:
    """Keep those of `rows` for which ``value φ column`` holds and `column` is not NULL; return how many.

    The value is the left row's.
    """
    kept = 0
    for k in range(rows.size):
        r = rows[k]
        row = base + events[r]
        rows[kept] = r
        # no short-circuit: a branch on values would be mispredicted
        kept += compare(comparison, value, values[column, row]) & (not is_null(nulls, column, row))
    return kept


@rule
def _keep_compared(c: int, i: int, tables: Tables, conditions: Conditions, rows: Any, size: int) -> int:
    """Keep those of ``rows[:size]`` that satisfy condition c, a comparison of two variables, with row i; return how many."""
    left, right, sides = tables
    table, bank, base = conditions.table, conditions.bank, conditions.base
    comparison, v, u = table.comparison[c], table.left_variable[c], table.right_variable[c]
    column, other_column = table.left_column[c], table.right_column[c]
    if sides.left_place[v] < 0:
        v, u = u, v
        column, other_column = other_column, column
        comparison = mirror_comparison(comparison)
    row = base + left.events[sides.left_place[v], i]
    events = right.events[sides.right_place[u]]
    if table.means[c] == BY_INTS:
        size = 0 if is_null(bank.int_nulls, column, row) else size
        kept = _keep_comparing(comparison, bank.ints[column, row], bank.ints, bank.int_nulls, other_column, base, events, rows[:size])
    else:
        size = 0 if is_null(bank.float_nulls, column, row) else size
        kept = _keep_comparing(comparison, bank.floats[column, row], bank.floats, bank.float_nulls, other_column, base, events, rows[:size])
    return kept


@rule
def _keep_holding(
    c: int, i: int, tables: Tables, conditions: Conditions, none: Any, registers: Registers, rows: Any, size: int
) -> tuple[int, bool]:
    """Keep those of ``rows[:size]`` that satisfy condition c, a program, with row i.

    Return how many, and whether the program failed. If so, it failed for ``rows[0]``.
    """
    left, right, sides = tables
    table, base = conditions.table, conditions.base
    begin, end = table.code_first[c], table.code_last[c]
    kept, failed, k = 0, False, 0
    while k < size and not failed:
        r = rows[k]
        for g in range(table.part_first[c], table.part_first[c + 1]):
            v = table.variable[g]
            event = left.events[sides.left_place[v], i] if sides.left_place[v] >= 0 else right.events[sides.right_place[v], r]
            registers.rows[table.each[g]] = base + event
        failed = run_program(begin, end, conditions.programs, conditions.bank, registers.rows, none, registers) != 0
        rows[0 if failed else kept] = r
        kept += holds(table.result[c], registers)
        k += 1
    return kept, failed


@kernel(writes=("partners",), scratch=("registers",))
def filter_partners(
    low: int, high: int, slot: int, begin: int, tables: Tables, streams: Streams, conditions: Conditions, registers: Registers,
    partners: Partners,
) -> None:  # fmt: skip
    """Write the partners of each row of a chunk, which begins at row `begin` of the left table.

    `registers` is scratch, with one column per slot.
    """
    table, sides = conditions.table, tables.sides
    # programs read no aggregates; these only have the right types
    none = AggregateValues(registers.ints, registers.ints, registers.floats)
    rows = registers.rows[:, slot]
    own = Registers(rows, rows, registers.ints[:, slot], registers.floats[:, slot], registers.nulls[:, slot])
    for i in range(low, high):
        found = partners.rows[partners.place[i] : partners.place[i] + partners.size[i]]
        size = 0
        for k in range(found.size):
            r = partners.first[i] + k
            found[size] = r
            size += _are_related(begin + i, r, tables, streams)
        fault = 0
        for k in range(sides.conditions.size):
            c = sides.conditions[k]
            if table.left_variable[c] >= 0:
                size = _keep_compared(c, begin + i, tables, conditions, found, size)
            elif fault == 0:
                size, failed = _keep_holding(c, begin + i, tables, conditions, none, own, found, size)
                fault = c + 1 if failed else 0
        partners.number[i] = size
        partners.failed[i] = fault


@kernel(writes=("out",))
def join_rows(
    low: int, high: int, begin: int, left: PartialMatches, right: PartialMatches, partners: Partners, target: Ints, out: PartialMatches
) -> None:
    """Write the rows of the join of a chunk: the events of a left row, then those of its partner.

    The chunk begins at row `begin` of the left table. What comes of its row i goes
    to `out` from row ``target[i]`` on.
    """
    places = left.events.shape[0]
    for i in range(low, high):
        row = begin + i
        for k in range(partners.number[i]):
            r, m = partners.rows[partners.place[i] + k], target[i] + k
            for p in range(places):
                out.events[p, m] = left.events[p, row]
            for p in range(right.events.shape[0]):
                out.events[places + p, m] = right.events[p, r]
            out.first[m] = min(left.first[row], right.first[r])
            out.last[m] = max(left.last[row], right.last[r])


@sequential(writes=("allowed",), scratch=("path",))
def judge_rows(
    begin: int, end: int, table: PartialMatches, variables: Ints, judged: Ints, criteria: Criteria, path: EventPath, allowed: Flags
) -> int:  # fmt: skip
    """``allowed[r]``: whether no negation in `judged` rules out row r, for the rows [begin, end) of a table.

    A row binds an event to each of `variables`. Return the row for which a condition
    failed, or `end`. `path` is scratch, and says afterwards which condition failed.
    """
    places = variables.size
    for p in range(places):
        path.first[variables[p]] = path.last[variables[p]] = p
        # the only event of its variable
        path.earlier[p] = -1
    r = begin
    while r < end and path.state[PathState.ERROR_CONDITION] == 0:
        for p in range(places):
            path.event[p] = table.events[p, r]
        true = True
        for k in range(judged.size):
            if true:
                true = not is_ruled_out(judged[k], table.first[r], table.last[r], places, False, criteria, path)
        allowed[r] = true
        r += path.state[PathState.ERROR_CONDITION] == 0
    for p in range(places):
        path.first[variables[p]] = path.last[variables[p]] = -1
    return int(r)

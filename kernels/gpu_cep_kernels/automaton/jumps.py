"""Jumps over events that conditions rule out: a search for the next event of a variable that does not look at every one of them.

Where a condition compares a column of the next event of variable v with what
is bound already, this is a *bound*, the same for all events that a search
comes to. Events that it rules out are skipped through an index of the batch:

- for ``<``, ``<=``, ``>`` and ``>=`` a zone map: the least or the greatest
  value among v's events in each block of events, in each block of blocks, and
  so on, so that blocks without an event that will do are never looked into;
- for ``=`` the events of v by a hash of the value, in stream order.

What is left is a superset of what can be bound: conditions are evaluated on it
as on any other event.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import rule, subroutine
from gpu_cep_kernels.rules.conditions import first_cursor, is_closed, set_rows
from gpu_cep_kernels.rules.interpreter import run_program
from gpu_cep_kernels.rules.scalars import EQ, compare, mix_hash
from gpu_cep_kernels.rules.tables import Bytes, Conditions, EventPath, EventTable, Flags, Floats, Ints, PatternTable, Places

# Events, or blocks, in a block.
BLOCK_BITS = 5
BLOCK = 1 << BLOCK_BITS

# What is known of a bound: nothing, its value, or that no event satisfies the condition.
UNKNOWN, KNOWN, NEVER = range(3)


class JumpTable(NamedTuple):
    """The conditions by which a search for an event of a variable can jump.

    ``first[v]`` to ``first[v + 1]`` are the jumps of variable v. Jump j is
    about condition ``condition[j]``: the new event's value in
    ``column[j]`` of the bank's int64 or, if ``floating[j]``, float64 columns
    ``comparison[j]`` what the condition's program leaves in ``register[j]``.
    Its index is the one of number ``key[j]`` among those of its kind.
    """

    first: Ints
    condition: Ints
    comparison: Ints
    floating: Flags
    column: Ints
    register: Ints
    key: Ints


class ZoneMaps(NamedTuple):
    """``ints[k]`` and ``floats[k]``: the least or greatest values of zone map k in each block of events, then of blocks, and so on.

    ``level[i]`` is where the blocks of level i begin, with the end of the last level, which is one block.
    """

    ints: Ints
    floats: Floats
    level: Ints


class ValueBuckets(NamedTuple):
    """Events by hash: index k has the buckets ``border[first[k]]`` to ``border[first[k] + mask[k] + 1]`` of `events`."""

    first: Ints
    mask: Ints
    border: Ints
    events: Places


class Bounds(NamedTuple):
    """Hold the value with which each jump compares the next event, as long as the path stays as it is."""

    state: Bytes
    ints: Ints
    floats: Floats


class Jumps(NamedTuple):
    """Hold the jump table and its indexes over a batch; a search jumps once it has rejected `patience` events one by one."""

    table: JumpTable
    zones: ZoneMaps
    buckets: ValueBuckets
    bounds: Bounds
    patience: int


@subroutine
def set_bounds(v: int, event: int, settled: bool, pattern: PatternTable, conditions: Conditions, jumps: Jumps, path: EventPath) -> None:
    """Compute the bounds of v's jumps; no bound depends on `event`, which may be any.

    If `settled`, only those that hold for all later events, too: of bindings to which none can be added.
    """
    table, judged, bounds, registers = jumps.table, conditions.table, jumps.bounds, path.registers
    for j in range(table.first[v], table.first[v + 1]):
        c = table.condition[j]
        decided = is_closed(c, v, pattern, judged, path)
        for g in range(judged.part_first[c], judged.part_first[c + 1]):
            cursor, u = first_cursor(g, v, judged, path), judged.variable[g]
            decided = decided and cursor != -2
            if settled and u != v:
                decided = decided and path.bound[u] >= pattern.maximum[u]
            if decided:
                set_rows(g, v, event, cursor, conditions.base, judged, path)
        bounds.state[j] = UNKNOWN
        if decided:
            begin, end, stand_ins = judged.code_first[c], judged.code_last[c] - 1, conditions.aggregates.missing
            failed = run_program(begin, end, conditions.programs, conditions.bank, stand_ins, path.aggregates, registers)
            register = table.register[j]
            bounds.ints[j], bounds.floats[j] = registers.ints[register], registers.floats[register]
            never = registers.nulls[register] or (table.floating[j] and bounds.floats[j] != bounds.floats[j])
            if failed == 0:
                bounds.state[j] = NEVER if never else KNOWN


@rule
def jump(v: int, begin: int, end: int, events: EventTable, conditions: Conditions, jumps: Jumps) -> int:
    """Return the first event of v from `begin` on that no bound rules out at once, or one that is not before `end`."""
    table, bounds = jumps.table, jumps.bounds
    place = int(events.occurrence[v, begin])
    for j in range(table.first[v], table.first[v + 1]):
        if bounds.state[j] == NEVER:
            place = end
        elif bounds.state[j] == KNOWN and place < end:
            if table.comparison[j] == EQ:
                bits = np.float64(bounds.floats[j]).view(np.int64) if table.floating[j] else bounds.ints[j]
                place = _next_equal(table.key[j], bits, place, end, jumps.buckets)
            elif table.floating[j]:
                values = conditions.bank.floats[table.column[j], conditions.base :]
                place = _next_beyond(
                    table.comparison[j], bounds.floats[j], place, end, values, events.occurrence[v],
                    jumps.zones.floats[table.key[j]], jumps.zones.level,
                )  # fmt: skip
            else:
                numbers = conditions.bank.ints[table.column[j], conditions.base :]
                place = _next_beyond(
                    table.comparison[j], bounds.ints[j], place, end, numbers, events.occurrence[v],
                    jumps.zones.ints[table.key[j]], jumps.zones.level,
                )  # fmt: skip
    return place


@rule
def _next_equal(k: int, bits: Any, begin: int, end: int, buckets: ValueBuckets) -> int:
    """Return the first event from `begin` on in the bucket of a value, or `end`."""
    bucket = buckets.first[k] + int(mix_hash(np.uint64(0), bits) & np.uint64(buckets.mask[k]))
    low, last = buckets.border[bucket], buckets.border[bucket + 1]
    high = last
    while low < high:
        middle = (low + high) // 2
        if buckets.events[middle] < begin:
            low = middle + 1
        else:
            high = middle
    return int(buckets.events[low]) if low < last else end


@subroutine
def _next_beyond(comparison: int, bound: Any, begin: int, end: int, values: Any, occurrence: Any, extremes: Any, level: Any) -> int:
    """Return v's first event from `begin` on with ``value φ bound``, by v's row of `occurrence`; `end` or a later one if there is none."""
    event, found = begin, False
    while event < end and not found:
        block = event >> BLOCK_BITS
        behind = min(end, (block + 1) << BLOCK_BITS)
        event = occurrence[event]
        while event < behind and not found:
            found = compare(comparison, values[event], bound)
            event = event if found else occurrence[event + 1]
        if not found:
            event = _next_block(comparison, bound, block + 1, end, extremes, level) << BLOCK_BITS
    return event


@rule
def _next_block(comparison: int, bound: Any, begin: int, end: int, extremes: Any, level: Any) -> int:
    """Return the first block of events from block `begin` on whose extreme value φ bound, or one that is not before event `end`.

    It climbs where it comes to the beginning of a larger block, and descends from one that will do.
    """
    node, height = begin, 0
    height_bits = BLOCK_BITS
    climbing = (node << height_bits) < end
    while climbing:
        while (node & (BLOCK - 1)) == 0 and height + 2 < level.size:
            node, height = node >> BLOCK_BITS, height + 1
            height_bits += BLOCK_BITS
        if compare(comparison, extremes[level[height] + node], bound):
            climbing = False
        else:
            node += 1
            climbing = (node << height_bits) < end
    while height > 0:
        node, height = node << BLOCK_BITS, height - 1
        height_bits -= BLOCK_BITS
        while (node << height_bits) < end and not compare(comparison, extremes[level[height] + node], bound):
            node += 1
    return node

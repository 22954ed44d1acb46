"""Jump over events that conditions rule out, so that a search need not look at each event.

Some conditions compare a column of v's next event with what is bound already.
The value they compare with is a *bound*, the same for all events of a search.
Events that it rules out are skipped through an index of the batch:

- For ``<``, ``<=``, ``>`` and ``>=`` it is a zone map. That is the least or
  the greatest value among v's events in each block of events. Further levels
  hold those of blocks of blocks. Blocks without a fitting event are never read.
- For ``=`` it is v's events by a hash of the value, in stream order.

A jump may stop at an event that cannot be bound. So conditions are evaluated
there as on any other event.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.compile.operations import exact_product
from gpu_cep_kernels.rules.conditions import first_cursor, is_closed, set_rows
from gpu_cep_kernels.rules.interpreter import run_program
from gpu_cep_kernels.rules.scalars import EQ, LE, LT, add_ints, compare, mix_hash, subtract_ints
from gpu_cep_kernels.rules.tables import Bytes, Conditions, EventPath, EventTable, Flags, Floats, Ints, PatternTable, Places

# A block has BLOCK events, or BLOCK blocks of the level below.
BLOCK_BITS = 5
BLOCK = 1 << BLOCK_BITS

# What is known of a bound: nothing, its value, or that no event satisfies the condition. Of one that is UNUSABLE nothing ever is.
UNKNOWN, KNOWN, NEVER, UNUSABLE = range(4)

# How far a bound that is a sum of floats is moved, in shares of what is added: further than sums and differences are rounded.
_MARGIN = 2.0**-50


class JumpTable(NamedTuple):
    """List the conditions by which a search for an event of a variable can jump, variable by variable.

    - first[v]: the first jump of variable v; the last entry is the end.
    - condition[j]: the condition of jump j.
    - comparison[j]: how it compares the new event's value with the bound.
    - floating[j]: whether the value is float64, not int64.
    - column[j]: the value's column in the bank's matrix of that type.
    - register[j]: the register in which the condition's program leaves the bound.
    - added[j], sign[j]: the register whose value is added to that, or subtracted from it (1, -1); -1 if none is.
    - beside[j]: the int64 column of what the condition's program adds to the new event's value, or subtracts; -1 if there is none.
    - key[j]: the number of its index among the indexes of that kind and type.
    """

    first: Ints
    condition: Ints
    comparison: Ints
    floating: Flags
    column: Ints
    register: Ints
    added: Ints
    sign: Ints
    beside: Ints
    key: Ints


class ZoneMaps(NamedTuple):
    """Hold the zone maps of a batch: extreme values of blocks of events, then of blocks of blocks, and so on.

    - ints[k], floats[k]: the least or greatest values of zone map k, level after level.
    - level[i]: where level i begins in each; the last entry is the end. The last level is one block.
    """

    ints: Ints
    floats: Floats
    level: Ints


class ValueBuckets(NamedTuple):
    """Hold the events of each index of equal values, bucket by bucket; a bucket is a hash of the value.

    - first[k]: where the buckets of index k begin in `border`.
    - mask[k]: the number of its buckets, less one.
    - border: where each bucket begins in `events`, and where the last one of an index ends.
    - events: the events, in stream order within a bucket.
    """

    first: Ints
    mask: Ints
    border: Ints
    events: Places


class Bounds(NamedTuple):
    """Hold the value with which each jump compares the next event; it holds until the path changes.

    - state[j]: what is known of jump j's bound (UNKNOWN, KNOWN, NEVER, UNUSABLE).
    - ints[j], floats[j]: the bound, in the array of its type.
    """

    state: Bytes
    ints: Ints
    floats: Floats


class Jumps(NamedTuple):
    """Hold the jump table and its indexes over a batch.

    - bounds: the current bounds.
    - patience: a search jumps once it has rejected so many events one by one.
    """

    table: JumpTable
    zones: ZoneMaps
    buckets: ValueBuckets
    bounds: Bounds
    patience: int


@rule
def _read_bound(j: int, jumps: Jumps, path: EventPath) -> int:
    """Write the bound of jump j, which the registers hold; return what is known of it.

    Where ``new - other < limit`` becomes ``new < limit + other`` for floats, the bound is moved so that rounding loses no event.
    """
    table, bounds, registers = jumps.table, jumps.bounds, path.registers
    register, added, floating = table.register[j], table.added[j], table.floating[j]
    number, value = registers.ints[register], registers.floats[register]
    never = registers.nulls[register] or (floating and value != value)
    state = KNOWN
    if added >= 0:
        other = registers.floats[added]
        never = never or registers.nulls[added] or (floating and other != other)
        if floating:
            moved = exact_product(_MARGIN, abs(value) + abs(other))
            value += other if table.sign[j] > 0 else -other
            value += moved if table.comparison[j] in (LT, LE) else -moved
            state = KNOWN if abs(value) < np.inf else UNKNOWN
        elif table.sign[j] > 0:
            number, overflowed = add_ints(number, registers.ints[added])
            state = UNKNOWN if overflowed else KNOWN
        else:
            number, overflowed = subtract_ints(number, registers.ints[added])
            state = UNKNOWN if overflowed else KNOWN
    bounds.ints[j], bounds.floats[j] = number, value
    return NEVER if never else state


@rule
def set_bounds(v: int, event: int, settled: bool, pattern: PatternTable, conditions: Conditions, jumps: Jumps, path: EventPath) -> None:
    """Compute the bounds of v's jumps; `event` may be any one, since no bound depends on it.

    If `settled`, set only bounds that stay as they are: of bindings that cannot grow.
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
        decided = decided and bounds.state[j] != UNUSABLE
        if bounds.state[j] != UNUSABLE:
            bounds.state[j] = UNKNOWN
        if decided:
            begin, end, stand_ins = judged.code_first[c], judged.code_last[c] - 1, conditions.aggregates.missing
            failed = run_program(begin, end, conditions.programs, conditions.bank, stand_ins, path.aggregates, registers)
            if failed == 0:
                bounds.state[j] = _read_bound(j, jumps, path)


@rule
def jump(v: int, begin: int, end: int, events: EventTable, conditions: Conditions, jumps: Jumps) -> int:
    """Return v's first event from `begin` on that no index of a bound rules out.

    If there is none before `end`, return one that is not before it.
    """
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
def is_within_bounds(v: int, event: int, conditions: Conditions, jumps: Jumps) -> bool:
    """Return whether no bound of v's jumps rules out `event`; bounds that are unknown rule nothing out."""
    table, bounds, row = jumps.table, jumps.bounds, conditions.base + event
    possible = True
    for j in range(table.first[v], table.first[v + 1]):
        if bounds.state[j] == NEVER:
            possible = False
        elif bounds.state[j] == KNOWN and possible:
            if table.floating[j]:
                possible = compare(table.comparison[j], conditions.bank.floats[table.column[j], row], bounds.floats[j])
            else:
                possible = compare(table.comparison[j], conditions.bank.ints[table.column[j], row], bounds.ints[j])
    return possible


@rule
def _next_equal(k: int, bits: Any, begin: int, end: int, buckets: ValueBuckets) -> int:
    """Return the first event from `begin` on in the bucket of a value, given by its bits, or `end`."""
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


@rule
def _next_beyond(comparison: int, bound: Any, begin: int, end: int, values: Any, occurrence: Any, extremes: Any, level: Any) -> int:
    """Return v's first event from `begin` on with ``value φ bound``; `end` or a later one if there is none.

    `occurrence` is v's row: its first event from each event on.
    """
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
    """Return the first block from block `begin` on whose extreme value φ bound.

    If there is none before event `end`, return one that begins no earlier than
    that. The walk climbs at the beginning of a larger block, and descends into a
    block that fits.
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

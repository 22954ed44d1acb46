"""Judge the events that a walk over a chain may bind: by typed comparisons where that will do, else by programs.

Which conditions an event decides depends on the variable that binds it, and on
whether it is that variable's first one. These are the *groups* of judgements.

A *slot* holds a row of the bank: slot 2 v that of variable v's first event, slot
2 v + 1 that of its last one. The last slot holds that of the current event, which
is about to be bound. If it is to be v's first one, v's slots hold it, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import apart_rule, inline_rule, rule
from gpu_cep_kernels.rules.conditions import comparison_holds, program_holds
from gpu_cep_kernels.rules.running import is_null, mean_of
from gpu_cep_kernels.rules.scalars import compare
from gpu_cep_kernels.rules.tables import (
    BY_FLOATS,
    BY_INTS,
    BY_PROGRAM,
    ColumnBank,
    Flags,
    Ints,
    Places,
    Words,
)
from gpu_cep_kernels.rules.walked import JudgedConditions, JudgingPath, WalkedEvents

# So many events stand side by side in a block, whose values are compared at once. It pays where a variable has at least DENSE of the
# NEAR ones.
BLOCK, NEAR, DENSE = 32, 4, 2


class Sieve(NamedTuple):
    """Hold for each group g of judgements a comparison with an event that is bound before; it needs no search for what it reads.

    - means[g]: what is compared, two int64 or two float64 columns (BY_INTS, BY_FLOATS); BY_PROGRAM if there is no comparison.
    - comparison[g], column[g]: how, and which column of the event is compared.
    - bound_column[g], bound_slot[g]: with which column of an event that is bound already, and the slot of that one.
    - alone[g]: whether the group has no other judgement.
    """

    means: Ints
    comparison: Ints
    column: Ints
    bound_column: Ints
    bound_slot: Ints
    alone: Flags


class Mean(NamedTuple):
    """Hold for each judgement j that compares a running mean with a column of float64 what its program says.

    - total[j]: the aggregate that sums and counts the floats of the mean; −1 if the judgement compares no mean.
    - variable[j]: the variable of that aggregate.
    - comparison[j]: how the mean is compared with the column,
    - column[j], slot[j]: and with which column of the event in which slot.
    """

    total: Ints
    variable: Ints
    comparison: Ints
    column: Ints
    slot: Ints


class Chain(NamedTuple):
    """List what is judged when a variable of a chain binds an event; j is a judgement.

    - first: where the judgements of each group begin, and where the last one's end. Group 2 v has
      those of variable v's first event, group 2 v + 1 those of its further events.
    - condition[j]: the condition that is judged.
    - left[j], right[j]: the slots that a comparison of two columns reads.
    - mean: which judgements compare a running mean, and with what.
    - slot, slot_first: for each judgement the slot of each role of its program.
    - sieve: the judgements that are made first, and at once.
    """

    first: Ints
    condition: Ints
    left: Ints
    right: Ints
    mean: Mean
    slot_first: Ints
    slot: Ints
    sieve: Sieve


@rule
def _judgement_holds(j: int, conditions: JudgedConditions, chain: Chain, slots: Ints, path: JudgingPath) -> bool:
    """Return whether the program of judgement j's condition says TRUE; the aggregates of variable v stand at place v."""
    registers = path.registers
    begin = chain.slot_first[j]
    for role in range(chain.slot_first[j + 1] - begin):
        slot = chain.slot[begin + role]
        registers.rows[role] = slots[slot]
        registers.places[role] = slot >> 1
    return program_holds(chain.condition[j], conditions, path)


@rule
def _mean_compares(j: int, conditions: JudgedConditions, mean: Mean, slots: Ints, path: JudgingPath) -> bool:
    """Return whether the mean that judgement j compares with a column says TRUE; the aggregates of variable v stand at place v."""
    bank, column, row = conditions.bank, mean.column[j], slots[mean.slot[j]]
    value, null = mean_of(mean.total[j], mean.variable[j], path.aggregates)
    return compare(mean.comparison[j], value, bank.floats[column, row]) and not null and not is_null(bank.float_nulls, column, row)


@rule
def all_hold(group: int, conditions: JudgedConditions, chain: Chain, slots: Ints, path: JudgingPath | None) -> bool:
    """Return whether all judgements of a group say TRUE; where all are comparisons of columns, there is no path."""
    true, j, end = True, chain.first[group], chain.first[group + 1]
    while true and j < end:
        c = chain.condition[j]
        if path is not None and chain.mean.total[j] >= 0:
            true = _mean_compares(j, conditions, chain.mean, slots, path)
        elif path is not None and conditions.table.means[c] == BY_PROGRAM:
            true = _judgement_holds(j, conditions, chain, slots, path)
        else:
            true = comparison_holds(c, slots[chain.left[j]], slots[chain.right[j]], conditions.table, conditions.bank)
        j += 1
    return true


@rule
def is_sifted_out(group: int, row: int, bank: ColumnBank, sieve: Sieve, slots: Ints) -> bool:
    """Return whether the sieve of a group rules out the event in `row` of the bank; with NULL it does."""
    column, bound_column, bound = sieve.column[group], sieve.bound_column[group], slots[sieve.bound_slot[group]]
    true, null = True, False
    if sieve.means[group] == BY_FLOATS:
        true = compare(sieve.comparison[group], bank.floats[column, row], bank.floats[bound_column, bound])
        null = is_null(bank.float_nulls, column, row) or is_null(bank.float_nulls, bound_column, bound)
    elif sieve.means[group] == BY_INTS:
        true = compare(sieve.comparison[group], bank.ints[column, row], bank.ints[bound_column, bound])
        null = is_null(bank.int_nulls, column, row) or is_null(bank.int_nulls, bound_column, bound)
    return null or not true


@rule
def _any_compares(comparison: int, values: Any, bound: Any) -> bool:
    """Return whether any of some values that stand side by side compares with the bound."""
    true = False
    for k in range(values.size):
        true |= compare(comparison, values[k], bound)
    return true


@rule
def _skip_blocks(comparison: int, bound: Any, event: int, until: int, base: int, values: Any, occurrence: Places) -> tuple[int, int]:
    """Return the variable's first event from `event` on in whose block any value compares, and how many blocks are skipped."""
    skipped = 0
    while event < until and not _any_compares(comparison, values[base + event : base + min(event + BLOCK, until)], bound):
        event = int(occurrence[min(event + BLOCK, until)])
        skipped += 1
    return event, skipped


@inline_rule
def _next_nearby(
    comparison: int, column: int, bound: Any, event: int, until: int, base: int, values: Any, nulls: Words, occurrence: Places
) -> tuple[int, int]:  # fmt: skip
    """Return the first event from `event` on whose value compares with the bound, and how many do not before it.

    If there is none before `until`, return one that is not before it. `occurrence` is the variable's row, `values` the column's.
    """
    passed = 0
    while event < until and (not compare(comparison, values[base + event], bound) or is_null(nulls, column, base + event)):
        event = int(occurrence[event + 1])
        passed += 1
    return event, passed


@apart_rule
def _next_far(
    comparison: int, column: int, bound: Any, event: int, until: int, base: int, values: Any, nulls: Words, occurrence: Places
) -> tuple[int, int]:  # fmt: skip
    """Return what :func:`_next_nearby` does, of many events, and how many looks it took before.

    Where many of them are the variable's, a look is at a block. Its values are compared side by side, whosever they are.
    """
    looks, passed, border = 0, 0, event
    while border <= event < until:
        if passed >= DENSE:
            event, skipped = _skip_blocks(comparison, bound, event, until, base, values, occurrence)
            looks += skipped
        border = min(event + (BLOCK if passed >= DENSE else NEAR), until)
        event, passed = _next_nearby(comparison, column, bound, event, border, base, values, nulls, occurrence)
        looks += passed
    return event, looks


@rule
def _next_fitting(
    comparison: int, column: int, bound: Any, event: int, until: int, base: int, values: Any, nulls: Words, occurrence: Places
) -> tuple[int, int]:  # fmt: skip
    """Return what :func:`_next_nearby` does, and how many looks it took before."""
    if until - event > BLOCK:
        event, looks = _next_far(comparison, column, bound, event, until, base, values, nulls, occurrence)
    else:
        event, looks = _next_nearby(comparison, column, bound, event, until, base, values, nulls, occurrence)
    return event, looks


@rule
def next_sifted(
    v: int, begin: int, until: int, events: WalkedEvents, conditions: JudgedConditions, sieve: Sieve, slots: Ints
) -> tuple[int, int]:  # fmt: skip
    """Return v's next event from `begin` on that the sieve of its first one does not rule out, and how many looks it took before.

    If there is none before `until`, return one that is not before it. With NULL nothing fits, and no event is looked at.
    """
    occurrence, bank, base = events.occurrence[v], conditions.bank, conditions.base
    group = 2 * v
    comparison, column, bound_column = sieve.comparison[group], sieve.column[group], sieve.bound_column[group]
    event, looks, null = int(occurrence[begin]), 0, False
    if sieve.means[group] == BY_FLOATS:
        row = slots[sieve.bound_slot[group]]
        null = is_null(bank.float_nulls, bound_column, row)
        bound, values = bank.floats[bound_column, row], bank.floats[column]
        stop = begin if null else until
        event, looks = _next_fitting(comparison, column, bound, event, stop, base, values, bank.float_nulls, occurrence)
    elif sieve.means[group] == BY_INTS:
        row = slots[sieve.bound_slot[group]]
        null = is_null(bank.int_nulls, bound_column, row)
        number, numbers = bank.ints[bound_column, row], bank.ints[column]
        stop = begin if null else until
        event, looks = _next_fitting(comparison, column, number, event, stop, base, numbers, bank.int_nulls, occurrence)
    return int(occurrence[max(begin, until)]) if null else event, looks

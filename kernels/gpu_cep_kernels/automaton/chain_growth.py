"""Let a variable of a chain bind further events, one after the other.

It binds each next event that its judgements let it bind. There are three ways, by what is judged: nothing,
one comparison with an event that is bound already, or more. The first two are loops of their own.
"""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.automaton.chain_judgements import Chain, all_hold, is_sifted_out
from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.running import accumulate, accumulate_run, is_null
from gpu_cep_kernels.rules.scalars import compare
from gpu_cep_kernels.rules.tables import BY_FLOATS, BY_PROGRAM, Ints, Places, Words
from gpu_cep_kernels.rules.walked import JudgedConditions, JudgingPath, WalkedEvents


@rule
def fits(group: int, conditions: JudgedConditions, chain: Chain, slots: Ints, path: JudgingPath | None) -> bool:
    """Return whether all judgements of a group say TRUE of the current event, the sieve's first."""
    fitting = not is_sifted_out(group, slots[slots.size - 1], conditions.bank, chain.sieve, slots)
    return fitting and (chain.sieve.alone[group] or all_hold(group, conditions, chain, slots, path))


@rule
def _grow_freely(
    own: int, stop: int, room: int, last: int, place: int, counting: bool, occurrence: Places, bound_events: Any
) -> tuple[int, int, int, int]:  # fmt: skip
    """Bind each event from `own` on; arguments and results are those of :func:`grow`."""
    grown = 0
    while own < stop and grown < room:
        if not counting:
            bound_events[place + grown] = own
        last = own
        grown += 1
        own = int(occurrence[own + 1])
    return own, last, grown, grown


@rule
def _grow_compared(
    comparison: int, column: int, bound_column: int, bound: int, moves: bool, own: int, stop: int, room: int, last: int, place: int,
    counting: bool, base: int, values: Any, nulls: Words, occurrence: Places, bound_events: Any,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Bind each event from `own` on whose value compares with that in row `bound`; else as :func:`grow`.

    If the bound `moves`, it is that of the last event that is bound.
    """
    grown, looks = 0, 0
    while own < stop and grown < room:
        row = base + own
        true = compare(comparison, values[column, row], values[bound_column, bound])
        if true and not is_null(nulls, column, row) and not is_null(nulls, bound_column, bound):
            if not counting:
                bound_events[place + grown] = own
            last = own
            bound = row if moves else bound
            grown += 1
        looks += 1
        own = int(occurrence[own + 1])
    return own, last, grown, looks


@rule
def _grow_judged(
    v: int, own: int, stop: int, room: int, last: int, place: int, counting: bool, events: WalkedEvents, conditions: JudgedConditions,
    chain: Chain, slots: Ints, path: JudgingPath | None, bound_events: Any,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Bind each event from `own` on of which all judgements say TRUE; arguments and results are those of :func:`grow`."""
    kept, grown, looks = conditions.aggregates.first, 0, 0
    while own < stop and grown < room:
        row = conditions.base + own
        slots[slots.size - 1] = row
        if fits(2 * v + 1, conditions, chain, slots, path):
            slots[2 * v + 1] = row
            if path is not None and kept[v + 1] > kept[v]:
                accumulate(v, v, v, row, conditions.aggregates, conditions.bank, path.aggregates)
            if not counting:
                bound_events[place + grown] = own
            last = own
            grown += 1
        looks += 1
        own = int(events.occurrence[v, own + 1])
    return own, last, grown, looks


@rule
def grow(
    v: int, own: int, stop: int, room: int, last: int, place: int, counting: bool, events: WalkedEvents, conditions: JudgedConditions,
    chain: Chain, slots: Ints, path: JudgingPath | None, bound_events: Any,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Let variable v, whose last event is `last`, bind further ones from `own` on: `room` at most, and none from `stop` on.

    They are written from `place` on, unless matches are only counted; the slots get v's last event. Return v's next event, the
    last one that it binds, how many more it binds, and how many were looked at.
    """
    group, sieve, bank, occurrence = 2 * v + 1, chain.sieve, conditions.bank, events.occurrence[v]
    alone, means, base = sieve.alone[group], sieve.means[group], conditions.base
    aggregated = path is not None and conditions.aggregates.first[v + 1] > conditions.aggregates.first[v]
    if alone and means == BY_PROGRAM:
        # the sieve has no comparison, and nothing is judged behind it
        begin = own
        own, last, grown, looks = _grow_freely(own, stop, room, last, place, counting, occurrence, bound_events)
        if path is not None and aggregated:
            accumulate_run(v, v, begin, grown, base, occurrence, conditions.aggregates, bank, path.aggregates)
    elif alone and not aggregated:
        slot, comparison, column, bound_column = (
            sieve.bound_slot[group],
            sieve.comparison[group],
            sieve.column[group],
            sieve.bound_column[group],
        )
        bound, moves = slots[slot], slot == group
        if means == BY_FLOATS:
            own, last, grown, looks = _grow_compared(
                comparison, column, bound_column, bound, moves, own, stop, room, last, place, counting, base, bank.floats,
                bank.float_nulls, occurrence, bound_events,
            )  # fmt: skip
        else:
            own, last, grown, looks = _grow_compared(
                comparison, column, bound_column, bound, moves, own, stop, room, last, place, counting, base, bank.ints,
                bank.int_nulls, occurrence, bound_events,
            )  # fmt: skip
    else:
        own, last, grown, looks = _grow_judged(
            v, own, stop, room, last, place, counting, events, conditions, chain, slots, path, bound_events
        )
    slots[group] = base + last
    return own, last, grown, looks

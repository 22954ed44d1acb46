"""Let a variable of a chain bind further events, one after the other, where nothing is judged or one comparison.

It binds each next event that may be bound. The comparison is with an event that is bound already.
"""

from __future__ import annotations

from typing import Any

from gpu_cep_kernels.automaton.chain_judgements import Sieve
from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.running import accumulate_run, is_null
from gpu_cep_kernels.rules.scalars import compare
from gpu_cep_kernels.rules.tables import BY_FLOATS, BY_PROGRAM, Ints, Places, Words
from gpu_cep_kernels.rules.walked import JudgedConditions, JudgingPath, WalkedEvents


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
def grows_unjudged(v: int, conditions: JudgedConditions, sieve: Sieve, path: JudgingPath | None) -> bool:
    """Return whether :func:`grow` does for variable v: nothing is judged, or one comparison while no aggregate is kept."""
    group = 2 * v + 1
    aggregated = path is not None and conditions.aggregates.first[v + 1] > conditions.aggregates.first[v]
    return sieve.alone[group] and (sieve.means[group] == BY_PROGRAM or not aggregated)


@rule
def grow(
    v: int, own: int, stop: int, room: int, last: int, place: int, counting: bool, events: WalkedEvents, conditions: JudgedConditions,
    sieve: Sieve, slots: Ints, path: JudgingPath | None, bound_events: Any,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Let variable v, whose last event is `last`, bind further ones from `own` on: `room` at most, and none from `stop` on.

    They are written from `place` on, unless matches are only counted; the slots get v's last event. Return v's next event, the
    last one that it binds, how many more it binds, and how many were looked at.
    """
    group, bank, occurrence = 2 * v + 1, conditions.bank, events.occurrence[v]
    means, base = sieve.means[group], conditions.base
    if means == BY_PROGRAM:
        # the sieve has no comparison, and nothing is judged behind it
        begin = own
        own, last, grown, looks = _grow_freely(own, stop, room, last, place, counting, occurrence, bound_events)
        if path is not None and conditions.aggregates.first[v + 1] > conditions.aggregates.first[v]:
            accumulate_run(v, v, begin, grown, base, occurrence, conditions.aggregates, bank, path.aggregates)
    else:
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
    slots[group] = base + last
    return own, last, grown, looks

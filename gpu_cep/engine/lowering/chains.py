"""Write the judgements of a chain: a branch whose variables follow one another, each of which binds an event at least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpu_cep.engine.lowering.lists import offsets
from gpu_cep_kernels.automaton.chain_runs import Chain, Sieve
from gpu_cep_kernels.automaton.single_runs import CURRENT, FIRST_ONLY, FURTHER_ONLY, Judgements
from gpu_cep_kernels.rules.scalars import EQ, GE, GT, LE, LT, NE
from gpu_cep_kernels.rules.tables import BY_PROGRAM, ConditionTable, PatternTable

_MIRRORED = {EQ: EQ, NE: NE, LT: GT, LE: GE, GT: LT, GE: LE}
_NO_SIEVE = (BY_PROGRAM, 0, 0, 0, 0)


def chain_of(pattern: PatternTable, judgements: Judgements, conditions: ConditionTable) -> Chain | None:
    """Return the judgements of a branch without negations, by group; None if it is no chain, or its end decides a condition."""
    variables = len(pattern.order)
    in_one_order = np.array_equal(pattern.precedes, np.triu(np.ones((variables, variables), np.bool_), 1))
    if not in_one_order or (pattern.minimum < 1).any() or len(conditions.final):
        return None
    groups = [_decided(v, judgements, other) for v in range(variables) for other in (FURTHER_ONLY, FIRST_ONLY)]
    every = [j for group in groups for j in group]
    roles = [judgements.slot[judgements.slot_first[j] : judgements.slot_first[j + 1]].tolist() for j in every]
    return Chain(
        first=offsets([len(group) for group in groups]),
        condition=judgements.condition[every],
        left=_slots(judgements.left[every].tolist(), variables),
        right=_slots(judgements.right[every].tolist(), variables),
        slot_first=offsets([len(slots) for slots in roles]),
        slot=_slots([slot for slots in roles for slot in slots], variables),
        sieve=Sieve(*np.array([_sieve(v, groups[2 * v], judgements, conditions) for v in range(variables)], np.int64).T.copy()),
    )


def _decided(v: int, judgements: Judgements, other: int) -> list[int]:
    """Return the judgements that are made where v binds an event, but for those of the `other` events of v.

    The variables before v are bound then, those behind it are not. So v itself may bind more events.
    """
    own = range(judgements.first[v], judgements.first[v + 1])
    return [j for j in own if judgements.when[j] != other and judgements.waits[j] == 0 and judgements.needed[j] < 1 << v]


def _slots(slots: Sequence[int], variables: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the slots of a walk over a chain for those of judgements."""
    places = [2 * (slot % variables) + slot // variables if slot != CURRENT else 2 * variables for slot in slots]
    return np.array(places, np.int64)


def _sieve(v: int, group: Sequence[int], judgements: Judgements, conditions: ConditionTable) -> tuple[int, ...]:
    """Return a row of the sieve: the first comparison of v's first event with an event of a variable before v."""
    variables = len(judgements.before)
    current = 2 * variables
    for j in group:
        c = judgements.condition[j]
        left, right = _slots([judgements.left[j], judgements.right[j]], variables).tolist()
        comparison, columns = int(conditions.comparison[c]), (int(conditions.left_column[c]), int(conditions.right_column[c]))
        if conditions.means[c] != BY_PROGRAM and left == current and right < 2 * v:
            return int(conditions.means[c]), comparison, *columns, right
        if conditions.means[c] != BY_PROGRAM and right == current and left < 2 * v:
            return int(conditions.means[c]), _MIRRORED[comparison], *columns[::-1], left
    return _NO_SIEVE

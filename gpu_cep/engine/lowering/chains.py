"""Write the judgements of a chain: a branch whose variables follow one another.

Each variable binds an event at least. A chain with negations has judgements of the events that they rule out, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpu_cep.analysis.operators import MIRRORED
from gpu_cep.engine.lowering.judgements import NegationJudgement
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.plan.programs import Instruction
from gpu_cep_kernels.automaton.chain_judgements import Chain, Mean, Sieve
from gpu_cep_kernels.automaton.single_runs import CURRENT, FIRST_ONLY, FURTHER_ONLY, Judgements
from gpu_cep_kernels.rules.scalars import COMPARISONS
from gpu_cep_kernels.rules.tables import BY_PROGRAM, ConditionTable, Ints, PatternTable

Code = Sequence[Instruction]

_MIRRORED = {COMPARISONS[name]: COMPARISONS[mirrored] for name, mirrored in MIRRORED.items()}
# A mean as planned, and what it is compared with.
_QUOTIENT, _COLUMN = ("load_aggregate_float", "load_count", "float_of_int", "div_float"), "load_float"
_NO_MEAN = (-1, 0, 0, 0, 0)
_NO_COMPARISON = (BY_PROGRAM, 0, 0, 0, 0)


def chain_of(
    pattern: PatternTable, judgements: Judgements, conditions: ConditionTable, codes: Sequence[Code]
) -> Chain | None:  # fmt: skip
    """Return the judgements of a branch's positive variables, by group.

    None if they are no chain, or if the end of a match decides a condition.
    `codes` are the instructions of each condition.
    """
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
        mean=_means([codes[judgements.condition[j]] for j in every], roles, variables),
        slot_first=offsets([len(slots) for slots in roles]),
        slot=_slots([slot for slots in roles for slot in slots], variables),
        sieve=_sieve(groups, judgements, conditions),
    )


def with_negations(
    chain: Chain, judged: Sequence[Sequence[NegationJudgement]], conditions: ConditionTable, codes: Sequence[Code]
) -> Chain:  # fmt: skip
    """Return the judgements of a chain with those of its negations in groups behind; its sieve has none of them."""
    every, variables = [each for own in judged for each in own], len(chain.first) // 2
    roles = [each.slots for each in every]
    left, right = (
        [(*each.slots, CURRENT)[role[each.condition]] for each in every] for role in (conditions.left_role, conditions.right_role)
    )
    return Chain(
        first=_lists_behind(chain.first, [len(own) for own in judged]),
        condition=np.append(chain.condition, [each.condition for each in every]).astype(np.int64),
        left=np.append(chain.left, _slots(left, variables)),
        right=np.append(chain.right, _slots(right, variables)),
        mean=Mean(*map(np.append, chain.mean, _means([codes[each.condition] for each in every], roles, variables))),
        slot_first=_lists_behind(chain.slot_first, [len(slots) for slots in roles]),
        slot=np.append(chain.slot, _slots([slot for slots in roles for slot in slots], variables)),
        sieve=chain.sieve,
    )


def _lists_behind(begins: Ints, sizes: Sequence[int]) -> Ints:
    """Return the begins of lists, with the end of the last one, once lists of these sizes are appended."""
    return np.append(begins, begins[-1] + offsets(sizes)[1:])


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


def _means(codes: Sequence[Code], roles: Sequence[Sequence[int]], variables: int) -> Mean:
    """Return which judgements compare a mean; `roles` are the slots of each judgement's roles."""
    rows = [_compared_mean(code, slots, variables) for code, slots in zip(codes, roles, strict=True)]
    return Mean(*np.array(rows, np.int64).reshape(-1, len(_NO_MEAN)).T.copy())


def _compared_mean(code: Code, slots: Sequence[int], variables: int) -> tuple[int, ...]:
    """Return a row of the means: of a program that compares a sum over its count with a column, on either side."""
    names = tuple(name for name, *_ in code)
    mirrored = names[:-1] == (_COLUMN, *_QUOTIENT)
    if names[:-1] not in ((*_QUOTIENT, _COLUMN), (_COLUMN, *_QUOTIENT)):
        return _NO_MEAN
    comparison, _, suffix = names[-1].partition("_")
    quotient, load = (code[1:-1], code[0]) if mirrored else (code[:-2], code[-2])
    (_, total, sums, last), (_, count, counts, end), (_, cast, counted, _), (_, mean, over, under) = quotient
    linked = (over, under, counted, counts, end) == (total, cast, count, sums, last)
    sides = (load[1], mean) if mirrored else (mean, load[1])
    if suffix != "float" or comparison not in COMPARISONS or not linked or code[-1][2:] != sides:
        return _NO_MEAN
    compared = COMPARISONS[comparison]
    variable, slot = slots[last] % variables, _slots([slots[load[3]]], variables).item()
    return sums, variable, _MIRRORED[compared] if mirrored else compared, load[2], slot


def _sieve(groups: Sequence[Sequence[int]], judgements: Judgements, conditions: ConditionTable) -> Sieve:
    """Return the first comparison of each group with an event that is bound before, and whether the group has no other judgement."""
    rows = [_comparison(group, own, judgements, conditions) for group, own in enumerate(groups)]
    alone = [len(own) == (row != _NO_COMPARISON) for own, row in zip(groups, rows, strict=True)]
    means, comparison, column, bound_column, bound_slot = np.array(rows, np.int64).T.copy()
    return Sieve(means, comparison, column, bound_column, bound_slot, np.array(alone, np.bool_))


def _comparison(group: int, own: Sequence[int], judgements: Judgements, conditions: ConditionTable) -> tuple[int, ...]:
    """Return the columns of a sieve for a group: the first comparison of the event that is to be bound with one bound before."""
    variables = len(judgements.before)
    current = 2 * variables
    # v's slots hold the event that is to be its first one, and then events that are bound
    bound = 2 * (group // 2 + group % 2)
    for j in own:
        c = judgements.condition[j]
        left, right = _slots([judgements.left[j], judgements.right[j]], variables).tolist()
        comparison, columns = int(conditions.comparison[c]), (int(conditions.left_column[c]), int(conditions.right_column[c]))
        if conditions.means[c] != BY_PROGRAM and left == current and right < bound:
            return int(conditions.means[c]), comparison, *columns, right
        if conditions.means[c] != BY_PROGRAM and right == current and left < bound:
            return int(conditions.means[c]), _MIRRORED[comparison], *columns[::-1], left
    return _NO_COMPARISON

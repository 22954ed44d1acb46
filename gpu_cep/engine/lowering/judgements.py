"""Write a branch's conditions as judgements, by which runs without a choice are walked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.plan.event_plan import Part, PlannedBranch, Spread
from gpu_cep_kernels.automaton.single_runs import ALWAYS, CURRENT, FIRST_ONLY, FURTHER_ONLY, Judgements
from gpu_cep_kernels.rules.tables import ConditionTable, PatternTable, Words

# Variables whose bits fit into one word.
_MOST_VARIABLES = 64
_WHEN = {Spread.ONCE: FIRST_ONLY, Spread.SINGLY: ALWAYS, Spread.CONSECUTIVELY: FURTHER_ONLY}


class _Judgement(NamedTuple):
    """A judgement of a condition where a variable binds an event; `slots` has the slot of each role."""

    condition: int
    needed: int
    when: int
    waits: int
    slots: tuple[int, ...]


class _Many(Exception):
    """Says that a condition reads several events of a variable at once."""


def judgements(branch: PlannedBranch, pattern: PatternTable, table: ConditionTable) -> Judgements | None:
    """Return the judgements of a branch; None if a condition reads several events of a variable at once.

    ``b.x > a.x`` does for a quantified a before b, where an event of b is compared with all of a.
    """
    variables = len(pattern.order)
    if len(branch.variables) > _MOST_VARIABLES:
        return None
    try:
        listed = [list(_judgements_of(v, branch, pattern, table)) for v in range(variables)]
    except _Many:
        return None
    every = [each for own in listed for each in own]
    sides = [[(*each.slots, CURRENT)[role[each.condition]] for each in every] for role in (table.left_role, table.right_role)]
    return Judgements(
        before=_masks(pattern.precedes.T),
        behind=_masks(pattern.precedes),
        everyone=_masks(np.ones((1, variables), np.bool_)),
        first=offsets([len(own) for own in listed]),
        condition=np.array([each.condition for each in every], np.int64),
        needed=np.array([each.needed for each in every], np.uint64),
        when=np.array([each.when for each in every], np.int64),
        waits=np.array([each.waits for each in every], np.uint64),
        left=np.array(sides[0], np.int64),
        right=np.array(sides[1], np.int64),
        slot_first=offsets([len(each.slots) for each in every]),
        slot=np.array([slot for each in every for slot in each.slots], np.int64),
    )


class NegationJudgement(NamedTuple):
    """A judgement of a condition on an event of a negated variable; `slots` has the slot of each role."""

    condition: int
    slots: tuple[int, ...]


def negation_judgements(
    branch: PlannedBranch, pattern: PatternTable, table: ConditionTable
) -> list[list[NegationJudgement]] | None:  # fmt: skip
    """Return the judgements of each negation of a branch, once a match is complete.

    None if a condition reads several events of a variable at once.
    """
    try:
        return [list(_judgements_of_negated(each.variable, branch, pattern, table)) for each in branch.negations]
    except _Many:
        return None


def _judgements_of_negated(v: int, branch: PlannedBranch, pattern: PatternTable, table: ConditionTable) -> Iterator[NegationJudgement]:
    """Yield the judgements of an event of negated variable v; raises as :func:`_judgements_of`."""
    for c in table.listed[table.first[v] : table.first[v + 1]].tolist():
        condition = branch.conditions[c]
        slots = [CURRENT] * condition.roles
        for part in condition.parts:
            if part.variable != v:
                _place_other(part, pattern, slots)
            elif part.spread is not Spread.SINGLY:
                raise _Many
        yield NegationJudgement(c, tuple(slots))


def _judgements_of(v: int, branch: PlannedBranch, pattern: PatternTable, table: ConditionTable) -> Iterator[_Judgement]:
    """Yield the judgements that are made where variable v binds an event.

    Raises
    ------
    _Many
        A condition reads several events of a variable at once.
    """
    for c in table.listed[table.first[v] : table.first[v + 1]].tolist():
        condition = branch.conditions[c]
        others = [part for part in condition.parts if part.variable != v]
        own = [part for part in condition.parts if part.variable == v]
        if any(_has_no_second(part, pattern) for part in condition.parts) or any(_comes_behind(part, v, pattern) for part in others):
            continue
        slots = [CURRENT] * condition.roles
        for part in others:
            _place_other(part, pattern, slots)
        for part in own:
            _place_own(part, pattern, slots)
        needed = sum(1 << part.variable for part in others)
        waits = sum(1 << u for u in condition.closing if not pattern.precedes[u, v])
        yield _Judgement(c, needed, _WHEN[own[0].spread] if own else ALWAYS, waits, tuple(slots))


def _has_no_second(part: Part, pattern: PatternTable) -> bool:
    """Return whether a part relates two events of a variable that binds one: its condition then holds."""
    return part.spread in (Spread.CONSECUTIVELY, Spread.PAIRWISE) and pattern.maximum[part.variable] == 1


def _comes_behind(part: Part, v: int, pattern: PatternTable) -> bool:
    """Return whether a part reads a variable behind v: while that binds an event v binds none, so that v never decides the condition."""
    return part.variable < len(pattern.order) and bool(pattern.precedes[v, part.variable])


def _place_other(part: Part, pattern: PatternTable, slots: list[int]) -> None:
    """Set the slots of what a condition reads of a variable that is bound already."""
    v, variables = part.variable, len(pattern.order)
    if part.spread is not Spread.ONCE and pattern.maximum[v] != 1:
        raise _Many
    for role, slot in ((part.first, v), (part.last, variables + v), (part.each, variables + v)):
        if role >= 0:
            slots[role] = slot


def _place_own(part: Part, pattern: PatternTable, slots: list[int]) -> None:
    """Set the slots of what a condition reads of the variable that binds the current event."""
    v, variables = part.variable, len(pattern.order)
    if part.spread is Spread.PAIRWISE:
        raise _Many
    for role, slot in ((part.each, CURRENT), (part.previous, variables + v), (part.first, v), (part.last, variables + v)):
        if role >= 0:
            slots[role] = slot


def _masks(relation: npt.NDArray[np.bool_]) -> Words:
    """Return each row of a matrix as a bit mask."""
    return np.array([sum(1 << v for v in np.flatnonzero(row).tolist()) for row in relation], np.uint64)

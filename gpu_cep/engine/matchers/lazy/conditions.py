"""When conditions are decided while the lazy automata bind variables in an order that is not the pattern's."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.lowering.pattern_tables import MatcherTables, offsets
from gpu_cep.plan.event_plan import Part, PlannedCondition, Spread
from gpu_cep_kernels.lazy.iteration_tables import ALONE, CLOSING, FILTERING, FIRST, FOLLOWING, GROUPING, IterationTable
from gpu_cep_kernels.rules.scalars import EQ, NE
from gpu_cep_kernels.rules.tables import BY_PROGRAM, ConditionTable


def iteration_table(tables: MatcherTables) -> IterationTable:
    """The conditions that the events of each variable decide, but those on negated variables."""
    positives = range(len(tables.branch.before))
    conditions = [(c, condition) for c, condition in enumerate(tables.branch.conditions) if condition.variables <= set(positives)]
    uses = [[(c, when) for c, condition in conditions for when in _uses(c, condition, v, tables.conditions)] for v in positives]
    flat = np.array([use for own in uses for use in own], np.int64).reshape(-1, 2)
    return IterationTable(offsets([len(own) for own in uses]), flat[:, 0].copy(), flat[:, 1].copy())


def without_closing(tables: MatcherTables) -> ConditionTable:
    """The conditions, of which positive variables list those only that do not wait until a quantified variable binds no more."""
    table, positives = tables.conditions, len(tables.branch.before)
    if not len(table.closing):
        return table
    listed = [table.listed[low:high].tolist() for low, high in zip(table.first[:-1], table.first[1:], strict=True)]
    kept = [[c for c in own if v >= positives or not tables.branch.conditions[c].closing] for v, own in enumerate(listed)]
    return table._replace(first=offsets([len(own) for own in kept]), listed=np.array([c for own in kept for c in own], np.int64))


def _uses(c: int, condition: PlannedCondition, v: int, table: ConditionTable) -> tuple[int, ...]:
    """When events of v decide condition c."""
    if v in condition.closing:
        return (CLOSING,)
    own = [part for part in condition.parts if part.variable == v]
    return _uses_of_part(c, own[0], len(condition.parts) == 1, table) if own else ()


def _uses_of_part(c: int, part: Part, single: bool, table: ConditionTable) -> tuple[int, ...]:
    match part.spread:
        case Spread.ONCE:
            return (FIRST,)
        case Spread.SINGLY:
            return (ALONE,) if part.first < 0 else (FIRST, GROUPING)
    if not single or table.means[c] == BY_PROGRAM:
        return (FOLLOWING,)
    return (_use_of_comparison(c, part, table),)


def _use_of_comparison(c: int, part: Part, table: ConditionTable) -> int:
    """When an event is compared with those before it: what is true of neighbours and carries over from one to the next filters."""
    roles = {int(table.left_role[c]), int(table.right_role[c])}
    if roles == {part.each, part.first}:
        return GROUPING
    carries_over = roles == {part.each, part.previous} and table.left_column[c] == table.right_column[c] and table.comparison[c] != NE
    if carries_over and table.comparison[c] == EQ:
        return GROUPING
    return FILTERING if carries_over and part.spread is Spread.CONSECUTIVELY else FOLLOWING

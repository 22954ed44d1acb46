"""Say when the lazy automata judge conditions: they do not bind variables in the pattern's order."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.plan.event_plan import Part, PlannedCondition, Spread
from gpu_cep_kernels.lazy.iteration_tables import ALONE, CLOSING, FILTERING, FIRST, FOLLOWING, GROUPING, IterationTable
from gpu_cep_kernels.rules.scalars import EQ, NE
from gpu_cep_kernels.rules.tables import BY_PROGRAM, ConditionTable


def iteration_table(tables: MatcherTables) -> IterationTable:
    """Return, for each variable, the conditions that its events decide, and when they do.

    Conditions on negated variables are left out.
    """
    positives = range(len(tables.branch.before))
    conditions = [(c, condition) for c, condition in enumerate(tables.branch.conditions) if condition.variables <= set(positives)]
    decisions = [
        [(c, when) for c, condition in conditions for when in _decision_times(c, condition, v, tables.conditions)] for v in positives
    ]
    flat = np.array([decision for own in decisions for decision in own], np.int64).reshape(-1, 2)
    return IterationTable(offsets([len(own) for own in decisions]), flat[:, 0].copy(), flat[:, 1].copy())


def drop_closing_conditions(tables: MatcherTables) -> ConditionTable:
    """Return the condition table without the closing conditions' entries.

    Closing conditions wait until a quantified variable binds no more. Negated
    variables keep all their entries.
    """
    table, positives = tables.conditions, len(tables.branch.before)
    if not len(table.closing):
        return table
    listed = [table.listed[low:high].tolist() for low, high in zip(table.first[:-1], table.first[1:], strict=True)]
    kept = [[c for c in own if v >= positives or not tables.branch.conditions[c].closing] for v, own in enumerate(listed)]
    return table._replace(first=offsets([len(own) for own in kept]), listed=np.array([c for own in kept for c in own], np.int64))


def _decision_times(c: int, condition: PlannedCondition, v: int, table: ConditionTable) -> tuple[int, ...]:
    """Return when events of variable v decide condition c, as constants of the iteration tables."""
    if v in condition.closing:
        return (CLOSING,)
    own = [part for part in condition.parts if part.variable == v]
    return _part_decision_times(c, own[0], len(condition.parts) == 1, table) if own else ()


def _part_decision_times(c: int, part: Part, reads_one_variable: bool, table: ConditionTable) -> tuple[int, ...]:
    match part.spread:
        case Spread.ONCE:
            return (FIRST,)
        case Spread.SINGLY:
            return (ALONE,) if part.first < 0 else (FIRST, GROUPING)
    if not reads_one_variable or table.means[c] == BY_PROGRAM:
        return (FOLLOWING,)
    return (_comparison_decision_time(c, part, table),)


def _comparison_decision_time(c: int, part: Part, table: ConditionTable) -> int:
    """Return when a comparison of a variable's events with each other is judged.

    A comparison of neighbours that is transitive, such as <, filters the list
    of events. An equality, or a comparison with the first event, groups them.
    """
    roles = {int(table.left_role[c]), int(table.right_role[c])}
    if roles == {part.each, part.first}:
        return GROUPING
    transitive = roles == {part.each, part.previous} and table.left_column[c] == table.right_column[c] and table.comparison[c] != NE
    if transitive and table.comparison[c] == EQ:
        return GROUPING
    return FILTERING if transitive and part.spread is Spread.CONSECUTIVELY else FOLLOWING

"""Write a branch's comparisons between neighbours as the table by which one kernel judges all of them."""

from __future__ import annotations

import numpy as np

from gpu_cep.plan.event_plan import LiftedCondition, PlannedBranch
from gpu_cep_kernels.phase_one.neighbour_conditions import NeighbourComparisons
from gpu_cep_kernels.rules.tables import BY_PROGRAM, ConditionTable


def divide_lifted(
    branch: PlannedBranch, conditions: ConditionTable
) -> tuple[NeighbourComparisons | None, tuple[LiftedCondition, ...]]:  # fmt: skip
    """Return the table of the lifted conditions that compare two columns (None: there are none), and all other lifted conditions."""
    lifted = branch.lifted or ()
    compared = [each for each in lifted if conditions.means[each.condition] != BY_PROGRAM]
    table = _comparison_table(branch, conditions, compared) if compared else None
    return table, tuple(each for each in lifted if conditions.means[each.condition] == BY_PROGRAM)


def _comparison_table(branch: PlannedBranch, conditions: ConditionTable, compared: list[LiftedCondition]) -> NeighbourComparisons:
    """Return the table of conditions that compare two columns."""
    numbers, bits = [each.condition for each in compared], [branch.positives[each.variable] for each in compared]
    sides = [(conditions.left_column, conditions.left_role), (conditions.right_column, conditions.right_role)]
    columns, roles = ([table[numbers] for table in tables] for tables in zip(*sides, strict=True))
    back = [[each.back[role] for each, role in zip(compared, own.tolist(), strict=True)] for own in roles]
    return NeighbourComparisons(
        means=conditions.means[numbers],
        comparison=conditions.comparison[numbers],
        columns=np.ascontiguousarray(np.transpose(columns)),
        back=np.ascontiguousarray(np.array(back, np.int64).T),
        repeated=np.array([each.repeated for each in compared], np.bool_),
        others=~(np.uint64(1) << np.array(bits, np.uint64)),
    )

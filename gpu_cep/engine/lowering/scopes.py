"""Say between which events of a match a NOT rules events out: its scope.

The variables on either side bound the scope. Where NOT begins or ends the
pattern, the window does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.identity import while_alive
from gpu_cep.plan.event_plan import PlannedBranch, PlannedNegation
from gpu_cep_kernels.rules.tables import Ints


@while_alive
def scope_fields(branch: PlannedBranch) -> dict[str, Any]:
    """Return the fields of a NegationTable that depend on no events.

    They are the negated variables, and the variables that bound their scopes.
    """
    negations = branch.negations
    bounds = [scope_bounds(branch, negation) for negation in negations]
    return {
        "variable": np.array([negation.variable for negation in negations], np.uint16),
        "after_first": offsets([len(after) for after, _ in bounds]),
        "after": np.array([v for after, _ in bounds for v in after], np.int64),
        "before_first": offsets([len(before) for _, before in bounds]),
        "before": np.array([v for _, before in bounds for v in before], np.int64),
    }


@while_alive
def chain_scopes(branch: PlannedBranch) -> tuple[Ints, Ints]:
    """Return the variable behind which the scope of each negation of a chain begins, and the one before which it ends; −1: a window."""
    bounds = [scope_bounds(branch, negation) for negation in branch.negations]
    after, before = ([next(iter(own), -1) for own in side] for side in zip(*bounds, strict=True))
    return np.array(after, np.int64), np.array(before, np.int64)


def scope_bounds(branch: PlannedBranch, negation: PlannedNegation) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the variables that bound a negation's scope on the left and on the right.

    They are the last of those before it and the first of those behind it. A
    side without variables is open: the window bounds it.
    """
    after, before = negation.after, negation.before
    last = tuple(v for v in after if not any(branch.before[w] >> v & 1 for w in after))
    first = tuple(v for v in before if not any(branch.before[v] >> u & 1 for u in before))
    return last, first

"""Judge negations among joins (ZStream's negated operators).

A negation rules out rows of the first table that binds all that it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.matchers.joins.partial_matches import take_partial_matches
from gpu_cep.engine.matchers.match_tables import failed_condition
from gpu_cep.plan.join_trees import Join, Tree, joined_variables
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.joins.table_joins import judge_rows
from gpu_cep_kernels.matches.hashing import PartialMatches
from gpu_cep_kernels.rules.tables import Conditions, Criteria, EventPath, Flags, NegationTable, PatternTable


@dataclass(frozen=True, slots=True)
class JoinNegations:
    """The negations of a branch in one batch.

    ``needs[n, v]``: negation n cannot be judged before variable v is bound.
    Each thread has one of the `runs` for scratch. If a condition overflows,
    `fail` gets its number and an event at which a match may start.
    """

    pattern: PatternTable
    conditions: Conditions
    negations: NegationTable
    needs: Flags
    runs: tuple[EventPath, ...]
    fail: Callable[[int, int], NoReturn]

    def judged_at(self, tree: Tree) -> Indices:
        """Return the negations that rows of a tree can be judged by, and rows of its sides cannot."""
        sides = [tree.left, tree.right] if isinstance(tree, Join) else []
        earlier = [n for side in sides for n in self._judgeable(side)]
        return np.setdiff1d(self._judgeable(tree), earlier)

    def _judgeable(self, tree: Tree) -> Indices:
        """Return the negations that need only variables that the rows of a tree bind."""
        return np.flatnonzero(~np.delete(self.needs, joined_variables(tree), axis=1).any(axis=1))

    def filter_rows(self, tree: Tree, table: PartialMatches) -> PartialMatches:
        """Return the rows of a tree that are not ruled out by the negations judged at it."""
        judged = self.judged_at(tree)
        if not len(judged):
            return table
        variables, keep = np.array(joined_variables(tree), np.int64), np.empty(len(table.first), np.bool_)

        def judge(part: tuple[EventPath, tuple[int, int]]) -> int:
            run, (low, high) = part
            return judge_rows(low, high, table, variables, judged, Criteria(self.pattern, self.conditions, self.negations), run, keep)

        parts = [*zip(self.runs, slices(len(keep), len(self.runs)), strict=False)]
        for (run, (_, high)), row in zip(parts, spread(judge, parts, len(self.runs)), strict=True):
            if row < high:
                self.fail(failed_condition(run), int(table.first[row]))
        rows = np.flatnonzero(keep)
        return table if len(rows) == len(keep) else take_partial_matches(np, table, rows)

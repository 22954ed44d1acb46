"""Choose the rows of the result: one for each match, or the rows of matches, and where asked those of none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.row_patterns.found import RowMatches
from gpu_cep.plan.row_patterns.row_plan import RowPlan

_NO_OWNERS = np.empty(0, np.int64)


@dataclass(frozen=True)
class ShownRows:
    """The rows of the result.

    ``rows[i]``: the ordered row whose columns result row i shows.
    ``owners[i]``: its match; −1 for a row of no match. With `last` it is match i, and none are given.
    `last`: whether measures are computed at the last row of each match, and so once for each match.
    """

    matches: RowMatches
    rows: Indices
    owners: Indices
    last: bool

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def current(self) -> Indices:
        """Return the row at which the measures of each result row are computed: for an empty match the one before it."""
        if self.last:
            return self.matches.firsts + self.matches.lengths - 1
        if not self.matches.some_empty:
            return self.rows
        before: Indices = self.rows - ((self.matches.lengths[self.owners] == 0) & (self.owners >= 0))
        return before

    @cached_property
    def unmatched(self) -> npt.NDArray[np.bool_] | None:
        """Return which result rows belong to no match; None if all do."""
        if self.last or self.owners.min(initial=0) >= 0:
            return None
        return self.owners < 0

    def of_match(self, values: Indices) -> Indices:
        """Return a match's value for each result row; any value where there is no match."""
        if self.last:
            return values
        return values[self.owners] if len(values) else np.zeros(len(self), values.dtype)


def shown_rows(plan: RowPlan, matches: RowMatches) -> ShownRows:
    """Return the rows that matches show: with ONE ROW the first of each, else all that are not excluded."""
    query = plan.bound.query
    if query.rows == "one":
        return ShownRows(matches, matches.firsts, _NO_OWNERS, last=True)
    rows, owners = matches.rows, matches.owners
    if any(plan.automaton.excluded):
        kept = ~np.array(plan.automaton.excluded, np.bool_)[matches.states]
        rows, owners = rows[kept], owners[kept]
    if query.rows != "omit empty" and matches.some_empty:
        empty = np.flatnonzero(matches.lengths == 0)
        rows, owners = np.concatenate([rows, matches.firsts[empty]]), np.concatenate([owners, empty])
        order = np.argsort(owners, kind="stable")
        rows, owners = rows[order], owners[order]
    return ShownRows(matches, rows, owners, last=False)


def with_unmatched(shown: ShownRows, unmatched: Indices) -> ShownRows:
    """Return the rows that matches show and those of no match, where the search came to them."""
    rows = np.concatenate([shown.rows, unmatched])
    owners = np.concatenate([shown.owners, np.full(len(unmatched), -1)])
    starts = np.concatenate([shown.matches.firsts[shown.owners], unmatched])
    order = np.argsort(starts, kind="stable")
    return ShownRows(shown.matches, rows[order], owners[order], last=False)


def covered_rows(matches: RowMatches, length: int) -> npt.NDArray[np.bool_]:
    """Return which of so many rows belong to a match, or are the place of an empty one."""
    opened = np.zeros(length + 1, np.int64)
    opened[matches.firsts] += 1
    np.subtract.at(opened, matches.firsts + matches.lengths, 1)
    covered = np.cumsum(opened)[:length] > 0
    covered[matches.firsts] = True
    return covered

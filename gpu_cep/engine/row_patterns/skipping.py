"""Say where the search goes on behind a match, and why it cannot."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.row_patterns.found import RowMatches
from gpu_cep.engine.row_patterns.run import RowRun
from gpu_cep.errors import EventError
from gpu_cep.plan.row_patterns.row_plan import RowPlan
from gpu_cep_kernels.row_patterns.tables import SkipTo

_FORMS = {"PAST LAST ROW": SkipTo.PAST_LAST_ROW, "NEXT ROW": SkipTo.NEXT_ROW, "FIRST": SkipTo.FIRST, "LAST": SkipTo.LAST}


def skip_to(plan: RowPlan) -> int:
    """Return where the search goes on behind a match with rows."""
    skip = plan.bound.query.skip
    return int(SkipTo.PAST_LAST_ROW if skip is None else _FORMS[skip.to])


def target_fault(run: RowRun, matches: RowMatches, first: int) -> EventError:
    """Return the error of the match that begins in row `first`, which has no row to skip to, or begins with that row."""
    skip = run.plan.bound.query.skip
    assert skip is not None, "only a variable may have no row"
    m = int(np.searchsorted(matches.firsts, first))
    states = matches.states[matches.places[m] : matches.places[m + 1]]
    begins = f"match {matches.partitions.numbers[m]} of its partition, from row {run.input_row(first)} on,"
    where = f"AFTER MATCH SKIP TO {skip.to} {skip.variable}: {begins}"
    if not run.automaton.target[states].any():
        return EventError(f"{where} has no row of {skip.variable}")
    return EventError(f"{where} would be found again, since that is its first row")

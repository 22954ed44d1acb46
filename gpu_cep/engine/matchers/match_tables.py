"""Allocate the tables that kernels write matches or counts into, and read why a kernel stopped."""

from __future__ import annotations

import numpy as np

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.input.buffers import new_values
from gpu_cep_kernels.rules.tables import EventPath, MatchTable, PathState


def new_match_table(matches: int, events: int, variables: int) -> MatchTable:
    """Return room for so many matches of so many variables, which bind so many events together."""
    counts = new_values((matches, variables), np.int32)
    return MatchTable(new_values(matches, np.int64), counts, new_values(events, np.int64), totals=np.empty(0, np.int64))


def new_count_table(totals: Indices, variables: int, starts: Indices | None = None) -> MatchTable:
    """Return a table that matches are only counted in: kernels raise `totals` and lower `starts`."""
    nothing = np.empty(0, np.int64)
    return MatchTable(nothing if starts is None else starts, np.empty((0, variables), np.int32), nothing, totals)


def failed_condition(run: EventPath) -> int:
    """Return the number of the condition whose overflow ended the enumeration `run`."""
    return int(run.state[PathState.ERROR_CONDITION]) - 1

"""Count matches without enumerating them, if labels decide the matches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.windows.candidates import BatchWindows
from gpu_cep.engine.windows.placed_windows import Candidates, candidate_ends
from gpu_cep.plan.event_plan import PlannedBranch
from gpu_cep.plan.states import StateSpace, Transition
from gpu_cep_kernels.labels_decide.counting import CountScratch, LabelledEvents, Moves, StateTable, count_matches
from gpu_cep_kernels.rules.scalars import UNBOUNDED

# Starts that are counted at a time.
_ROWS = 1 << 14


def count_by_states(branch: PlannedBranch, space: StateSpace, windows: BatchWindows, candidates: Candidates) -> Indices:
    """Return the number of matches that start at each candidate.

    The greatest int64 stands for any larger number.
    """
    totals = np.zeros(len(candidates.starts), np.int64)
    states = len(space.final)
    scratch = CountScratch(
        front=np.empty((states, states), np.int64),
        back=np.empty((states, states), np.int64),
        rows=np.empty((min(_ROWS, len(totals)), states), np.int64),
        completions=np.empty((states, 1), np.int64),
    )
    ends = candidate_ends(windows, candidates)
    count_matches(
        candidates.starts, ends, LabelledEvents(windows.next_events.after, windows.labels), state_table(branch, space), scratch, totals
    )
    return totals


def sum_counts(totals: Indices) -> int:
    """Return the sum of numbers of matches, as a Python int that cannot overflow."""
    return int(totals.sum()) if float(totals.sum(dtype=np.float64)) < UNBOUNDED / 2 else sum(totals.tolist())


def state_table(branch: PlannedBranch, space: StateSpace) -> StateTable:
    """Return the table of states that kernels read; its variables are the query's."""
    later = [transition for transition in space.transitions if transition.source]
    first = [transition for transition in space.transitions if not transition.source]
    number = len(space.final)
    settled = _numbers(space.settled)
    return StateTable(
        forth=_moves(branch, later, [each.source for each in later], [each.target for each in later], number),
        back=_moves(branch, later, [each.target for each in later], [each.source for each in later], number),
        begin=_numbers(each.target for each in first),
        begin_variable=_numbers(branch.positives[each.variable] for each in first),
        final=np.array(space.final, np.bool_),
        settled=settled,
        highest=_numbers(int(np.flatnonzero(settled <= state)[-1]) for state in range(number)),
    )


def _moves(branch: PlannedBranch, transitions: Sequence[Transition], ends: Sequence[int], others: Sequence[int], number: int) -> Moves:
    """Return the table of transitions, grouped by a state of each.

    Transition t is grouped by state ``ends[t]``; its other state is ``others[t]``.
    """
    order = np.argsort(_numbers(ends), kind="stable")
    return Moves(
        first=offsets(np.bincount(_numbers(ends), minlength=number)),
        state=_numbers(others)[order],
        variable=_numbers(branch.positives[each.variable] for each in transitions)[order],
    )


def _numbers(numbers: Iterable[int]) -> Indices:
    """Return an array of int64."""
    return np.array(list(numbers), np.int64)

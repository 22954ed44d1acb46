"""Count matches without enumerating them, if labels decide the matches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.windows.placed_windows import Candidates, PlacedWindows, candidate_ends
from gpu_cep.plan.event_plan import PlannedBranch
from gpu_cep.plan.states import StateSpace, Transition
from gpu_cep_kernels.device.interface import Array, Backend
from gpu_cep_kernels.device.packing import to_device
from gpu_cep_kernels.labels_decide.counting import CountScratch, LabelledEvents, Moves, StateTable, count_matches
from gpu_cep_kernels.rules.scalars import UNBOUNDED

# Candidates that a slot keeps rows for at a time, and candidates of a tile at least: windows of neighbours overlap.
_ROWS, _LEAST = 1 << 14, 16


def count_by_states(branch: PlannedBranch, space: StateSpace, windows: PlacedWindows, candidates: Candidates) -> Array:
    """Return the number of matches (int64) that start at each candidate, which lie where the windows do.

    The greatest int64 stands for any larger number.
    """
    place, starts = windows.place, candidates.starts
    totals = place.xp.empty(len(starts), np.int64)
    tile = tile_size(place, len(starts))
    tiles = -(-len(starts) // tile)
    scratch = _new_scratch(place.xp, place.slots(tiles), len(space.final), min(_ROWS, tile))
    events, states = LabelledEvents(windows.next_events.after, windows.labels), to_device(place, state_table(branch, space))
    place.launch(count_matches, tiles, tile, starts, candidate_ends(windows, candidates), events, states, scratch, totals)
    return totals


def tile_size(place: Backend, candidates: int) -> int:
    """Return how many candidates are counted one after another: each slot has a tile, unless that would be of few."""
    return max(_LEAST, -(-candidates // place.slots(max(1, candidates))))


def bytes_of_candidate(space: StateSpace) -> int:
    """Return the most bytes that counting takes for each candidate: its total, its end, and its share of the scratch of a tile."""
    states = len(space.final)
    return 8 + 4 + 8 * (2 * states * states + states) // _LEAST + 8 * states


def _new_scratch(xp: Any, slots: int, states: int, rows: int) -> CountScratch:
    """Return scratch for so many slots, as arrays of the module `xp`."""
    shapes = (states, states), (states, states), (rows, states), (states, 1)
    return CountScratch(*(xp.empty((slots, *shape), np.int64) for shape in shapes))


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
